// What a rule set has made: an event, and those that it follows from, as far as the page has seen them.

import type { Feature } from "geojson";
import type { DeliveredFeature } from "nearcast";

import { distance_m, type Place, type Plane } from "../../shared/map/plane.js";
import type { Find } from "../checks/violation.js";
import { metres } from "../words.js";
import type { WhyDrawing } from "../why/drawing.js";

/** An event that another follows from. */
export interface Origin {
  readonly id: string;
  /** The event itself; absent where the page has not seen it. */
  readonly feature?: DeliveredFeature;
}

export interface DerivedEvent {
  readonly id: string;
  readonly rules: string;
  readonly time: string;
  readonly feature: DeliveredFeature;
  /** In the order of their times, as far as those are known. */
  readonly origins: readonly Origin[];
}

/** The rule set that made an event; `undefined` of any other event. */
export function rulesOf({ derived }: DeliveredFeature): string | undefined {
  return /^rules\/(.+)$/s.exec(derived?.by ?? "")?.[1];
}

/** Reads an event that a rule set made; `undefined` of any other event. */
export function derivedOf(feature: DeliveredFeature, find: Find): DerivedEvent | undefined {
  const rules = rulesOf(feature);
  if (rules === undefined) return undefined;
  const origins = (feature.derived?.from ?? []).map((id): Origin => {
    const known = find(id);
    return { id, ...(known === undefined ? {} : { feature: known }) };
  });
  const time = (origin: Origin): number => (origin.feature === undefined ? 0 : Date.parse(origin.feature.time));
  return {
    id: String(feature.id),
    rules,
    time: feature.time,
    feature,
    origins: origins.sort((one, other) => time(one) - time(other)),
  };
}

/** A derived event on the map: its place, and a line from each event that it follows from, with how far that is. */
export function drawingOf(plane: Plane, { feature, origins }: DerivedEvent): WhyDrawing {
  const to = placeOf(feature);
  const at = plane.toMap(to);
  const features: Feature[] = [point(at)];
  const labels: WhyDrawing["labels"][number][] = [];
  for (const origin of origins) {
    if (origin.feature === undefined) continue;
    const place = placeOf(origin.feature);
    const from = plane.toMap(place);
    features.push(point(from));
    const far = distance_m(plane.world, place, to);
    if (far === 0) continue;
    features.push({ type: "Feature", properties: { derived: true, way: true }, geometry: { type: "LineString", coordinates: [from, at] } });
    labels.push({ at: [(from[0] + at[0]) / 2, (from[1] + at[1]) / 2], text: metres(far), derived: true });
  }
  return { features, labels };
}

function point(coordinates: [number, number]): Feature {
  return { type: "Feature", properties: { derived: true }, geometry: { type: "Point", coordinates } };
}

function placeOf({ geometry: { coordinates } }: DeliveredFeature): Place {
  return [coordinates[0], coordinates[1]];
}
