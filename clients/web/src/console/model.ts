// What the console is made of, and what it shows now.

import { effect, signal } from "@preact/signals";
import type { DeliveredFeature } from "nearcast";

import type { Place } from "../shared/map/plane.js";
import { pageSettings, type PageSettings } from "../shared/pages.js";
import { Access } from "./access.js";
import { Clients } from "./clients/list.js";
import { Figures } from "./live/figures.js";
import { Live } from "./live/live.js";
import type { Layer, MapView } from "./map/view.js";
import { Draft } from "./try/draft.js";
import type { Drawing } from "./try/draw.js";
import { rounded } from "./try/shape.js";

export type Tab = "live" | "clients" | "try";

/** What was clicked. */
export type Detail =
  | { readonly kind: "event"; readonly feature: DeliveredFeature }
  | { readonly kind: "client"; readonly client: string }
  /** Several were near. */
  | { readonly kind: "choice"; readonly events: readonly DeliveredFeature[]; readonly clients: readonly string[] };

/** Ways back that are kept. */
const BACK = 20;
/** Points fade so often. */
const FADE_MS = 1000;
/** Where there is no base map events of so long are waited for. */
const FIRST_LOOK_MS = 1000;

export class Console {
  readonly settings: PageSettings;
  readonly access: Access;
  readonly live: Live;
  readonly figures: Figures;
  readonly clients: Clients;
  readonly draft: Draft;
  readonly tab = signal<Tab>("live");
  /** What was opened, the last one on top. */
  readonly details = signal<readonly Detail[]>([]);
  readonly layers = signal<Readonly<Record<Layer, boolean>>>({ events: true, clients: true, areas: true });
  /** Both come with the map. */
  readonly view = signal<MapView | undefined>(undefined);
  readonly drawing = signal<Drawing | undefined>(undefined);
  /** Why there is no map. */
  readonly mapProblem = signal<string | undefined>(undefined);

  constructor(settings: PageSettings) {
    this.settings = settings;
    this.access = new Access(settings.tokens);
    this.live = new Live(this.access, settings.object ?? undefined);
    this.figures = new Figures(this.access);
    this.clients = new Clients(this.access);
    this.draft = new Draft(this.access, this.live, settings.world);
    let ready = 0;
    effect(() => {
      // A broker that comes back may be in another world. Who cannot be asked now is asked the next time.
      if (this.live.link.value.state === "ready" && ready++ > 0) void this.#reloadIfOther().catch(() => undefined);
    });
    effect(() => {
      const opened = this.details.value.length > 0;
      this.clients.seen.value = this.tab.value === "clients" || opened;
      this.draft.active.value = this.tab.value === "try";
    });
  }

  /** The map is there. */
  show(view: MapView, drawing: Drawing): void {
    this.view.value = view;
    this.drawing.value = drawing;
    this.live.show(view);
    this.clients.show(view);
    void this.#firstLook(view);
    setInterval(() => view.fade(this.live.objects.newest(), performance.now()), FADE_MS);
    view.onPick(({ events, clients }) => {
      const features = events.flatMap((id) => this.live.objects.get(id)?.feature ?? []);
      const [event, client] = [features[0], clients[0]];
      if (features.length + clients.length > 1) this.open({ kind: "choice", events: features, clients });
      else if (event !== undefined) this.open({ kind: "event", feature: event });
      else if (client !== undefined) this.open({ kind: "client", client });
    });
    effect(() => {
      const detail = this.details.value.at(-1);
      view.choose(
        detail?.kind === "event" ? placeOf(detail.feature) : detail?.kind === "client" ? this.clients.placeOf(detail.client) : undefined,
      );
      if (detail?.kind !== "client") view.draw("chosen", []);
    });
    effect(() => {
      for (const [layer, on] of Object.entries(this.layers.value)) view.switch(layer as Layer, on);
    });
    effect(() => {
      if (!this.draft.active.value) drawing.finish();
    });
  }

  async #reloadIfOther(): Promise<void> {
    if (JSON.stringify(await pageSettings()) !== JSON.stringify(this.settings)) location.reload();
  }

  /** Shows everything there is on the map. */
  showAll(): void {
    void this.view.value?.fit(this.#places());
  }

  /** The base map at once; where there is none, events as soon as there are some. */
  async #firstLook(view: MapView): Promise<void> {
    if ((await view.base.bounds) !== undefined) {
      await view.fit([], false);
      return;
    }
    while (this.#places().length === 0) await new Promise((resolve) => setTimeout(resolve, FIRST_LOOK_MS));
    await new Promise((resolve) => setTimeout(resolve, FIRST_LOOK_MS));
    if (!view.touched) await view.fit(this.#places(), false);
  }

  #places(): Place[] {
    return [...this.live.objects.newest().map(({ place }) => place), ...this.clients.positions()];
  }

  /** The middle of what the map shows, in the world's units. */
  middle(): Place {
    const base = this.view.value?.base;
    if (base === undefined) return [0, 0];
    const { lng, lat } = base.map.getCenter();
    const [x, y] = base.plane.toWorld([lng, lat]);
    return [rounded(x, this.settings.world), rounded(y, this.settings.world)];
  }

  open(detail: Detail): void {
    this.details.value = [...this.details.value.slice(1 - BACK), detail];
  }

  back(): void {
    this.details.value = this.details.value.slice(0, -1);
  }

  /** Goes to a tab; what was opened is closed. */
  go(tab: Tab): void {
    this.details.value = [];
    this.tab.value = tab;
  }
}

export function placeOf({ geometry: { coordinates } }: Pick<DeliveredFeature, "geometry">): Place {
  return [coordinates[0], coordinates[1]];
}
