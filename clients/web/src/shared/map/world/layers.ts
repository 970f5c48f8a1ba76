// How the outline of the world is drawn.

import type { ExpressionSpecification } from "maplibre-gl";

import { byZoom, line, names, PLAIN, SLANTED, STRONG, type Drawn } from "../base/layers.js";

/** Below that zoom borders and names of countries are those of the outline; above it a base map's own are better. */
export const COUNTRIES_MAX_ZOOM = 9;
/** Below that zoom the outline's cities are shown also where there is a base map with names. */
export const CITIES_MAX_ZOOM = 8;
/** From there on names of cities and towns are shown above the points, and not by the map. */
export const ABOVE: ExpressionSpecification = ["step", ["zoom"], 1, CITIES_MAX_ZOOM, 0];

/** Whether it is time for a name with a property `zoom`. */
const isDue: ExpressionSpecification = ["<=", ["get", "zoom"], ["zoom"]];
const isKind = (kind: string): ExpressionSpecification => ["==", ["get", "kind"], kind];

const isSea: ExpressionSpecification = ["has", "sea"];
const isLand: ExpressionSpecification = ["!", isSea];

export const worldGround: Drawn = (palette) => [
  // Its edges are those of tiles, and would be seen.
  {
    id: "world-sea",
    type: "fill",
    source: "world-land",
    filter: isSea,
    paint: { "fill-color": palette.water, "fill-antialias": false },
  },
  // The water is darker along the coast: most of that line lies below the land.
  line({
    id: "world-shore",
    source: "world-land",
    filter: isLand,
    paint: {
      "line-color": palette.shore,
      "line-width": byZoom(1.3, [0, 1], [6, 4], [10, 10], [14, 16]),
      "line-blur": byZoom(1.3, [0, 1], [6, 4], [10, 10], [14, 16]),
      "line-opacity": 0.5,
    },
  }),
  { id: "world-land", type: "fill", source: "world-land", filter: isLand, paint: { "fill-color": palette.land } },
  { id: "world-lakes", type: "fill", source: "world-lakes", paint: { "fill-color": palette.water } },
  line({
    id: "world-rivers",
    source: "world-rivers",
    minzoom: 3,
    paint: {
      "line-color": palette.water,
      "line-width": byZoom(1.4, [3, 0.5], [8, 1.6]),
      "line-opacity": byZoom(1, [3, 0.4], [5, 1], [9, 1], [10, 0]),
    },
  }),
  line({
    id: "world-borders",
    source: "world-borders",
    paint: {
      "line-color": palette.border,
      "line-width": byZoom(1.2, [0, 0.5], [4, 0.8], [10, 1.6]),
      "line-opacity": byZoom(1, [0, 0.6], [4, 0.9]),
    },
  }),
];

export const worldNames: Drawn = (palette) => [
  names(palette, palette.nameWater, {
    id: "world-seas",
    source: "world-names",
    filter: ["all", isKind("sea"), isDue],
    maxzoom: 7,
    layout: {
      "text-field": ["get", "name"],
      "text-font": SLANTED,
      "text-size": byZoom(1, [1, ["case", ["<=", ["get", "zoom"], 2], 12, 10.5]], [5, ["case", ["<=", ["get", "zoom"], 2], 17, 14]]),
      "text-letter-spacing": 0.12,
      "text-max-width": 7,
    },
    paint: { "text-halo-color": palette.water, "text-halo-width": 1 },
  }),
  names(palette, palette.nameQuiet, {
    id: "world-cities",
    source: "world-names",
    filter: ["all", isKind("city"), isDue, ["any", ["!", ["get", "covered"]], ["<", ["zoom"], CITIES_MAX_ZOOM]]],
    // Closer, a city is all around, and its name would stand in one of its streets.
    maxzoom: 12.5,
    layout: {
      "text-field": ["get", "name"],
      "text-font": ["case", ["get", "capital"], ["literal", STRONG], ["literal", PLAIN]],
      "text-size": byZoom(
        1,
        [3, ["case", [">", ["get", "people"], 3000], 11.5, 10.5]],
        [7, byPeople(15, 13, 11.5)],
        [11, byPeople(20, 16, 13)],
      ),
      "symbol-sort-key": ["-", ["case", ["get", "capital"], -4000, 0], ["get", "people"]],
      // Beside a dot where a city is one, in its middle where it is large.
      "icon-image": ["step", ["zoom"], "city", 8, ""],
      "icon-size": 0.5,
      "text-variable-anchor": ["step", ["zoom"], ["literal", ["left", "right", "top", "bottom"]], 8, ["literal", ["center"]]],
      "text-radial-offset": ["step", ["zoom"], 0.45, 8, 0],
      "text-justify": "auto",
    },
    paint: {
      "text-color": ["case", [">", ["get", "people"], 1000], palette.nameStrong, palette.name],
      "icon-color": palette.name,
      "icon-halo-color": palette.halo,
      "icon-halo-width": 1,
      "text-opacity": ABOVE,
    },
  }),
  names(palette, palette.name, {
    id: "world-countries",
    source: "world-names",
    filter: ["all", isKind("country"), isDue],
    maxzoom: COUNTRIES_MAX_ZOOM,
    layout: {
      "text-field": ["get", "name"],
      "text-font": STRONG,
      "text-transform": "uppercase",
      "text-letter-spacing": 0.08,
      "text-size": byZoom(1, [1, ["-", 11.5, ["get", "zoom"]]], [5, ["-", 17, ["get", "zoom"]]], [8, 16]),
      "symbol-sort-key": ["get", "zoom"],
      "text-max-width": 7,
    },
    paint: { "text-opacity": byZoom(1, [5, 1], [COUNTRIES_MAX_ZOOM, 0.6]) },
  }),
];

function byPeople(...[large, middling, small]: readonly [number, number, number]): ExpressionSpecification {
  return ["case", [">", ["get", "people"], 3000], large, [">", ["get", "people"], 500], middling, small];
}
