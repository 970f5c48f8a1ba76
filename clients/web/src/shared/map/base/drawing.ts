// How lines of a GeoJSON document are drawn: as streets where their property `traffic`, from 1 to 4, says how wide they are, and else as thin lines.

import type { ExpressionSpecification } from "maplibre-gl";

import { ABOVE, CITIES_MAX_ZOOM } from "../world/layers.js";
import { byZoom, line, names, STRONG, type Drawn } from "./layers.js";
import type { Road } from "./schema.js";
import { casing, filling, SOURCE, type Source } from "./streets.js";

/** Streets by `traffic`, from 1. */
const STREETS = ["minor", "medium", "major", "motorway"] as const satisfies readonly Road[];

/** Closer, streets say for themselves where a town is. */
const BUILT_MAX_ZOOM = 13.5;

const isLine: ExpressionSpecification = ["!=", ["geometry-type"], "Point"];
const traffic: ExpressionSpecification = ["max", 1, ["min", 4, ["round", ["to-number", ["get", "traffic"], 2]]]];
const streets: readonly (readonly [Road, Source])[] = STREETS.map((road, index) => [
  road,
  { source: SOURCE, filter: ["all", isLine, ["has", "traffic"], ["==", traffic, index + 1]] },
]);

export const drawingLayers: Drawn = (palette) => [
  line({
    id: "base-line",
    source: SOURCE,
    filter: ["all", isLine, ["!", ["has", "traffic"]]],
    paint: { "line-color": palette.minorThin, "line-width": byZoom(1.5, [8, 0.5], [14, 1.3], [18, 2.4]) },
  }),
  // From far away a town is where its streets lie close to each other: a wide faint band along each adds up to that.
  line({
    id: "base-built",
    source: SOURCE,
    filter: ["all", isLine, ["has", "traffic"], ["<", traffic, 4]],
    maxzoom: BUILT_MAX_ZOOM,
    paint: {
      "line-color": palette.built,
      "line-width": byZoom(1.6, [7, 3], [10, 16], [12, 40], [BUILT_MAX_ZOOM, 64]),
      "line-blur": byZoom(1.6, [7, 2], [10, 10], [12, 26], [BUILT_MAX_ZOOM, 42]),
      "line-opacity": byZoom(1, [7, 0.5], [12, 0.4], [BUILT_MAX_ZOOM, 0]),
    },
  }),
  ...streets.flatMap(([road, source]) => casing(source, palette, road)),
  // Seen at every zoom: such a document has far fewer streets than a city.
  ...streets.map(([road, source]) => ({ ...filling(source, palette, road), minzoom: 0 })),
];

export const drawingNames: Drawn = (palette) => [
  names(palette, palette.name, {
    id: "base-name-line",
    source: SOURCE,
    filter: ["all", ["has", "name"], isLine],
    minzoom: 12,
    layout: { "symbol-placement": "line", "text-field": ["get", "name"], "text-size": byZoom(1, [12, 10], [18, 13]) },
  }),
  names(palette, palette.nameStrong, {
    id: "base-name-point",
    source: SOURCE,
    filter: ["all", ["has", "name"], ["==", ["geometry-type"], "Point"]],
    minzoom: CITIES_MAX_ZOOM + 1.5,
    layout: { "text-field": ["get", "name"], "text-font": STRONG, "text-size": byZoom(1, [8, 11], [15, 14]) },
    paint: { "text-opacity": ABOVE },
  }),
];
