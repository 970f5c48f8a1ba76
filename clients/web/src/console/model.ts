// What the console is made of, and what it shows now.

import { batch, effect, signal, untracked } from "@preact/signals";
import type { DeliveredFeature } from "nearcast";

import type { Place } from "../shared/map/plane.js";
import { pageSettings, type PageSettings } from "../shared/pages.js";
import { Access } from "./access.js";
import { fromQuery, toQuery, type Address, type Opened, type Sight } from "./address.js";
import { speedLimitOf, type CheckShown } from "./checks/formula.js";
import { violationOf } from "./checks/violation.js";
import { changeOf, type GroupDefinitionShown } from "./groups/groups.js";
import { linesOf } from "./groups/lines.js";
import { Clients } from "./clients/list.js";
import { Figures } from "./live/figures.js";
import type { Objects } from "./live/objects.js";
import { holdsText } from "./live/filter.js";
import { Live } from "./live/live.js";
import { Reach } from "./live/reach.js";
import { Replay } from "./live/replay.js";
import { Same } from "./live/same.js";
import { Scale } from "./live/scale.js";
import type { Marks } from "./map/density.js";
import type { Layer, MapView, Meaning, Picked } from "./map/view.js";
import { placeOf } from "./place.js";
import { derivedOf, rulesOf } from "./rules/derived.js";
import type { RuleSetShown } from "./rules/rules.js";
import { Situations, type SituationKind } from "./situations/list.js";
import { Draft } from "./try/draft.js";
import type { Drawing } from "./try/draw.js";
import type { Shape } from "./try/shape.js";
import { rounded } from "./try/shape.js";

export type Tab = Address["tab"];

/** What was clicked. */
export type Detail =
  /** `why`: the client of which it is asked why it gets the event or does not. */
  | { readonly kind: "event"; readonly feature: DeliveredFeature; readonly why?: string }
  | { readonly kind: "client"; readonly client: string }
  | Extract<Opened, { kind: "situation" | "finding" | "edit" }>
  /** An event that an address names and that has not come yet. */
  | { readonly kind: "sought"; readonly id: string; readonly object?: string; readonly why?: string }
  /** Several were near. */
  | { readonly kind: "choice"; readonly events: readonly DeliveredFeature[]; readonly clients: readonly string[] };

/** Ways back that are kept. */
const BACK = 20;
/** Points fade so often. */
const FADE_MS = 1000;
/** The camera keeps up so often. */
const FOLLOW_MS = 900;
/** Colours and areas follow so often. */
const RENEW_MS = 3000;
/** Of so few events a second each is asked about, of more those in areas. */
const QUIET_PER_S = 5;
/** Where there is no base map events of so long are waited for. */
/** Fewer places than that do not say more than the base map where to look. */
const MANY = 100;
const FIRST_LOOK_MS = 1000;

export class Console {
  readonly settings: PageSettings;
  readonly access: Access;
  readonly live: Live;
  readonly figures: Figures;
  readonly clients: Clients;
  readonly draft: Draft;
  readonly checks: Situations<CheckShown>;
  readonly rules: Situations<RuleSetShown>;
  readonly groups: Situations<GroupDefinitionShown>;
  /** Lines of groups that the map has. */
  readonly lines = signal(0);
  /** The polygon of a check that is being written. */
  readonly outline = { shape: signal<Shape>({ form: "polygon", corners: [] }), active: signal(false) };
  readonly tab = signal<Tab>("live");
  /** What was opened, the last one on top. */
  readonly details = signal<readonly Detail[]>([]);
  readonly layers = signal<Readonly<Record<Layer, boolean>>>({
    events: true,
    clients: true,
    areas: true,
    groups: true,
    trails: true,
    flashes: true,
    violations: true,
  });
  /** How marks are shown. */
  readonly marks = signal<Marks | "auto">("auto");
  /** The attribute that marks have their colours by. */
  readonly colourBy = signal<string | undefined>(undefined);
  /** What events of the list have in their texts. */
  readonly filter = signal("");
  /** What the camera follows: a point or a client. */
  readonly following = signal<string | undefined>(undefined);
  /** Where the map is, once it has come to rest. */
  readonly sight = signal<Sight | undefined>(undefined);
  readonly scale = signal<Scale | undefined>(undefined);
  /** What the pointer is above on the map, and where. */
  readonly hovered = signal<(Picked & { readonly at: { readonly x: number; readonly y: number } }) | undefined>(undefined);
  /** The mark that the keyboard is at, on the map's element. */
  readonly walked = signal<{ readonly x: number; readonly y: number } | undefined>(undefined);
  /** Somebody opened a mark by keyboard, and comes back to it. */
  byKeys = false;
  /** What time the map shows; it comes with the map. */
  readonly replay = signal<Replay | undefined>(undefined);
  readonly reach: Reach;
  readonly same = new Same();
  /** Both come with the map. */
  readonly view = signal<MapView | undefined>(undefined);
  readonly drawing = signal<Drawing | undefined>(undefined);
  readonly outlining = signal<Drawing | undefined>(undefined);
  /** Why there is no map. */
  readonly mapProblem = signal<string | undefined>(undefined);

  constructor(settings: PageSettings) {
    this.settings = settings;
    this.access = new Access(settings.tokens);
    this.live = new Live(this.access, settings.object ?? undefined);
    this.figures = new Figures(this.access);
    this.clients = new Clients(this.access);
    this.reach = new Reach(this.access);
    this.clients.onList = (clients) => {
      this.same.learn(clients.map(({ client }) => client));
      for (const seen of this.live.objects.newest()) this.same.put(seen, this.live.objects.attribute);
    };
    this.clients.fresh = (client) => this.live.objects.get(this.same.pointOf(client) ?? "")?.place;
    this.live.onEvent = (feature) => {
      const seen = this.live.objects.get(this.live.objects.idOf(feature) ?? "");
      if (seen !== undefined) this.same.put(seen, this.live.objects.attribute);
      this.reach.offer(feature);
    };
    this.live.onListed = (feature) => this.reach.offer(feature, true);
    this.live.listed = (feature) => holdsText(feature, this.filter.peek());
    let filter = "";
    effect(() => {
      if (this.filter.value === filter) return;
      filter = this.filter.value;
      untracked(() => this.#list());
    });
    this.checks = new Situations(this.access, "checks");
    this.rules = new Situations(this.access, "rules");
    this.groups = new Situations(this.access, "groups");
    this.draft = new Draft(this.access, this.live, settings.world);
    this.#read();
    addEventListener("popstate", () => this.#read());
    effect(() => this.#write());
    let ready = 0;
    effect(() => {
      // A broker that comes back may be in another world. Who cannot be asked now is asked the next time.
      if (this.live.link.value.state === "ready" && ready++ > 0) void this.#reloadIfOther().catch(() => undefined);
    });
    effect(() => {
      const opened = this.details.value.length > 0;
      for (const situations of [this.checks, this.rules, this.groups]) {
        const isOpen = this.details.value.some(
          (each) => (each.kind === "situation" || each.kind === "edit") && each.of === situations.kind,
        );
        // Groups are on the map as well, and on the page of each object.
        const isDrawn = situations.kind === "groups" && (this.layers.value.groups || opened);
        situations.seen.value = isOpen || isDrawn || this.tab.value === situations.kind;
      }
      this.clients.seen.value = this.tab.value === "clients" || opened;
    });
    const unknown = effect(() => {
      if (this.live.violations.count.value === 0) return;
      // What has failed is shown with the limit that its check states.
      if (untracked(() => this.checks.list.value) === undefined) void this.checks.look();
      queueMicrotask(() => unknown());
    });
    effect(() => {
      this.draft.active.value = this.tab.value === "try";
    });
  }

  /** The map is there. */
  show(view: MapView, drawing: Drawing, outlining: Drawing): void {
    this.view.value = view;
    this.drawing.value = drawing;
    this.outlining.value = outlining;
    const replay = new Replay(this.live.objects, view, (seen) => this.scale.peek()?.of(seen.feature.properties) ?? -1);
    this.replay.value = replay;
    this.live.show(replay);
    this.clients.show(view);
    const sight = this.sight.peek();
    if (sight === undefined) void this.#firstLook(view);
    else view.look(sight);
    view.onMoved(() => (this.sight.value = view.sight));
    view.onDrag(() => (this.following.value = undefined));
    setInterval(() => this.#follow(view), FOLLOW_MS);
    setInterval(() => this.#renew(view), RENEW_MS);
    setInterval(() => view.fade(), FADE_MS);
    this.reach.show(
      (feature) => {
        const place = view.base.plane.toMap(placeOf(feature));
        const { watched } = this.reach;
        const one = watched === undefined ? undefined : this.clients.mayReachOne(watched, place);
        return one ?? (this.live.came_per_s.peek() < QUIET_PER_S || this.clients.mayReach(place));
      },
      (feature, reached) => {
        if (replay.at_ms.peek() !== undefined) return;
        const place = placeOf(feature);
        const at = view.base.plane.toMap(place);
        view.flash(
          place,
          reached.map(({ client, subscriptions }) => ({
            id: this.same.pointOf(client) ?? client,
            areas: this.clients.areasAt(client, subscriptions, at),
          })),
        );
      },
    );
    effect(() => {
      this.scale.value = this.colourBy.value === undefined ? undefined : this.#scaleOf(this.colourBy.value);
      this.#mean(view);
    });
    effect(() => {
      view.marks = this.marks.value;
    });
    view.onHover((what, at) => (this.hovered.value = what === undefined ? undefined : { ...this.#apart(what), at }));
    view.onPick((what) => this.pick(what));
    effect(() => {
      const detail = this.details.value.at(-1);
      // The past has its own marks, and where it was is not known of what was chosen.
      if (replay.at_ms.value !== undefined) return;
      view.choose(
        detail?.kind === "event" ? placeOf(detail.feature) : detail?.kind === "client" ? this.clients.placeOf(detail.client) : undefined,
      );
      if (detail?.kind !== "client") view.draw("chosen", []);
    });
    effect(() => {
      // Clients, areas and groups are those of now.
      const past = replay.at_ms.value !== undefined;
      for (const [layer, on] of Object.entries(this.layers.value))
        view.switch(layer as Layer, on && !(past && (layer === "clients" || layer === "areas" || layer === "groups")));
    });
    effect(() => {
      const lines = linesOf(this.groups.list.value ?? []);
      this.lines.value = lines.length;
      view.link(lines);
    });
    effect(() => {
      if (!this.draft.active.value) drawing.finish();
    });
    effect(() => {
      if (!this.outline.active.value) outlining.finish();
    });
  }

  /** Opens what was picked on the map, or a choice where that is more than one thing. */
  pick(what: Picked, byKeys = false): void {
    const { events, clients } = this.#apart(what);
    const features = events.flatMap((id) => this.live.objects.get(id)?.feature ?? []);
    this.byKeys = byKeys;
    if (features.length + clients.length > 1) this.open({ kind: "choice", events: features, clients });
    else if (features[0] !== undefined) this.open({ kind: "event", feature: features[0] });
    else if (clients[0] !== undefined) this.open({ kind: "client", client: clients[0] });
  }

  /** An object and its client are one thing. */
  #apart({ events, clients }: Picked): Picked {
    return { events, clients: clients.filter((client) => !events.includes(this.same.pointOf(client) ?? "")) };
  }

  /** Events of one value of this attribute are one mark from now on. */
  tellApartBy(attribute: string | undefined): void {
    this.same.clear();
    this.live.tellApartBy(attribute);
  }

  /** Shows what an address says. */
  #read(): void {
    const { tab, opened, filter, marks, colourBy, following, sight } = fromQuery(location.search);
    batch(() => {
      this.tab.value = tab;
      this.filter.value = filter;
      this.marks.value = marks;
      this.colourBy.value = colourBy;
      this.following.value = following;
      if (sight !== undefined) this.sight.value = sight;
      this.details.value = opened === undefined ? [] : [opened.kind === "event" ? { ...opened, kind: "sought" } : opened];
    });
    if (sight !== undefined) this.view.peek()?.look(sight);
  }

  /** Writes what is shown into the address: another page of the console is a step for Back, another look at it is none. */
  #write(): void {
    const detail = this.details.value.at(-1);
    const colourBy = this.colourBy.value;
    const following = this.following.value;
    const sight = this.sight.value;
    const opened = detail === undefined ? undefined : openedOf(detail, this.live.objects);
    const query = toQuery({
      tab: this.tab.value,
      filter: this.filter.value,
      marks: this.marks.value,
      ...(opened === undefined ? {} : { opened }),
      ...(colourBy === undefined ? {} : { colourBy }),
      ...(following === undefined ? {} : { following }),
      ...(sight === undefined ? {} : { sight }),
    });
    if (query === location.search) return;
    const before = fromQuery(location.search);
    const isStep = before.tab !== this.tab.peek() || JSON.stringify(before.opened) !== JSON.stringify(opened);
    history[isStep ? "pushState" : "replaceState"](null, "", `${location.pathname}${query}`);
  }

  /** The camera goes along with what is followed; what an address names is opened when it comes. */
  #follow(view: MapView): void {
    const detail = this.details.peek().at(-1);
    if (detail?.kind === "sought") {
      const seen = this.live.objects.find(detail.id, detail.object);
      const { why } = detail;
      if (seen !== undefined) this.replace({ kind: "event", feature: seen.feature, ...(why === undefined ? {} : { why }) });
    }
    const followed = this.following.peek();
    if (followed !== undefined && !document.hidden) view.keepUp(this.same.pointOf(followed) ?? followed);
  }

  /** Opens something, and goes there on the map. */
  visit(detail: Detail): void {
    this.following.value = undefined;
    this.open(detail);
    const place =
      detail.kind === "event" ? placeOf(detail.feature) : detail.kind === "client" ? this.clients.placeOf(detail.client) : undefined;
    if (place !== undefined) this.view.value?.goTo(place);
  }

  /** What time changes: colours by what values there are now, and areas around clients that have moved. */
  #renew(view: MapView): void {
    if (document.hidden) return;
    this.clients.redraw();
    const attribute = this.colourBy.peek();
    if (attribute === undefined) return;
    const scale = this.#scaleOf(attribute);
    if (JSON.stringify(scale.legend) === JSON.stringify(this.scale.peek()?.legend)) return;
    this.scale.value = scale;
    this.#mean(view);
  }

  /** Colours mean something else from now on. */
  #mean(view: MapView): void {
    const replay = this.replay.peek();
    replay?.past.forgetColours();
    view.mean(this.#meaning(), replay?.at_ms.peek() === undefined ? this.live.objects.newest() : []);
  }

  #scaleOf(attribute: string): Scale {
    return new Scale(
      attribute,
      this.live.objects.newest().map(({ feature }) => feature.properties),
    );
  }

  #meaning(): Meaning {
    const scale = this.scale.peek();
    return {
      colourOf: ({ feature }) => scale?.of(feature.properties) ?? -1,
      violates: (point) => this.live.violations.checksOf(point).length > 0,
      derived: ({ feature }) => rulesOf(feature) !== undefined,
      shows: ({ feature }) => this.live.listed(feature),
    };
  }

  /** Shows what the filter lets through, in the list and on the map. */
  #list(): void {
    this.live.list();
    const view = this.view.value;
    if (view === undefined || this.replay.value?.at_ms.value !== undefined) return;
    for (const seen of this.live.objects.newest().reverse()) view.put(seen);
  }

  async #reloadIfOther(): Promise<void> {
    if (JSON.stringify(await pageSettings()) !== JSON.stringify(this.settings)) location.reload();
  }

  /** Shows everything there is on the map. */
  showAll(): void {
    void this.view.value?.fit(this.#places());
  }

  /** The base map at once, and what there is on it as soon as there is some. */
  async #firstLook(view: MapView): Promise<void> {
    await view.fit([], false);
    const least = (await view.base.bounds) === undefined ? 1 : MANY;
    while (this.#places().length < least) await new Promise((resolve) => setTimeout(resolve, FIRST_LOOK_MS));
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

  /** The metres per second that a check permits, as far as it is known and states them. */
  limitOf(check: string | undefined): number | undefined {
    const formula = check === undefined ? undefined : this.checks.get(check)?.formula;
    return formula === undefined ? undefined : speedLimitOf(formula);
  }

  open(detail: Detail): void {
    this.details.value = [...this.details.value.slice(1 - BACK), this.#meant(detail)];
  }

  /** An event that tells a finding is opened as one, and the client of a check, a rule set or a group definition as that. */
  #meant(detail: Detail): Detail {
    const { find } = this.live.violations;
    if (detail.kind === "event") {
      const violation = violationOf(detail.feature, find);
      if (violation !== undefined) return { kind: "finding", of: "checks", name: violation.check, id: violation.id };
      const derived = derivedOf(detail.feature, find);
      if (derived !== undefined) return { kind: "finding", of: "rules", name: derived.rules, id: derived.id };
      const change = changeOf(detail.feature);
      if (change !== undefined) return { kind: "finding", of: "groups", name: change.definition, id: change.id };
    }
    if (detail.kind === "client") {
      const [, of, name] = /^~(checks|rules|groups)\/(.+)$/s.exec(detail.client) ?? [];
      if (of !== undefined && name !== undefined) return { kind: "situation", of: of as SituationKind, name };
    }
    return detail;
  }

  /** Opens something in the place of what is open. */
  replace(detail: Detail): void {
    this.details.value = [...this.details.value.slice(0, -1), detail];
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

/** How an address names what is opened. */
function openedOf(detail: Detail, objects: Objects): Opened | undefined {
  if (detail.kind === "choice") return undefined;
  if (detail.kind !== "event" && detail.kind !== "sought") return detail;
  if (detail.kind === "sought") return { ...detail, kind: "event" };
  const object = objects.idOf(detail.feature);
  const { why } = detail;
  return {
    kind: "event",
    id: String(detail.feature.id),
    ...(object === undefined ? {} : { object }),
    ...(why === undefined ? {} : { why }),
  };
}
