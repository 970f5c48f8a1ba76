// Events on the map that belong together: their places, and lines between them with what is said of each.

import type { Feature } from "geojson";

import type { Place, Plane } from "../../shared/map/plane.js";
import type { FoundAs, WhyDrawing } from "../why/drawing.js";

export interface Way {
  readonly from: Place;
  readonly to: Place;
  readonly text: string;
}

export function waysDrawing(plane: Plane, places: readonly Place[], ways: readonly Way[], as: FoundAs): WhyDrawing {
  const properties = { as };
  const drawn = ways.map(({ from, to, text }) => ({ from: plane.toMap(from), to: plane.toMap(to), text }));
  return {
    features: [
      ...places.map((place): Feature => ({ type: "Feature", properties, geometry: { type: "Point", coordinates: plane.toMap(place) } })),
      ...drawn.map(({ from, to }): Feature => ({
        type: "Feature",
        properties: { ...properties, way: true },
        geometry: { type: "LineString", coordinates: [from, to] },
      })),
    ],
    labels: drawn.map(({ from, to, text }) => ({ at: [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2], text, ...properties })),
  };
}
