// What a GeoJSON document has for the map.

import type { Feature, FeatureCollection, Geometry, Position } from "geojson";

import type { Plane } from "../plane.js";

/** The features of a GeoJSON document, where the map has its places. What has no geometry is left out. */
export function featuresOf(document: FeatureCollection | Feature | Geometry, plane: Plane): Feature[] {
  switch (document.type) {
    case "FeatureCollection":
      return document.features.flatMap((feature) => featuresOf(feature, plane));
    case "Feature":
      if ((document.geometry as Geometry | null) === null) return [];
      return featuresOf(document.geometry, plane).map((feature) => ({ ...feature, properties: document.properties ?? {} }));
    case "GeometryCollection":
      return document.geometries.flatMap((geometry) => featuresOf(geometry, plane));
    default:
      return [{ type: "Feature", properties: {}, geometry: { ...document, coordinates: moved(document.coordinates, plane) } as Geometry }];
  }
}

type Nested = Position | Position[] | Position[][] | Position[][][];

function moved(coordinates: Nested, plane: Plane): Nested {
  if (typeof coordinates[0] === "number") return plane.toMap([coordinates[0], (coordinates as Position)[1] ?? 0]);
  return (coordinates as Nested[]).map((part) => moved(part, plane)) as Nested;
}

/** All lines of a geometry, borders of polygons included. */
export function linesOf(geometry: Geometry): Position[][] {
  switch (geometry.type) {
    case "LineString":
      return [geometry.coordinates];
    case "MultiLineString":
    case "Polygon":
      return geometry.coordinates;
    case "MultiPolygon":
      return geometry.coordinates.flat();
    default:
      return [];
  }
}
