// The list of what came: bounded, newest first, of each object the newest only.

import type { Entry } from "./entry.js";

export const ENTRIES_MAX = 200;

/** What became of the list by one entry. */
export interface Change {
  /** Whether there was none of its key: a person has not heard of it. */
  readonly fresh: boolean;
  /** Keys of those that had to go. */
  readonly dropped: readonly string[];
}

export class Entries {
  /** In the order in which they came. */
  readonly #entries = new Map<string, Entry>();
  readonly #limit: number;

  constructor(entries: readonly Entry[] = [], limit = ENTRIES_MAX) {
    this.#limit = limit;
    for (const entry of [...entries].sort((one, other) => one.serial - other.serial)) this.add(entry);
  }

  /** Adds an entry as the newest. At the bound the oldest goes. */
  add(entry: Entry): Change {
    const fresh = !this.#entries.delete(entry.key);
    this.#entries.set(entry.key, entry);
    const dropped: string[] = [];
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= this.#limit) break;
      this.#entries.delete(key);
      dropped.push(key);
    }
    return { fresh, dropped };
  }

  get lastSerial(): number {
    return [...this.#entries.values()].at(-1)?.serial ?? 0;
  }

  newestFirst(): readonly Entry[] {
    return [...this.#entries.values()].reverse();
  }
}
