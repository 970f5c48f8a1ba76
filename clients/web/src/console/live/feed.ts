// The newest events: all of them while a person can read along, of a flood the newest of each look.

import type { DeliveredFeature } from "nearcast";

/** Rows. */
const LENGTH = 100;
/** Events between two looks up to which all are listed; of more, the newest few are. */
const ALL = 10;
const OF_A_FLOOD = 2;

export interface FeedRow {
  readonly feature: DeliveredFeature;
  readonly matched: boolean;
  /** When it came, by this page's clock. */
  readonly came_ms: number;
}

export class Feed {
  #rows: readonly FeedRow[] = [];
  /** What came since the last look, the oldest first; of a flood only the newest of it. */
  #waiting: FeedRow[] = [];
  #came = 0;
  #flooded = false;

  /** The newest first. */
  get rows(): readonly FeedRow[] {
    return this.#rows;
  }

  /** Events come faster than a person reads, so that not all are listed. */
  get flooded(): boolean {
    return this.#flooded;
  }

  offer(feature: DeliveredFeature, matched: boolean): void {
    this.#came += 1;
    this.#waiting.push({ feature, matched, came_ms: Date.now() });
    if (this.#waiting.length > LENGTH) this.#waiting.shift();
  }

  /** Lists what came since the last look, and gives it back. The newest event is always among it. */
  look(all = ALL): readonly FeedRow[] {
    this.#flooded = this.#came > all;
    const listed = this.#flooded ? this.#waiting.slice(-OF_A_FLOOD) : this.#waiting;
    if (listed.length > 0) this.#rows = [...[...listed].reverse(), ...this.#rows].slice(0, LENGTH);
    this.#waiting = [];
    this.#came = 0;
    return listed;
  }

  clear(): void {
    this.#rows = [];
    this.#waiting = [];
  }
}
