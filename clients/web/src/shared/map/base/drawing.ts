// How lines of a GeoJSON document are drawn: in four classes. The property `traffic`, from 1 to 4, says which.

import type { ExpressionSpecification } from "maplibre-gl";

import { ABOVE, CITIES_MAX_ZOOM } from "../world/layers.js";
import { byZoom, line, names, STRONG, type Drawn } from "./layers.js";
import type { Palette } from "./palette.js";
import { SOURCE } from "./streets.js";

interface Class {
  readonly traffic: 1 | 2 | 3 | 4;
  /** Pixels across by zoom. */
  readonly widths: readonly (readonly [zoom: number, width: number])[];
  readonly colour: (palette: Palette) => string;
}

// Thin at every zoom and without casings: such lines are seldom the middle of a street, and are not to weigh more than what is upon them.
const CLASSES: readonly Class[] = [
  {
    traffic: 1,
    widths: [
      [9, 0.5],
      [14, 0.9],
      [18, 1.6],
    ],
    colour: ({ path }) => path,
  },
  {
    traffic: 2,
    widths: [
      [8, 0.5],
      [14, 1.3],
      [18, 2.4],
    ],
    colour: ({ minorThin }) => minorThin,
  },
  {
    traffic: 3,
    widths: [
      [8, 0.7],
      [14, 2],
      [18, 3.5],
    ],
    colour: ({ minorThin }) => minorThin,
  },
  {
    traffic: 4,
    widths: [
      [8, 1.1],
      [14, 2.8],
      [18, 5],
    ],
    colour: ({ majorThin }) => majorThin,
  },
];

const isLine: ExpressionSpecification = ["!=", ["geometry-type"], "Point"];
const ofClass = (traffic: number): ExpressionSpecification => [
  "all",
  isLine,
  ["==", ["max", 1, ["min", 4, ["round", ["to-number", ["get", "traffic"], 2]]]], traffic],
];

export const drawingLayers: Drawn = (palette) =>
  CLASSES.map(({ traffic, widths, colour }) =>
    line({
      id: `base-line-${traffic}`,
      source: SOURCE,
      filter: ofClass(traffic),
      paint: { "line-color": colour(palette), "line-width": byZoom(1.5, ...widths) },
    }),
  );

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
