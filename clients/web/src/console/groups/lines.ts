// The lines of all groups on the map.

import { linksOf, type GroupDefinitionShown } from "./groups.js";

/** Lines at most: more would hide the map. */
export const LINES = 1000;

/** A line from object to object, by their names. */
export type Line = readonly [one: string, other: string];

/** The lines of the first groups of each definition. One that two groups share is there once. */
export function linesOf(definitions: readonly Pick<GroupDefinitionShown, "roles" | "where" | "groups">[], most = LINES): Line[] {
  const lines = new Map<string, Line>();
  for (const { roles, where, groups = [] } of definitions) {
    const links = linksOf(Object.keys(roles), where);
    for (const group of groups) {
      for (const [from, to] of links) {
        const [one, other] = [group[from], group[to]];
        if (lines.size >= most) return [...lines.values()];
        if (one !== undefined && other !== undefined) lines.set(JSON.stringify([one, other]), [one, other]);
      }
    }
  }
  return [...lines.values()];
}
