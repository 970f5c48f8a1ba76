// The broker's own figures, asked for every second while somebody looks.

import { signal } from "@preact/signals";

import { reasonOf, statusOf, type Access } from "../access.js";
import { bucketsOf, spread, type Buckets, type Spread } from "./histogram.js";
import { HISTORY, Rates, type Rate, type Stats } from "./rates.js";

const EVERY_MS = 1000;
/** Latencies are of the last so many looks, so that a rare slow one is seen. */
const LOOKS = 10;

export const LATENCIES = [
  ["matching", "nearcast_match_seconds"],
  ["publish to write", "nearcast_publish_to_write_seconds"],
] as const;
export type Latency = (typeof LATENCIES)[number][0];

export interface FiguresShown {
  readonly stats: Stats;
  readonly history: Readonly<Record<Rate, readonly number[]>>;
  /** When each of the history was, in milliseconds since 1970. */
  readonly times_ms: readonly number[];
  /** The newest last, in seconds. */
  readonly latencies: {
    readonly times_ms: readonly number[];
    readonly of: Readonly<Record<Latency, readonly (Spread | undefined)[]>>;
  };
}

/** Time ranges of the charts, in seconds. */
export const RANGES = [
  [120, "2 min"],
  [600, "10 min"],
  [3600, "1 h"],
] as const;

export class Figures {
  readonly shown = signal<FiguresShown | undefined>(undefined);
  /** How much of the past the charts show. */
  readonly range_s = signal<number>(RANGES[0][0]);
  /** Why there are none. */
  readonly why = signal<string | undefined>(undefined);
  readonly #access: Access;
  readonly #rates = new Rates();
  readonly #latencies: { readonly times_ms: number[]; readonly of: Record<Latency, (Spread | undefined)[]> } = {
    times_ms: [],
    of: { matching: [], "publish to write": [] },
  };
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
        this.#take(stats as Stats, metrics as string);
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
    for (const [name, histogram] of LATENCIES) {
      const buckets = bucketsOf(metrics, histogram);
      const between = spread(buckets, this.#looks[0]?.[name] ?? buckets);
      look[name] = buckets;
      keep(this.#latencies.of[name], between);
    }
    keep(this.#latencies.times_ms, Date.now());
    this.#looks.push(look);
    if (this.#looks.length > LOOKS) this.#looks.shift();
    this.shown.value = { stats, history: { ...this.#rates.history }, times_ms: this.#rates.times_ms, latencies: this.#latencies };
  }
}

function keep<T>(line: T[], value: T): void {
  line.push(value);
  if (line.length > HISTORY) line.shift();
}
