// Rule sets as their documents have them, and programs as people read them.

import type { Fault } from "nearcast";

import type { AreaShown } from "../map/areas.js";
import type { Situation } from "../situations/list.js";
import type { Place } from "../situations/pointers.js";

export interface FactShown {
  readonly where?: unknown;
  readonly area?: AreaShown;
  readonly args?: readonly string[];
  readonly for_s?: number;
}

export interface PublicationShown {
  readonly at?: readonly [number, number];
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly key?: string;
  readonly ttl_s?: number;
}

/** A rule set as the broker shows it. */
export interface RuleSetShown extends Situation {
  readonly facts: Readonly<Record<string, FactShown>>;
  readonly program: string;
  readonly clock?: "arrival" | "event";
  readonly publish?: Readonly<Record<string, PublicationShown>>;
}

/** What a rule set is begun with. */
export const EMPTY = {
  facts: { report: { where: "type = 'accident'", args: ["@id", "@lon", "@lat"], for_s: 300 } },
  publish: { accident: { at: [1, 2], properties: { type: "accident-confirmed" } } },
};
export const EMPTY_PROGRAM = `% Of two reports within 100 m the first stays, and confirms the accident.
report(A, X, Y) \\ report(_, U, V) <=> distance(X, Y, U, V) < 100 | accident(A, X, Y).
`;

/** The members of a rule set that are its own, without the program. */
export function documentOf({ facts, clock, publish }: RuleSetShown): object {
  return { facts, ...(clock === undefined ? {} : { clock }), ...(publish === undefined ? {} : { publish }) };
}

/** A program on one line, without its comments. */
export function programLine(program: string): string {
  return program
    .replaceAll(/^\s*%.*$/gm, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** Where in a program the faults are: at the line and the column that each begins with, up to the end of the word there. */
export function placesInProgram(text: string, faults: readonly Fault[]): Place[] {
  const lines = text.split("\n");
  return faults.map(({ pointer, detail }) => {
    const [, line, column, what] = /^line (\d+), column (\d+): (.*)$/s.exec(detail) ?? [];
    const shown = lines[Number(line) - 1];
    if (shown === undefined || what === undefined) return { pointer, detail, from: 0, to: text.length };
    const before = lines.slice(0, Number(line) - 1).reduce((sum, { length }) => sum + length + 1, 0);
    // Columns count characters, and JavaScript their halves.
    const at =
      before +
      Array.from(shown)
        .slice(0, Number(column) - 1)
        .join("").length;
    const from = Math.min(at, text.length);
    const [word = ""] = /^(?:[\p{L}\p{N}_]+|\S+?(?=[\s\p{L}\p{N}_]|$))/u.exec(text.slice(from)) ?? [];
    return { pointer: `line ${line}`, detail: what, from, to: Math.min(text.length, from + Math.max(1, word.length)) };
  });
}
