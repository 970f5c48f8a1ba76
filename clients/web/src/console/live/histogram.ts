// Latencies from the histograms at `/metrics`: where half, and 99 of 100, of what came between two looks lie below.

/** Upper ends of buckets in seconds and how many lie below them since the start, ascending. */
export type Buckets = readonly (readonly [end: number, below: number])[];

export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
}

/** The buckets of a histogram without labels in Prometheus text. */
export function bucketsOf(text: string, name: string): Buckets {
  const buckets: [number, number][] = [];
  const prefix = `${name}_bucket{le="`;
  for (const line of text.split("\n")) {
    if (!line.startsWith(prefix)) continue;
    const [end = "", rest = ""] = line.slice(prefix.length).split('"}');
    buckets.push([end === "+Inf" ? Infinity : Number(end), Number(rest)]);
  }
  return buckets.sort(([one], [other]) => one - other);
}

/** What came between two looks; `undefined` where nothing did. A broker that began anew counts from its beginning. */
export function spread(now: Buckets, before: Buckets): Spread | undefined {
  const already = new Map(before);
  const anew = now.some(([end, below]) => below < (already.get(end) ?? 0));
  const since = now.map(([end, below]): [number, number] => [end, below - (anew ? 0 : (already.get(end) ?? 0))]);
  const count = since.at(-1)?.[1] ?? 0;
  if (count < 1) return undefined;
  return { count, p50: quantile(since, count * 0.5), p99: quantile(since, count * 0.99) };
}

/** Where so many lie below: on the line from the beginning of a bucket to its end. Beyond the last end it is that end. */
function quantile(buckets: Buckets, rank: number): number {
  let [from, already] = [0, 0];
  for (const [end, below] of buckets) {
    if (end === Infinity) break;
    if (below >= rank) return from + (end - from) * Math.min(1, Math.max(0, (rank - already) / (below - already)));
    [from, already] = [end, below];
  }
  return from;
}
