// How lines of a GeoJSON document are drawn: as streets where their property `traffic`, from 1 to 4, says how wide they are, and else as thin lines.

import type { ExpressionSpecification } from "maplibre-gl";

import { ABOVE, CITIES_MAX_ZOOM } from "../world/layers.js";
import { byZoom, line, names, STRONG, type Drawn } from "./layers.js";
import type { Road } from "./schema.js";
import { casing, filling, SOURCE, type Source } from "./streets.js";

/** Streets by `traffic`, from 1. */
const STREETS = ["minor", "medium", "major", "motorway"] as const satisfies readonly Road[];

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
