// What a rule set has made: an event, and those that it follows from, as far as the page has seen them.

import type { DeliveredFeature } from "nearcast";

import { distance_m, type Plane } from "../../shared/map/plane.js";
import { placeOf } from "../place.js";
import { boundOf, type Bound, type Find } from "../situations/bound.js";
import { waysDrawing, type Way } from "../situations/drawing.js";
import { metres } from "../words.js";
import type { WhyDrawing } from "../why/drawing.js";

export interface DerivedEvent {
  readonly id: string;
  readonly rules: string;
  readonly time: string;
  readonly feature: DeliveredFeature;
  /** In the order of their times, as far as those are known. */
  readonly origins: readonly Bound[];
}

/** The rule set that made an event; `undefined` of any other event. */
export function rulesOf({ derived }: DeliveredFeature): string | undefined {
  return /^rules\/(.+)$/s.exec(derived?.by ?? "")?.[1];
}

/** Reads an event that a rule set made; `undefined` of any other event. */
export function derivedOf(feature: DeliveredFeature, find: Find): DerivedEvent | undefined {
  const rules = rulesOf(feature);
  if (rules === undefined) return undefined;
  const from = (feature.derived?.from ?? []).map((id) => [undefined, id] as const);
  return { id: String(feature.id), rules, time: feature.time, feature, origins: boundOf(from, find) };
}

/** A derived event on the map: its place, and a line from each event that it follows from, with how far that is. */
export function drawingOf(plane: Plane, { feature, origins }: DerivedEvent): WhyDrawing {
  const to = placeOf(feature);
  const places = origins.flatMap((origin) => (origin.feature === undefined ? [] : [placeOf(origin.feature)]));
  const ways = places.flatMap((from): Way[] => {
    const far = distance_m(plane.world, from, to);
    return far === 0 ? [] : [{ from, to, text: metres(far) }];
  });
  return waysDrawing(plane, [to, ...places], ways, "derived");
}
