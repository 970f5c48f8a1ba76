// Checks as their documents have them, and formulas as people read them.

import type { AreaShown } from "../map/areas.js";
import type { Situation } from "../situations/list.js";

export type Formula =
  | string
  | { readonly forall: string; readonly in: string; readonly that: Formula }
  | { readonly exists: string; readonly in: string; readonly that: Formula }
  | { readonly and: readonly Formula[] }
  | { readonly or: readonly Formula[] }
  | { readonly implies: readonly Formula[] }
  | { readonly not: Formula };

export interface ContextSet {
  readonly where?: unknown;
  readonly area?: AreaShown;
  readonly for_s: number;
}

/** A check as the broker shows it. */
export interface CheckShown extends Situation {
  readonly contexts: Readonly<Record<string, ContextSet>>;
  readonly formula: Formula;
  readonly clock?: "arrival" | "event";
  readonly on_violation?: "tell" | "mark" | "drop";
}

/** The most characters of a line of a formula. */
const LINE = 40;

/** A condition of more than a line begins a new one at each of its words AND and OR, which stand in front. */
function broken(condition: string, indent: string): string {
  if (indent.length + condition.length <= LINE) return indent + condition;
  const lines = condition.replaceAll(/'(?:[^']|'')*'|BETWEEN\s+\S+\s+AND|\s+(AND|OR)\s+/gi, (all, word?: string) =>
    word === undefined ? all : `\n${indent}${word} `,
  );
  return indent + lines;
}

/** A formula with a part on each line, indented by what is around it. */
export function formulaText(formula: Formula, indent = ""): string {
  if (typeof formula === "string") return broken(formula, indent);
  const deeper = `${indent}  `;
  const parts = (all: readonly Formula[]): string => all.map((part) => formulaText(part, deeper)).join("\n");
  if ("forall" in formula) return `${indent}for every ${formula.forall} in ${formula.in}:\n${formulaText(formula.that, deeper)}`;
  if ("exists" in formula) return `${indent}there is ${formula.exists} in ${formula.in} so that:\n${formulaText(formula.that, deeper)}`;
  if ("and" in formula) return `${indent}all of these:\n${parts(formula.and)}`;
  if ("or" in formula) return `${indent}one of these:\n${parts(formula.or)}`;
  if ("not" in formula) return `${indent}not:\n${formulaText(formula.not, deeper)}`;
  const [premise = "", conclusion = ""] = formula.implies;
  return `${indent}if\n${formulaText(premise, deeper)}\n${indent}then\n${formulaText(conclusion, deeper)}`;
}

/** The texts of a formula, in one line: first what has to hold, then when. */
export function formulaLine(formula: Formula): string {
  if (typeof formula === "string") return formula;
  if ("that" in formula) return formulaLine(formula.that);
  if ("not" in formula) return `not (${formulaLine(formula.not)})`;
  if ("implies" in formula) return [...formula.implies].reverse().map(formulaLine).join(" if ");
  return "and" in formula ? formula.and.map(formulaLine).join("; ") : formula.or.map(formulaLine).join(" or ");
}

const SPEED_LIMIT = /\bSPEED\(\s*\w+\s*,\s*\w+\s*\)\s*(<=?|>=?)\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)/gi;

/** The most metres per second that a formula permits between two events; `undefined` where it states none, or several. */
export function speedLimitOf(formula: Formula): number | undefined {
  const [limit, ...others] = new Set(limitsOf(formula, "<"));
  return others.length === 0 ? limit : undefined;
}

function limitsOf(formula: Formula, sign: "<" | ">"): number[] {
  if (typeof formula === "string")
    return [...formula.matchAll(SPEED_LIMIT)].flatMap(([, by = "", limit]) => (by.startsWith(sign) ? [Number(limit)] : []));
  if ("that" in formula) return limitsOf(formula.that, sign);
  if ("not" in formula) return limitsOf(formula.not, sign === "<" ? ">" : "<");
  // A premise says when something has to hold.
  const parts = "implies" in formula ? formula.implies.slice(1) : "and" in formula ? formula.and : formula.or;
  return parts.flatMap((part) => limitsOf(part, sign));
}

/** What becomes of a violation. */
export const ACTIONS = {
  tell: "published as an event",
  mark: "not published, and the event is delivered with a mark",
  drop: "refused to its publisher",
} as const;
