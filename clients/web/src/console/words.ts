// Figures and times as people read them.

import type { FoundRoute } from "nearcast";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** `1,204`, and `0.4` of what is small. */
export function count(value: number): string {
  return value > 0 && value < 9.95 && !Number.isInteger(value) ? tenth.format(value) : whole.format(value);
}

/** `1 event`, `2 events`. */
export function counted(value: number, one: string, more = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : more}`;
}

/** `640 µs`, `2.1 ms`, `1.3 s`. */
export function duration(seconds: number): string {
  if (seconds < 0.001) return `${whole.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds < 0.01 ? tenth : whole).format(seconds * 1000)} ms`;
  return `${tenth.format(seconds)} s`;
}

/** `12 s`, `4 min`, `3 h`, `2 days`. */
export function span(seconds: number): string {
  if (seconds < 90) return `${whole.format(seconds)} s`;
  if (seconds < 5400) return `${whole.format(seconds / 60)} min`;
  if (seconds < 129_600) return `${whole.format(seconds / 3600)} h`;
  return `${whole.format(seconds / 86_400)} days`;
}

/** `30 m`, `1.2 km`. */
export function metres(value: number): string {
  if (value >= 1000) return `${value < 9950 ? tenth.format(value / 1000) : whole.format(value / 1000)} km`;
  return `${value > 0 && value < 9.95 ? tenth.format(value) : whole.format(value)} m`;
}

/** `3.1 km, 4 min, the best one (level 0)`. */
export function routeWords({ length_m, duration_s, level }: FoundRoute): string {
  return `${metres(length_m)}, ${span(duration_s)}, ${level === 0 ? "the best one (level 0)" : `level ${level}: it may take a detour`}`;
}

/** A value of an attribute as it stands in JSON, cut where it is long. */
export function valueText(value: unknown, most = 200): string {
  const text = typeof value === "string" ? value : ((JSON.stringify(value) as string | undefined) ?? "");
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** The time of day of an RFC 3339 time, where the reader is. */
export function clock(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toLocaleTimeString("en-GB");
}

/** The same with its date where that is another day's: replayed events are older than they look. */
export function moment(time: string): string {
  const date = new Date(time);
  const isOther = !Number.isNaN(date.getTime()) && date.toDateString() !== new Date().toDateString();
  return isOther ? `${clock(time)}, ${date.toLocaleDateString("en-CA")}` : clock(time);
}
