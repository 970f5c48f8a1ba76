// What the broker has kept of the last hour, as charts take it.

/** What `/v1/stats/history` answers, as far as it is shown: columns, the oldest first. */
export interface History {
  readonly step_s: number;
  readonly time_unix_ms: readonly number[];
  readonly events_per_s: readonly number[];
  readonly deliveries_per_s: readonly number[];
  readonly moves_per_s: readonly number[];
  readonly queue_p50_s: readonly (number | null)[];
  readonly queue_p99_s: readonly (number | null)[];
}

export interface Earlier {
  readonly at_ms: number;
  readonly events: number | undefined;
  readonly deliveries: number | undefined;
  readonly moves: number | undefined;
  readonly p50: number | undefined;
  readonly p99: number | undefined;
}

/** Points in the order of their times. A broker whose clock differs from this one's has its newest point now. */
export function pointsOfHistory(history: History, now_ms: number): Earlier[] {
  const { time_unix_ms: times, step_s } = history;
  const newest = times.at(-1) ?? now_ms;
  const off_ms = now_ms - newest;
  const shift_ms = off_ms >= -1000 && off_ms <= 2000 * step_s ? 0 : off_ms;
  return times
    .map((time, at) => ({
      at_ms: time + shift_ms,
      events: history.events_per_s[at],
      deliveries: history.deliveries_per_s[at],
      moves: history.moves_per_s[at],
      p50: history.queue_p50_s[at] ?? undefined,
      p99: history.queue_p99_s[at] ?? undefined,
    }))
    .sort((one, other) => one.at_ms - other.at_ms);
}
