// What time the map shows: now, or one of the last minutes, still or moving on.

import { signal } from "@preact/signals";

import type { MapView } from "../map/view.js";
import type { Shown } from "./live.js";
import type { Objects, Seen } from "./objects.js";
import { Past } from "./past.js";

export const SPEEDS = [1, 4, 16] as const;
/** The past moves on so often. */
const STEP_MS = 100;
/** Closer to now than this is now. */
const NOW_MS = 1000;

export class Replay implements Shown {
  /** The time that the map shows, as `performance.now` tells it; `undefined` while it is now. */
  readonly at_ms = signal<number | undefined>(undefined);
  readonly playing = signal(false);
  /** Times as fast as it was. */
  readonly speed = signal<number>(SPEEDS[0]);
  readonly past = new Past();
  readonly #objects: Objects;
  readonly #view: MapView;
  readonly #colourOf: (seen: Seen) => number;
  /** When the marks that the map shows of the past go. */
  readonly #ends = new Map<string, number>();

  constructor(objects: Objects, view: MapView, colourOf: (seen: Seen) => number) {
    this.#objects = objects;
    this.#view = view;
    this.#colourOf = colourOf;
    setInterval(() => this.#step(), STEP_MS);
  }

  put(seen: Seen): void {
    const { id, place, seen_ms, ends_ms } = seen;
    this.past.put({ id, place, at_ms: seen_ms, colour: this.#colourOf(seen), ends_ms });
    if (this.at_ms.peek() === undefined) this.#view.put(seen);
  }

  remove(id: string): void {
    if (this.at_ms.peek() === undefined) this.#view.remove(id);
  }

  clear(): void {
    this.past.clear();
    this.#ends.clear();
    this.#view.clear();
    this.#now();
  }

  /** Shows the map as it was at a time, of those that are kept. */
  seek(time_ms: number): void {
    const from_ms = this.past.from_ms;
    if (from_ms === undefined) return;
    const now_ms = performance.now();
    if (time_ms >= now_ms - NOW_MS) {
      this.live();
      return;
    }
    const at_ms = Math.max(from_ms, time_ms);
    this.at_ms.value = at_ms;
    this.#view.clear();
    this.#ends.clear();
    for (const report of this.past.at(at_ms)) {
      this.#ends.set(report.id, report.ends_ms);
      this.#view.putPast(report, at_ms);
    }
  }

  /** Stops the map where it is, or goes on from there. */
  toggle(): void {
    if (this.at_ms.peek() === undefined) {
      this.playing.value = false;
      this.seek(performance.now() - NOW_MS - 1);
    } else this.playing.value = !this.playing.peek();
  }

  /** Back to now. */
  live(): void {
    if (this.at_ms.peek() === undefined) return;
    this.#view.clear();
    this.#ends.clear();
    this.#now();
    for (const seen of this.#objects.newest().reverse()) this.#view.put(seen);
  }

  #now(): void {
    this.at_ms.value = undefined;
    this.playing.value = false;
    this.speed.value = SPEEDS[0];
  }

  #step(): void {
    const at_ms = this.at_ms.peek();
    const from_ms = this.past.from_ms;
    if (at_ms === undefined || from_ms === undefined) return;
    if (at_ms < from_ms) this.seek(from_ms); // What was shown is kept no longer.
    if (!this.playing.peek()) return;
    const to_ms = at_ms + STEP_MS * this.speed.peek();
    if (to_ms >= performance.now() - NOW_MS) {
      this.live();
      return;
    }
    for (const report of this.past.between(at_ms, to_ms)) {
      this.#ends.set(report.id, report.ends_ms);
      this.#view.putPast(report, to_ms);
    }
    for (const [id, ends_ms] of this.#ends) {
      if (ends_ms > to_ms) continue;
      this.#ends.delete(id);
      this.#view.remove(id);
    }
    this.at_ms.value = to_ms;
  }
}
