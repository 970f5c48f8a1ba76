// The console's map: areas, clients, events and the draft, above each other, and what was clicked.

import { signal } from "@preact/signals";
import type { Feature } from "geojson";
import type { ExpressionSpecification, MapMouseEvent } from "maplibre-gl";

import { middleOf } from "../../shared/map/bounds.js";
import { CorridorLayer } from "../../shared/map/corridor-layer.js";
import { createMap, EMPTY, type BaseMap } from "../../shared/map/map.js";
import type { Obstacle } from "../../shared/map/place-names.js";
import type { Place } from "../../shared/map/plane.js";
import { Points, type PointLook } from "../../shared/map/points.js";
import type { PageSettings } from "../../shared/pages.js";
import type { Shown } from "../live/live.js";
import type { Sight } from "../address.js";
import { pointsOf, type Seen } from "../live/objects.js";
import type { Report } from "../live/past.js";
import { AnswerLayer } from "./answer.js";
import { boxOf, type Box } from "./areas.js";
import { CITY_ZOOM, Coverage } from "./coverage.js";
import { Density, type Marks } from "./density.js";
import { Flashes } from "./flashes.js";
import { Lines } from "./lines.js";
import { widestPadding } from "./padding.js";
import type { Spot } from "./walk.js";

const LOOKS: readonly PointLook[] = [
  { colour: "--map-object", shape: "disc", size: 11 }, // An object, also one that is a client, too.
  { colour: "--map-object", shape: "disc", size: 8 }, // An event of its own.
  { colour: "--map-match", shape: "diamond", size: 14 },
  { colour: "--text", shape: "halo", size: 32 }, // Around what was clicked: in no colour that a delivery or a mark has.
  { colour: "--map-client", shape: "ring", size: 11 },
  { colour: "--map-violation", shape: "triangle", size: 19 }, // Of an object that has violated a check.
  { colour: "--map-derived", shape: "square", size: 12 }, // What a rule set made.
];
const OBJECT = 0;
const EVENT = 1;
const MATCH = 2;
const CHOSEN = 3;
const CLIENT = 4;
const VIOLATION = 5;
const DERIVED = 6;

/** What can be switched. */
export type Layer = "events" | "clients" | "areas" | "groups" | "trails" | "flashes" | "violations";

/** Marks glide for so long at most, and leave trails that are seen for so long. */
const MOTION = { glide_s: 4, trail_s: 40 };
/** A mark that was not heard of for longer stands at its new place at once, without a trail. */
const KNOWN_WAY_S = 60;
/** By itself the map counts marks below this zoom where there are more than so many. */
const FAR = 9;
const CROWD = 150;
/** Below this zoom outlines of areas that move with clients stand back behind the streets. */
const OUTLINED = 13;
const AREAS = ["areas-fill", "areas-line", "areas-middle", "shade"];

/** How much one area that is shade darkens the map: less from far away, where many lie on each other. */
const SHADE = { city: 0.004, street: 0.025 };

/** How far around a mark names of the map leave it free; around each, where there are no more. */
const MARK_PX = 8;
const VIOLATION_PX = 11;
/** Between a violation and the marks below it; a triangle's sides are half as far out. */
const VIOLATION_RIM_PX = 4;
const FEW = 2000;

/** How far from a click, in pixels, what is meant may be. */
const NEAR_PX = 12;
const LISTED = 20;
/** So much of what is on the map, on each side, may not be seen when all is shown: some places are wrong, and some are far from all others. */
const OUTER = 0.04;
/** The zoom at which an area of some hundred metres is seen. */
const CLOSE = 14;

export interface Picked {
  /** Points of events, nearest first. */
  readonly events: readonly string[];
  readonly clients: readonly string[];
}

/** What the map asks of its owner. */
export interface Meaning {
  /** The class of a point's colour; -1 for that of all points. */
  colourOf(seen: Seen): number;
  /** Whether a point has violated a check lately. */
  violates(point: string): boolean;
  /** Whether a rule set made its event. */
  derived(seen: Seen): boolean;
  /** Whether it is to be seen at all. */
  shows(seen: Seen): boolean;
}

/** Calls of a tool that has the map's clicks for itself. */
export interface Tool {
  /** Something else has the clicks now. */
  ended(): void;
  click(place: Place): void;
  move?(place: Place): void;
  /** The pointer goes down, and comes up somewhere. */
  press?(place: Place): void;
  release?(place: Place): void;
}

export class MapView implements Shown {
  readonly #base: BaseMap;
  readonly #events: Points;
  readonly #clients: Points;
  /** Triangles on the marks of objects that have violated a check: no name hides them. */
  readonly #violations: Points;
  /** An answer to Why. */
  readonly answer: AnswerLayer;
  readonly #density: Density;
  readonly #coverage: Coverage;
  readonly #lines: Lines;
  readonly #flashes: Flashes;
  /** By the source of the shapes. */
  readonly #corridors = new Map<string, CorridorLayer>();
  #meaning: Meaning = { colourOf: () => -1, violates: () => false, derived: () => false, shows: () => true };
  #switched: Readonly<Record<Layer, boolean>> = {
    events: true,
    clients: true,
    areas: true,
    groups: true,
    trails: true,
    flashes: true,
    violations: true,
  };
  /** What was chosen; by itself the map goes by its zoom. */
  #marks: Marks | "auto" = "auto";
  #tool: Tool | undefined;
  #touched = false;
  /** An answer is on the map: deliveries and groups that it is not about are not. */
  #answered = false;
  readonly #hidden = new Set<string>();
  /** Marks that are not to be seen. */
  readonly hidden = signal(0);
  /** From far away areas of clients have no outline, and among clusters nothing that is about one mark is drawn. */
  readonly far = signal<"outlines" | "marks" | undefined>(undefined);
  /** Clients that are shown. */
  #placed = new Set<string>();

  static async create(container: HTMLElement, settings: PageSettings): Promise<MapView> {
    return new MapView(await createMap(container, settings, "Map of events, clients and areas"));
  }

  private constructor(base: BaseMap) {
    this.#base = base;
    this.#clients = new Points(LOOKS).addTo(base);
    this.#events = new Points(LOOKS, MOTION).addTo(base);
    this.#violations = new Points(LOOKS, { glide_s: MOTION.glide_s, rim_px: VIOLATION_RIM_PX }).addTo(base, "names");
    this.#density = new Density(base, this.#events, () => (this.#switched.events ? this.marks : "points"));
    this.#flashes = new Flashes(base);
    this.#lines = new Lines(base, this.#events);
    this.#addShade();
    this.#coverage = new Coverage(base);
    this.#addShapes("areas", "--map-area", 0.08);
    this.#addShapes("chosen", "--accent", 0.16);
    this.#addShapes("draft", "--map-match", 0.12);
    this.#addRoute();
    this.answer = new AnswerLayer(base, (variable, opacity) => this.#css(variable, opacity));
    this.answer.onShown = (shown) => {
      this.#answered = shown;
      if (shown) this.#flashes.clear();
      this.#turn();
    };
    base.map.addSource("draft-handles", { type: "geojson", data: EMPTY });
    base.map.addLayer({
      id: "draft-handles",
      type: "circle",
      source: "draft-handles",
      paint: { "circle-radius": ["case", ["get", "main"], 7, 5], "circle-stroke-width": 2 },
    });
    base.onTheme(() => {
      base.map.setPaintProperty("draft-handles", "circle-color", this.#css("--surface"));
      base.map.setPaintProperty("draft-handles", "circle-stroke-color", this.#css("--map-match"));
    });
    base.names.obstacles = () => this.#obstacles();
    base.map.on("mousemove", ({ lngLat }) => this.#tool?.move?.(base.plane.toWorld([lngLat.lng, lngLat.lat])));
    base.map.on("mousedown", ({ lngLat }) => this.#tool?.press?.(base.plane.toWorld([lngLat.lng, lngLat.lat])));
    base.map.on("mouseup", ({ lngLat }) => this.#tool?.release?.(base.plane.toWorld([lngLat.lng, lngLat.lat])));
    base.map.on("zoom", () => this.#turn());
    for (const by of ["wheel", "keydown"] as const) base.map.getCanvas().addEventListener(by, () => (this.#touched = true));
    base.map.on("dragstart", () => (this.#touched = true));
  }

  get base(): BaseMap {
    return this.#base;
  }

  /** Calls with what a click was near to, unless a tool has the clicks. */
  onPick(picked: (what: Picked) => void): void {
    this.#base.map.on("click", (event: MapMouseEvent) => {
      if (this.#tool !== undefined) {
        this.#tool.click(this.#base.plane.toWorld([event.lngLat.lng, event.lngLat.lat]));
        return;
      }
      const cluster = this.#density.at(event.point);
      if (cluster !== undefined && cluster.count > 1) {
        this.into(event.point);
        return;
      }
      picked(this.#near(event.point));
    });
  }

  /** Calls with what the pointer is above, and where that is on the map's element; with nothing when it leaves. */
  onHover(hovered: (what: Picked | undefined, at: { readonly x: number; readonly y: number }) => void): void {
    const { map } = this.#base;
    let [frame, last] = [0, ""];
    const look = (at: { readonly x: number; readonly y: number }, gone: boolean): void => {
      frame = 0;
      if (this.#tool !== undefined) return;
      const found = gone || map.isMoving() ? { events: [], clients: [] } : this.#near(at);
      const cluster = gone ? undefined : this.#density.at(at);
      const some = found.events.length + found.clients.length > 0;
      map.getCanvas().style.cursor = some || cluster !== undefined ? "pointer" : "";
      const now = some ? `${found.events.join()} ${found.clients.join()}` : "";
      if (now !== "" || last !== "") hovered(some ? found : undefined, at);
      last = now;
    };
    map.on("mousemove", ({ point }) => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => look(point, false));
    });
    map.on("mouseout", ({ point }) => look(point, true));
    map.on("movestart", () => look({ x: 0, y: 0 }, true));
  }

  #near(at: { readonly x: number; readonly y: number }): Picked {
    const near = (points: Points): string[] => points.near(at, NEAR_PX).filter((id) => id !== "chosen");
    return { events: near(this.#events).slice(0, LISTED), clients: near(this.#clients).slice(0, LISTED) };
  }

  /** Gives the map's clicks to a tool, or back. */
  use(tool: Tool | undefined): void {
    const before = this.#tool;
    this.#tool = tool;
    before?.ended();
    this.#base.map.getCanvas().style.cursor = tool === undefined ? "" : "crosshair";
    for (const moves of [this.#base.map.doubleClickZoom, this.#base.map.dragPan]) {
      // What is drawn does not move the map.
      if (tool === undefined) moves.enable();
      else moves.disable();
    }
  }

  put(seen: Seen): void {
    if (!this.#meaning.shows(seen)) {
      this.#hidden.add(seen.id);
      this.hidden.value = this.#hidden.size;
      this.#take(seen.id);
      return;
    }
    this.#unhide(seen.id);
    const at = this.#base.plane.toMap(seen.place);
    const violates = this.#meaning.violates(seen.id);
    const derived = this.#meaning.derived(seen);
    const look = seen.matched ? MATCH : derived ? DERIVED : seen.object === undefined ? EVENT : OBJECT;
    const colour = seen.matched || derived ? -1 : this.#meaning.colourOf(seen);
    // Of a longer time nobody knows the way in between.
    const jump = Math.abs(seen.after_s ?? 0) > KNOWN_WAY_S;
    const life_s = (seen.ends_ms - seen.seen_ms) / 1000;
    this.#events.put(seen.id, at, look, { colour, life_s, jump });
    if (violates && !seen.matched) this.#violations.put(seen.id, at, VIOLATION, { life_s, jump });
    else this.#violations.remove(seen.id);
  }

  #take(id: string): void {
    this.#events.remove(id);
    this.#violations.remove(id);
  }

  #unhide(id: string): void {
    if (this.#hidden.delete(id)) this.hidden.value = this.#hidden.size;
  }

  /** Puts a mark where it was; `at_ms` is the time that the map shows. */
  putPast({ id, place, colour, ends_ms }: Report, at_ms: number): void {
    const look = id.startsWith("e") ? EVENT : OBJECT;
    this.#events.put(id, this.#base.plane.toMap(place), look, { colour, life_s: (ends_ms - at_ms) / 1000 });
  }

  /** What marks mean from now on; those that are there are put again. */
  mean(meaning: Meaning, all: Iterable<Seen>): void {
    this.#meaning = meaning;
    for (const seen of all) if (!seen.matched && !meaning.derived(seen)) this.#events.recolour(seen.id, meaning.colourOf(seen));
  }

  /** Says how marks are shown; `auto` counts them where many are far away. */
  set marks(marks: Marks | "auto") {
    this.#marks = marks;
    this.#turn();
  }

  /** How marks are shown now. */
  get marks(): Marks {
    if (this.#marks !== "auto") return this.#marks;
    return this.#base.map.getZoom() < FAR && this.#events.size > CROWD ? "clusters" : "points";
  }

  #turn(): void {
    const visible = this.#switched.events && this.marks === "points";
    this.#events.visible = visible;
    this.#violations.visible = visible && this.#switched.violations;
    this.#lines.visible = this.#switched.groups && !this.#answered && this.marks === "points";
    // Between rings of clusters single clients say nothing.
    this.#clients.visible = this.#switched.clients && this.marks !== "clusters";
    this.far.value = this.marks === "clusters" ? "marks" : this.#base.map.getZoom() < CITY_ZOOM ? "outlines" : undefined;
    this.#density.draw();
  }

  /** Shows that an event has reached clients, by their points, and in which areas. */
  flash(place: Place, reached: readonly { readonly id: string; readonly areas: readonly Feature[] }[]): void {
    if (!this.#switched.flashes || this.#answered || this.marks !== "points") return;
    this.#flashes.add(
      this.#base.plane.toMap(place),
      reached.map(({ id, areas }) => ({ at: () => this.seenAt(id), areas })),
    );
  }

  /** Draws lines between objects, by their names. */
  link(lines: readonly (readonly [one: string, other: string])[]): void {
    this.#lines.lines = lines.map(([one, other]) => [pointsOf(one), pointsOf(other)] as const);
  }

  /** What names of the map leave free. */
  #obstacles(): Obstacle[] {
    const found: Obstacle[] = [];
    const { clientWidth, clientHeight } = this.#base.map.getCanvas();
    const each = (radius: number, isSoft: boolean) => (x: number, y: number) => {
      if (x > -radius && y > -radius && x < clientWidth + radius && y < clientHeight + radius) found.push({ x, y, radius, isSoft });
    };
    if (this.marks !== "points" || !this.#switched.events) return found;
    if (this.#switched.violations) this.#violations.eachOnScreen(each(VIOLATION_PX, false));
    if (this.#events.size < FEW) this.#events.eachOnScreen(each(MARK_PX, true));
    return found;
  }

  /** The marks that are on the screen. Costs O(points). */
  spots(): Spot[] {
    const { clientWidth, clientHeight } = this.#base.map.getCanvas();
    const spots: Spot[] = [];
    const seen = (x: number, y: number): boolean => x >= 0 && y >= 0 && x < clientWidth && y < clientHeight;
    if (this.marks === "clusters")
      return this.#density.clusters
        .filter(({ x, y }) => seen(x, y))
        .map(({ x, y, count }) => ({ id: `${Math.round(x)} ${Math.round(y)}`, kind: "cluster", x, y, count }));
    const each =
      (kind: Spot["kind"]) =>
      (x: number, y: number, id: string): void => {
        if (seen(x, y) && id !== "chosen") spots.push({ id, kind, x, y });
      };
    if (this.#switched.events) this.#events.eachOnScreen(each("event"));
    if (this.#switched.clients) this.#clients.eachOnScreen(each("client"));
    return spots;
  }

  /** Where a mark is on the screen now. */
  spotOf(spot: Spot): Spot | undefined {
    if (spot.kind === "cluster") return spot;
    const at = (spot.kind === "event" ? this.#events : this.#clients).placeOf(spot.id);
    return at === undefined ? undefined : { ...spot, ...this.#onScreen(at) };
  }

  #onScreen(at: [number, number]): { readonly x: number; readonly y: number } {
    const { x, y } = this.#base.map.project(at);
    return { x, y };
  }

  /** The middle of the map on the screen. */
  middle(): { readonly x: number; readonly y: number } {
    const { clientWidth, clientHeight } = this.#base.map.getCanvas();
    return { x: clientWidth / 2, y: clientHeight / 2 };
  }

  /** Goes closer to a cluster. */
  into(at: { readonly x: number; readonly y: number }): void {
    const { map } = this.#base;
    const { x, y } = this.#density.at(at)?.from ?? at;
    map.easeTo({ center: map.unproject([x, y]), zoom: map.getZoom() + 2 });
  }

  /** Where a point, or a client that has one, is seen now, in degrees of the map. */
  seenAt(id: string): [number, number] | undefined {
    return this.#events.placeOf(id) ?? this.#clients.placeOf(id);
  }

  remove(id: string): void {
    this.#unhide(id);
    this.#take(id);
  }

  clear(): void {
    this.#hidden.clear();
    this.hidden.value = 0;
    this.#events.clear();
    this.#violations.clear();
  }

  /** Draws marks again, for they fade; and shows them otherwise where there are many by now. */
  fade(): void {
    this.#turn();
  }

  /** Draws a ring around a place, or none. */
  choose(place: Place | undefined): void {
    this.#events.remove("chosen"); // It does not glide from what was chosen before.
    if (place !== undefined) this.#events.put("chosen", this.#base.plane.toMap(place), CHOSEN, { jump: true });
  }

  /** Shows clients where they are, and no others; tells how many. */
  putClients(clients: readonly { readonly client: string; readonly position?: readonly number[] }[]): number {
    const before = this.#placed;
    this.#placed = new Set();
    for (const { client, position: [x, y] = [] } of clients) {
      if (x === undefined || y === undefined) continue;
      this.#clients.put(client, this.#base.plane.toMap([x, y]), CLIENT);
      this.#placed.add(client);
    }
    for (const client of before) if (!this.#placed.has(client)) this.#clients.remove(client);
    return this.#placed.size;
  }

  draw(source: "areas" | "shade" | "chosen" | "draft" | "draft-handles" | "route", features: Feature[]): void {
    this.#corridors.get(source)?.show(features);
    if (source === "shade") this.#coverage.show(features);
    this.#base.setData(source, { type: "FeatureCollection", features });
  }

  switch(layer: Layer, on: boolean): void {
    this.#switched = { ...this.#switched, [layer]: on };
    if (layer === "events" || layer === "groups" || layer === "clients" || layer === "violations") this.#turn();
    else if (layer === "trails") {
      if (this.#events.trails !== undefined) this.#events.trails.on = on;
      this.#events.repaint();
    } else if (layer === "flashes") return;
    else {
      const areas = this.#corridors.get("areas");
      if (areas !== undefined) areas.visible = on;
      this.#coverage.visible = on;
      for (const id of AREAS) this.#base.map.setLayoutProperty(id, "visibility", on ? "visible" : "none");
    }
  }

  /** How wide a box is seen. */
  pixelsAcross([west, , east]: Box): number {
    return ((east - west) * 512 * 2 ** this.#base.map.getZoom()) / 360;
  }

  /** Whether a place is on the screen. */
  sees(place: Place): boolean {
    return this.#base.map.getBounds().contains(this.#base.plane.toMap(place));
  }

  zoom(by: number): void {
    this.#base.map.zoomTo(this.#base.map.getZoom() + by, { duration: 200 });
  }

  /** Shows these places, or where there are none the base map. */
  async fit(places: readonly Place[], animate = true): Promise<void> {
    const all = places.map((place) => this.#base.plane.toMap(place));
    const bounds = all.length === 0 ? await this.#base.bounds : middleOf(all, OUTER);
    if (bounds === undefined) return;
    const { map } = this.#base;
    map.fitBounds(bounds, { padding: widestPadding(map, bounds, 32, all), maxZoom: 15, animate });
  }

  /** Whether somebody has moved the map, or draws on it. */
  get touched(): boolean {
    return this.#touched || this.#tool !== undefined;
  }

  goTo(place: Place, zoom = Math.max(this.#base.map.getZoom(), CLOSE)): void {
    this.#touched = true;
    this.#base.map.easeTo({ center: this.#base.plane.toMap(place), zoom });
  }

  /** Brings shapes into sight, whole. */
  goToShapes(shapes: readonly Feature[]): void {
    const boxes = shapes.map(boxOf);
    this.#touched = true;
    const { map } = this.#base;
    const bounds = [0, 1, 2, 3].map((at) => Math[at < 2 ? "min" : "max"](...boxes.map((box) => box[at] ?? 0))) as Box;
    map.fitBounds(bounds, { padding: widestPadding(map, bounds, 64), maxZoom: 17 });
  }

  /** Where the map is. */
  get sight(): Sight {
    const { map, plane } = this.#base;
    const { lng, lat } = map.getCenter();
    return { place: plane.toWorld([lng, lat]), zoom: map.getZoom() };
  }

  /** Goes somewhere at once. */
  look({ place, zoom }: Sight): void {
    this.#touched = true;
    this.#base.map.jumpTo({ center: this.#base.plane.toMap(place), zoom });
  }

  /** Keeps what moves in the middle; to be called again and again. */
  keepUp(id: string): void {
    const at = this.seenAt(id);
    const { map } = this.#base;
    if (at === undefined || map.isZooming()) return;
    map.easeTo({ center: at, duration: 900, easing: (part) => part, essential: false });
  }

  /** Calls when somebody has moved the map by hand. */
  onDrag(dragged: () => void): void {
    this.#base.map.on("dragstart", dragged);
  }

  /** Calls after the map has moved. */
  onMoved(moved: () => void): void {
    this.#base.map.on("moveend", moved);
  }

  #css(variable: string, opacity = 1): string {
    const [red, green, blue] = this.#base.colour(variable).map((part) => Math.round(part * 255));
    return `rgba(${red ?? 0}, ${green ?? 0}, ${blue ?? 0}, ${opacity})`;
  }

  /** The layer of areas that are too small or too many for rings: where more of them lie, the map is darker. */
  #addShade(): void {
    const { map } = this.#base;
    map.addSource("shade", { type: "geojson", data: EMPTY });
    const at = (zoom: number): ExpressionSpecification => ["*", ["get", "radius"], 2 ** zoom];
    const radius: ExpressionSpecification = ["interpolate", ["exponential", 2], ["zoom"], 0, at(0), 24, at(24)];
    map.addLayer({ id: "shade", type: "circle", source: "shade", paint: { "circle-radius": radius } });
    const shade = (part: number): string => this.#css("--map-area", part);
    this.#base.onTheme(() =>
      map.setPaintProperty("shade", "circle-color", ["interpolate", ["linear"], ["zoom"], 11, shade(SHADE.city), 14, shade(SHADE.street)]),
    );
  }

  /** The layers of a route that was asked for: its line and its ends. */
  #addRoute(): void {
    const { map } = this.#base;
    map.addSource("route", { type: "geojson", data: EMPTY });
    const layout = { "line-cap": "round", "line-join": "round" } as const;
    map.addLayer({ id: "route", type: "line", source: "route", layout, paint: { "line-width": 4 } });
    const isEnd: ExpressionSpecification = ["==", ["geometry-type"], "Point"];
    const ends = { "circle-radius": 6, "circle-stroke-width": 3 };
    map.addLayer({ id: "route-ends", type: "circle", source: "route", filter: isEnd, paint: ends });
    this.#base.onTheme(() => {
      map.setPaintProperty("route", "line-color", this.#css("--map-group"));
      map.setPaintProperty("route-ends", "circle-color", this.#css("--surface"));
      map.setPaintProperty("route-ends", "circle-stroke-color", this.#css("--map-group"));
    });
  }

  /** A source of shapes and its layers: polygons are filled, corridors are as wide as they are on a canvas of their own. */
  #addShapes(id: string, colour: string, opacity: number): void {
    const { map } = this.#base;
    const isLine: ExpressionSpecification = ["==", ["geometry-type"], "LineString"];
    const isPolygon: ExpressionSpecification = ["==", ["geometry-type"], "Polygon"];
    map.addSource(id, { type: "geojson", data: EMPTY });
    map.addLayer({ id: `${id}-fill`, type: "fill", source: id, filter: isPolygon });
    map.addLayer({ id: `${id}-line`, type: "line", source: id, filter: isPolygon, paint: { "line-width": 1.5 } });
    // As faint as the other areas, and no more so for those that follow: few do.
    this.#corridors.set(id, new CorridorLayer(this.#base, () => [colour, opacity * 1.5]));
    map.addLayer({ id: `${id}-middle`, type: "line", source: id, filter: isLine, paint: { "line-width": 1.5, "line-dasharray": [3, 2] } });
    this.#base.onTheme(() => {
      // Areas that move with clients lie on each other; many of them are not to hide the map.
      const faint: ExpressionSpecification = [
        "case",
        ["boolean", ["get", "follows"], false],
        this.#css(colour, opacity * 0.35),
        this.#css(colour, opacity),
      ];
      map.setPaintProperty(`${id}-fill`, "fill-color", faint);
      const line = (following: number): ExpressionSpecification => [
        "case",
        ["boolean", ["get", "follows"], false],
        this.#css(colour, following),
        this.#css(colour),
      ];
      map.setPaintProperty(`${id}-line`, "line-color", ["step", ["zoom"], line(0.14), OUTLINED, line(0.45)]);
      map.setPaintProperty(`${id}-middle`, "line-color", this.#css(colour));
    });
  }
}
