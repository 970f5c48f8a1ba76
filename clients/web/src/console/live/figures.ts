// The broker's own figures, asked for every second while somebody looks.

import { signal } from "@preact/signals";

import { reasonOf, statusOf, type Access } from "../access.js";
import { bucketsOf, spread, type Buckets } from "./histogram.js";
import { pointsOfHistory, type History } from "./history.js";
import { Rates, Timeline, type Rate, type Stats } from "./rates.js";

const EVERY_MS = 1000;
/** Latencies are of the last so many looks, so that a rare slow one is seen. */
const LOOKS = 10;
/** How many looks the count of dropped deliveries covers. */
const DROPPED = 60;

/** Beyond so long without a look the broker is asked what it has kept of it. */
const GAP_MS = 20_000;

/** The broker keeps the first of them. */
export const LATENCIES = [
  ["match", "nearcast_queue_seconds"],
  ["write", "nearcast_publish_to_write_seconds"],
] as const;
export type Latency = (typeof LATENCIES)[number][0];
/** A line of the chart. */
export type LatencyLine = `${Latency} ${"p50" | "p99"}`;

export interface FiguresShown {
  readonly stats: Stats;
  /** Deliveries that were dropped in the last minute, as far as the page has looked. */
  readonly dropped: number;
  readonly rates: { readonly times_ms: readonly number[]; readonly of: Readonly<Record<Rate, readonly (number | undefined)[]>> };
  /** In seconds. */
  readonly latencies: { readonly times_ms: readonly number[]; readonly of: Readonly<Record<LatencyLine, readonly (number | undefined)[]>> };
}

/** Time ranges of the charts, in seconds, and of how many each point is. The broker keeps one of each ten. */
export const RANGES = [
  [300, "5 min", 10],
  [900, "15 min", 20],
  [3600, "1 h", 60],
] as const;

export class Figures {
  readonly shown = signal<FiguresShown | undefined>(undefined);
  /** How much of the past the charts show. */
  readonly range_s = signal<number>(RANGES[0][0]);
  /** Why there are none. */
  readonly why = signal<string | undefined>(undefined);
  readonly #access: Access;
  readonly #rates = new Rates();
  readonly #latencies = new Timeline<LatencyLine>(LATENCIES.flatMap(([name]) => [`${name} p50`, `${name} p99`] as const));
  /** When the last look was. */
  #looked_ms = -Infinity;
  /** Deliveries dropped since the broker began, at each of the last looks. */
  readonly #dropped: number[] = [];
  readonly #looks: Partial<Record<Latency, Buckets>>[] = [];
  /** The token with which the broker refused them: there is no point in asking again. */
  #refused: { readonly token: string | undefined } | undefined;

  constructor(access: Access) {
    this.#access = access;
    void this.#look();
  }

  async #look(): Promise<void> {
    const token = this.#access.token.value;
    if (!document.hidden && this.#access.usable.value && (this.#refused === undefined || this.#refused.token !== token)) {
      try {
        const [stats, metrics] = await Promise.all([this.#access.call("v1/stats"), this.#access.call("metrics")]);
        const past = Date.now() - this.#looked_ms > GAP_MS ? ((await this.#access.call("v1/stats/history")) as History) : undefined;
        if (past !== undefined) this.#fill(past);
        this.#take(stats as Stats, metrics as string);
        this.#looked_ms = Date.now();
        this.why.value = undefined;
        this.#refused = undefined;
      } catch (error) {
        const refused = statusOf(error) === 403;
        if (refused) this.#refused = { token };
        this.why.value = refused
          ? "This token does not permit to see the broker’s figures: they take the scope admin without a tenant."
          : `There are no figures now: ${reasonOf(error)}.`;
      }
    }
    setTimeout(() => void this.#look(), EVERY_MS);
  }

  #take(stats: Stats, metrics: string): void {
    this.#rates.look(stats, performance.now());
    const look: Partial<Record<Latency, Buckets>> = {};
    const values: Partial<Record<LatencyLine, number | undefined>> = {};
    for (const [name, histogram] of LATENCIES) {
      const buckets = bucketsOf(metrics, histogram);
      const between = spread(buckets, this.#looks[0]?.[name] ?? buckets);
      look[name] = buckets;
      values[`${name} p50`] = between?.p50;
      values[`${name} p99`] = between?.p99;
    }
    this.#latencies.add(Date.now(), values);
    this.#looks.push(look);
    if (this.#looks.length > LOOKS) this.#looks.shift();
    this.#dropped.push(stats.deliveries_dropped);
    if (this.#dropped.length > DROPPED) this.#dropped.shift();
    // A broker that began anew counts from 0 again.
    const dropped = Math.max(0, stats.deliveries_dropped - (this.#dropped[0] ?? 0));
    this.shown.value = { stats, dropped, rates: this.#rates, latencies: this.#latencies };
  }

  /** Puts what the broker has kept from before the page was opened, and from while nobody looked. */
  #fill(history: History): void {
    const points = pointsOfHistory(history, Date.now());
    const step_ms = history.step_s * 1000;
    this.#rates.fill(points, step_ms);
    this.#latencies.fill(
      points.map(({ at_ms, p50, p99 }) => ({ at_ms, "match p50": p50, "match p99": p99 })),
      step_ms,
    );
    // What is between two looks far apart is no figure of the last seconds.
    this.#looks.length = 0;
  }
}
