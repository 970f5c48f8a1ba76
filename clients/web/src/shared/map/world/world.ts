// The outline of the world below everything else: land, borders, waters, and names of countries, seas and cities.

import type { Feature, FeatureCollection, Point, Position } from "geojson";
import type { GeoJSONSource, Map as MapLibreMap } from "maplibre-gl";
import { feature, merge, mesh } from "topojson-client";
import type { GeometryCollection, Polygon, Topology } from "topojson-specification";

import type { Named } from "../base/find.js";
import { addLayers } from "../base/layers.js";
import type { Palette } from "../base/palette.js";
import { fit, folded, type Place } from "../places.js";
import type { CityRow, World } from "./data.js";
import { worldGround, worldNames } from "./layers.js";
import { nearCities, smooth } from "./smooth.js";
import { unwoundLines, unwoundPolygons } from "./unwind.js";

/** Where its parts are from. */
export const WORLD_ATTRIBUTION = "Natural Earth, GeoNames";
/** It is not cut into smaller tiles than these: what is seen closer is drawn larger. */
const MAX_ZOOM = 9;

/** All of the world. It is in the tiles of the land, so that nowhere water is drawn before the land in it. */
const SEA: Feature = {
  type: "Feature",
  properties: { sea: true },
  geometry: {
    type: "Polygon",
    coordinates: [
      [
        [-180, -90],
        [180, -90],
        [180, 90],
        [-180, 90],
        [-180, -90],
      ],
    ],
  },
};

/** West, south, east, north in degrees. */
export type Bounds = readonly [west: number, south: number, east: number, north: number];

export interface Outline {
  paint(palette: Palette): void;
  /** Cities within are left to a base map that has them, from where it is seen closely. */
  leave(bounds: Bounds): void;
  find(wanted: string, limit: number): Place[];
  /** The cities. */
  readonly cities: readonly Named[];
}

/** Fetches the outline and draws it. */
export async function showWorld(map: MapLibreMap, palette: Palette): Promise<Outline> {
  const world = (await import("virtual:world")).default as World;
  const countries = collection(world.outline, "countries");
  const land = unwoundPolygons(merge(world.outline, countries.geometries as Polygon[]));
  const borders = unwoundLines(mesh(world.outline, countries, (one, other) => one !== other));
  const isNear = nearCities(world.cities);
  const smoothed = (lines: readonly Position[][]): Position[][] => lines.map((line) => smooth(line, isNear));
  const sources = {
    "world-land": {
      type: "FeatureCollection",
      features: [SEA, { type: "Feature", properties: {}, geometry: { ...land, coordinates: land.coordinates.map(smoothed) } }],
    },
    "world-borders": { type: "Feature", properties: {}, geometry: { ...borders, coordinates: smoothed(borders.coordinates) } },
    "world-lakes": feature(world.waters, collection(world.waters, "lakes")),
    "world-rivers": feature(world.waters, collection(world.waters, "rivers")),
    "world-names": namesOf(world),
  } satisfies Record<string, Feature | FeatureCollection>;
  for (const [id, data] of Object.entries(sources)) map.addSource(id, { type: "geojson", data, maxzoom: MAX_ZOOM, tolerance: 0.5 });
  map.addImage("city", dot(), { sdf: true, pixelRatio: 1 });
  const painters = [addLayers(map, "ground", worldGround, palette), addLayers(map, "names", worldNames, palette)];
  return {
    paint: (next) => painters.forEach((paint) => paint(next)),
    leave: (bounds) => void map.getSource<GeoJSONSource>("world-names")?.setData(namesOf(world, bounds)),
    find: (wanted, limit) => find(world, wanted, limit),
    cities: world.cities.map(([name, lon, lat]) => ({
      layer: "",
      geometry: { type: "Point", coordinates: [lon, lat] },
      properties: { name },
    })),
  };
}

function collection(topology: Topology, name: string): GeometryCollection {
  return topology.objects[name] as GeometryCollection;
}

function namesOf({ countries, cities, seas }: World, covered?: Bounds): FeatureCollection<Point> {
  const point = (lon: number, lat: number, properties: Record<string, unknown>): Feature<Point> => ({
    type: "Feature",
    properties,
    geometry: { type: "Point", coordinates: [lon, lat] },
  });
  const isCovered = (lon: number, lat: number): boolean =>
    covered !== undefined && lon >= covered[0] && lat >= covered[1] && lon <= covered[2] && lat <= covered[3];
  return {
    type: "FeatureCollection",
    features: [
      ...countries.map(([name, lon, lat, zoom]) => point(lon, lat, { kind: "country", name, zoom })),
      ...seas.map(([name, lon, lat, zoom]) => point(lon, lat, { kind: "sea", name, zoom })),
      ...cities.map((row) => {
        const [name, lon, lat, people, isCapital] = row;
        return point(lon, lat, { kind: "city", name, people, capital: isCapital === 1, zoom: cityZoom(row), covered: isCovered(lon, lat) });
      }),
    ],
  };
}

/** The zoom from which on a city is worth its room. */
export function cityZoom([, , , people, isCapital]: CityRow): number {
  const step = [8000, 4000, 2000, 1000, 500, 250, 100].findIndex((least) => people >= least);
  const zoom = [2.2, 3, 3.6, 4.2, 5, 5.8, 6.6][step] ?? 7.2;
  return isCapital === 1 ? Math.min(zoom, people > 300 ? 3.2 : 4.5) : zoom;
}

function find({ countries, cities, seas }: World, wanted: string, limit: number): Place[] {
  const found: { readonly place: Place; readonly order: number }[] = [];
  const look = (name: string, order: number, place: () => Place): void => {
    const fits = fit(folded(name), wanted);
    if (fits !== undefined) found.push({ place: place(), order: fits * 1e6 + order });
  };
  countries.forEach(([name, lon, lat, zoom], index) => look(name, index, () => ({ name, kind: "country", lon, lat, zoom: zoom + 2 })));
  cities.forEach(([name, lon, lat, people, isCapital], index) =>
    look(name, 1000 + index, () => ({
      name,
      kind: isCapital === 1 ? "capital" : people >= 100 ? "city" : "town",
      lon,
      lat,
      zoom: people >= 1000 ? 10 : 11,
    })),
  );
  seas.forEach(([name, lon, lat, zoom], index) => look(name, 10_000 + index, () => ({ name, kind: "sea", lon, lat, zoom: zoom + 1 })));
  found.sort((one, other) => one.order - other.order);
  return found.slice(0, limit).map(({ place }) => place);
}

/** A disc, as distances to its edge: the map library draws such pictures in any colour, with a halo. */
function dot(): { width: number; height: number; data: Uint8ClampedArray } {
  const [side, radius] = [24, 5];
  const data = new Uint8ClampedArray(side * side * 4);
  for (let at = 0; at < side * side; at++) {
    const away = Math.hypot((at % side) + 0.5 - side / 2, Math.floor(at / side) + 0.5 - side / 2) - radius;
    data[4 * at + 3] = Math.round(255 * (0.75 - away / 8));
  }
  return { width: side, height: side, data };
}
