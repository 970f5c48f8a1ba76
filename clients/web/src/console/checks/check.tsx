// A check that was opened: what it does, what it asks for, and what it has found.

import { useConsole } from "../context.js";
import { FilterWords, Findings, Pair, SituationDetail } from "../situations/detail.js";
import { span } from "../words.js";
import { subjectOf } from "../why/name.js";
import { ACTIONS, formulaText, speedLimitOf, type CheckShown } from "./formula.js";
import { limitWords, violationOf, violationWords } from "./violation.js";

export function CheckDetail({ name }: { readonly name: string }) {
  const console = useConsole();
  const { checks, live, settings } = console;
  const { violations, objects } = live;
  return (
    <SituationDetail of={checks} name={name}>
      {(check) => (
        <>
          <Findings
            of={checks}
            name={name}
            title="Violations"
            none="Nothing so far: all events fit together."
            // What came while the page was open says where its events were.
            read={(feature) => violations.get(String(feature.id)) ?? violationOf(feature, violations.find)}
            nameOf={(violation) => subjectOf(violation, objects.attribute)}
            summaryOf={(violation) => (
              <span class="summary numbers">{violationWords(violation, settings.world, console.limitOf(name))}</span>
            )}
          />
          <DocumentPart check={check} />
        </>
      )}
    </SituationDetail>
  );
}

/** What a check asks for. */
export function DocumentPart({ check: { contexts, formula, clock: by, on_violation = "tell" } }: { readonly check: CheckShown }) {
  const limit = speedLimitOf(formula);
  return (
    <section aria-labelledby="holds">
      <h3 id="holds">What has to hold</h3>
      <pre class="mono" tabIndex={0} role="group" aria-label="Formula">
        {formulaText(formula)}
      </pre>
      <dl class="pairs">
        {Object.entries(contexts).map(([name, { where, area, for_s }]) => (
          <Pair key={name} name={name}>
            events of the last {span(for_s)}, <FilterWords where={where} area={area} />
          </Pair>
        ))}
        {limit !== undefined && (
          <Pair name="speed limit">
            {limit} m/s, which is {limitWords(limit)}
          </Pair>
        )}
        <Pair name="clock">{by === "event" ? "the time that events say" : "when events arrive"}</Pair>
        <Pair name="a violation is">{ACTIONS[on_violation]}</Pair>
      </dl>
    </section>
  );
}
