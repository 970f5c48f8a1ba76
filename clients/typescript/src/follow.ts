// Following a position source: a phone does not send each fix, and while it is offline it records where it went.

import type { Coordinates } from "./areas.js";
import type { Clock } from "./clock.js";
import type { TrackPoint } from "./frames.js";

/** A place as a positioning system tells it. */
export interface Fix {
  /** `[longitude, latitude]`, or `[x, y]` in metres in a planar world. */
  readonly coordinates: Coordinates;
  /** How many metres it may be off. */
  readonly accuracy_m?: number;
  /** When it was measured, in seconds since 1970; when it came where there is none. */
  readonly unix_s?: number;
}

/** When a fix is worth sending. */
export interface FollowOptions {
  /** Metres from the last one that was sent (25). */
  readonly minDistance_m?: number;
  /** Or seconds that have passed since (60). */
  readonly maxInterval_s?: number;
  /** Seconds before which none is sent (1). */
  readonly minInterval_s?: number;
  /** What coordinates are ("geodetic"). */
  readonly world?: "geodetic" | "planar";
  /** Ends it. */
  readonly signal?: AbortSignal;
}

const EARTH_RADIUS_M = 6_371_008.8;

/** Metres between two places: great-circle (haversine), or straight in a planar world. */
export function distance_m(from: Coordinates, to: Coordinates, world: "geodetic" | "planar"): number {
  if (world === "planar") return Math.hypot(to[0] - from[0], to[1] - from[1]);
  const rad = Math.PI / 180;
  const sinLat = Math.sin(((to[1] - from[1]) * rad) / 2);
  const sinLon = Math.sin(((to[0] - from[0]) * rad) / 2);
  const a = sinLat ** 2 + Math.cos(from[1] * rad) * Math.cos(to[1] * rad) * sinLon ** 2;
  return 2 * EARTH_RADIUS_M * Math.asin(Math.min(1, Math.sqrt(a)));
}

/** Sends those of the fixes it is given that are worth it; the newest one that was held back goes when its time comes. */
export class Throttle {
  readonly #minDistance_m: number;
  readonly #maxInterval_ms: number;
  readonly #minInterval_ms: number;
  readonly #world: "geodetic" | "planar";
  readonly #clock: Clock;
  readonly #send: (fix: Fix) => void;
  #sent: { readonly coordinates: Coordinates; readonly at_ms: number } | undefined;
  #held: Fix | undefined;
  #timer: unknown;

  constructor(options: FollowOptions, clock: Clock, send: (fix: Fix) => void) {
    this.#minDistance_m = options.minDistance_m ?? 25;
    this.#maxInterval_ms = (options.maxInterval_s ?? 60) * 1000;
    this.#minInterval_ms = (options.minInterval_s ?? 1) * 1000;
    this.#world = options.world ?? "geodetic";
    this.#clock = clock;
    this.#send = send;
  }

  take(fix: Fix): void {
    this.#clock.clearTimeout(this.#timer);
    this.#held = fix;
    const wait_ms = this.#due(fix);
    if (wait_ms <= 0) this.flush();
    else
      this.#timer = this.#clock.setTimeout(() => {
        this.flush();
      }, wait_ms);
  }

  /** Sends what is held back. */
  flush(): void {
    const fix = this.#held;
    this.stop();
    if (fix === undefined) return;
    this.#sent = { coordinates: fix.coordinates, at_ms: this.#clock.now() };
    this.#send(fix);
  }

  /** Forgets what is held back. */
  stop(): void {
    this.#clock.clearTimeout(this.#timer);
    this.#held = undefined;
  }

  /** In how many milliseconds the fix is to be sent, where no newer one comes. */
  #due(fix: Fix): number {
    if (this.#sent === undefined) return 0;
    const far = distance_m(this.#sent.coordinates, fix.coordinates, this.#world) >= this.#minDistance_m;
    return this.#sent.at_ms + (far ? this.#minInterval_ms : this.#maxInterval_ms) - this.#clock.now();
  }
}

/** A recording of where a client went. At its bound every other point between the ends is left out, and it goes on. */
export class Recorder {
  readonly #limit: number;
  #points: TrackPoint[] = [];

  /** @param limit points, at least 3 */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#points.length;
  }

  add([x, y, unix_s]: TrackPoint): void {
    // Times of a track do not descend, whatever clocks do.
    this.#points.push([x, y, Math.max(unix_s, this.#points.at(-1)?.[2] ?? unix_s)]);
    if (this.#points.length > this.#limit) {
      this.#points = this.#points.filter((_, i) => i % 2 === 0 || i === this.#points.length - 1);
    }
  }

  /** All points; the recording is empty then. */
  take(): readonly TrackPoint[] {
    return this.#points.splice(0);
  }

  /** Puts points back that were taken, before those that came since. */
  restore(points: readonly TrackPoint[]): void {
    const since = this.#points;
    this.#points = [...points];
    for (const point of since) this.add(point);
  }
}

/** Gives the fixes of a source to a throttle until the source ends, whose last one then goes out as well, or the signal says so. */
export async function follow(source: AsyncIterable<Fix>, throttle: Throttle, signal: AbortSignal | undefined): Promise<void> {
  const fixes = source[Symbol.asyncIterator]();
  let wake: (() => void) | undefined;
  const stop = (): void => wake?.();
  signal?.addEventListener("abort", stop);
  try {
    while (signal?.aborted !== true) {
      const come = await new Promise<IteratorResult<Fix, unknown> | undefined>((resolve, reject) => {
        wake = () => {
          resolve(undefined);
        };
        fixes.next().then(resolve, reject);
      });
      if (come?.done === true) {
        throttle.flush();
        return;
      }
      if (come !== undefined) throttle.take(come.value);
    }
    // Not waited for: a source that is stuck in `next` answers this only afterwards.
    void fixes.return?.();
  } finally {
    throttle.stop();
    signal?.removeEventListener("abort", stop);
  }
}
