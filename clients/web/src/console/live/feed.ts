// The newest events, no more than a person can read.

import type { DeliveredFeature } from "nearcast";

/** A second has no more rows than this. */
export const A_SECOND = 4;
const APART_MS = 1000 / A_SECOND;
/** Rows. */
const LENGTH = 40;

export interface FeedRow {
  readonly feature: DeliveredFeature;
  readonly matched: boolean;
}

export class Feed {
  #rows: readonly FeedRow[] = [];
  #last_ms = -Infinity;

  /** The newest first. */
  get rows(): readonly FeedRow[] {
    return this.#rows;
  }

  offer(feature: DeliveredFeature, matched: boolean, now_ms: number): void {
    if (now_ms - this.#last_ms < APART_MS) return;
    this.#last_ms = now_ms;
    this.#rows = [{ feature, matched }, ...this.#rows.slice(0, LENGTH - 1)];
  }
}
