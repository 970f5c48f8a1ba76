// The list of checks.

import { useConsole } from "../context.js";
import { SituationsTab } from "../situations/tab.js";
import { formulaLine } from "./formula.js";
import { Latest } from "./latest.js";

export function ChecksTab() {
  const { checks } = useConsole();
  return (
    <>
      <SituationsTab
        of={checks}
        title="Checks"
        says="A check holds recent events against one another, and tells which do not fit: a taxi that jumps, a tag that is frozen, a camera that sees double."
        none={
          <>
            <strong>No checks yet.</strong> Begin with a preset: no object is faster than it can be, or events stay within a polygon.
          </>
        }
        lineOf={({ formula }) => formulaLine(formula)}
      />
      <Latest />
    </>
  );
}
