// How many a second, from counters that only grow.

/** What `/v1/stats` answers, as far as it is shown. */
export interface Stats {
  readonly version: string;
  readonly engine: string;
  readonly engine_why: string;
  readonly world: string;
  readonly shards: number;
  readonly uptime_s: number;
  readonly connections: number;
  readonly clients: number;
  readonly subscriptions: number;
  readonly live_objects: number;
  readonly durable_sessions: number;
  readonly queued: number;
  readonly events: number;
  readonly matches: number;
  readonly deliveries: number;
  readonly deliveries_dropped: number;
  readonly moves: number;
}

export const RATES = ["events", "matches", "deliveries", "moves"] as const;
export type Rate = (typeof RATES)[number];

/** Looks of an hour, one a second. */
export const HISTORY = 3600;

export class Rates {
  #before: { readonly stats: Stats; readonly at_ms: number } | undefined;
  readonly #history: Record<Rate, number[]> = { events: [], matches: [], deliveries: [], moves: [] };

  readonly #times: number[] = [];

  /** When each was, as `Date.now` tells it. */
  get times_ms(): readonly number[] {
    return this.#times;
  }

  /** Takes rates from before the first look, ascending: what the broker has kept. Later ones are left out. */
  earlier(points: readonly (Readonly<Record<Rate, number>> & { readonly at_ms: number })[]): void {
    const first = this.#times[0] ?? Infinity;
    const room = HISTORY - this.#times.length;
    const before = room === 0 ? [] : points.filter(({ at_ms }) => at_ms < first).slice(-room);
    this.#times.unshift(...before.map(({ at_ms }) => at_ms));
    for (const rate of RATES) this.#history[rate].unshift(...before.map((point) => point[rate]));
  }

  /** A second of each, the newest last. */
  get history(): Readonly<Record<Rate, readonly number[]>> {
    return this.#history;
  }

  /** Takes what the broker said at a time. A broker that began anew, and counts from 0 again, gives no rate. */
  look(stats: Stats, at_ms: number): void {
    const before = this.#before;
    this.#before = { stats, at_ms };
    if (before === undefined || at_ms <= before.at_ms || RATES.some((rate) => stats[rate] < before.stats[rate])) return;
    this.#times.push(performance.timeOrigin + at_ms);
    if (this.#times.length > HISTORY) this.#times.shift();
    const seconds = (at_ms - before.at_ms) / 1000;
    for (const rate of RATES) {
      const line = this.#history[rate];
      line.push((stats[rate] - before.stats[rate]) / seconds);
      if (line.length > HISTORY) line.shift();
    }
  }
}
