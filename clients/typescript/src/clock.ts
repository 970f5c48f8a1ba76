// Time and randomness come in as parameters, so that tests decide about both.

/** Where the SDK takes time from. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  setTimeout(callback: () => void, delay_ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, delay_ms) => globalThis.setTimeout(callback, delay_ms),
  clearTimeout: (timer) => {
    globalThis.clearTimeout(timer as number);
  },
};

/** Something between 0 and 1, 1 excluded, as `Math.random` has it. */
export type Random = () => number;

/** Waits; `wake` ends it early. */
export class Pause {
  readonly #clock: Clock;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async wait(delay_ms: number): Promise<void> {
    if (delay_ms <= 0) return;
    await new Promise<void>((resolve) => {
      const timer = this.#clock.setTimeout(resolve, delay_ms);
      this.#wake = () => {
        this.#clock.clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  wake(): void {
    this.#wake?.();
  }
}
