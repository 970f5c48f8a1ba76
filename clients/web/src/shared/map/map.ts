// The map of both pages: the outline of the world and the base map of the settings, or a quiet grid in planar worlds, in the colours of the theme. It
// asks nobody but the broker for anything.

import "maplibre-gl/dist/maplibre-gl.css";
import "./map.css";

import type { Feature, FeatureCollection } from "geojson";
import { Map as MapLibreMap, ScaleControl, setWorkerUrl, type GeoJSONSource, type StyleSpecification } from "maplibre-gl";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?worker&url";

import type { PageSettings } from "../pages.js";
import { addAttribution } from "./base/attribution.js";
import { showBase, type Base } from "./base/base.js";
import { nearestIn } from "./base/find.js";
import { ENDS } from "./base/layers.js";
import { paletteOf, type Palette } from "./base/palette.js";
import { parts, type Colour } from "./colour.js";
import { gridLines } from "./grid.js";
import { quarterOf, showPlaceNames, type PlaceNames, type Quarter } from "./place-names.js";
import { addFinder } from "./places.js";
import { planeOf, type Place, type Plane } from "./plane.js";
import { THEME_CHANGED } from "../theme.js";
import { showWorld, WORLD_ATTRIBUTION } from "./world/world.js";

export interface BaseMap {
  readonly map: MapLibreMap;
  readonly plane: Plane;
  /** A variable of the theme, as it is now, as parts of 1. */
  readonly colour: (variable: string) => Colour;
  /** Calls now and whenever the theme changes; paints that are made of its variables are made again. Returns what ends it. */
  onTheme(paint: () => void): () => void;
  /** Replaces the data of a source. */
  setData(source: string, data: FeatureCollection | Feature): void;
  /** West, south, east, north of the base map, but for what lies far out; absent where there is none. */
  readonly bounds: Promise<[number, number, number, number] | undefined>;
  /** What the map below the marks names nearest to a place, within a distance in metres: a quarter of the base map, else a city. */
  near(place: Place, most_m: number): Promise<string | undefined>;
  readonly names: PlaceNames;
  remove(): void;
}

export const EMPTY: FeatureCollection = { type: "FeatureCollection", features: [] };

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Makes the map in an element. Resolves when its style is there, so that layers may be added; the base map comes when it comes. */
export async function createMap(container: HTMLElement, settings: PageSettings, label: string): Promise<BaseMap> {
  setWorkerUrl(workerUrl);
  const plane = planeOf(settings.world);
  const css = getComputedStyle(document.documentElement);
  const text = (variable: string): string => css.getPropertyValue(variable).trim();
  const hidden = { visibility: "none" } as const;
  const style: StyleSpecification = {
    version: 8,
    sources: { grid: { type: "geojson", data: EMPTY } },
    layers: [
      { id: "ground", type: "background" },
      { id: "grid", type: "line", source: "grid" },
      // What comes later goes below one of these, and so below the marks.
      ...Object.values(ENDS).map((id) => ({ id, type: "background" as const, layout: hidden })),
    ],
  };
  const map = new MapLibreMap({
    container,
    style,
    center: [0, 20],
    zoom: 1.5,
    attributionControl: false,
    // Seen from above alone: what is asked of the map is where, not how it looks.
    dragRotate: false,
    pitchWithRotate: false,
    maxPitch: 0,
    touchPitch: false,
    maxZoom: 20,
    fadeDuration: 0,
    renderWorldCopies: settings.world === "geodetic",
    locale: { "Map.Title": label },
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  map.addControl(new ScaleControl({ maxWidth: 90 }), "bottom-left");
  await new Promise<void>((resolve) => void map.once("style.load", () => resolve()));

  const palette = (): Palette => paletteOf(text("--map-ground"));
  const isPlanar = settings.world === "planar";
  const world = isPlanar ? Promise.resolve(undefined) : showWorld(map, palette()).catch(() => undefined);
  const city = settings.base_map ? showBase(map, plane, palette) : Promise.resolve(undefined);
  const ends: (() => void)[] = [];
  let ended = false;
  let shownBase: Base | undefined;
  let cities: readonly Quarter[] = [];
  const isOver = (): boolean => ended;
  const listeners = new Set<() => void>();
  const base: BaseMap = {
    map,
    plane,
    colour: (variable) => parts(text(variable)),
    onTheme(paint) {
      listeners.add(paint);
      paint();
      return () => void listeners.delete(paint);
    },
    setData: (source, data) => void map.getSource<GeoJSONSource>(source)?.setData(data),
    bounds: city.then((shown) => (shown?.bounds === undefined ? undefined : [...shown.bounds])),
    near: async (place, most_m) =>
      (await (await city)?.near(place, most_m)) ?? nearestIn((await world)?.cities ?? [], plane, place, most_m),
    names: showPlaceNames(map, () => [...(shownBase?.quarters() ?? []), ...cities]),
    remove() {
      ended = true;
      for (const end of ends) end();
      dark.removeEventListener("change", repaint);
      removeEventListener(THEME_CHANGED, repaint);
      map.remove();
    },
  };
  const repaint = (): void => {
    for (const listener of listeners) listener();
    map.triggerRepaint();
  };
  dark.addEventListener("change", repaint);
  addEventListener(THEME_CHANGED, repaint);
  base.onTheme(() => {
    // Until the outline is drawn, all is land: water is drawn with the land that lies in it.
    map.setPaintProperty("ground", "background-color", isPlanar ? text("--map-ground") : palette().land);
    map.setPaintProperty("grid", "line-color", text("--map-grid"));
  });
  void world.then(async (outline) => {
    if (outline === undefined || isOver()) return;
    ends.push(addFinder((wanted, limit) => outline.find(wanted, limit)));
    cities = outline.cities.flatMap(quarterOf).map((each) => ({ ...each, isCity: true }));
    base.onTheme(() => outline.paint(palette()));
    const covers = (await city)?.covers;
    if (covers !== undefined && !isOver()) outline.leave(covers);
  });
  void city.then((shown) => {
    if (shown === undefined || isOver()) return;
    shownBase = shown;
    ends.push(addFinder(shown.find));
    base.onTheme(() => shown.paint(palette()));
  });
  // For assistive technology and for programs that drive the page: what the map shows of the world.
  const tellPlace = (): void => {
    const { lng, lat } = map.getCenter();
    container.dataset["center"] = plane.toWorld([lng, lat]).join(",");
    container.dataset["zoom"] = String(map.getZoom());
  };
  map.on("moveend", tellPlace);
  tellPlace();
  addAttribution(map, isPlanar ? undefined : WORLD_ATTRIBUTION);
  if (!isPlanar) return base;
  const drawGrid = (): void => {
    const bounds = map.getBounds();
    base.setData("grid", gridLines([bounds.getWest(), bounds.getSouth(), bounds.getEast(), bounds.getNorth()]));
  };
  map.on("moveend", drawGrid);
  drawGrid();
  return base;
}
