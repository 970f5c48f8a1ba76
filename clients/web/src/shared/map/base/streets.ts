// How a city of vector tiles is drawn: green, water, buildings, streets by class with casings, and names.

import type { ExpressionSpecification, FilterSpecification, LayerSpecification, LineLayerSpecification } from "maplibre-gl";

import { ABOVE, CITIES_MAX_ZOOM } from "../world/layers.js";
import { byZoom, line, names, SLANTED, STRONG, type Drawn } from "./layers.js";
import type { Palette } from "./palette.js";
import { ROADS, type Part, type Road, type Schema } from "./schema.js";

export const SOURCE = "base";

/** Pixels across, from the zoom at which a class is seen first. */
const WIDTHS: Readonly<Record<Road, readonly (readonly [zoom: number, width: number])[]>> = {
  path: [
    [14, 0.6],
    [16, 1],
    [18, 2.4],
    [20, 5],
  ],
  service: [
    [13, 0.5],
    [15, 1.6],
    [17, 4.5],
    [20, 14],
  ],
  minor: [
    [12, 0.5],
    [14, 2],
    [16, 6.5],
    [18, 16],
    [20, 34],
  ],
  medium: [
    [9, 0.5],
    [12, 1.7],
    [14, 3.8],
    [16, 9],
    [18, 20],
    [20, 42],
  ],
  major: [
    [7, 0.5],
    [10, 1.5],
    [12, 2.5],
    [14, 5],
    [16, 11],
    [18, 24],
    [20, 48],
  ],
  motorway: [
    [5, 0.5],
    [8, 1.4],
    [11, 2.8],
    [14, 6],
    [16, 13],
    [18, 26],
    [20, 52],
  ],
};
/** Below that zoom a class is one thin line. */
const CASED: Readonly<Record<Road, number | undefined>> = { path: undefined, service: 15, minor: 13, medium: 12, major: 11, motorway: 12 };

const width = (road: Road, more = 0): ExpressionSpecification =>
  byZoom(1.4, ...WIDTHS[road].map(([zoom, pixels]) => [zoom, more === 0 ? pixels : pixels + Math.min(more, 0.6 + pixels / 6)] as const));
const firstZoom = (road: Road): number => WIDTHS[road][0]?.[0] ?? 0;
const fillColour = (palette: Palette, road: Road): string =>
  road === "motorway"
    ? palette.motorway
    : road === "major" || road === "medium"
      ? palette.major
      : road === "path"
        ? palette.path
        : palette.minor;
const casingColour = (palette: Palette, road: Road): string =>
  road === "motorway" ? palette.motorwayCasing : road === "major" || road === "medium" ? palette.majorCasing : palette.minorCasing;

const thinColour = (palette: Palette, road: Road): string =>
  ({ motorway: palette.motorwayThin, major: palette.majorThin, medium: palette.mediumThin })[road as string] ?? palette.minorThin;

/** Which features a layer draws. */
export interface Source {
  readonly source: string;
  readonly "source-layer"?: string;
  readonly filter: FilterSpecification;
}

const of = ({ layer, filter }: Part): Source => ({
  source: SOURCE,
  "source-layer": layer,
  filter,
});

/** Everything but names. */
export const streetLayers =
  (schema: Schema): Drawn =>
  (palette) => [
    ...fills("land", schema.land, palette.land),
    ...fills("site", schema.site, palette.site, { minzoom: 11 }),
    ...fills("green", schema.green, palette.green, { opacity: byZoom(1, [8, 0.5], [11, 1]) }),
    ...fills("sand", schema.sand, palette.sand),
    ...fills("water", schema.water, palette.water),
    ...schema.waterway.map((part, index) =>
      line({
        ...of(part),
        id: `base-waterway-${index}`,
        minzoom: 9,
        paint: { "line-color": palette.water, "line-width": byZoom(1.4, [9, 0.8], [14, 2.2], [18, 8]) },
      }),
    ),
    ...schema.runway.map((part, index) =>
      line({
        ...of(part),
        id: `base-runway-${index}`,
        minzoom: 10,
        paint: { "line-color": palette.building, "line-width": byZoom(1.6, [10, 1], [14, 8], [18, 60]) },
      }),
    ),
    ...schema.building.map((part, index): LayerSpecification => ({
      ...of(part),
      id: `base-building-${index}`,
      type: "fill",
      minzoom: 14,
      paint: { "fill-color": palette.building, "fill-outline-color": palette.buildingEdge, "fill-opacity": byZoom(1, [14, 0], [15, 1]) },
    })),
    ...ROADS.flatMap((road) => casing(of(schema.road[road]), palette, road)),
    line({
      ...of(schema.rail),
      id: "base-rail",
      minzoom: 10,
      paint: { "line-color": palette.rail, "line-width": byZoom(1.4, [10, 0.6], [14, 1.2], [18, 3]) },
    }),
    ...ROADS.map((road) => filling(of(schema.road[road]), palette, road)),
    ...schema.border.map((part, index) =>
      line({
        ...of(part),
        id: `base-border-${index}`,
        minzoom: 4,
        paint: { "line-color": palette.border, "line-width": 0.8, "line-dasharray": [3, 2], "line-opacity": 0.7 },
      }),
    ),
  ];

/** A thin line has a colour of its own, or nobody would see it on the ground. */
function thenFill(palette: Palette, road: Road): ExpressionSpecification | string {
  const cased = CASED[road];
  if (cased === undefined) return fillColour(palette, road);
  return ["interpolate", ["linear"], ["zoom"], cased, thinColour(palette, road), cased + 1, fillColour(palette, road)];
}

export function filling(source: Source, palette: Palette, road: Road): LineLayerSpecification {
  return line({
    ...source,
    id: `base-road-${road}`,
    minzoom: firstZoom(road),
    paint: {
      "line-color": thenFill(palette, road),
      "line-width": width(road),
      ...(road === "path" ? { "line-dasharray": [2, 1.2] } : {}),
    },
  });
}

/** What goes around a street, where it is more than a thin line. */
export function casing(source: Source, palette: Palette, road: Road): LineLayerSpecification[] {
  const minzoom = CASED[road];
  if (minzoom === undefined) return [];
  const paint = { "line-color": casingColour(palette, road), "line-width": width(road, 2.4) };
  return [line({ ...source, id: `base-casing-${road}`, minzoom, layout: { "line-cap": "butt" }, paint })];
}

function fills(
  id: string,
  parts: readonly Part[],
  colour: string,
  { minzoom = 0, opacity = 1 }: { minzoom?: number; opacity?: number | ExpressionSpecification } = {},
): LayerSpecification[] {
  return parts.map((part, index) => ({
    ...of(part),
    id: `base-${id}-${index}`,
    type: "fill",
    minzoom,
    paint: { "fill-color": colour, "fill-opacity": opacity },
  }));
}

/** Names, those that matter most last: they are placed first. */
export const nameLayers =
  (schema: Schema): Drawn =>
  (palette) => {
    const alongLine = { "symbol-placement": "line", "text-max-angle": 35, "symbol-spacing": 320 } as const;
    const { places } = schema;
    const place = (filter: FilterSpecification): ReturnType<typeof of> => of({ layer: places.layer, filter });
    return [
      names(palette, palette.nameWater, {
        ...of(schema.waterwayName),
        id: "base-name-waterway",
        minzoom: 12,
        layout: {
          ...alongLine,
          "text-field": ["get", "name"],
          "text-font": SLANTED,
          "text-size": byZoom(1, [12, 10.5], [18, 14]),
          "text-letter-spacing": 0.08,
        },
      }),
      names(palette, palette.name, {
        ...of(schema.roadName),
        id: "base-name-road",
        minzoom: 12.5,
        layout: { ...alongLine, "text-field": ["get", "name"], "text-size": byZoom(1, [13, 10], [16, 11.5], [19, 14]), "text-padding": 6 },
        paint: { "text-halo-color": palette.minor === "#ffffff" ? palette.minor : palette.halo },
      }),
      names(palette, palette.nameGreen, {
        ...of(schema.parkName),
        id: "base-name-park",
        minzoom: 13,
        layout: { "text-field": ["get", "name"], "text-size": byZoom(1, [13, 10], [17, 12.5]) },
        paint: { "text-halo-color": palette.green },
      }),
      names(palette, palette.nameWater, {
        ...of(schema.waterName),
        id: "base-name-water",
        minzoom: 9,
        layout: { "text-field": ["get", "name"], "text-font": SLANTED, "text-size": byZoom(1, [9, 11], [15, 14]) },
      }),
      names(palette, palette.nameQuiet, {
        ...place(places.quarter),
        id: "base-name-quarter",
        minzoom: 12,
        maxzoom: 17,
        layout: {
          "text-field": ["get", "name"],
          "text-transform": "uppercase",
          "text-letter-spacing": 0.08,
          "text-size": byZoom(1, [12, 9.5], [16, 12.5]),
          "symbol-sort-key": places.rank,
        },
        paint: { "text-opacity": ABOVE },
      }),
      names(palette, palette.name, {
        ...place(places.village),
        id: "base-name-village",
        minzoom: 10,
        maxzoom: 17,
        layout: { "text-field": ["get", "name"], "text-size": byZoom(1, [10, 10.5], [15, 14]), "symbol-sort-key": places.rank },
      }),
      names(palette, palette.nameStrong, {
        ...place(places.town),
        id: "base-name-town",
        minzoom: CITIES_MAX_ZOOM,
        maxzoom: 16,
        layout: { "text-field": ["get", "name"], "text-size": byZoom(1, [8, 11], [14, 17]), "symbol-sort-key": places.rank },
        paint: { "text-opacity": ABOVE },
      }),
      names(palette, palette.nameStrong, {
        ...place(places.city),
        id: "base-name-city",
        minzoom: CITIES_MAX_ZOOM,
        maxzoom: 15,
        layout: {
          "text-field": ["get", "name"],
          "text-font": STRONG,
          "text-size": byZoom(1, [8, 13], [13, 20]),
          "symbol-sort-key": places.rank,
        },
        paint: { "text-opacity": ABOVE },
      }),
    ];
  };
