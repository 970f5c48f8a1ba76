// The list of what came: bounded, newest first, of each object the newest only.

import { pressing, type Entry } from "./entry.js";

export const ENTRIES_MAX = 200;

/** What became of the list by one entry. */
export interface Change {
  /** Whether there was none of its key: a person has not heard of it. */
  readonly fresh: boolean;
  /** Those that had to go. */
  readonly dropped: readonly Entry[];
}

export class Entries {
  /** In the order in which they came. */
  readonly #entries = new Map<string, Entry>();
  readonly #limit: number;

  constructor(entries: readonly Entry[] = [], limit = ENTRIES_MAX) {
    this.#limit = limit;
    for (const entry of [...entries].sort((one, other) => one.serial - other.serial)) this.add(entry, 0);
  }

  /** Adds an entry as the newest. At the bound the oldest goes, alarms that press last. */
  add(entry: Entry, now_ms: number): Change {
    const before = this.#entries.get(entry.key);
    this.#entries.delete(entry.key);
    // The same event again, which a broken connection may bring.
    const read = before?.read === true && before.id === entry.id;
    this.#entries.set(entry.key, read ? { ...entry, read } : entry);
    const dropped: Entry[] = [];
    while (this.#entries.size > this.#limit) {
      const all = [...this.#entries.values()];
      const oldest = all.find((candidate) => !pressing(candidate, now_ms)) ?? all[0];
      if (oldest === undefined) break;
      this.#entries.delete(oldest.key);
      dropped.push(oldest);
    }
    return { fresh: before === undefined, dropped };
  }

  get(key: string): Entry | undefined {
    return this.#entries.get(key);
  }

  /** Puts another in the place of the entry of its key. */
  replace(entry: Entry): void {
    if (this.#entries.has(entry.key)) this.#entries.set(entry.key, entry);
  }

  get lastSerial(): number {
    return [...this.#entries.values()].at(-1)?.serial ?? 0;
  }

  newestFirst(): readonly Entry[] {
    return [...this.#entries.values()].reverse();
  }
}

/** As a person reads them: alarms that press on top. */
export function ordered(entries: readonly Entry[], now_ms: number): readonly Entry[] {
  const top = entries.filter((entry) => pressing(entry, now_ms));
  return top.length === 0 ? entries : [...top, ...entries.filter((entry) => !pressing(entry, now_ms))];
}

/** The lines that were shown, in their order and as they are by now, and what waits behind them: for a list that a finger is on. */
export function held(
  shown: readonly Entry[],
  entries: readonly Entry[],
): { readonly lines: readonly Entry[]; readonly waiting: readonly Entry[] } {
  const current = new Map(entries.map((entry) => [entry.key, entry]));
  const lines = shown.map((entry) => current.get(entry.key) ?? entry);
  for (const { key } of shown) current.delete(key);
  return { lines, waiting: [...current.values()] };
}
