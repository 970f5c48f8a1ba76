import type { Clock } from "nearcast";

/** A clock that stands still until it is moved on. */
export class FakeClock implements Clock {
  #now_ms = 1_772_350_200_000;
  #timers: { readonly at_ms: number; readonly callback: () => void }[] = [];

  now(): number {
    return this.#now_ms;
  }

  setTimeout(callback: () => void, delay_ms: number): unknown {
    const timer = { at_ms: this.#now_ms + delay_ms, callback };
    this.#timers.push(timer);
    return timer;
  }

  clearTimeout(timer: unknown): void {
    this.#timers = this.#timers.filter((other) => other !== timer);
  }

  /** How long it is until each timer, the next one first. */
  get waits(): number[] {
    return this.#timers.map(({ at_ms }) => at_ms - this.#now_ms).sort((a, b) => a - b);
  }

  /** Moves on, through all timers on the way. */
  advance(by_ms: number): void {
    const end_ms = this.#now_ms + by_ms;
    for (;;) {
      const next = this.#timers.filter(({ at_ms }) => at_ms <= end_ms).sort((a, b) => a.at_ms - b.at_ms)[0];
      if (next === undefined) break;
      this.#now_ms = Math.max(this.#now_ms, next.at_ms);
      this.clearTimeout(next);
      next.callback();
    }
    this.#now_ms = end_ms;
  }
}
