// A finding on the map: its events, and a line from each to the next with how far that is, and in which time.

import type { Feature } from "geojson";

import type { Plane } from "../../shared/map/plane.js";
import type { WhyDrawing } from "../why/drawing.js";
import { stepOf, stepWords, type Violation } from "./violation.js";

export function drawingOf(plane: Plane, { bound, place }: Violation): WhyDrawing {
  const seen = bound.flatMap(({ feature }) => feature ?? []);
  const places =
    seen.length === 0 ? [plane.toMap(place)] : seen.map(({ geometry: { coordinates } }) => plane.toMap([coordinates[0], coordinates[1]]));
  const features: Feature[] = places.map((coordinates) => ({
    type: "Feature",
    properties: { holds: false },
    geometry: { type: "Point", coordinates },
  }));
  const labels: WhyDrawing["labels"][number][] = [];
  for (const [index, to] of places.entries()) {
    const [from, one, other] = [places[index - 1], seen[index - 1], seen[index]];
    if (from === undefined || one === undefined || other === undefined) continue;
    features.push({ type: "Feature", properties: { holds: false, way: true }, geometry: { type: "LineString", coordinates: [from, to] } });
    labels.push({ at: [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2], text: stepWords(stepOf(plane.world, one, other)), holds: false });
  }
  return { features, labels };
}
