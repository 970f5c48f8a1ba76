// The map of both pages: the base map or a quiet grid, in the colours of the theme. It asks nobody but the broker for anything.

import "maplibre-gl/dist/maplibre-gl.css";
import "./map.css";

import type { Feature, FeatureCollection, Geometry, LineString } from "geojson";
import {
  AttributionControl,
  Map as MapLibreMap,
  ScaleControl,
  setWorkerUrl,
  type GeoJSONSource,
  type StyleSpecification,
} from "maplibre-gl";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?worker&url";

import { brokerUrl, type PageSettings } from "../pages.js";
import { middleOf } from "./bounds.js";
import { parts, type Colour } from "./colour.js";
import { gridLines } from "./grid.js";
import { planeOf, type Plane } from "./plane.js";
import { THEME_CHANGED } from "../theme.js";

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
  const style: StyleSpecification = {
    version: 8,
    sources: {
      grid: { type: "geojson", data: EMPTY },
      base: { type: "geojson", data: EMPTY, tolerance: 0.2 },
    },
    layers: [
      { id: "ground", type: "background" },
      { id: "grid", type: "line", source: "grid" },
      {
        id: "base",
        type: "line",
        source: "base",
        layout: { "line-cap": "round", "line-join": "round" },
        paint: { "line-width": ["interpolate", ["exponential", 1.6], ["zoom"], 9, 0.6, 13, 1.1, 18, 6], "line-opacity": 0.8 },
      },
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
    bounds: settings.base_map ? loadBaseMap(map, plane) : Promise.resolve(undefined),
    remove() {
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
    map.setPaintProperty("ground", "background-color", text("--map-ground"));
    map.setPaintProperty("grid", "line-color", text("--map-grid"));
    map.setPaintProperty("base", "line-color", text("--map-road"));
  });
  const drawGrid = (): void => {
    const bounds = map.getBounds();
    base.setData("grid", gridLines([bounds.getWest(), bounds.getSouth(), bounds.getEast(), bounds.getNorth()]));
  };
  map.on("moveend", drawGrid);
  drawGrid();
  return base;
}

/** Fetches the base map, shows it and its attribution, and tells how far it reaches. */
async function loadBaseMap(map: MapLibreMap, plane: Plane): Promise<[number, number, number, number] | undefined> {
  try {
    const response = await fetch(new URL("base-map.json", brokerUrl));
    if (!response.ok) return undefined;
    const document = (await response.json()) as (FeatureCollection | Feature | Geometry) & { attribution?: unknown };
    const lines = linesOf(document).map((line) => line.map((place) => plane.toMap([place[0] ?? 0, place[1] ?? 0])));
    if (lines.length === 0) return undefined;
    const feature: Feature = { type: "Feature", properties: {}, geometry: { type: "MultiLineString", coordinates: lines } };
    void map.getSource<GeoJSONSource>("base")?.setData(feature);
    if (typeof document.attribution === "string") {
      const plain = document.attribution.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
      map.addControl(new AttributionControl({ compact: true, customAttribution: plain }), "bottom-right");
    }
    return middleOf(lines.flat());
  } catch {
    return undefined; // The grid has to do.
  }
}

/** All lines of a GeoJSON document, borders of polygons included. */
export function linesOf(document: FeatureCollection | Feature | Geometry): LineString["coordinates"][] {
  switch (document.type) {
    case "FeatureCollection":
      return document.features.flatMap(linesOf);
    case "Feature":
      return (document.geometry as Geometry | null) === null ? [] : linesOf(document.geometry);
    case "GeometryCollection":
      return document.geometries.flatMap(linesOf);
    case "LineString":
      return [document.coordinates];
    case "MultiLineString":
    case "Polygon":
      return document.coordinates;
    case "MultiPolygon":
      return document.coordinates.flat();
    case "Point":
    case "MultiPoint":
      return [];
  }
}
