// The console's map: areas, clients, events and the draft, above each other, and what was clicked.

import type { Feature } from "geojson";
import type { ExpressionSpecification, MapMouseEvent } from "maplibre-gl";

import { middleOf } from "../../shared/map/bounds.js";
import { createMap, EMPTY, type BaseMap } from "../../shared/map/map.js";
import type { Place } from "../../shared/map/plane.js";
import { Points, type PointLook } from "../../shared/map/points.js";
import type { PageSettings } from "../../shared/pages.js";
import type { Shown } from "../live/live.js";
import { stageOf, type Seen } from "../live/objects.js";

const LOOKS: readonly PointLook[] = [
  { colour: "--map-object", shape: "disc", size: 8 }, // An object.
  { colour: "--map-object", shape: "disc", size: 6 }, // One that was not heard of for long, or an event of its own.
  { colour: "--map-object", shape: "disc", size: 4 },
  { colour: "--map-match", shape: "diamond", size: 14 },
  { colour: "--map-match", shape: "halo", size: 26 }, // Around what was clicked.
  { colour: "--map-client", shape: "ring", size: 11 },
];
const MATCH = 3;
const CHOSEN = 4;
const CLIENT = 5;

/** What can be switched. */
export type Layer = "events" | "clients" | "areas";
const AREAS = ["areas-fill", "areas-line", "areas-corridor", "areas-middle"];

/** How far from a click, in pixels, what is meant may be. */
const NEAR_PX = 12;
const LISTED = 20;
/** The zoom at which an area of some hundred metres is seen. */
const CLOSE = 14;

export interface Picked {
  /** Points of events, nearest first. */
  readonly events: readonly string[];
  readonly clients: readonly string[];
}

/** Calls of a tool that has the map's clicks for itself. */
export interface Tool {
  click(place: Place): void;
  move?(place: Place): void;
}

export class MapView implements Shown {
  readonly #base: BaseMap;
  readonly #events: Points;
  readonly #clients: Points;
  #tool: Tool | undefined;
  #touched = false;
  /** Clients that are shown. */
  #placed = new Set<string>();

  static async create(container: HTMLElement, settings: PageSettings): Promise<MapView> {
    return new MapView(await createMap(container, settings, "Map of events, clients and areas"));
  }

  private constructor(base: BaseMap) {
    this.#base = base;
    this.#clients = new Points(LOOKS).addTo(base);
    this.#events = new Points(LOOKS).addTo(base);
    this.#addShapes("areas", "--map-area", 0.08);
    this.#addShapes("chosen", "--accent", 0.16);
    this.#addShapes("draft", "--map-match", 0.12);
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
    base.map.on("mousemove", ({ lngLat }) => this.#tool?.move?.(base.plane.toWorld([lngLat.lng, lngLat.lat])));
    base.map.on("moveend", () => this.#tellPlace());
    for (const by of ["wheel", "keydown"] as const) base.map.getCanvas().addEventListener(by, () => (this.#touched = true));
    base.map.on("dragstart", () => (this.#touched = true));
    this.#tellPlace();
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
      const near = (points: Points): string[] => points.near(event.point, NEAR_PX).filter((id) => id !== "chosen");
      picked({ events: near(this.#events).slice(0, LISTED), clients: near(this.#clients).slice(0, LISTED) });
    });
  }

  /** Gives the map's clicks to a tool, or back. */
  use(tool: Tool | undefined): void {
    this.#tool = tool;
    this.#base.map.getCanvas().style.cursor = tool === undefined ? "" : "crosshair";
    if (tool === undefined) this.#base.map.doubleClickZoom.enable();
    else this.#base.map.doubleClickZoom.disable();
  }

  put(seen: Seen): void {
    const at = this.#base.plane.toMap(seen.place);
    this.#events.put(seen.id, at, seen.matched ? MATCH : seen.object === undefined ? 1 : 0);
  }

  remove(id: string): void {
    this.#events.remove(id);
  }

  clear(): void {
    this.#events.clear();
  }

  /** Points that nobody has spoken of for a while become smaller. */
  fade(all: Iterable<Seen>, now_ms: number): void {
    for (const seen of all) {
      const stage = stageOf(seen, now_ms);
      if (!seen.matched && stage > 0) this.#events.relook(seen.id, stage);
    }
  }

  /** Draws a ring around a place, or none. */
  choose(place: Place | undefined): void {
    this.#events.remove("chosen"); // It does not glide from what was chosen before.
    if (place !== undefined) this.#events.put("chosen", this.#base.plane.toMap(place), CHOSEN);
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

  draw(source: "areas" | "chosen" | "draft" | "draft-handles", features: Feature[]): void {
    this.#base.setData(source, { type: "FeatureCollection", features });
  }

  switch(layer: Layer, on: boolean): void {
    if (layer === "events") this.#events.visible = on;
    else if (layer === "clients") this.#clients.visible = on;
    else for (const id of AREAS) this.#base.map.setLayoutProperty(id, "visibility", on ? "visible" : "none");
  }

  /** Whether a place is on the screen. */
  sees(place: Place): boolean {
    return this.#base.map.getBounds().contains(this.#base.plane.toMap(place));
  }

  zoom(by: number): void {
    this.#base.map.zoomTo(this.#base.map.getZoom() + by, { duration: 200 });
  }

  /** Shows everything: the base map, or where there is none these places. */
  async fit(places: readonly Place[], animate = true): Promise<void> {
    const bounds =
      (await this.#base.bounds) ?? (places.length === 0 ? undefined : middleOf(places.map((place) => this.#base.plane.toMap(place))));
    if (bounds !== undefined) this.#base.map.fitBounds(bounds, { padding: 32, maxZoom: 15, animate });
  }

  /** Whether somebody has moved the map, or draws on it. */
  get touched(): boolean {
    return this.#touched || this.#tool !== undefined;
  }

  goTo(place: Place): void {
    this.#base.map.easeTo({ center: this.#base.plane.toMap(place), zoom: Math.max(this.#base.map.getZoom(), CLOSE) });
  }

  /** For assistive technology and for programs that drive the page: what the map shows of the world. */
  #tellPlace(): void {
    const { map, plane } = this.#base;
    const { lng, lat } = map.getCenter();
    map.getContainer().dataset["center"] = plane.toWorld([lng, lat]).join(",");
    map.getContainer().dataset["zoom"] = String(map.getZoom());
  }

  #css(variable: string, opacity = 1): string {
    const [red, green, blue] = this.#base.colour(variable).map((part) => Math.round(part * 255));
    return `rgba(${red ?? 0}, ${green ?? 0}, ${blue ?? 0}, ${opacity})`;
  }

  /** A source of shapes and its layers: polygons are filled, corridors are as wide as they are. */
  #addShapes(id: string, colour: string, opacity: number): void {
    const { map } = this.#base;
    const isLine: ExpressionSpecification = ["==", ["geometry-type"], "LineString"];
    const isPolygon: ExpressionSpecification = ["==", ["geometry-type"], "Polygon"];
    map.addSource(id, { type: "geojson", data: EMPTY });
    map.addLayer({ id: `${id}-fill`, type: "fill", source: id, filter: isPolygon });
    map.addLayer({ id: `${id}-line`, type: "line", source: id, filter: isPolygon, paint: { "line-width": 1.5 } });
    map.addLayer({
      id: `${id}-corridor`,
      type: "line",
      source: id,
      filter: isLine,
      layout: { "line-cap": "round", "line-join": "round" },
      paint: { "line-width": ["interpolate", ["exponential", 2], ["zoom"], 0, ["get", "width"], 24, ["*", ["get", "width"], 2 ** 24]] },
    });
    map.addLayer({ id: `${id}-middle`, type: "line", source: id, filter: isLine, paint: { "line-width": 1.5, "line-dasharray": [3, 2] } });
    this.#base.onTheme(() => {
      map.setPaintProperty(`${id}-fill`, "fill-color", this.#css(colour, opacity));
      map.setPaintProperty(`${id}-corridor`, "line-color", this.#css(colour, opacity * 1.5));
      map.setPaintProperty(`${id}-line`, "line-color", this.#css(colour));
      map.setPaintProperty(`${id}-middle`, "line-color", this.#css(colour));
    });
  }
}
