// A check, a rule set or a group definition on its way to the broker, with what that finds wrong.

import { useSignal, type Signal } from "@preact/signals";
import type { Fault } from "nearcast";

import { HttpProblem } from "../../shared/http.js";
import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { NOUNS, type Situation, type Situations } from "./list.js";
import { readDocument } from "./pointers.js";

export interface Saving<Shown extends Situation> {
  readonly of: Situations<Shown>;
  /** What one begins with that takes the place of another. */
  readonly empty: string;
  readonly faults: Signal<readonly Fault[]>;
  readonly problem: Signal<string | undefined>;
  /** Puts it in force, and shows it. One of the same name is replaced when that is asked for once more; `replaces` says that it is meant. */
  readonly save: (name: string, document: unknown, replaces: boolean) => Promise<void>;
  /** Reads a document; `undefined` where it is no JSON, which is told then. */
  readonly read: (text: string) => { readonly document: unknown } | undefined;
}

export function useSaving<Shown extends Situation>(of: Situations<Shown>, empty: string): Saving<Shown> {
  const console = useConsole();
  const faults = useSignal<readonly Fault[]>([]);
  const problem = useSignal<string | undefined>(undefined);
  /** What is replaced when it is saved once more. */
  const agreed = useSignal<string | undefined>(undefined);
  const save = async (name: string, document: unknown, replaces: boolean): Promise<void> => {
    problem.value = undefined;
    faults.value = [];
    if (!replaces && agreed.value !== name && of.get(name) !== undefined) {
      agreed.value = name;
      problem.value = `There is a ${NOUNS[of.kind]} ${name} already. Save again to replace it; it begins with ${empty}.`;
      return;
    }
    try {
      await console.access.call(of.path(name), { method: "PUT", body: document });
      await of.look();
      console.replace({ kind: "situation", of: of.kind, name });
    } catch (error) {
      faults.value = error instanceof HttpProblem ? error.faults : [];
      problem.value = statusOf(error) === 403 ? `This token does not permit it: ${reasonOf(error)}` : `Not saved: ${reasonOf(error)}`;
    }
  };
  const read = (text: string): { readonly document: unknown } | undefined => {
    const found = readDocument(text);
    if (!("fault" in found)) return found;
    faults.value = [{ pointer: "", detail: found.fault.detail }];
    return undefined;
  };
  return { of, empty, faults, problem, save, read };
}
