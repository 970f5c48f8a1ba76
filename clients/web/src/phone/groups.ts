// Objects of one sort that are many: one line of the list tells of all of them, so that what happens is not lost between them.

import type { Entry } from "./entry.js";

/** The most objects of one sort that are listed one by one. */
const MANY = 3;
/** The most values of a property that tells objects of a group apart. */
const VALUES = 3;

export interface Group {
  readonly sort: string;
  /** In the order of the list. */
  readonly entries: readonly Entry[];
}

function groupBy<Each, Key>(all: readonly Each[], keyOf: (each: Each) => Key): Map<Key, Each[]> {
  const groups = new Map<Key, Each[]>();
  for (const each of all) groups.set(keyOf(each), [...(groups.get(keyOf(each)) ?? []), each]);
  return groups;
}

/** The lines of a section of the list: a group stands where the first of its members would, so that the list keeps its order when their number changes. */
export function grouped(entries: readonly Entry[]): readonly (Entry | Group)[] {
  const sorts = groupBy(entries, ({ sort, alarm, doubts }) => (alarm || doubts !== undefined ? undefined : sort));
  const groupOf = new Map<Entry, Group>();
  for (const [sort, members] of sorts) {
    if (sort === undefined || members.length <= MANY) continue;
    const group = { sort, entries: members };
    for (const member of members) groupOf.set(member, group);
  }
  return [...new Set(entries.map((entry) => groupOf.get(entry) ?? entry))];
}

/** `8 taxis`. */
export function groupTitle({ sort, entries }: Group): string {
  const word = /\p{Lu}{2}/u.test(sort) ? sort : sort.toLowerCase();
  return `${entries.length} ${word}${/(s|x|z|ch|sh)$/i.test(word) ? "es" : "s"}`;
}

/** How many have which value of the first property whose values are few words, the most first, as `5 hired`. None where there is no such property. */
export function groupShares({ entries }: Group): readonly (readonly [value: string, number: number])[] {
  for (const [name] of entries[0]?.pairs ?? []) {
    const values = entries.map(({ pairs }) => pairs.find(([each]) => each === name)?.[1] ?? "");
    const counts = [...groupBy(values, (value) => value)].map(([value, same]) => [value, same.length] as const);
    if (counts.length > VALUES || counts.some(([value]) => !/^\p{L}[\p{L} -]{0,19}$/u.test(value))) continue;
    return counts.sort(([, one], [, other]) => other - one);
  }
  return [];
}
