// Colours of marks by a value of their events, with a legend.

import { attributeOf } from "./objects.js";

/** Classes of numbers come first among the theme's `--map-c` colours, then kinds, then what is none of them. */
const STEPS = 6;
const KINDS = 7;
export const OTHER = STEPS + KINDS;

export interface LegendRow {
  /** Of the theme's classes. */
  readonly colour: number;
  readonly text: string;
}

type Values = readonly (Readonly<Record<string, unknown>> | null | undefined)[];

/** A scale of one attribute, made of the values that are there. */
export class Scale {
  readonly attribute: string;
  readonly legend: readonly LegendRow[];
  /** Lower ends of the classes of numbers but for the first; empty where values are kinds. */
  readonly #ends: readonly number[];
  readonly #kinds: ReadonlyMap<string, number>;

  constructor(attribute: string, all: Values) {
    this.attribute = attribute;
    const values = all.map((properties) => attributeOf(properties, attribute)).filter((value) => value !== undefined && value !== null);
    const numbers = values.filter((value) => typeof value === "number");
    // A few whole numbers are kinds: 0 and 1 of a status are no scale.
    const isScale = numbers.length > 0 && numbers.length === values.length && new Set(numbers).size > KINDS;
    this.#ends = isScale ? endsOf(numbers) : [];
    this.#kinds = isScale ? new Map() : kindsOf(values);
    this.legend = isScale ? legendOf(this.#ends) : [...this.#kinds].map(([text, colour]) => ({ colour, text }));
    if (!isScale && values.length > 0) this.legend = [...this.legend, { colour: OTHER, text: "other, or none" }];
  }

  /** The class of an event's colour. */
  of(properties: Readonly<Record<string, unknown>> | null | undefined): number {
    const value = attributeOf(properties, this.attribute);
    if (typeof value === "number" && this.#kinds.size === 0) {
      const above = this.#ends.filter((end) => value >= end).length;
      return Math.round((above * (STEPS - 1)) / Math.max(1, this.#ends.length));
    }
    return this.#kinds.get(String(value)) ?? OTHER;
  }
}

/** Round numbers between the values, at most five. */
function endsOf(numbers: readonly number[]): number[] {
  const sorted = [...numbers].sort((one, other) => one - other);
  // An odd value far out is not to take all colours.
  const [low = 0, high = 0] = [sorted[Math.floor(sorted.length * 0.02)], sorted[Math.ceil(sorted.length * 0.98) - 1]];
  const raw = (high - low) / STEPS || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw) ?? raw;
  const ends: number[] = [];
  for (let end = Math.ceil(low / step + 1e-9) * step; end < high && ends.length < STEPS - 1; end += step)
    ends.push(Number(end.toPrecision(12)));
  return ends;
}

function kindsOf(values: readonly unknown[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) {
    const text = String(value);
    if (counts.size < 1000 || counts.has(text)) counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const common = [...counts].sort(([, one], [, other]) => other - one).slice(0, KINDS);
  // By name, so that colours stay while counts change.
  return new Map(
    common
      .map(([text]) => text)
      .sort()
      .map((text, index) => [text, STEPS + index]),
  );
}

function legendOf(ends: readonly number[]): LegendRow[] {
  const colour = (at: number): number => Math.round((at * (STEPS - 1)) / Math.max(1, ends.length));
  if (ends.length === 0) return [{ colour: 0, text: "all" }];
  return [...ends, Infinity].map((end, at) => ({
    colour: colour(at),
    text: at === 0 ? `below ${end}` : end === Infinity ? `${ends.at(-1)} and more` : `${ends[at - 1]} to ${end}`,
  }));
}
