// Group definitions as their documents have them, and what they publish.

import type { DeliveredFeature } from "nearcast";

import type { AreaShown } from "../map/areas.js";
import type { Situation } from "../situations/list.js";
import { tokens } from "../try/completion.js";

export interface RoleShown {
  readonly where?: unknown;
  readonly area?: AreaShown;
}

/** The object of each role. */
export type Group = Readonly<Record<string, string>>;

/** A group definition as the broker shows it. */
export interface GroupDefinitionShown extends Situation {
  readonly roles: Readonly<Record<string, RoleShown>>;
  readonly where?: readonly string[];
  readonly limit?: number;
  readonly order?: string;
  /** The reported groups; absent before it has begun. */
  readonly groups?: readonly Group[];
}

/** A group that came or went. */
export interface GroupChange {
  readonly id: string;
  readonly definition: string;
  readonly time: string;
  readonly transition: "enter" | "exit";
  /** Absent for a reader that may not see the objects. */
  readonly group?: Group;
  readonly feature: DeliveredFeature;
}

/** Reads the event that tells it; `undefined` of any other event. */
export function changeOf(feature: DeliveredFeature): GroupChange | undefined {
  const { by } = feature.derived ?? {};
  if (by === undefined) return undefined;
  const { group, roles, transition } = (feature.properties as { group?: unknown; roles?: unknown; transition?: unknown } | null) ?? {};
  // Publishers may write anything into properties, and nothing into `derived`.
  if (typeof group !== "string" || by !== `groups/${group}` || (transition !== "enter" && transition !== "exit")) return undefined;
  return {
    id: String(feature.id),
    definition: group,
    time: feature.time,
    transition,
    feature,
    ...(typeof roles === "object" && roles !== null ? { group: roles as Group } : {}),
  };
}

/** The objects of a group, in the order of the roles where those are known. */
export function objectsOf(group: Group, roles: readonly string[] = []): string[] {
  return rolesOf(group, roles).flatMap((role) => group[role] ?? []);
}

/** The roles of a group, in their order where that is known: an event has them in no order. */
export function rolesOf(group: Group, roles: readonly string[] = []): string[] {
  return [...roles.filter((role) => role in group), ...Object.keys(group).filter((role) => !roles.includes(role))];
}

/** Which roles are drawn with a line between them: those that share a condition; one that shares none has a line from the first. */
export function linksOf(roles: readonly string[], where: readonly string[] = []): (readonly [string, string])[] {
  const links = where.flatMap((condition): (readonly [string, string])[] => {
    const [one, other] = namedIn(condition, roles);
    return one === undefined || other === undefined ? [] : [[one, other]];
  });
  const [first] = roles;
  if (first === undefined) return [];
  const reached = new Set([first]);
  for (const role of roles) {
    for (let before = 0; before !== reached.size;) {
      before = reached.size;
      for (const link of links) if (link.some((end) => reached.has(end))) for (const end of link) reached.add(end);
    }
    if (reached.has(role)) continue;
    links.push([first, role]);
    reached.add(role);
  }
  return [...new Map(links.map((link) => [JSON.stringify(link), link])).values()];
}

/** The roles that a condition names, in the order of the roles. */
function namedIn(condition: string, roles: readonly string[]): string[] {
  const names = tokens(condition)
    .filter(({ kind }) => kind === "name")
    .map(({ text }) => (text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text));
  return roles.filter((role) => names.some((name) => name === role || name.startsWith(`${role}.`)));
}

/** What a definition asks for, on a line. */
export function definitionLine({ roles, where = [] }: Pick<GroupDefinitionShown, "roles" | "where">): string {
  return [Object.keys(roles).join(", "), ...where].join("; ");
}
