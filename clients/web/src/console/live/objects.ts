// What the map shows of events: the newest of each object, and events of their own for a while.

import type { DeliveredFeature } from "nearcast";

import type { Place } from "../../shared/map/plane.js";

/** Bounds of what is kept. */
export const BOUNDS = {
  /** Points at most; the one not heard of for longest goes. */
  points: 20_000,
  /** An object that nobody has spoken of for so long goes. */
  object_ms: 600_000,
  /** An event of its own goes after so long. */
  event_ms: 60_000,
};

/** The newest event of an object, or an event of its own. */
export interface Seen {
  /** Of its point on the map. */
  readonly id: string;
  /** Of its object; `undefined` for an event that has none. */
  readonly object: string | undefined;
  readonly feature: DeliveredFeature;
  readonly place: Place;
  readonly seen_ms: number;
  readonly ends_ms: number;
  /** Whether the draft's subscription had it. */
  readonly matched: boolean;
  /** Seconds between the times of its object's event before and of this one; absent of a first one. */
  readonly after_s?: number;
}

/** The member of nested properties with this dotted name. */
export function attributeOf(properties: Readonly<Record<string, unknown>> | null | undefined, name: string): unknown {
  if (properties === null || properties === undefined) return undefined;
  if (Object.hasOwn(properties, name)) return properties[name];
  let value: unknown = properties;
  for (const part of name.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}

/** The points that an object may have by its name: its key, or the id of its event. */
export function pointsOf(name: string): readonly string[] {
  return [`k${name}`, `i${name}`];
}

/** Points by their ids, in the order in which they were heard of. */
export class Objects {
  readonly #bounds: typeof BOUNDS;
  readonly #seen = new Map<string, Seen>();
  #attribute: string | undefined;
  #events = 0;

  constructor(attribute: string | undefined, bounds = BOUNDS) {
    this.#attribute = attribute;
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#seen.size;
  }

  get attribute(): string | undefined {
    return this.#attribute;
  }

  get(id: string): Seen | undefined {
    return this.#seen.get(id);
  }

  /** What is there of an object by its name. */
  named(name: string): Seen | undefined {
    for (const point of pointsOf(name)) {
      const seen = this.#seen.get(point);
      if (seen !== undefined) return seen;
    }
    return undefined;
  }

  /** Names of so many objects, the newest first. */
  names(most: number): string[] {
    const named = this.newest().filter(({ feature: { key, ttl_s } }) => key !== undefined || ttl_s !== undefined);
    return named.slice(0, most).map(({ feature: { key, id } }) => key ?? String(id));
  }

  /** What is there of an event, if that is the newest of its object. */
  known(feature: DeliveredFeature): Seen | undefined {
    const object = this.#objectOf(feature);
    const seen = object === undefined ? undefined : this.#seen.get(object);
    return seen?.feature.id === feature.id ? seen : undefined;
  }

  /** Of an event's mark, if it has an object. */
  idOf(feature: DeliveredFeature): string | undefined {
    return this.#objectOf(feature);
  }

  /** The newest event of a mark, or the event with an id. */
  find(id: string, object: string | undefined): Seen | undefined {
    const known = object === undefined ? undefined : this.#seen.get(object);
    if (known !== undefined) return known;
    for (const seen of this.#seen.values()) if (String(seen.feature.id) === id) return seen;
    return undefined;
  }

  clear(): void {
    this.#seen.clear();
  }

  /** The newest first. */
  newest(): Seen[] {
    return [...this.#seen.values()].reverse();
  }

  /** Takes an event; tells what is there now, and which point had to go for it. */
  put(feature: DeliveredFeature, matched: boolean, now_ms: number): { readonly seen: Seen; readonly gone: string | undefined } {
    const object = this.#objectOf(feature);
    const id = object ?? `e${this.#events++}`;
    const life_ms = feature.ttl_s !== undefined ? feature.ttl_s * 1000 : Infinity;
    const stay_ms = object === undefined ? this.#bounds.event_ms : this.#bounds.object_ms;
    const [x, y] = feature.geometry.coordinates;
    const before = this.#seen.get(id);
    const after_s = before === undefined ? NaN : (Date.parse(feature.time) - Date.parse(before.feature.time)) / 1000;
    const seen: Seen = {
      id,
      object,
      feature,
      place: [x, y],
      seen_ms: now_ms,
      ends_ms: now_ms + Math.min(life_ms, stay_ms),
      matched,
      ...(Number.isNaN(after_s) ? {} : { after_s }),
    };
    this.#seen.delete(id); // So that it goes to the end.
    this.#seen.set(id, seen);
    if (this.#seen.size <= this.#bounds.points) return { seen, gone: undefined };
    const [oldest] = this.#seen.keys();
    if (oldest !== undefined) this.#seen.delete(oldest);
    return { seen, gone: oldest };
  }

  /** Says of what is there whether the draft has it. */
  mark(id: string, matched: boolean): Seen | undefined {
    const before = this.#seen.get(id);
    if (before === undefined || before.matched === matched) return before;
    const seen = { ...before, matched };
    this.#seen.set(id, seen);
    return seen;
  }

  /** Takes away whose time is over, and returns their ids. */
  sweep(now_ms: number): string[] {
    const gone: string[] = [];
    for (const [id, { ends_ms }] of this.#seen) if (ends_ms <= now_ms) gone.push(id);
    for (const id of gone) this.#seen.delete(id);
    return gone;
  }

  /** Tells objects apart by another attribute from now on; what is there goes. */
  tellApartBy(attribute: string | undefined): void {
    this.#attribute = attribute;
    this.clear();
  }

  /** A key, the attribute's value, or the id of a live event: name spaces of their own. */
  #objectOf({ key, id, ttl_s, properties }: DeliveredFeature): string | undefined {
    if (key !== undefined) return `k${key}`;
    const value = this.#attribute === undefined ? undefined : attributeOf(properties, this.#attribute);
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return `a${value}`;
    return ttl_s === undefined ? undefined : `i${id}`;
  }
}
