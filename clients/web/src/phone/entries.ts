// The list of what came: bounded, newest first, of each object the newest only.

import { distance_m } from "../shared/map/plane.js";
import { pressing, status, type Entry, type Reach } from "./entry.js";

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

/** How a list is sorted. */
export type Order = "nearest" | "newest";

/** The order of the list: alarms that press on top, then entries of here and now, then the rest. */
export function ordered(entries: readonly Entry[], order: Order, reach: Reach, now_ms: number): readonly Entry[] {
  const rank = (entry: Entry): number => (pressing(entry, now_ms) ? 0 : isNow(entry, reach, now_ms) ? 1 : 2);
  const { world, here } = reach;
  const away = ({ place }: Entry): number => (here === undefined || place === undefined ? Infinity : distance_m(world, here, place));
  const ranked = entries.map((entry) => ({ entry, rank: rank(entry), away: order === "nearest" ? away(entry) : 0 }));
  // They come newest first, and stay so where nothing else decides.
  return ranked
    .sort((one, other) => one.rank - other.rank || (one.rank === 2 || one.away === other.away ? 0 : one.away - other.away))
    .map(({ entry }) => entry);
}

/** Whether an entry is of here and now. */
export function isNow(entry: Entry, reach: Reach, now_ms: number): boolean {
  return entry.kind === "event" && (pressing(entry, now_ms) || status(entry, reach, now_ms) === undefined);
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
