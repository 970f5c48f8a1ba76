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

/** An area along a route as it lies now. */
export interface ClientRoute {
  readonly subscription: string;
  /** The index of the filter whose area it is. */
  readonly filter: number;
  /** Where the route leads. */
  readonly to: readonly [number, number];
  readonly by: "duration" | "length";
  readonly radius_m: number;
  /** `found`, or the reason for which it lies nowhere. */
  readonly state: "found" | "no-position" | "sought" | "off-streets" | "unreachable" | "no-room";
  /** The reason in words. */
  readonly why?: string;
  /** The way, as GeoJSON, where one was found. */
  readonly route?: FoundRoute["route"];
  /** From the client to the end of the way. */
  readonly left_m?: number;
  /** How long that takes at what streets cost now. */
  readonly left_s?: number;
  /** For others than the client: the way from where they are shown it, and not the one in force. */
  readonly approximate?: true;
}

/** Asks for all pages of the areas along routes of a client. @internal */
export async function allRoutes(call: (query: string) => Promise<unknown>): Promise<readonly ClientRoute[]> {
  const routes: ClientRoute[] = [];
  let query: string | undefined = "?limit=1000";
  while (query !== undefined) {
    const page = (await call(query)) as { readonly routes: readonly ClientRoute[]; readonly next?: string };
    routes.push(...page.routes);
    query = page.next === undefined ? undefined : `?limit=1000&after=${encodeURIComponent(page.next)}`;
  }
  return routes;
}

/** The body of a question. @internal */
export function question(from: Coordinates, to: Coordinates, options: RouteOptions): string {
  return JSON.stringify({ from, to, ...options });
}
