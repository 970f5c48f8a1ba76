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

const three = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const four = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

/** Kilometres to 100 m: a way in more detail than its speed would be the more exact of both. */
const kilometres = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** `9.2 km in 31 s`. */
export function wayWords({ metres, seconds }: Step): string {
  const way = metres < 1000 ? `${three.format(metres)} m` : `${(metres < 100_000 ? kilometres : three).format(metres / 1000)} km`;
  if (seconds === 0) return `${way} apart at the same time`;
  return `${way} in ${seconds < 3600 ? `${four.format(seconds)} s` : `${four.format(seconds / 3600)} h`}`;
}

/** `9.2 km in 31 s: 1,070 km/h, limit 198 km/h`; without the limit where none is known. */
export function stepWords(step: Step, limit_m_per_s?: number): string {
  if (step.seconds === 0) return wayWords(step);
  const { speed, limit } = speedWords(step, limit_m_per_s);
  return `${wayWords(step)}: ${speed}${limit === undefined ? "" : `, limit ${limit}`}`;
}

/** How fast a step was, and its limit where one is known. What is a little above the limit does not look like it. */
export function speedWords(
  { metres, seconds }: Step,
  limit_m_per_s?: number,
): { readonly speed: string; readonly limit: string | undefined } {
  const speed = (3.6 * metres) / seconds;
  if (limit_m_per_s === undefined) return { speed: `${three.format(speed)} km/h`, limit: undefined };
  const limit = limitWords(limit_m_per_s);
  const text = `${three.format(speed)} km/h`;
  return { speed: text === limit ? `${four.format(speed)} km/h` : text, limit };
}

export function limitWords(limit_m_per_s: number): string {
  return `${four.format(3.6 * limit_m_per_s)} km/h`;
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
