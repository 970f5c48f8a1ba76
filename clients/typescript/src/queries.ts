// Questions for live events.

import type { Coordinates } from "./areas.js";
import type { Condition } from "./conditions.js";
import { delivered, type DeliveredFeature, type Feature } from "./events.js";
import type { Http } from "./http.js";

/** Which live events are asked for; all without more. */
export interface Query {
  /** West, south, east and north; one whose west is beyond its east crosses the antimeridian. */
  readonly bbox?: readonly [west: number, south: number, east: number, north: number];
  /** In place of it: within a distance of a place, in metres, the nearest first. */
  readonly near?: { readonly center: Coordinates; readonly radius_m: number };
  /** What `attr` built, or CQL2 text. */
  readonly where?: Condition | string;
  /** Only what matches one of this client's subscriptions where it is now. */
  readonly client?: string;
  /** How many events one request asks for, 1 to 1,000 (1,000). */
  readonly page?: number;
}

/** Where a client is. */
export interface ClientPosition {
  readonly coordinates: Coordinates;
  /** How far off that may be; only the client itself is told. */
  readonly accuracy_m?: number;
  /** When the broker was told, RFC 3339. */
  readonly time?: string;
}

interface Page<P> {
  readonly features: readonly Feature<P>[];
  readonly next?: string;
}

export async function* liveEvents<P>(http: Http, query: Query): AsyncGenerator<DeliveredFeature<P>, void, undefined> {
  const parameters = parametersOf(query);
  for (;;) {
    const page = (await http.call("GET", `/v1/events?${parameters.toString()}`, { client: query.client })) as Page<P>;
    for (const feature of page.features) yield delivered(feature);
    if (page.next === undefined) return;
    parameters.set("after", page.next);
  }
}

function parametersOf({ bbox, near, where, client, page = 1000 }: Query): URLSearchParams {
  const parameters = new URLSearchParams({ limit: String(page) });
  if (bbox !== undefined) parameters.set("bbox", bbox.join(","));
  if (near !== undefined) parameters.set("near", [near.center[0], near.center[1], near.radius_m].join(","));
  if (where !== undefined) parameters.set("where", String(where));
  if (client !== undefined) parameters.set("client", client);
  return parameters;
}
