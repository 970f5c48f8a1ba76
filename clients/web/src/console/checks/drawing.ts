// A finding on the map: its events, and a line from each to the next with how far that is, and in which time.

import type { Plane } from "../../shared/map/plane.js";
import { placeOf } from "../place.js";
import { waysDrawing, type Way } from "../situations/drawing.js";
import type { WhyDrawing } from "../why/drawing.js";
import { stepOf, wayWords, type Violation } from "./violation.js";

export function drawingOf(plane: Plane, { bound, place }: Violation): WhyDrawing {
  const seen = bound.flatMap(({ feature }) => feature ?? []);
  // As they are called in the panel.
  const numbers = bound.flatMap(({ variable, feature }, index) =>
    feature === undefined
      ? []
      : [{ at: plane.toMap(placeOf(feature)), text: variable ?? String(index + 1), as: "violation", isNumber: true } as const],
  );
  const ways = seen.slice(1).flatMap((other, index): Way[] => {
    const one = seen[index];
    if (one === undefined) return [];
    return [{ from: placeOf(one), to: placeOf(other), text: wayWords(stepOf(plane.world, one, other)) }];
  });
  const { features, labels } = waysDrawing(plane, seen.length === 0 ? [place] : seen.map(placeOf), ways, "violation");
  return { features, labels: numbers.length > 1 ? [...labels, ...numbers] : labels };
}
