// The base map of the settings, drawn between the ground and the names: a document of lines, vector tiles, or tiles in one file.

import type { Feature, FeatureCollection, Geometry } from "geojson";
import type { FilterSpecification, Map as MapLibreMap } from "maplibre-gl";

import { brokerUrl } from "../../pages.js";
import { middleOf } from "../bounds.js";
import type { Place, Plane } from "../plane.js";
import type { Finder } from "../places.js";
import { quarterOf, type Quarter } from "../place-names.js";
import type { Bounds } from "../world/world.js";
import { plainAttribution } from "./attribution.js";
import { featuresOf, linesOf } from "./document.js";
import { drawingLayers, drawingNames } from "./drawing.js";
import { findIn, nearestIn, type Named } from "./find.js";
import { addLayers, type Drawn } from "./layers.js";
import { DARK, type Palette } from "./palette.js";
import { schemaOf, type Schema } from "./schema.js";
import { nameLayers, SOURCE, streetLayers } from "./streets.js";

/** What a base map gives the map besides its layers. */
export interface Base {
  /** What is to be seen of it first; absent where it is the whole world or nothing. */
  readonly bounds: Bounds | undefined;
  /** Where it has the names of all places itself; absent where it has none. */
  readonly covers: Bounds | undefined;
  paint(palette: Palette): void;
  readonly find: Finder;
  /** The place or quarter whose name stands nearest, within a distance in metres. */
  near(place: Place, most_m: number): Promise<string | undefined>;
  /** The places and quarters whose names are known about what is seen. */
  quarters(): readonly Quarter[];
}

/** What `GET /base-map.json` answers where the base map is one of tiles: TileJSON, or the name of a PMTiles file. */
export interface Tiles {
  /** The address of the file from the broker's own. */
  readonly pmtiles?: string;
  /** Addresses of the tiles, likewise, with `{z}`, `{x}` and `{y}`. */
  readonly tiles?: readonly string[];
  /** The address of all names, where there is one. */
  readonly names?: string;
  /** There is no sea, so that all of it is land. */
  readonly inland?: boolean;
  readonly minzoom?: number;
  readonly maxzoom?: number;
  readonly bounds?: readonly number[];
  readonly attribution?: unknown;
  readonly vector_layers?: readonly { readonly id: string }[];
}

/** The names that tiles show are looked for again after so long: each look goes through all of their features. */
const NAMED_MS = 2000;

type Drawing = (FeatureCollection | Feature | Geometry) & { readonly attribution?: unknown };

/** Fetches the base map and draws it. Absent where it cannot be had: the ground has to do. */
export async function showBase(map: MapLibreMap, plane: Plane, palette: () => Palette): Promise<Base | undefined> {
  try {
    const response = await fetch(new URL("base-map.json", brokerUrl));
    if (!response.ok) return undefined;
    const document = (await response.json()) as Drawing | Tiles;
    if ("type" in document) return showDrawing(map, plane, document, palette());
    return document.pmtiles === undefined
      ? showTiles(map, plane, document, document.tiles ?? [], palette())
      : await showArchive(map, plane, document.pmtiles, palette);
  } catch {
    return undefined;
  }
}

function attributionOf(text: unknown): { attribution?: string } {
  return typeof text === "string" && text !== "" ? { attribution: plainAttribution(text) } : {};
}

function showDrawing(map: MapLibreMap, plane: Plane, document: Drawing, palette: Palette): Base | undefined {
  const features = featuresOf(document, plane);
  const lines = features.flatMap(({ geometry }) => linesOf(geometry)).flat();
  if (features.length === 0) return undefined;
  map.addSource(SOURCE, {
    type: "geojson",
    data: { type: "FeatureCollection", features },
    tolerance: 0.2,
    ...attributionOf(document.attribution),
  });
  const painters = [addLayers(map, "streets", drawingLayers, palette), addLayers(map, "names", drawingNames, palette)];
  const places = lines.map(([lon = 0, lat = 0]) => [lon, lat] as const);
  const all = features.map(({ geometry, properties }): Named => ({ layer: "", geometry, properties: properties ?? {} }));
  const points = all.filter(({ geometry, properties }) => geometry.type === "Point" && properties["name"] !== undefined);
  const quarters = points.flatMap(quarterOf);
  return {
    bounds: places.length === 0 ? undefined : middleOf(places),
    covers: undefined,
    paint: (next) => painters.forEach((paint) => paint(next)),
    find: (wanted, limit) => findIn(all, wanted, limit),
    near: (place, most_m) => Promise.resolve(nearestIn(points, plane, place, most_m)),
    quarters: () => quarters,
  };
}

async function showArchive(map: MapLibreMap, plane: Plane, path: string, palette: () => Palette): Promise<Base | undefined> {
  const { addArchive } = await import("./archive.js");
  const { tiles, ...more } = await addArchive(new URL(path, brokerUrl));
  return showTiles(map, plane, more, tiles, palette());
}

/** Draws tiles; `isRaster` where they are pictures. */
function showTiles(
  map: MapLibreMap,
  plane: Plane,
  document: Tiles & { readonly isRaster?: boolean },
  tiles: readonly string[],
  palette: Palette,
): Base | undefined {
  const { minzoom = 0, maxzoom = 14, bounds: corners = [], attribution, vector_layers = [], isRaster = false } = document;
  const [west = -180, south = -85, east = 180, north = 85] = corners;
  const bounds: Bounds = [west, south, east, north];
  const common = {
    tiles: tiles.map((address) => (/^\w+:\/\//.test(address) ? address : brokerUrl.href + address)),
    minzoom,
    maxzoom,
    bounds: [...bounds] as [number, number, number, number],
    ...attributionOf(attribution),
  };
  const schema = schemaOf(vector_layers.map(({ id }) => id));
  if (isRaster) map.addSource(SOURCE, { type: "raster", tileSize: 256, ...common });
  else if (schema !== undefined) map.addSource(SOURCE, { type: "vector", ...common });
  else return undefined;
  if (document.inland === true) map.addSource("base-bounds", { type: "geojson", data: rectangle(bounds) });
  const painters = isRaster
    ? [addLayers(map, "streets", pictureLayers, palette)]
    : schema === undefined
      ? []
      : [
          ...(document.inland === true ? [addLayers(map, "streets", inlandLayers, palette)] : []),
          addLayers(map, "streets", streetLayers(schema), palette),
          addLayers(map, "names", nameLayers(schema), palette),
        ];
  const isWorld = east - west > 180;
  /** Those that are drawn. */
  let [named, named_ms]: [Named[], number] = [[], -Infinity];
  const places = schema?.places;
  const namedNow = (): Named[] => {
    if (performance.now() - named_ms <= NAMED_MS) return named;
    named_ms = performance.now();
    const drawn = places === undefined ? [] : map.querySourceFeatures(SOURCE, { sourceLayer: places.layer, filter: inhabited(places) });
    named = drawn.map(({ geometry, properties }): Named => ({ layer: "", geometry, properties }));
    return named;
  };
  return {
    bounds: isWorld ? undefined : bounds,
    covers: bounds,
    paint: (next) => painters.forEach((paint) => paint(next)),
    find: schema === undefined ? () => [] : finderOf(map, schema, document.names),
    near: (place, most_m) => Promise.resolve(nearestIn(namedNow(), plane, place, most_m)),
    // Features of several tiles may be of one place.
    quarters: () => [
      ...new Map(
        namedNow()
          .flatMap(quarterOf)
          .map((quarter) => [quarter.name, quarter]),
      ).values(),
    ],
  };
}

/** Places that people live in, and neither countries nor islands. */
function inhabited({ city, town, village, quarter }: Schema["places"]): FilterSpecification {
  return ["all", ["has", "name"], ["any", city, town, village, quarter]] as FilterSpecification;
}

/** Close by, what the outline of the world says of a city without a sea is too coarse. */
const inlandLayers: Drawn = (palette) => [
  { id: "base-inland", type: "fill", source: "base-bounds", minzoom: 10, paint: { "fill-color": palette.land } },
];

function rectangle([west, south, east, north]: Bounds): Feature {
  const ring = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ];
  return { type: "Feature", properties: {}, geometry: { type: "Polygon", coordinates: [ring] } };
}

/** Looks through all names, fetched when they are wanted first, or else through the tiles that are there. */
function finderOf(map: MapLibreMap, schema: Schema, address: string | undefined): Finder {
  const { places, roadName, parkName, waterName } = schema;
  const layers = [...new Set([places.layer, roadName.layer, parkName.layer, waterName.layer])];
  let all: Promise<Named[]> | undefined;
  return async (wanted, limit) => {
    if (address !== undefined) return findIn(await (all ??= fetchNames(address)), wanted, limit);
    const features = layers.flatMap((layer) =>
      map
        .querySourceFeatures(SOURCE, { sourceLayer: layer, filter: ["has", "name"] })
        .map(({ geometry, properties }) => ({ layer, geometry, properties: properties })),
    );
    return findIn(features, wanted, limit);
  };
}

async function fetchNames(address: string): Promise<Named[]> {
  const response = await fetch(new URL(address, brokerUrl));
  const { names } = (await response.json()) as { names: [name: string, kind: string, lon: number, lat: number][] };
  return names.map(([name, kind, lon, lat]) => ({
    layer: kind,
    geometry: { type: "Point", coordinates: [lon, lat] },
    properties: { name, kind },
  }));
}

/** Pictures are made for light pages: by dark they are dimmed. */
const pictureLayers: Drawn = (palette) => [
  {
    id: "base-pictures",
    type: "raster",
    source: SOURCE,
    paint: {
      "raster-brightness-max": palette === DARK ? 0.55 : 1,
      "raster-saturation": palette === DARK ? -0.5 : -0.25,
      "raster-fade-duration": 0,
    },
  },
];
