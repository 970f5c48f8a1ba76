// The arithmetic of a chart: its axes, its buckets of time and its lines.

/** Steps of the axis of time. */
const STEPS_S = [60, 120, 300, 600, 900, 1800];
/** Powers of ten of a logarithmic axis, at most. */
const DECADES = 7;

export interface Axis {
  readonly ticks: readonly number[];
  /** Where a value lies: 0 at the lower end, 1 at the upper one. */
  readonly part: (value: number) => number;
}

/** An axis in steps of 1, 2 or 5 times a power of ten from 0 to at least `most`. */
export function linearAxis(most: number): Axis {
  const raw = Math.max(most, 1e-9) / 3;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw * 0.999) ?? raw;
  const ticks = Array.from({ length: Math.max(1, Math.ceil(most / step - 1e-9)) + 1 }, (_, at) => Number((at * step).toPrecision(12)));
  const top = ticks.at(-1) ?? 1;
  return { ticks, part: (value) => value / top };
}

/** An axis of the powers of ten around `values`; what is 0 lies at its lower end. */
export function logarithmicAxis(values: readonly number[]): Axis {
  const above = values.filter((value) => value > 0);
  const high = above.length === 0 ? -1 : Math.ceil(Math.log10(Math.max(...above)) - 1e-9);
  const low = above.length === 0 ? -3 : Math.max(high - DECADES, Math.min(high - 1, Math.floor(Math.log10(Math.min(...above)) + 1e-9)));
  const ticks = Array.from({ length: high - low + 1 }, (_, at) => Number((10 ** (low + at)).toPrecision(6)));
  return { ticks, part: (value) => (value <= 0 ? 0 : Math.max(0, (Math.log10(value) - low) / (high - low))) };
}

/** Round times of the day between two times, at most `most` + 1. */
export function momentsOf(from_ms: number, to_ms: number, most: number): number[] {
  const step_ms = 1000 * (STEPS_S.find((step) => (to_ms - from_ms) / (step * 1000) <= most) ?? 3600);
  const first = Math.ceil(from_ms / step_ms) * step_ms;
  return Array.from({ length: Math.max(0, Math.floor((to_ms - first) / step_ms) + 1) }, (_, at) => first + at * step_ms);
}

type Values = readonly (number | undefined)[];

export interface Buckets {
  /** The middle of each. */
  readonly times_ms: readonly number[];
  /** A value of each bucket for each of the lines. */
  readonly lines: readonly Values[];
}

/**
 * Puts the values of lines into buckets of `step_ms`, of which each has the greatest value or the mean over time. The first bucket and the last one are
 * left out: they cover less than their time, and would show a drop that did not happen.
 */
export function bucketed(times_ms: readonly number[], lines: readonly Values[], step_ms: number, pick: "mean" | "most"): Buckets {
  const slot = (time: number): number => Math.floor(time / step_ms);
  const [first, last] = [slot(times_ms[0] ?? 0), slot(times_ms.at(-1) ?? 0)];
  const slots = [...new Set(times_ms.map(slot))].filter((each) => each > first && each < last);
  return {
    times_ms: slots.map((each) => (each + 0.5) * step_ms),
    lines: lines.map((values) => {
      const sums = new Map<number, { sum: number; weight: number; most: number }>();
      for (const [at, value] of values.entries()) {
        const [time, before] = [times_ms[at] ?? 0, times_ms[at - 1] ?? 0];
        if (value === undefined) continue;
        // A value is of the time since the one before.
        const weight = Math.min(step_ms, time - before);
        const { sum, weight: all, most } = sums.get(slot(time)) ?? { sum: 0, weight: 0, most: 0 };
        sums.set(slot(time), { sum: sum + value * weight, weight: all + weight, most: Math.max(most, value) });
      }
      return slots.map((each) => {
        const found = sums.get(each);
        return found === undefined ? undefined : pick === "most" ? found.most : found.sum / found.weight;
      });
    }),
  };
}

/** A line, broken where there is no value for longer than `break_ms`. */
export function pathOf(
  times: readonly number[],
  values: Values,
  break_ms: number,
  x: (time: number) => number,
  y: (value: number) => number,
): string {
  let path = "";
  let before_ms = -Infinity;
  for (const [at, value] of values.entries()) {
    const time = times[at] ?? 0;
    if (value === undefined) continue;
    path += `${time - before_ms > break_ms ? "M" : "L"}${x(time).toFixed(1)},${y(value).toFixed(1)}`;
    before_ms = time;
  }
  return path;
}

/** The area between a line and the axis, for each of its pieces. */
export function areaOf(path: string, base: number): string {
  return path
    .split("M")
    .filter((piece) => piece !== "")
    .map((piece) => {
      const places = piece.split("L");
      const [from = "", to = ""] = [places[0], places.at(-1)].map((place) => place?.split(",")[0] ?? "");
      return `M${from},${base.toFixed(1)}L${piece}L${to},${base.toFixed(1)}Z`;
    })
    .join("");
}

/** The figure beside a line: where the line ends. Until the line begins, the newest value there is. */
export function newestOf(line: Values, values: Values): number | undefined {
  return line.some((value) => value !== undefined) ? line.at(-1) : values.at(-1);
}

/** The same of one line whose chart is not drawn. */
export function figureOf(times_ms: readonly number[], values: Values, step_s: number, pick: "mean" | "most"): number | undefined {
  const begins = Math.max(
    0,
    times_ms.findIndex((time) => time >= (times_ms.at(-1) ?? 0) - 3000 * step_s),
  );
  const newest = values.slice(begins);
  return newestOf(bucketed(times_ms.slice(begins), [newest], step_s * 1000, pick).lines[0] ?? [], newest);
}

/** The index of the time that is nearest; -1 where there is none. */
export function nearestOf(times: readonly number[], wanted: number): number {
  const after = times.findIndex((time) => time >= wanted);
  if (after < 0) return times.length - 1;
  return after > 0 && wanted - (times[after - 1] ?? 0) < (times[after] ?? 0) - wanted ? after - 1 : after;
}
