import type { Random } from "./clock.js";
import { ConnectionError, ProblemError, Timeout } from "./errors.js";

/** How long to wait before the next try. */
export interface BackoffOptions {
  /** Bound of the first wait, in seconds (1). */
  readonly base_s?: number;
  /** Bound of all of them (30). */
  readonly cap_s?: number;
}

/** While a broker has been away for less than {@link AWAY_MS} no wait is longer than this. */
const AWAY_CAP_MS = 3000;
/** So long the waits for a broker that is away are together before they grow: several times as long as a takeover takes. */
const AWAY_MS = 60_000;
/** The status of answers that say that a broker, or the one behind a proxy, is away. */
const AWAY_STATUS = [307, 502, 503, 504];
/** The code of a close by a broker that stops, or has heard nothing for long. */
const GOING_AWAY = 1001;

/**
 * Full jitter: each wait is a random time up to a bound that doubles with every try, so that clients do not come back in step. Where the
 * broker is away, the bound stays low for a minute: its standby takes over within seconds.
 */
export class Backoff {
  readonly #base_ms: number;
  readonly #cap_ms: number;
  readonly #random: Random;
  #bound_ms: number;
  /** What the waits are together. The time of a machine that sleeps does not count. */
  #waited_ms = 0;

  constructor(options: BackoffOptions, random: Random) {
    this.#base_ms = (options.base_s ?? 1) * 1000;
    this.#cap_ms = (options.cap_s ?? 30) * 1000;
    this.#random = random;
    this.#bound_ms = this.#base_ms;
  }

  /** The next wait in milliseconds, no shorter than what the broker asked for. `away`: see {@link isAway}. */
  next(away: boolean, retry_after_s = 0): number {
    const isNew = away && this.#waited_ms < AWAY_MS;
    const cap_ms = isNew ? Math.min(this.#cap_ms, Math.max(this.#base_ms, AWAY_CAP_MS)) : this.#cap_ms;
    const bound_ms = Math.min(this.#bound_ms, cap_ms);
    const wait_ms = Math.max(this.#random() * bound_ms, retry_after_s * 1000);
    // A bound that was low for a minute grows from there.
    this.#bound_ms = Math.min(bound_ms * 2, cap_ms);
    this.#waited_ms += wait_ms;
    return wait_ms;
  }

  reset(): void {
    this.#bound_ms = this.#base_ms;
    this.#waited_ms = 0;
  }
}

/** Whether the broker is away, so that a takeover or a restart may bring it back soon. One that refuses for its load is there. */
export function isAway(error: unknown): boolean {
  if (error instanceof ConnectionError) return error.code === undefined || error.code === GOING_AWAY;
  if (error instanceof ProblemError) return AWAY_STATUS.includes(error.status) && error.code !== "limit-reached";
  return error instanceof Timeout;
}
