// The broker's clients, their subscriptions, and both on the map.

import { effect, signal, untracked } from "@preact/signals";
import type { Feature } from "geojson";
import type { SubscriptionDocument } from "nearcast";

import type { Place } from "../../shared/map/plane.js";
import { reasonOf, statusOf, type Access } from "../access.js";
import { boxOf, discOf, shapesOf, type Box } from "../map/areas.js";
import type { MapView } from "../map/view.js";
import { slowOf, type ClientShown } from "./state.js";
import { Ways } from "./ways.js";

/** Asking costs each engine a look at all of its clients: often while somebody looks at them, else seldom. */
const SEEN_MS = 3000;
const UNSEEN_MS = 15_000;
const LISTED = 1000;
/** Clients whose subscriptions are fetched beside each other. */
const AT_ONCE = 4;
/** Beyond this number of areas around clients they are drawn as one: a ring for each would hide the map. */
const FEW = 20;
/** A circle that stays is drawn so below that width: its ring would be taken for a mark. */
const LEAST_STILL_PX = 48;
/** The most areas around clients that are drawn. */
const FOLLOWING = 2000;
/** Areas that stay are drawn up to so many, and subscriptions are fetched up to so many. */
const STILL = 2000;
const FETCHED = 20_000;
/** Subscriptions are fetched again after so long. */
const STALE_MS = 60_000;
/** The areas of the client that somebody looks at are computed again after so long, for they move. */
const OWN_MS = 1000;
const EVERYWHERE: Box = [-Infinity, -Infinity, Infinity, Infinity];

export class Clients {
  readonly list = signal<readonly ClientShown[]>([]);
  readonly more = signal(false);
  /** Clients that do not keep up. */
  readonly slow = signal(0);
  /** Why there is no list. */
  readonly why = signal<string | undefined>(undefined);
  /** Somebody looks at the list. */
  readonly seen = signal(false);
  /** Shapes and clients that the map shows. */
  readonly areas = signal(0);
  /** Of those the ones that move with their clients. */
  readonly following = signal(0);
  /** Of those the ones that are drawn as one, and from far away hardly. */
  readonly shaded = signal(0);
  /** Areas that there are, drawn or not, of the clients that are listed. */
  readonly allAreas = signal(0);
  readonly places = signal(0);
  /** Clients that are objects on the map, and have their mark there. */
  readonly merged = signal(0);
  /** There are more areas around clients in sight than are drawn. */
  readonly tooMany = signal(false);
  readonly ways: Ways;
  readonly #access: Access;
  /** By client; of at most as many as are listed. */
  readonly #subscriptions = new Map<
    string,
    { readonly count: number; readonly fetched_ms: number; readonly documents: readonly SubscriptionDocument[] }
  >();
  #view: MapView | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #refused: { readonly token: string | undefined } | undefined;
  #looking = false;
  /** Around the areas that are drawn, in degrees of the map. */
  #boxes: readonly Box[] = [];
  /** Around those of the client that was asked about last, drawn or not. */
  #own: { readonly client: string; readonly made_ms: number; readonly boxes: readonly Box[] } | undefined;
  /** Says where a client is that an object on the map is, too. */
  fresh: (client: string) => Place | undefined = () => undefined;
  /** Hears which clients there are. */
  onList: (clients: readonly ClientShown[]) => void = () => undefined;
  /** The list has come at least once. */
  #listed = false;

  constructor(access: Access) {
    this.#access = access;
    this.ways = new Ways(access);
    effect(() => {
      if (this.ways.answers.value > 0) untracked(() => this.#draw());
    });
    effect(() => {
      // Who opens the list wants to see it now.
      if (this.seen.value) void this.#look();
    });
    void this.#look();
  }

  show(view: MapView): void {
    this.#view = view;
    view.base.map.on("moveend", () => this.#draw());
    this.#place();
    this.#draw();
  }

  /** A client's subscriptions as they are now. */
  async subscriptionsOf(client: string, signal?: AbortSignal): Promise<readonly SubscriptionDocument[]> {
    const path = `v1/clients/${encodeURIComponent(client)}/subscriptions`;
    const documents = (await this.#access.call(path, signal === undefined ? {} : { signal })) as readonly SubscriptionDocument[];
    this.#subscriptions.set(client, { count: documents.length, fetched_ms: performance.now(), documents });
    return documents;
  }

  /** A client's subscriptions have changed: they are fetched and drawn again. */
  changed(client: string): void {
    this.#subscriptions.delete(client);
    void this.#look();
  }

  /** About where a client is; `undefined` where that is not shown. */
  placeOf(client: string): Place | undefined {
    const [x, y] = this.fresh(client) ?? this.list.value.find((each) => each.client === client)?.position ?? [];
    return x === undefined || y === undefined ? undefined : [x, y];
  }

  /** Whether there is such a client; `undefined` where the list does not tell, because it is not there or not whole. */
  knows(client: string): boolean | undefined {
    if (this.list.value.some((each) => each.client === client)) return true;
    return this.more.value || this.why.value !== undefined || !this.#listed ? undefined : false;
  }

  /** Whether an area that is drawn may hold a place in degrees of the map. */
  mayReach(place: Place): boolean {
    return this.#boxes.some((box) => holds(box, place));
  }

  /** Whether an area of this client may; `undefined` where its areas are not known. */
  mayReachOne(client: string, place: Place): boolean | undefined {
    const boxes = this.#boxesOf(client);
    return boxes.length === 0 ? undefined : boxes.some((box) => holds(box, place));
  }

  /** The areas of some of a client's subscriptions that may hold a place in degrees of the map, as far as they are known. */
  areasAt(client: string, subscriptions: readonly string[], place: Place): Feature[] {
    const plane = this.#view?.base.plane;
    if (plane === undefined) return [];
    const around = this.placeOf(client);
    const documents = (this.#subscriptions.get(client)?.documents ?? []).filter(({ id }) => subscriptions.includes(id));
    return documents
      .flatMap(({ filters }) => filters)
      .flatMap(({ area }) => shapesOf(plane, this.ways.laid(client, area, around), around, { follows: followsClient(area) }))
      .filter((shape) => holds(boxOf(shape), place));
  }

  /** Around a client's areas, wherever the map is. */
  #boxesOf(client: string): readonly Box[] {
    const now_ms = performance.now();
    if (this.#own?.client !== client || now_ms - this.#own.made_ms > OWN_MS) {
      const plane = this.#view?.base.plane;
      const around = this.placeOf(client);
      const filters = (this.#subscriptions.get(client)?.documents ?? []).flatMap((document) => document.filters);
      const boxes = filters.flatMap(({ area }): Box[] =>
        area === undefined
          ? [EVERYWHERE]
          : plane === undefined
            ? []
            : shapesOf(plane, this.ways.laid(client, area, around), around).map(boxOf),
      );
      this.#own = { client, made_ms: now_ms, boxes };
    }
    return this.#own.boxes;
  }

  /** Where clients are, of those that are shown. */
  positions(): Place[] {
    return this.list.peek().flatMap(({ position: [x, y] = [] }) => (x === undefined || y === undefined ? [] : [[x, y] as const]));
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    clearTimeout(this.#timer);
    const token = this.#access.token.peek();
    if (!document.hidden && this.#access.usable.peek() && (this.#refused === undefined || this.#refused.token !== token)) {
      try {
        const { clients, next } = (await this.#access.call(`v1/clients?limit=${LISTED}`)) as { clients: ClientShown[]; next?: string };
        this.slow.value = slowOf(clients, this.list.value);
        this.list.value = clients;
        this.#listed = true;
        this.more.value = next !== undefined;
        this.why.value = undefined;
        this.#refused = undefined;
        this.onList(clients);
        this.#place();
        await this.#fetch(clients);
        this.#draw();
      } catch (error) {
        const refused = statusOf(error) === 403;
        if (refused) this.#refused = { token };
        if (refused) this.list.value = [];
        this.why.value = refused
          ? "This token does not permit to list clients: that takes the scope admin without a tenant. Its own client can be opened by name."
          : `There is no list now: ${reasonOf(error)}.`;
      }
    }
    this.#looking = false;
    this.#timer = setTimeout(() => void this.#look(), this.seen.peek() ? SEEN_MS : UNSEEN_MS);
  }

  /** Fetches the subscriptions of those who have others than before, a few at a time. */
  async #fetch(clients: readonly ClientShown[]): Promise<void> {
    const listed = new Set(clients.map(({ client }) => client));
    for (const client of this.#subscriptions.keys()) if (!listed.has(client)) this.#subscriptions.delete(client);
    let fetched = 0;
    const now_ms = performance.now();
    const waiting = clients.filter(({ client, subscriptions, tenant }) => {
      fetched += subscriptions;
      // Of another tenant an admin without one sees the names alone; the broker's own clients tell what they do elsewhere.
      if (tenant !== undefined || fetched > FETCHED || client.startsWith("~")) return false;
      const known = this.#subscriptions.get(client);
      // One that was replaced does not change their number.
      return (known?.count ?? 0) !== subscriptions || (known !== undefined && now_ms - known.fetched_ms > STALE_MS);
    });
    const worker = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { client, subscriptions: count } = next;
        try {
          await this.subscriptionsOf(client);
        } catch (error) {
          if (statusOf(error) !== 403) throw error;
          this.#subscriptions.set(client, { count, fetched_ms: performance.now(), documents: [] });
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  #place(): void {
    // A client that is an object on the map has its mark there.
    if (this.#view !== undefined) {
      const apart = this.list.value.filter(({ client }) => this.fresh(client) === undefined);
      this.places.value = this.#view.putClients(apart);
      this.merged.value = this.list.value.length - apart.length;
    }
  }

  /** Draws clients and their areas again, where they are by now. */
  redraw(): void {
    this.#place();
    if (this.areas.peek() > 0) this.#draw();
  }

  #draw(): void {
    const view = this.#view;
    if (view === undefined) return;
    const still: Feature[] = [];
    const following: Feature[] = [];
    let [all, left] = [0, 0];
    for (const { client, position: [x, y] = [] } of this.list.value) {
      // What the console itself subscribes to is on the map already.
      if (client === this.#access.client.peek()) continue;
      const around: Place | undefined = this.fresh(client) ?? (x === undefined || y === undefined ? undefined : [x, y]);
      for (const { filters } of this.#subscriptions.get(client)?.documents ?? []) {
        for (const { area } of filters) {
          all += Number(area !== undefined);
          const follows = followsClient(area);
          if (follows && (around === undefined || !view.sees(around))) continue;
          if (follows && following.length >= FOLLOWING) {
            left += 1;
            continue;
          }
          if (!follows && still.length >= STILL) continue;
          (follows ? following : still).push(
            ...shapesOf(view.base.plane, this.ways.laid(client, area, around), around, {
              client,
              follows,
              round: area !== undefined && "center" in area,
            }),
          );
        }
      }
    }
    const isSmall = (shape: Feature): boolean => shape.properties?.["round"] === true && view.pixelsAcross(boxOf(shape)) < LEAST_STILL_PX;
    // One along a way is none.
    const isDisc = ({ geometry }: Feature): boolean => geometry.type === "Polygon";
    const shade = [...still.filter(isSmall), ...(following.length > FEW ? following.filter(isDisc) : [])];
    const shapes = [...still, ...following];
    this.tooMany.value = left > 0;
    this.areas.value = shapes.length;
    this.following.value = following.length;
    this.shaded.value = shade.length;
    this.allAreas.value = all;
    this.#boxes = shapes.map(boxOf);
    const hidden = new Set(shade);
    view.draw(
      "areas",
      shapes.filter((shape) => !hidden.has(shape)),
    );
    view.draw("shade", shade.map(discOf));
  }
}

/** Whether an area moves with its client. */
function followsClient(area: SubscriptionDocument["filters"][number]["area"]): boolean {
  return area !== undefined && "radius_m" in area && !("center" in area) && !("corridor" in area);
}

function holds([west, south, east, north]: Box, [x, y]: Place): boolean {
  return x >= west && x <= east && y >= south && y <= north;
}
