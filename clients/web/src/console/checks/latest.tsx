// What all checks have found while the page was open.

import { useSignal } from "@preact/signals";

import { useConsole } from "../context.js";
import { Rows } from "../rows.js";
import { subjectOf, ViolationSign } from "../why/name.js";
import { clock } from "../words.js";
import { violationTitle, violationWords } from "./violation.js";

const LISTED = 50;

export function Latest() {
  const console = useConsole();
  const { live, settings, checks } = console;
  const held = useSignal(false);
  const newest = live.violations.count.value === 0 ? [] : live.violations.newest(LISTED);
  const shown = useSignal(newest);
  if (!held.value) shown.value = newest;
  if (checks.list.value === undefined || checks.list.value.length === 0) return null;
  return (
    <section aria-labelledby="latest">
      <h3 id="latest">Latest violations</h3>
      {shown.value.length === 0 ? (
        <p class="quiet">None since this page was opened. A check keeps those from before.</p>
      ) : (
        <Rows list={shown.value} hold={(holds) => (held.value = holds)}>
          {(each) => (
            <li key={each.id}>
              <button
                type="button"
                class="row"
                onClick={() => console.visit({ kind: "finding", of: "checks", name: each.check, id: each.id })}
              >
                <span class="numbers quiet">{clock(each.time)}</span>
                <span class="name">
                  <ViolationSign /> <bdi>{violationTitle(each.check, console.limitOf(each.check))}</bdi>:{" "}
                  <bdi>{subjectOf(each, live.objects.attribute)}</bdi>
                </span>
                <span class="summary numbers">{violationWords(each, settings.world, console.limitOf(each.check))}</span>
              </button>
            </li>
          )}
        </Rows>
      )}
    </section>
  );
}
