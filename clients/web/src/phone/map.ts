// The phone's map: where one is, how far one hears, what came.

import { effect, signal } from "@preact/signals";
import type { Feature, FeatureCollection } from "geojson";
import {
  LngLatBounds,
  Marker,
  MercatorCoordinate,
  type FillLayerSpecification,
  type FilterSpecification,
  type LineLayerSpecification,
  type MapMouseEvent,
} from "maplibre-gl";

import { corridorWidth, type Corridor } from "../shared/map/corridor.js";
import { CorridorLayer } from "../shared/map/corridor-layer.js";
import { createMap, EMPTY, type BaseMap } from "../shared/map/map.js";
import type { Obstacle } from "../shared/map/place-names.js";
import { circleRing, DEGREE_M, type Place, type Plane } from "../shared/map/plane.js";
import { Points } from "../shared/map/points.js";
import type { PageSettings } from "../shared/pages.js";
import { status, type Entry, type Reach } from "./entry.js";
import { kindOf } from "./kind.js";
import { kindIcons, type Marked } from "./kind-icons.js";
import { slowNow_ms } from "./now.js";
import type { Phone } from "./phone.js";
import { spread, type Within } from "./spread.js";
import type { Destination } from "./trip.js";

/** Degrees around the middle of the circle that are shaded, at least as far as the map shows beside the largest circle. */
const AROUND = 30;

export interface PhoneMap {
  /** Shows the own place and its circle, and follows it. */
  centre(): void;
  /** Brings a place to the middle. */
  show(place: Place): void;
  zoom(by: number): void;
  /** Says that one is at the middle of what is seen. */
  putAtMiddle(): void;
  /** Says that one goes there. */
  goToMiddle(): void;
  remove(): void;
}

/** Of what is in reach, of what is not any more, and the same when they are selected. */
const EVENT_LOOKS = [
  { colour: "--map-object", shape: "disc", size: 20 },
  { colour: "--map-object", shape: "ring", size: 10 },
  { colour: "--map-object", shape: "disc", size: 30 },
  { colour: "--map-object", shape: "ring", size: 22 },
  // The same of those whose place may be wrong.
  { colour: "--map-violation", shape: "triangle", size: 22 },
  { colour: "--map-violation", shape: "triangle", size: 15 },
  { colour: "--map-violation", shape: "triangle", size: 38 },
  { colour: "--map-violation", shape: "triangle", size: 28 },
  // The same of those that somebody has already, as a hired taxi.
  { colour: "--map-object", shape: "ring", size: 20 },
  { colour: "--map-object", shape: "ring", size: 10 },
  { colour: "--map-object", shape: "ring", size: 30 },
  { colour: "--map-object", shape: "ring", size: 22 },
] as const;
const ALARM_LOOKS = [
  { colour: "--bad", shape: "diamond", size: 30 },
  { colour: "--bad", shape: "diamond", size: 12 },
  { colour: "--bad", shape: "diamond", size: 38 },
  { colour: "--bad", shape: "diamond", size: 26 },
] as const;
const [AWAY, SELECTED, DOUBTED, TAKEN] = [1, 2, 4, 8];
/** A name that is farther away does not say where one is. */
const NEAR_M = 6000;
/** The least distance between marks in reach on the screen, and the most marks that are moved apart. */
const APART_PX = 28;
/** Names of the map leave marks free that far around. */
const MARK_PX = 16;
/** Around the circle; the attribution, or the edge of the sheet, lies below it. */
const RING_PADDING = { top: 12, right: 24, bottom: 36, left: 24 };
/** A mark in reach stays so far inside of the circle, so that it lies in it as a whole, where the circle is not too small for that. */
const INSIDE_PX = 15;
const INSIDE_PART = 0.15;
const OWN_PX = 46;
const SPREAD = 80;
/** How much the map shows across before the person has said where they are. */
const FIRST_M = 2500;
/** Fingers are wide. */
const TAP_PX = 26;
/** How often the position is sent while the marker is dragged. */
const DRAG_MS = 250;
/** An arrow key moves the marker by this part of the radius, and with Shift by ten of it. */
const STEP = 1 / 40;
const KEYS: Readonly<Record<string, Place>> = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

export async function drawMap(container: HTMLElement, phone: Phone, settings: PageSettings): Promise<PhoneMap> {
  const base = await createMap(container, settings, "Map of what is around you");
  const { map, plane } = base;
  addCircle(base, "reach", ["--map-outside", "--map-area"], 0.62, "LineString");
  addCircle(base, "accuracy", ["--map-client", "--map-client"], 0.18, "Polygon");
  const drawRoute = routeLayer(base);
  // The own mark stands between the two: it hides no alarm, and is not hidden by events.
  const layers = { events: new Points(EVENT_LOOKS).addTo(base), alarms: new Points(ALARM_LOOKS).addTo(base) };
  [...map.getCanvasContainer().querySelectorAll("canvas.points")].at(-1)?.classList.add("alarms");

  // Until the person moves the map it keeps the circle in sight.
  let following = true;
  const centre = (animate: boolean): void => {
    const here = phone.here.peek();
    if (here === undefined) return;
    const ring = circleRing(plane, here.place, phone.preferences.peek().radius_m);
    const bounds = ring.reduce((all, corner) => all.extend(corner), new LngLatBounds());
    map.fitBounds(bounds, { padding: RING_PADDING, maxZoom: 17, linear: true, animate });
  };
  map.on("resize", () => {
    if (following) centre(false);
  });
  map.on("dragstart", () => (following = false));
  map.on("zoomstart", ({ originalEvent }) => {
    if (originalEvent !== undefined) following = false;
  });

  const show = (place: Place): void => {
    following = false;
    map.easeTo({ center: plane.toMap(place) });
  };
  const marker = ownMarker(phone, base);
  base.names.obstacles = () => {
    const found: Obstacle[] = [];
    const here = phone.here.peek();
    if (here !== undefined) {
      const { x, y } = map.project(plane.toMap(here.place));
      found.push({ x, y, radius: OWN_PX });
    }
    for (const layer of [layers.events, layers.alarms]) layer.eachOnScreen((x, y) => void found.push({ x, y, radius: MARK_PX }));
    return found;
  };
  const draw = drawing(layers, base, kindIcons(base, [layers.events, layers.alarms]));
  const nameHere = async (): Promise<void> => {
    const here = phone.here.peek();
    const name = here === undefined ? undefined : await base.near(here.place, NEAR_M);
    if (phone.here.peek() === here) phone.near.value = name;
  };
  // Tiles have names once they are there.
  map.on("idle", () => {
    if (phone.near.peek() === undefined) void nameHere();
  });
  const zoom = signal(map.getZoom());
  map.on("zoomend", () => (zoom.value = map.getZoom()));
  let wasHere = false;
  const end = goal();
  let shown: Destination | undefined;
  const ends = [
    effect(() => {
      const corridor = phone.trip.corridor.value;
      const destination = corridor === undefined ? undefined : phone.trip.destination.value;
      drawRoute(corridor);
      if (destination === undefined) end.remove();
      else end.setLngLat(plane.toMap(destination.to)).addTo(map);
      // All of a new way is shown, once. A way that was found again leaves the map where it is.
      if (corridor !== undefined && destination !== undefined && destination !== shown) {
        following = false;
        const bounds = new LngLatBounds();
        for (const place of [...corridor.line, destination.to]) bounds.extend([place[0], place[1]]);
        map.fitBounds(bounds, { padding: 40, maxZoom: 16, linear: true });
      }
      shown = destination;
    }),
    effect(() => {
      const here = phone.here.value;
      const { radius_m } = phone.preferences.value;
      const ring = (radius: number): Feature | typeof EMPTY =>
        here === undefined
          ? EMPTY
          : { type: "Feature", properties: {}, geometry: { type: "Polygon", coordinates: [circleRing(plane, here.place, radius)] } };
      base.setData("reach", here === undefined ? EMPTY : outside(plane, here.place, radius_m));
      base.setData("accuracy", here?.accuracy_m === undefined ? EMPTY : ring(here.accuracy_m));
      if (here === undefined) {
        marker.remove();
      } else {
        marker.setLngLat(plane.toMap(here.place));
        const element = marker.getElement();
        element.toggleAttribute("data-headed", here.heading_deg !== undefined);
        element.style.setProperty("--heading", `${(here.heading_deg ?? 0).toFixed(0)}deg`);
        if (!wasHere) marker.addTo(map);
        if (following && !marker.getElement().matches(".held")) centre(wasHere);
      }
      wasHere = here !== undefined;
      void nameHere();
    }),
    effect(() => {
      draw(phone.inbox.value?.entries.value ?? [], phone.selection.key.value, phone.reach.value, slowNow_ms.value, zoom.value);
    }),
    effect(() => {
      if (phone.selection.key.value === undefined) return;
      const place = phone.selection.entry.peek()?.place;
      if (place !== undefined && !map.getBounds().contains(plane.toMap(place))) show(place);
    }),
  ];
  map.on("click", ({ point, lngLat }: MapMouseEvent) => {
    if (phone.trip.choosing.peek()) {
      phone.trip.seek({ to: plane.toWorld([lngLat.lng, lngLat.lat]) });
      return;
    }
    const key = layers.alarms.near(point, TAP_PX)[0] ?? layers.events.near(point, TAP_PX)[0];
    if (key === undefined) phone.selection.close();
    else phone.selection.open(key);
  });
  void base.bounds.then((bounds) => {
    // A small map: the attribution is behind its button until somebody asks.
    const attribution = container.querySelector("details.maplibregl-ctrl-attrib");
    attribution?.removeAttribute("open");
    attribution?.classList.remove("maplibregl-compact-show");
    if (bounds === undefined || phone.here.value !== undefined) return;
    // So close that a person finds the street that they are in: a whole city on a phone shows names alone.
    const [west, south, east, north] = bounds;
    const around = circleRing(plane, plane.toWorld([(west + east) / 2, (south + north) / 2]), FIRST_M / 2);
    const first = around.reduce((all, corner) => all.extend(corner), new LngLatBounds());
    map.fitBounds(bounds, { animate: false, padding: 8 });
    const whole = map.getZoom();
    map.fitBounds(first, { animate: false });
    // What is smaller than that is seen whole.
    if (map.getZoom() < whole) map.fitBounds(bounds, { animate: false, padding: 8 });
  });
  const middle = (): Place => {
    const { lng, lat } = map.getCenter();
    return plane.toWorld([lng, lat]);
  };
  const follow = (): void => {
    following = true;
    centre(true);
  };
  return {
    centre: follow,
    show,
    zoom(by) {
      following = false;
      map.zoomTo(map.getZoom() + by, { duration: 200 });
    },
    putAtMiddle() {
      phone.putHere(middle());
      follow();
    },
    goToMiddle() {
      phone.trip.seek({ to: middle() });
    },
    remove() {
      for (const end of ends) end();
      base.remove();
    },
  };
}

/** All around a circle, so that what lies within it is seen as it is, and the circle's edge. */
function outside(plane: Plane, middle: Place, radius: number): FeatureCollection {
  const ring = circleRing(plane, middle, radius);
  const [x, y] = plane.toMap(middle);
  const [west, east, south, north] = [x - AROUND, x + AROUND, Math.max(-85, y - AROUND), Math.min(85, y + AROUND)];
  const frame = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ];
  return {
    type: "FeatureCollection",
    features: [
      { type: "Feature", properties: {}, geometry: { type: "Polygon", coordinates: [frame, ring] } },
      { type: "Feature", properties: {}, geometry: { type: "LineString", coordinates: ring } },
    ],
  };
}

/** A circle, or what is around one; `edge` says which features its edge is. */
function addCircle(
  base: BaseMap,
  id: string,
  [colour, edgeColour]: readonly [string, string],
  opacity: number,
  edge: "Polygon" | "LineString",
): void {
  const { map } = base;
  // Without tolerance: a circle would be drawn with some twenty corners.
  map.addSource(id, { type: "geojson", data: EMPTY, tolerance: 0 });
  const inside: FilterSpecification = ["==", ["geometry-type"], "Polygon"];
  const fill: FillLayerSpecification = { id, type: "fill", source: id, filter: inside, paint: { "fill-opacity": opacity } };
  const filter: FilterSpecification = ["==", ["geometry-type"], edge];
  const line: LineLayerSpecification = { id: `${id}-edge`, type: "line", source: id, filter, paint: { "line-width": 1.5 } };
  map.addLayer(fill);
  map.addLayer(line);
  base.onTheme(() => {
    const css = getComputedStyle(document.documentElement);
    map.setPaintProperty(id, "fill-color", css.getPropertyValue(colour).trim());
    map.setPaintProperty(`${id}-edge`, "line-color", css.getPropertyValue(edgeColour).trim());
  });
}

/** What draws the way and its corridor; the line has an edge, which sets it apart from streets. */
function routeLayer(base: BaseMap): (corridor: Corridor | undefined) => void {
  const { map } = base;
  const band = new CorridorLayer(base, () => ["--map-group", 0.16]);
  map.addSource("route", { type: "geojson", data: EMPTY });
  const layout = { "line-cap": "round", "line-join": "round" } as const;
  map.addLayer({ id: "route-edge", type: "line", source: "route", layout, paint: { "line-width": 7 } });
  map.addLayer({ id: "route", type: "line", source: "route", layout, paint: { "line-width": 4 } });
  base.onTheme(() => {
    const css = getComputedStyle(document.documentElement);
    map.setPaintProperty("route-edge", "line-color", css.getPropertyValue("--surface").trim());
    map.setPaintProperty("route", "line-color", css.getPropertyValue("--map-group").trim());
  });
  return (corridor) => {
    const line = corridor === undefined ? undefined : lineOf(corridor);
    band.show(line === undefined ? [] : [line]);
    base.setData("route", line ?? EMPTY);
  };
}

function lineOf({ line, radius_m }: Corridor): Feature {
  const coordinates = line.map(([lon, lat]) => [lon, lat]);
  const width = corridorWidth({ world: "geodetic" }, line, radius_m);
  return { type: "Feature", properties: { width }, geometry: { type: "LineString", coordinates } };
}

/** Where one is going. The sheet says the same in words. */
function goal(): Marker {
  const element = document.createElement("span");
  element.className = "goal";
  element.ariaHidden = "true";
  return new Marker({ element, anchor: "bottom" });
}

/** The own place: dragged by a finger, moved by arrow keys. */
function ownMarker(phone: Phone, { plane }: BaseMap): Marker {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "me";
  element.setAttribute("aria-label", "You. Arrow keys move you.");
  const marker = new Marker({ element, draggable: true });
  const place = (): [number, number] => {
    const { lng, lat } = marker.getLngLat();
    return plane.toWorld([lng, lat]);
  };
  let told_ms = 0;
  marker.on("dragstart", () => element.classList.add("held"));
  marker.on("drag", () => {
    const due = Date.now() - told_ms >= DRAG_MS;
    if (due) told_ms = Date.now();
    phone.putHere(place(), due);
  });
  marker.on("dragend", () => {
    element.classList.remove("held");
    phone.putHere(place());
  });
  element.addEventListener("keydown", (event) => {
    const way = KEYS[event.key];
    const here = phone.here.value;
    if (way === undefined || here === undefined) return;
    // The map would move as well.
    event.preventDefault();
    event.stopPropagation();
    const step_m = phone.preferences.value.radius_m * STEP * (event.shiftKey ? 10 : 1);
    phone.putHere(stepped(plane.world, here.place, [way[0] * step_m, way[1] * step_m]));
  });
  return marker;
}

/** A place so many metres east and north of another. */
function stepped(world: PageSettings["world"], [x, y]: Place, [east_m, north_m]: Place): Place {
  if (world === "planar") return [x + east_m, y + north_m];
  const lat = Math.max(-89.9, Math.min(89.9, y + north_m / DEGREE_M));
  const lon = x + east_m / (DEGREE_M * Math.cos((y * Math.PI) / 180));
  return [((((lon + 180) % 360) + 360) % 360) - 180, lat];
}

/** Where marks are drawn so that each is seen, by their keys; those that stay where they are may be absent. */
function spreadOut(
  marks: readonly { readonly key: string; readonly at: [number, number]; readonly fixed: boolean }[],
  zoom: number,
  circle: readonly [middle: [number, number], edge: [number, number]] | undefined,
): ReadonlyMap<string, [number, number]> {
  if (marks.length > SPREAD) return new Map();
  const world_px = 512 * 2 ** zoom;
  const spots = marks.map(({ at, fixed }) => {
    const { x, y } = MercatorCoordinate.fromLngLat(at);
    return { x: x * world_px, y: y * world_px, fixed };
  });
  let within: Within | undefined;
  if (circle !== undefined) {
    const [middle, edge] = circle.map((at) => MercatorCoordinate.fromLngLat(at)) as [MercatorCoordinate, MercatorCoordinate];
    const radius = Math.hypot(edge.x - middle.x, edge.y - middle.y) * world_px;
    within = { x: middle.x * world_px, y: middle.y * world_px, radius: radius - Math.min(INSIDE_PX, radius * INSIDE_PART) };
  }
  return new Map(
    spread(spots, APART_PX, within).map(({ x, y }, index) => {
      const { lng, lat } = new MercatorCoordinate(x / world_px, y / world_px).toLngLat();
      return [marks[index]?.key ?? "", [lng, lat]];
    }),
  );
}

/** What brings the points in line with the list. A call costs O(entries). */
function drawing(
  { events, alarms }: { readonly events: Points; readonly alarms: Points },
  { plane }: BaseMap,
  showIcons: ReturnType<typeof kindIcons>,
): (entries: readonly Entry[], selected: string | undefined, reach: Reach, now_ms: number, zoom: number) => void {
  let drawn = new Map<string, Points>();
  return (entries, selected, reach, now_ms, zoom) => {
    const before = drawn;
    drawn = new Map();
    const marked: Marked[] = [];
    const shown = entries.flatMap((entry) => {
      const gone = status(entry, reach, now_ms);
      return entry.place === undefined || gone === "over" || gone === "left" ? [] : [{ entry, gone, at: plane.toMap(entry.place) }];
    });
    // What is in reach along a way lies outside of it.
    const { here, radius_m, corridor } = reach;
    const edge = here === undefined || corridor !== undefined ? undefined : circleRing(plane, here, radius_m)[0];
    const apart = spreadOut(
      shown
        .filter(({ gone }) => gone === undefined)
        .map(({ entry: { key, alarm }, at }) => ({ key, at, fixed: alarm || key === selected }))
        // Nor do they lie on the own place.
        .concat(here === undefined ? [] : [{ key: "", at: plane.toMap(here), fixed: true }]),
      zoom,
      here === undefined || edge === undefined ? undefined : [plane.toMap(here), edge],
    );
    for (const { entry, gone, at } of shown) {
      const { key, alarm, doubts } = entry;
      const layer = alarm ? alarms : events;
      const doubted = !alarm && doubts !== undefined ? DOUBTED : 0;
      // As in the list.
      const kind = kindOf(entry);
      const meant = doubted > 0 ? doubted : kind.taken && !alarm ? TAKEN : 0;
      const look = (gone === undefined ? 0 : AWAY) + (key === selected ? SELECTED : 0) + meant;
      layer.put(key, apart.get(key) ?? at, look, alarm || doubted > 0 ? {} : { colour: kind.colour });
      if (gone === undefined && doubted === 0) marked.push({ key, kind, layer });
      drawn.set(key, layer);
    }
    for (const [key, layer] of before) if (drawn.get(key) !== layer) layer.remove(key);
    showIcons(marked);
  };
}
