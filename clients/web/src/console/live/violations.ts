// What checks have found while the page was open, and which marks of the map it concerns.

import { signal } from "@preact/signals";
import type { DeliveredFeature } from "nearcast";

import { violationOf, type Violation } from "../checks/violation.js";

/** The newest events are known by their ids, so that a finding can say where those that it binds were. */
const KNOWN = 20_000;
/** As many as the broker keeps of one check. */
const FOUND = 1000;
/** Findings are of late, and marks show that their objects have violated a check, for so long: numbers of both stand beside each other. */
export const LATELY_MS = 60_000;

interface Known {
  readonly feature: DeliveredFeature;
  /** Of its mark, if it has one. */
  readonly point: string | undefined;
  violates: readonly string[];
}

export class Violations {
  /** What was found, by ids, the newest last. */
  readonly #found = new Map<string, Violation>();
  readonly #known = new Map<string, Known>();
  /** Findings by the ids of the events that they bind. */
  readonly #byEvent = new Map<string, Set<string>>();
  readonly #marks = new Map<string, { readonly checks: readonly string[]; readonly ends_ms: number }>();
  /** Marks that violate a check now. */
  readonly marked = signal(0);
  /** When each of the findings of the last minute came. */
  #came_ms: number[] = [];
  /** Findings of the last minute. */
  readonly lately = signal(0);
  /** Changes with each finding. */
  readonly count = signal(0);

  /** Remembers an event, and which checks its frame says that it violates. */
  learn(feature: DeliveredFeature, point: string | undefined, violates: readonly string[], now_ms: number): void {
    const id = String(feature.id);
    this.#known.delete(id);
    this.#known.set(id, { feature, point, violates });
    if (this.#known.size > KNOWN) this.#known.delete(first(this.#known));
    if (point !== undefined) for (const check of violates) this.#mark(point, check, now_ms);
  }

  /** Takes an event that tells a finding: tells it, and the mark that it concerns. `undefined` of any other event. */
  take(feature: DeliveredFeature, now_ms: number): { readonly violation: Violation; readonly point: string | undefined } | undefined {
    const violation = violationOf(feature, this.find);
    if (violation === undefined) return undefined;
    this.#found.delete(violation.id);
    this.#found.set(violation.id, violation);
    for (const { id } of violation.bound) this.#byEvent.set(id, (this.#byEvent.get(id) ?? new Set()).add(violation.id));
    if (this.#found.size > FOUND) this.#forget(first(this.#found));
    this.count.value += 1;
    this.#came_ms.push(now_ms);
    this.lately.value = this.#came_ms.length;
    const newest = violation.bound.at(-1);
    const point = newest === undefined ? undefined : this.#known.get(newest.id)?.point;
    if (point !== undefined) this.#mark(point, violation.check, now_ms);
    return { violation, point };
  }

  /** An event by its id, if the page has seen it lately. */
  readonly find = (id: string): DeliveredFeature | undefined => this.#known.get(id)?.feature;

  /** A finding by its id, if it came while the page was open. */
  get(id: string): Violation | undefined {
    return this.#found.get(id);
  }

  /** The newest findings of all checks. */
  newest(most: number): Violation[] {
    return [...this.#found.values()].slice(-most).reverse();
  }

  /** The newest findings that bind an event. */
  of(id: string): Violation[] {
    return [...(this.#byEvent.get(id) ?? [])].flatMap((found) => this.#found.get(found) ?? []).reverse();
  }

  /** The checks that an event violates as its frame says. */
  violatedBy(id: string): readonly string[] {
    return this.#known.get(id)?.violates ?? [];
  }

  /** The checks that a mark's object has violated lately. */
  checksOf(point: string): readonly string[] {
    return this.#marks.get(point)?.checks ?? [];
  }

  /** Takes away marks whose time is over, and tells which. */
  sweep(now_ms: number): string[] {
    const over = [...this.#marks].filter(([, { ends_ms }]) => ends_ms <= now_ms).map(([point]) => point);
    for (const point of over) this.#marks.delete(point);
    this.#came_ms = this.#came_ms.filter((came_ms) => now_ms - came_ms < LATELY_MS);
    this.lately.value = this.#came_ms.length;
    this.marked.value = this.#marks.size;
    return over;
  }

  clear(): void {
    for (const each of [this.#found, this.#known, this.#byEvent, this.#marks]) each.clear();
    this.#came_ms = [];
    this.marked.value = this.lately.value = 0;
  }

  #mark(point: string, check: string, now_ms: number): void {
    const before = this.#marks.get(point)?.checks ?? [];
    this.#marks.set(point, { checks: before.includes(check) ? before : [...before, check], ends_ms: now_ms + LATELY_MS });
    this.marked.value = this.#marks.size;
  }

  #forget(id: string): void {
    for (const bound of this.#found.get(id)?.bound ?? []) {
      const left = this.#byEvent.get(bound.id);
      left?.delete(id);
      if (left?.size === 0) this.#byEvent.delete(bound.id);
    }
    this.#found.delete(id);
  }
}

function first(map: ReadonlyMap<string, unknown>): string {
  const [key = ""] = map.keys();
  return key;
}
