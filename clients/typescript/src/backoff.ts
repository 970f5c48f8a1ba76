import type { Random } from "./clock.js";

/** How long to wait before the next try. */
export interface BackoffOptions {
  /** Bound of the first wait, in seconds (0.25). */
  readonly base_s?: number;
  /** Bound of all of them (30). */
  readonly cap_s?: number;
}

/** Full jitter: each wait is a random time up to a bound that doubles with every try, so that clients do not come back in step. */
export class Backoff {
  readonly #base_ms: number;
  readonly #cap_ms: number;
  readonly #random: Random;
  #tries = 0;

  constructor(options: BackoffOptions, random: Random) {
    this.#base_ms = (options.base_s ?? 0.25) * 1000;
    this.#cap_ms = (options.cap_s ?? 30) * 1000;
    this.#random = random;
  }

  /** The next wait in milliseconds, no shorter than what the broker asked for. */
  next(retry_after_s = 0): number {
    const bound_ms = Math.min(this.#cap_ms, this.#base_ms * 2 ** this.#tries);
    this.#tries += 1;
    return Math.max(this.#random() * bound_ms, retry_after_s * 1000);
  }

  reset(): void {
    this.#tries = 0;
  }
}
