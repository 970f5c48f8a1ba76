// How many a second, from counters that only grow, and from what the broker has kept.

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

/** Values by name at times, ascending, of at most {@link HISTORY}. */
export class Timeline<N extends string> {
  readonly #names: readonly N[];
  readonly times_ms: number[] = [];
  readonly of: Record<N, (number | undefined)[]>;

  constructor(names: readonly N[]) {
    this.#names = names;
    this.of = Object.fromEntries(names.map((name): [N, (number | undefined)[]] => [name, []])) as Record<N, (number | undefined)[]>;
  }

  add(at_ms: number, values: Readonly<Partial<Record<N, number | undefined>>>): void {
    this.times_ms.push(at_ms);
    for (const name of this.#names) this.of[name].push(values[name]);
    this.#cut();
  }

  /** Puts points, ascending and about so many milliseconds apart, where there is nothing: before the first one, and in gaps between two. */
  fill(points: readonly (Readonly<Partial<Record<N, number | undefined>>> & { readonly at_ms: number })[], step_ms: number): void {
    const before = this.times_ms.map((at_ms, at) => ({ at_ms, at }));
    const rows: { at_ms: number; values: (number | undefined)[] }[] = [];
    let next = 0;
    const take = (): void => {
      const { at_ms, at } = before[next++] ?? { at_ms: 0, at: 0 };
      rows.push({ at_ms, values: this.#names.map((name) => this.of[name][at]) });
    };
    for (const point of points) {
      while ((before[next]?.at_ms ?? Infinity) <= point.at_ms) take();
      if (point.at_ms - (rows.at(-1)?.at_ms ?? -Infinity) >= step_ms / 2)
        rows.push({ at_ms: point.at_ms, values: this.#names.map((name) => point[name]) });
    }
    while (next < before.length) take();
    this.times_ms.splice(0, Infinity, ...rows.map(({ at_ms }) => at_ms));
    this.#names.forEach((name, at) => this.of[name].splice(0, Infinity, ...rows.map(({ values }) => values[at])));
    this.#cut();
  }

  #cut(): void {
    const over = this.times_ms.length - HISTORY;
    if (over <= 0) return;
    this.times_ms.splice(0, over);
    for (const name of this.#names) this.of[name].splice(0, over);
  }
}

export class Rates extends Timeline<Rate> {
  #before: { readonly stats: Stats; readonly at_ms: number } | undefined;

  constructor() {
    super(RATES);
  }

  /** Takes what the broker said at a time of `performance.now`. A broker that began anew, and counts from 0 again, gives no rate. */
  look(stats: Stats, at_ms: number): void {
    const before = this.#before;
    this.#before = { stats, at_ms };
    if (before === undefined || at_ms <= before.at_ms || RATES.some((rate) => stats[rate] < before.stats[rate])) return;
    const seconds = (at_ms - before.at_ms) / 1000;
    const rates = RATES.map((rate): [Rate, number] => [rate, (stats[rate] - before.stats[rate]) / seconds]);
    this.add(performance.timeOrigin + at_ms, Object.fromEntries(rates));
  }
}
