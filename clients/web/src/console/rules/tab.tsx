// The list of rule sets.

import { useConsole } from "../context.js";
import { SituationsTab } from "../situations/tab.js";
import { programLine } from "./rules.js";

export function RulesTab() {
  const { rules } = useConsole();
  return (
    <SituationsTab
      of={rules}
      title="Rules"
      says="A rule set makes facts of events, and derives, merges and cancels them: ten reports become one accident, slow taxis become a jam."
      none={
        <>
          <strong>No rule sets yet.</strong> Begin with one that merges the reports of an accident.
        </>
      }
      lineOf={({ program }) => programLine(program)}
    />
  );
}
