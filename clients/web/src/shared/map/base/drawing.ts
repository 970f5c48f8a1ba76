// How lines of a GeoJSON document are drawn: as streets. The property `traffic`, from 1 to 4, makes them wider.

import type { ExpressionSpecification } from "maplibre-gl";

import { byZoom, line, names, STRONG, type Drawn } from "./layers.js";
import { SOURCE } from "./streets.js";

const traffic: ExpressionSpecification = ["to-number", ["get", "traffic"], 2];
const width = (more: number): ExpressionSpecification =>
  byZoom(
    1.5,
    ...(
      [
        [8, [0.3, 0.4, 0.6, 0.9]],
        [12, [0.8, 1.2, 2, 3]],
        [15, [2.4, 3.6, 5.4, 7]],
        [18, [9, 12, 16, 20]],
      ] as const
    ).map(([zoom, [one, two, three, four]]) => {
      const by: ExpressionSpecification = [
        "interpolate",
        ["linear"],
        traffic,
        1,
        one + more,
        2,
        two + more,
        3,
        three + more,
        4,
        four + more,
      ];
      return [zoom, by] as const;
    }),
  );

export const drawingLayers: Drawn = (palette) => [
  line({
    id: "base-casing",
    source: SOURCE,
    filter: ["!=", ["geometry-type"], "Point"],
    minzoom: 9,
    paint: { "line-color": palette.majorCasing, "line-width": width(1.5) },
  }),
  line({
    id: "base-line",
    source: SOURCE,
    filter: ["!=", ["geometry-type"], "Point"],
    layout: { "line-sort-key": traffic },
    paint: { "line-color": ["interpolate", ["linear"], ["zoom"], 10, palette.border, 12, palette.major], "line-width": width(0) },
  }),
];

export const drawingNames: Drawn = (palette) => [
  names(palette, palette.name, {
    id: "base-name-line",
    source: SOURCE,
    filter: ["all", ["has", "name"], ["!=", ["geometry-type"], "Point"]],
    minzoom: 12,
    layout: { "symbol-placement": "line", "text-field": ["get", "name"], "text-size": byZoom(1, [12, 10], [18, 13]) },
  }),
  names(palette, palette.nameStrong, {
    id: "base-name-point",
    source: SOURCE,
    filter: ["all", ["has", "name"], ["==", ["geometry-type"], "Point"]],
    layout: { "text-field": ["get", "name"], "text-font": STRONG, "text-size": byZoom(1, [8, 11], [15, 14]) },
  }),
];
