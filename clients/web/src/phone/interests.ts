// What a person wants to hear of, and the filters that say so to the broker.

import { alongRoute, around, type Subscription } from "nearcast";

import type { Place } from "../shared/map/plane.js";
import type { Interest } from "../shared/pages.js";

/** What was chosen. Nothing chosen is everything. */
export interface Choice {
  /** Conditions of the interests that are on. */
  readonly conditions: readonly string[];
  /** A condition of one's own, and whether it is on. */
  readonly own: string;
  readonly ownOn: boolean;
}

export const EVERYTHING: Choice = { conditions: [], own: "", ownOn: false };

/** The own condition; empty where none counts. */
export function ownOf({ own, ownOn }: Choice): string {
  return ownOn ? own.trim() : "";
}

export function isEverything(choice: Choice): boolean {
  return choice.conditions.length === 0 && ownOf(choice) === "";
}

/** Without interests that the broker does not offer any more. */
export function offered(choice: Choice, interests: readonly Interest[]): Choice {
  return { ...choice, conditions: choice.conditions.filter((where) => interests.some((interest) => interest.where === where)) };
}

export function toggled(choice: Choice, where: string): Choice {
  const { conditions } = choice;
  return { ...choice, conditions: conditions.includes(where) ? conditions.filter((one) => one !== where) : [...conditions, where] };
}

/** What lies on the way to a place counts, too. */
export interface AlongRoute {
  readonly to: Place;
  readonly radius_m: number;
}

/**
 * One filter for each interest, the own condition last, around the client; and the same ones along its way. One subscription has both, so that what is in both
 * comes once, and an object that leaves one for the other has not left.
 */
export function subscriptionOf(choice: Choice, radius_m: number, way?: AlongRoute): Subscription {
  const own = ownOf(choice);
  const conditions = own === "" ? choice.conditions : [...choice.conditions, own];
  const areas = [around(radius_m), ...(way === undefined ? [] : [alongRoute(way.to, way.radius_m)])];
  const filters = areas.flatMap((area) => (conditions.length === 0 ? [{ area }] : conditions.map((where) => ({ area, where }))));
  return { filters, durable: true };
}
