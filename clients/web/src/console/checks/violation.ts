// What a check has found: which events do not fit together, as far as the page has seen them.

import type { DeliveredFeature } from "nearcast";

import { findingOf, idsOf } from "../../shared/finding.js";
import { distance_m, type Place, type Plane } from "../../shared/map/plane.js";
import { placeOf } from "../place.js";
import { boundOf, type Bound, type Find } from "../situations/bound.js";
import { clock } from "../words.js";

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

/** A reader who divides the way by the time finds the speed: both have a digit more than that. */
const three = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const four = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

/** `9.198 km in 31 s`. */
export function wayWords({ metres, seconds }: Step): string {
  const way = metres < 1000 ? `${four.format(metres)} m` : `${four.format(metres / 1000)} km`;
  if (seconds === 0) return `${way} apart at the same time`;
  return `${way} in ${seconds < 3600 ? `${four.format(seconds)} s` : `${four.format(seconds / 3600)} h`}`;
}

/** `9.198 km in 31 s: 1,070 km/h, limit 198 km/h`; without the limit where none is known. */
export function stepWords(step: Step, limit_m_per_s?: number): string {
  const { metres, seconds } = step;
  if (seconds === 0) return wayWords(step);
  const speed = (3.6 * metres) / seconds;
  if (limit_m_per_s === undefined) return `${wayWords(step)}: ${three.format(speed)} km/h`;
  const limit = four.format(3.6 * limit_m_per_s);
  // What is a little above the limit is not to look like it.
  const text = three.format(speed) === limit ? four.format(speed) : three.format(speed);
  return `${wayWords(step)}: ${text} km/h, limit ${limit} km/h`;
}

/** What a finding is called: checks whose limit is known found that something was faster. */
export function violationTitle(check: string, limit_m_per_s: number | undefined): string {
  return limit_m_per_s === undefined ? `Violates ${check}` : "Too fast";
}

/** What a finding says on one line; the ids where the page has not seen the events. */
export function violationWords({ bound }: Pick<Violation, "bound">, world: Plane["world"], limit_m_per_s?: number): string {
  const [first, last] = [bound[0], bound.at(-1)];
  if (first === undefined || last === undefined) return "nothing is bound";
  if (first === last) return first.feature === undefined ? first.id : `at ${clock(first.feature.time)}`;
  if (first.feature === undefined || last.feature === undefined) return bound.map(({ id }) => id).join(" and ");
  return stepWords(stepOf(world, first.feature, last.feature), limit_m_per_s);
}
