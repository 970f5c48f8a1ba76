// Names of places above the points, which would hide them. The map finds which names have room and leaves them undrawn. Close by, where a view has not one
// of their points, the names of quarters are pinned inside of it.

import type { Map as MapLibreMap } from "maplibre-gl";

import { nearestOf, regionsOf, type At } from "./area-names.js";
import type { Named } from "./base/find.js";
import { CITIES_MAX_ZOOM } from "./world/layers.js";

/** Layers of names that are shown above the points, from that zoom on: there a name stands in the middle of its place. */
const LAYERS = ["base-name-city", "base-name-town", "base-name-quarter", "base-name-point", "world-cities"];
/** How names of a layer look; those of the outline go by how many people live there. */
const KINDS: Readonly<Record<string, string>> = {
  "base-name-city": "city",
  "base-name-town": "town",
  "base-name-quarter": "quarter",
  "base-name-point": "quarter",
};
const RANKS = ["city", "town", "quarter", "area"];
/** What stands on the map, in both pages. */
const OVER =
  ".layers, .zoom, .time, .scene-key, .tools button, .why-label, .why-pin .dot, .why-pin .card, .maplibregl-ctrl-attrib, " +
  ".maplibregl-ctrl-scale, .me";
/** While the map moves its names are looked for so often, and while marks move below them. */
const LOOK_MS = 120;
const AGAIN_MS = 2000;
/** Names of areas: the least zoom, how many at most, and how far their quarters may be. */
const AREA_ZOOM = 11.5;
const AREAS = 4;
const NEAR_M = 6000;
/** The same in degrees of latitude. */
const NEAR_DEGREES = 0.06;
/** They keep so far from the edge of the map. */
const EDGE_PX = 14;
const EQUATOR_M = 40_075_017;

/** A quarter or another place that the map has the name of. */
export interface Quarter {
  readonly name: string;
  readonly at: readonly [lon: number, lat: number];
  /** It is a whole city, which is not to be taken for one of its quarters. */
  readonly isCity?: boolean;
}

/** The name of a feature at a point, or none. */
export function quarterOf({ geometry, properties }: Pick<Named, "geometry" | "properties">): Quarter[] {
  const name = properties["name"];
  if (geometry.type !== "Point" || typeof name !== "string" || name === "") return [];
  const [lon = 0, lat = 0] = geometry.coordinates;
  return [{ name, at: [lon, lat] }];
}

/** A mark on the map that names leave free. */
export interface Obstacle extends At {
  readonly radius: number;
  /** A name of a place may lie on it: its halo keeps both readable. A name of an area goes elsewhere if it can. */
  readonly isSoft?: boolean;
}

export interface PlaceNames {
  /** What names leave free now. */
  obstacles: () => readonly Obstacle[];
}

interface Shown {
  readonly name: HTMLElement;
  readonly text: string;
  readonly at: [lon: number, lat: number];
  /** How far it stands from its place, in CSS pixels. */
  readonly aside: At;
}

interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** Shows the names of places above all that is added to the map's canvas. Costs a look at the map's names whenever it was drawn. */
export function showPlaceNames(map: MapLibreMap, quarters: () => readonly Quarter[]): PlaceNames {
  const holder = document.createElement("div");
  holder.className = "place-names";
  holder.setAttribute("aria-hidden", "true");
  map.getCanvasContainer().after(holder);
  const names: PlaceNames = { obstacles: () => [] };
  let places: readonly Shown[] = [];
  let looked_ms = 0;
  const stand = (): void => {
    for (const { name, at, aside } of places) {
      const { x, y } = map.project(at);
      name.style.transform = `translate(${(x + aside.x).toFixed(1)}px, ${(y + aside.y).toFixed(1)}px) translate(-50%, -50%)`;
    }
  };
  const look = (): void => {
    looked_ms = performance.now();
    const found = foundNames(map);
    const before = places.filter(({ name }) => name.classList.contains("area"));
    const close = map.getZoom() < AREA_ZOOM ? [] : about(map, quarters());
    const obstacles = names.obstacles();
    const own = new Map(found.map((each) => [each.text, each]));
    // All of them are measured together.
    const areas = new Map(close.map(({ name, isCity = false }) => [name, spanOf(name, isCity ? "area whole" : "area")]));
    holder.replaceChildren(...found.map(({ name }) => name), ...areas.values());
    const room = new Room(map, holder, obstacles);
    const drop = Number(getComputedStyle(holder).getPropertyValue("--drop")) || 0;
    const kept = found
      .sort((one, other) => rankOf(one.name) - rankOf(other.name))
      .flatMap((each): Shown[] => {
        const aside = room.beside(each, drop);
        if (aside === undefined) each.name.classList.add("covered");
        return aside === undefined ? [] : [{ ...each, aside }];
      });
    const pinned = pinAreas(
      map,
      close.filter(({ name }) => !own.has(name) || kept.every(({ text }) => text !== name)),
      close,
      areas,
      before,
      room,
    );
    for (const [, name] of areas) if (pinned.every((each) => each.name !== name)) name.remove();
    places = [...kept, ...pinned];
    stand();
  };
  map.on("move", stand);
  map.on("render", () => {
    if (performance.now() - looked_ms >= LOOK_MS) look();
  });
  map.on("idle", look);
  const timer = setInterval(() => {
    if (!document.hidden && !map.isMoving() && names.obstacles().length > 0) look();
  }, AGAIN_MS);
  map.on("remove", () => clearInterval(timer));
  return names;
}

/** Those of some places that may be the nearest to a place of the view, each name once. */
function about(map: MapLibreMap, quarters: readonly Quarter[]): Quarter[] {
  const { lng, lat } = map.getCenter();
  const north = NEAR_DEGREES + (map.getBounds().getNorth() - lat);
  const east = north / Math.cos((lat * Math.PI) / 180) + (map.getBounds().getEast() - lng);
  const near = quarters.filter(({ at }) => Math.abs(at[1] - lat) < north && Math.abs(at[0] - lng) < east);
  return [...new Map(near.reverse().map((quarter) => [quarter.name, quarter])).values()];
}

function spanOf(text: string, kind: string): HTMLElement {
  const name = document.createElement("span");
  name.textContent = text;
  name.className = kind;
  return name;
}

const rankOf = (name: HTMLElement): number => RANKS.findIndex((rank) => name.classList.contains(rank));

/** The names that the map has found room for, each once. */
function foundNames(map: MapLibreMap): Omit<Shown, "aside">[] {
  const layers = LAYERS.filter((layer) => map.getLayer(layer) !== undefined);
  const found = layers.length === 0 || map.getZoom() < CITIES_MAX_ZOOM ? [] : map.queryRenderedFeatures({ layers });
  const named = new Set<string>();
  return found.flatMap(({ geometry, properties, layer }) => {
    const text = String(properties["name"] ?? "");
    if (geometry.type !== "Point" || text === "" || named.has(text)) return [];
    named.add(text);
    const [lon = 0, lat = 0] = geometry.coordinates;
    const kind = KINDS[layer.id] ?? (Number(properties["people"]) > 1000 ? "city" : "town");
    return [{ name: spanOf(text, kind), text, at: [lon, lat] as [number, number] }];
  });
}

/** Pins names of quarters whose own point is not seen in their parts of the view. What was pinned stays where it is as long as that is in its part. */
function pinAreas(
  map: MapLibreMap,
  wanted: readonly Quarter[],
  all: readonly Quarter[],
  spans: ReadonlyMap<string, HTMLElement>,
  before: readonly Shown[],
  room: Room,
): Shown[] {
  if (wanted.length === 0) return [];
  const points = all.map(({ at }) => map.project([at[0], at[1]]));
  const { clientWidth, clientHeight } = map.getCanvas();
  const metre_px = (512 * 2 ** map.getZoom()) / (EQUATOR_M * Math.cos((map.getCenter().lat * Math.PI) / 180));
  const most_px = NEAR_M * metre_px;
  const pinned: Shown[] = [];
  for (const { of, spots } of regionsOf(points, clientWidth, clientHeight, most_px)) {
    const quarter = all[of];
    const name = quarter === undefined ? undefined : spans.get(quarter.name);
    if (quarter === undefined || name === undefined || !wanted.includes(quarter) || pinned.length >= AREAS) continue;
    const last = before.find(({ text }) => text === quarter.name);
    const stays = last === undefined ? undefined : map.project(last.at);
    const kept = stays !== undefined && nearestOf(points, stays, most_px) === of ? [stays] : [];
    const spot = room.first(name, [...kept, ...spots]);
    if (spot === undefined) continue;
    const { lng, lat } = map.unproject([spot.x, spot.y]);
    pinned.push({ name, text: quarter.name, at: [lng, lat], aside: { x: 0, y: 0 } });
  }
  return pinned;
}

/** What is free of the map's element: names are not cut by its edge, do not lie below what stands on it, and do not overlap. */
class Room {
  readonly #map: MapLibreMap;
  readonly #size: readonly [width: number, height: number];
  readonly #taken: Box[];
  readonly #hard: readonly Obstacle[];
  readonly #soft: readonly Obstacle[];

  constructor(map: MapLibreMap, holder: HTMLElement, obstacles: readonly Obstacle[]) {
    this.#map = map;
    const frame = holder.getBoundingClientRect();
    this.#size = [frame.width, frame.height];
    const over = holder.closest(".map")?.querySelectorAll(OVER) ?? [];
    this.#taken = [...over]
      .map((element) => element.getBoundingClientRect())
      .filter(({ width }) => width > 0)
      .map(({ left, top, right, bottom }) => ({
        left: left - frame.left,
        top: top - frame.top,
        right: right - frame.left,
        bottom: bottom - frame.top,
      }));
    this.#hard = obstacles.filter(({ isSoft }) => isSoft !== true);
    this.#soft = obstacles.filter(({ isSoft }) => isSoft === true);
  }

  /** How far from its place a name stands, `drop` below it or beside a mark that is there; absent where there is no room. */
  beside({ name, at }: Pick<Shown, "name" | "at">, drop: number): At | undefined {
    const { x, y } = this.#map.project(at);
    const { offsetWidth: width, offsetHeight: height } = name;
    const centre = { x, y: y + drop };
    const own = boxAt(centre, width, height);
    if (!this.#isFree(own, 0)) return undefined;
    const mark = this.#hard.find((each) => touches(own, each));
    const asides: readonly At[] =
      mark === undefined
        ? []
        : [
            { x, y: mark.y - mark.radius - height / 2 },
            { x, y: mark.y + mark.radius + height / 2 },
            { x: mark.x + mark.radius + width / 2, y },
            { x: mark.x - mark.radius - width / 2, y },
          ];
    const spot = asides.find((aside) => {
      const box = boxAt(aside, width, height);
      return this.#isFree(box, 0) && this.#hard.every((each) => !touches(box, each));
    });
    const chosen = spot ?? centre;
    this.#taken.push(boxAt(chosen, width, height));
    return { x: chosen.x - x, y: chosen.y - y };
  }

  /** The first of some places where a name has room, one without marks if there is one. */
  first(name: HTMLElement, spots: readonly At[]): At | undefined {
    const { offsetWidth: width, offsetHeight: height } = name;
    const free = spots.filter((spot) => this.#isFree(boxAt(spot, width, height), EDGE_PX));
    const marks = [...this.#hard, ...this.#soft];
    const chosen = free.find((spot) => marks.every((mark) => !touches(boxAt(spot, width, height), mark))) ?? free[0];
    if (chosen !== undefined) this.#taken.push(boxAt(chosen, width, height));
    return chosen;
  }

  #isFree(box: Box, edge: number): boolean {
    const [width, height] = this.#size;
    const isCut = box.left < edge || box.top < edge || box.right > width - edge || box.bottom > height - edge;
    return !isCut && this.#taken.every((other) => !overlap(box, other));
  }
}

function boxAt({ x, y }: At, width: number, height: number): Box {
  return { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
}

function touches(box: Box, { x, y, radius }: Obstacle): boolean {
  return x + radius > box.left && x - radius < box.right && y + radius > box.top && y - radius < box.bottom;
}

function overlap(one: Box, other: Box): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}
