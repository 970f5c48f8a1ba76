// A finding on the map: its events, and a line from each to the next with how far that is, and in which time.

import type { Plane } from "../../shared/map/plane.js";
import { placeOf } from "../place.js";
import { waysDrawing, type Way } from "../situations/drawing.js";
import type { WhyDrawing } from "../why/drawing.js";
import { stepOf, stepWords, type Violation } from "./violation.js";

export function drawingOf(plane: Plane, { bound, place }: Violation): WhyDrawing {
  const seen = bound.flatMap(({ feature }) => feature ?? []);
  const ways = seen.slice(1).flatMap((other, index): Way[] => {
    const one = seen[index];
    if (one === undefined) return [];
    return [{ from: placeOf(one), to: placeOf(other), text: stepWords(stepOf(plane.world, one, other)) }];
  });
  return waysDrawing(plane, seen.length === 0 ? [place] : seen.map(placeOf), ways, "violation");
}
