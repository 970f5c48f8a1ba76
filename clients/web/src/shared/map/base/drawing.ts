// How lines of a GeoJSON document are drawn: as streets of four classes. The property `traffic`, from 1 to 4, says which.

import type { ExpressionSpecification } from "maplibre-gl";

import { ABOVE, CITIES_MAX_ZOOM } from "../world/layers.js";
import { byZoom, line, names, STRONG, type Drawn } from "./layers.js";
import type { Palette } from "./palette.js";
import { SOURCE } from "./streets.js";

interface Class {
  readonly traffic: 1 | 2 | 3 | 4;
  /** Pixels across by zoom. */
  readonly widths: readonly (readonly [zoom: number, width: number])[];
  /** What goes around it, in pixels in all; none for the smallest. */
  readonly casing: number;
  readonly fill: (palette: Palette) => string;
  readonly edge: (palette: Palette) => string;
  readonly thin: (palette: Palette) => string;
}

const CLASSES: readonly Class[] = [
  {
    traffic: 1,
    widths: [
      [9, 0.5],
      [12, 0.8],
      [14, 1.4],
      [16, 4],
      [18, 10],
    ],
    casing: 0,
    fill: ({ path }) => path,
    edge: ({ path }) => path,
    thin: ({ minorThin }) => minorThin,
  },
  {
    traffic: 2,
    widths: [
      [8, 0.5],
      [10, 1],
      [12, 1.5],
      [14, 3.2],
      [16, 7],
      [18, 15],
    ],
    casing: 1.4,
    fill: ({ minor }) => minor,
    edge: ({ minorCasing }) => minorCasing,
    thin: ({ minorThin }) => minorThin,
  },
  {
    traffic: 3,
    widths: [
      [8, 0.7],
      [10, 1.3],
      [12, 2.2],
      [14, 5],
      [16, 10],
      [18, 20],
    ],
    casing: 1.8,
    fill: ({ major }) => major,
    edge: ({ majorCasing }) => majorCasing,
    thin: ({ majorThin }) => majorThin,
  },
  {
    traffic: 4,
    widths: [
      [8, 1.1],
      [10, 2],
      [12, 3.2],
      [14, 6.5],
      [16, 13],
      [18, 26],
    ],
    casing: 2.2,
    fill: ({ motorway }) => motorway,
    edge: ({ motorwayCasing }) => motorwayCasing,
    thin: ({ motorwayThin }) => motorwayThin,
  },
];
/** Below that zoom a street is one thin line. */
const CASED = 11;

const isLine: ExpressionSpecification = ["!=", ["geometry-type"], "Point"];
const ofClass = (traffic: number): ExpressionSpecification => [
  "all",
  isLine,
  ["==", ["max", 1, ["min", 4, ["round", ["to-number", ["get", "traffic"], 2]]]], traffic],
];
const width = (widths: Class["widths"], more = 0): ExpressionSpecification =>
  byZoom(1.5, ...widths.map(([zoom, pixels]) => [zoom, pixels + more] as const));

export const drawingLayers: Drawn = (palette) => [
  ...CLASSES.filter(({ casing }) => casing > 0).map(({ traffic, widths, casing, edge }) =>
    line({
      id: `base-casing-${traffic}`,
      source: SOURCE,
      filter: ofClass(traffic),
      minzoom: CASED,
      paint: { "line-color": edge(palette), "line-width": width(widths, casing) },
    }),
  ),
  ...CLASSES.map(({ traffic, widths, fill, thin }) =>
    line({
      id: `base-line-${traffic}`,
      source: SOURCE,
      filter: ofClass(traffic),
      paint: {
        "line-color": ["interpolate", ["linear"], ["zoom"], CASED, thin(palette), CASED + 1, fill(palette)],
        "line-width": width(widths),
      },
    }),
  ),
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
