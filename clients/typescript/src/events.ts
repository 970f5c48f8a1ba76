// Events: GeoJSON Features with a point.

import type { Coordinates } from "./areas.js";

/** What the attributes of an event may be; objects in them are flattened with dots. */
export type Properties = Readonly<Record<string, unknown>>;

/** An event, as it is published. */
export interface Feature<P = Properties> {
  readonly type: "Feature";
  /** A text or a number. The SDK makes a text where there is none, so that a publish can be sent again after a broken connection. */
  readonly id?: string | number;
  readonly geometry: { readonly type: "Point"; readonly coordinates: Coordinates };
  readonly properties?: P | null;
  /** RFC 3339; the time of arrival where there is none. */
  readonly time?: string;
  /** For how many seconds the event stays live. */
  readonly ttl_s?: number;
  /** The object that the event is about: a newer event of it takes this one's place. */
  readonly key?: string;
  /** An alarm is taken when others are refused, and delivered before them; it may need a permission of its own. */
  readonly priority?: "normal" | "alarm";
  /** The event's own area: clients that are further away do not get it. */
  readonly reach_m?: number;
  /** For how many milliseconds from its arrival it may be delivered; then a gap of reason `late` takes its place. */
  readonly deadline_ms?: number;
  /** Anything else is passed on. */
  readonly [member: string]: unknown;
}

/** Where an event of the broker's own comes from. */
export interface Derived {
  /** What published it: `checks/`, `rules/` or `groups/`, and the name of the check, the rule set or the group definition. */
  readonly by: string;
  /** The ids of the events that it was made of; absent for a reader that may not see these events. */
  readonly from?: readonly string[];
  /** One more than the greatest depth of those. */
  readonly depth: number;
}

/** An event, as it is delivered: with an `id` and a `time`. `properties` are what the publisher wrote, whatever `P` says, and `{}` where that is `null`. */
export interface DeliveredFeature<P = Properties> extends Feature<P> {
  readonly id: string | number;
  readonly time: string;
  readonly properties: P;
  /** Only the broker's own events have it. */
  readonly derived?: Derived;
}

/** An event of the broker's. GeoJSON lets `properties` be `null` or absent; an application may then rely on an object without members. */
export function delivered<P>(feature: Feature<P>): DeliveredFeature<P> {
  const { properties } = feature;
  return (properties === null || properties === undefined ? { ...feature, properties: {} } : feature) as DeliveredFeature<P>;
}

/** What an event can have besides its place and its properties. */
export type EventOptions = Partial<Omit<Feature, "type" | "geometry" | "properties">>;

/** An event at a place. */
export function event<P extends object>(coordinates: Coordinates, properties: P, options: EventOptions = {}): Feature<P> {
  return { type: "Feature", geometry: { type: "Point", coordinates }, properties, ...options };
}

/** The event with an id, its own where it has one. */
export function withId<P>(feature: Feature<P>, random: () => number): Feature<P> & { readonly id: string | number } {
  return { ...feature, id: feature.id ?? newId(random) };
}

/** 120 random bits. They only have to differ, so that no cryptography is needed, which not every platform has. */
function newId(random: () => number): string {
  let id = "";
  for (let i = 0; i < 5; i++) {
    id += Math.floor(random() * 2 ** 24)
      .toString(16)
      .padStart(6, "0");
  }
  return id;
}
