// What the page has seen of the last minutes, so that the map can show it again. Its memory is bounded: the oldest goes, and of many objects not each
// report is kept.

import type { Place } from "../../shared/map/plane.js";

/** Bounds of what is kept. */
export const KEPT = {
  /** So far back. */
  span_ms: 600_000,
  /** Reports, of 28 bytes each. */
  reports: 600_000,
};

/** Where a mark was. */
export interface Report {
  readonly id: string;
  readonly place: Place;
  /** As `performance.now` tells it. */
  readonly at_ms: number;
  /** The class of its colour; -1 for that of all. */
  readonly colour: number;
  /** From then on it was there no more, unless a later report says so. */
  readonly ends_ms: number;
}

export class Past {
  readonly #span_ms: number;
  readonly #size: number;
  readonly #x: Float64Array;
  readonly #y: Float64Array;
  readonly #at: Float64Array;
  readonly #life_s: Float32Array;
  readonly #colour: Int8Array;
  readonly #ids: string[] = [];
  /** When the last report of each that was kept was. */
  readonly #last = new Map<string, number>();
  /** Reports since the beginning; the newest is at `#count - 1`, in its place of the ring. */
  #count = 0;
  #first = 0;

  constructor({ span_ms, reports } = KEPT) {
    this.#span_ms = span_ms;
    this.#size = reports;
    [this.#x, this.#y, this.#at] = [new Float64Array(reports), new Float64Array(reports), new Float64Array(reports)];
    this.#life_s = new Float32Array(reports);
    this.#colour = new Int8Array(reports);
  }

  /** When the oldest report is of, if there is one. */
  get from_ms(): number | undefined {
    return this.#first < this.#count ? this.#at[this.#first % this.#size] : undefined;
  }

  /** How far apart the reports of one object are kept: so that those of all fill the bounds and no more. */
  get apart_ms(): number {
    return (this.#span_ms * this.#last.size) / this.#size;
  }

  /** Takes a report; times ascend. One that is close to the one before of its object is left out. */
  put({ id, place, at_ms, colour, ends_ms }: Report): void {
    const last = this.#last.get(id);
    const apart = this.apart_ms;
    // Below a second each is kept, so that motion is as it was.
    if (last !== undefined && apart > 1000 && at_ms - last < apart) return;
    this.#last.set(id, at_ms);
    while (this.#count - this.#first >= this.#size || (this.from_ms ?? Infinity) < at_ms - this.#span_ms) this.#forget();
    const slot = this.#count % this.#size;
    this.#ids[slot] = id;
    this.#x[slot] = place[0];
    this.#y[slot] = place[1];
    this.#at[slot] = at_ms;
    this.#life_s[slot] = (ends_ms - at_ms) / 1000;
    this.#colour[slot] = colour;
    this.#count += 1;
  }

  #forget(): void {
    const slot = this.#first % this.#size;
    const id = this.#ids[slot] ?? "";
    if (this.#last.get(id) === this.#at[slot]) this.#last.delete(id);
    this.#first += 1;
  }

  /** The newest report of each object up to a time, without those whose time was over; the oldest first. Costs O(reports). */
  at(time_ms: number): Report[] {
    const newest = new Map<string, number>();
    for (let report = this.#first; report < this.#count && (this.#at[report % this.#size] ?? 0) <= time_ms; report++)
      newest.set(this.#ids[report % this.#size] ?? "", report);
    return [...newest.values()]
      .sort((one, other) => one - other)
      .map((report) => this.#report(report))
      .filter(({ ends_ms }) => ends_ms > time_ms);
  }

  /** Reports after one time and up to another. */
  *between(after_ms: number, to_ms: number): Generator<Report> {
    let [low, high] = [this.#first, this.#count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#at[middle % this.#size] ?? 0) <= after_ms) low = middle + 1;
      else high = middle;
    }
    for (; low < this.#count && (this.#at[low % this.#size] ?? 0) <= to_ms; low++) yield this.#report(low);
  }

  /** Colours have another meaning from now on: those of before have none. */
  forgetColours(): void {
    this.#colour.fill(-1);
  }

  clear(): void {
    this.#first = this.#count;
    this.#last.clear();
  }

  #report(report: number): Report {
    const slot = report % this.#size;
    const at_ms = this.#at[slot] ?? 0;
    return {
      id: this.#ids[slot] ?? "",
      place: [this.#x[slot] ?? 0, this.#y[slot] ?? 0],
      at_ms,
      colour: this.#colour[slot] ?? -1,
      ends_ms: at_ms + 1000 * (this.#life_s[slot] ?? 0),
    };
  }
}
