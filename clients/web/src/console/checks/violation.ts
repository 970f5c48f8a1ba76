// What a check has found: which events do not fit together, as far as the page has seen them.

import type { DeliveredFeature } from "nearcast";

import { findingOf, idsOf } from "../../shared/finding.js";
import { distance_m, type Place, type Plane } from "../../shared/map/plane.js";
import { placeOf } from "../place.js";
import { boundOf, type Bound, type Find } from "../situations/bound.js";
import { clock, metres, span } from "../words.js";

export interface Violation {
  readonly id: string;
  readonly check: string;
  readonly time: string;
  /** Where the newest of the events is. */
  readonly place: Place;
  /** In the order of their times, as far as those are known. */
  readonly bound: readonly Bound[];
}

/** Reads the event that tells a finding; `undefined` of any other event. */
export function violationOf(feature: DeliveredFeature, find: Find): Violation | undefined {
  const finding = findingOf(feature);
  if (finding === undefined) return undefined;
  const [x, y] = feature.geometry.coordinates;
  return { id: String(feature.id), check: finding.check, time: feature.time, place: [x, y], bound: boundOf(idsOf(finding.bindings), find) };
}

/** The events of each link of a refused event. */
export function linksOf(links: readonly unknown[], find: Find): (readonly Bound[])[] {
  return links.map((link) => boundOf(idsOf(link), find));
}

export interface Step {
  readonly metres: number;
  readonly seconds: number;
}

/** From one event to the next: how far, and in which time. */
export function stepOf(world: Plane["world"], one: DeliveredFeature, other: DeliveredFeature): Step {
  return {
    metres: distance_m(world, placeOf(one), placeOf(other)),
    seconds: Math.abs(Date.parse(other.time) - Date.parse(one.time)) / 1000,
  };
}

/** `9.2 km in 31 s: 1,068 km/h, limit 198`; without the limit where none is known. */
export function stepWords({ metres: far, seconds }: Step, limit_m_per_s?: number): string {
  const way = `${metres(far)} in ${seconds > 0 && seconds < 10 ? `${Number(seconds.toFixed(1))} s` : span(seconds)}`;
  if (seconds === 0) return `${metres(far)} apart at the same time`;
  const limit = limit_m_per_s === undefined ? "" : `, limit ${speedText(limit_m_per_s)}`;
  return `${way}: ${speedText(far / seconds)} km/h${limit}`;
}

/** A speed in km/h. */
function speedText(m_per_s: number): string {
  const speed = m_per_s * 3.6;
  return speed >= 9.95 ? Math.round(speed).toLocaleString("en") : speed.toFixed(1);
}

/** What a finding says on one line; the ids where the page has not seen the events. */
export function violationWords({ bound }: Pick<Violation, "bound">, world: Plane["world"], limit_m_per_s?: number): string {
  const [first, last] = [bound[0], bound.at(-1)];
  if (first === undefined || last === undefined) return "nothing is bound";
  if (first === last) return first.feature === undefined ? first.id : `at ${clock(first.feature.time)}`;
  if (first.feature === undefined || last.feature === undefined) return bound.map(({ id }) => id).join(" and ");
  return stepWords(stepOf(world, first.feature, last.feature), limit_m_per_s);
}
