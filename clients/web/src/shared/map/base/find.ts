// Places by name among features of the map.

import type { Geometry, Position } from "geojson";

import { fit, folded, type Place } from "../places.js";
import { distance_m, type Place as At, type Plane } from "../plane.js";

export interface Named {
  /** The layer of the tiles that it is in; empty for a document. */
  readonly layer: string;
  readonly geometry: Geometry;
  readonly properties: Readonly<Record<string, unknown>>;
}

/** What a layer's features are to people, and the zoom at which they are seen well. */
const KINDS: readonly (readonly [layers: RegExp, kind: string, zoom: number])[] = [
  [/road|transportation|street/, "street", 16],
  [/poi|park/, "park", 15],
  [/water/, "water", 12],
];
const ZOOMS: Readonly<Record<string, number>> = { city: 11, town: 13, village: 14, hamlet: 15, suburb: 14, neighbourhood: 15 };

/** Those of some features whose name fits, best first. */
export function findIn(features: readonly Named[], wanted: string, limit: number): Place[] {
  const found: { readonly place: Place; readonly order: number }[] = [];
  for (const { layer, geometry, properties } of features) {
    const name = properties["name"];
    if (typeof name !== "string") continue;
    const fits = fit(folded(name), wanted);
    const [lon, lat] = middle(geometry) ?? [];
    if (fits === undefined || lon === undefined || lat === undefined) continue;
    const [, kind, zoom] = KINDS.find(([layers]) => layers.test(layer)) ?? placeKind(properties);
    found.push({ place: { name, kind, lon, lat, zoom }, order: fits * 100 + zoom });
  }
  found.sort((one, other) => one.order - other.order);
  return found.slice(0, limit).map(({ place }) => place);
}

function placeKind(properties: Named["properties"]): readonly [undefined, string, number] {
  const told = ["kind_detail", "class", "kind", "place", "type"]
    .map((name) => properties[name])
    .find((value) => typeof value === "string" && value !== "");
  const kind = typeof told === "string" ? told.replaceAll("_", " ") : "place";
  return [undefined, kind, ZOOMS[kind] ?? 14];
}

/** The name of the point that is nearest to a place of the world, within a distance in metres. */
export function nearestIn(features: readonly Named[], plane: Plane, place: At, most_m: number): string | undefined {
  let [best, best_m]: [string | undefined, number] = [undefined, most_m];
  for (const { geometry, properties } of features) {
    const name = properties["name"];
    if (geometry.type !== "Point" || typeof name !== "string") continue;
    const [lon = 0, lat = 0] = geometry.coordinates;
    const away_m = distance_m(plane.world, place, plane.toWorld([lon, lat]));
    if (away_m <= best_m) [best, best_m] = [name, away_m];
  }
  return best;
}

/** A place on a geometry: the point, or the middle of a line's corners. */
function middle(geometry: Geometry): Position | undefined {
  switch (geometry.type) {
    case "Point":
      return geometry.coordinates;
    case "MultiPoint":
    case "LineString":
      return geometry.coordinates[geometry.coordinates.length >> 1];
    case "MultiLineString":
    case "Polygon":
      return middle({ type: "LineString", coordinates: geometry.coordinates[0] ?? [] });
    case "MultiPolygon":
      return middle({ type: "LineString", coordinates: geometry.coordinates[0]?.[0] ?? [] });
    case "GeometryCollection":
      return undefined;
  }
}
