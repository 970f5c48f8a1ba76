// A check or a rule set on its way to the broker, with what that finds wrong.

import { useSignal, type Signal } from "@preact/signals";
import type { Fault } from "nearcast";

import { HttpProblem } from "../../shared/http.js";
import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { NOUNS, type Situation, type Situations } from "./list.js";

export interface Saving {
  readonly faults: Signal<readonly Fault[]>;
  readonly problem: Signal<string | undefined>;
  /** Puts it in force, and shows it. One of the same name is replaced when that is asked for once more; `replaces` says that it is meant. */
  readonly save: (name: string, document: unknown, replaces: boolean) => Promise<void>;
}

export function useSaving<Shown extends Situation>(of: Situations<Shown>, empty: string): Saving {
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
  return { faults, problem, save };
}
