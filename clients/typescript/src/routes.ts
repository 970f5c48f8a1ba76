// Routes through streets.

import type { Coordinates } from "./areas.js";

/** How a route is to be found. */
export interface RouteOptions {
  /** What is to be least; seconds at the speed limits unless said. */
  readonly by?: "duration" | "length";
  /** Milliseconds within which the answer is wanted. Without it the route is exact. */
  readonly deadline_ms?: number;
  /** The coarsest level that will do, 0 to 3; 3 unless said. Level 0 is exact. */
  readonly coarsest?: 0 | 1 | 2 | 3;
}

/** A way along the streets. */
export interface FoundRoute {
  /** GeoJSON, longitude before latitude. */
  readonly route: { readonly type: "LineString"; readonly coordinates: readonly (readonly [number, number])[] };
  readonly length_m: number;
  /** At the speed limits. */
  readonly duration_s: number;
  readonly level: number;
  /** What a route of the level is worth: 6, 4, 2 or 1. */
  readonly score: number;
}

/** The body of a question. @internal */
export function question(from: Coordinates, to: Coordinates, options: RouteOptions): string {
  return JSON.stringify({ from, to, ...options });
}
