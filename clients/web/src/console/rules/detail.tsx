// A rule set that was opened, and an event that it made.

import { useConsole } from "../context.js";
import { BoundEvents } from "../situations/bound-events.js";
import { FilterWords, Findings, FindingPage, Pair, SituationDetail } from "../situations/detail.js";
import { EventDetail } from "../why/event.js";
import { EventSummary, nameOf } from "../why/name.js";
import { span, valueText } from "../words.js";
import { derivedOf, drawingOf } from "./derived.js";
import type { RuleSetShown } from "./rules.js";

export function RuleSetDetail({ name }: { readonly name: string }) {
  const { rules, live } = useConsole();
  return (
    <SituationDetail of={rules} name={name}>
      {(shown) => (
        <>
          <Findings
            of={rules}
            name={name}
            title="What it made"
            none="Nothing so far."
            read={(feature) => derivedOf(feature, live.violations.find)}
            nameOf={({ feature }) => nameOf(feature, live.objects.attribute)}
            summaryOf={({ feature }) => <EventSummary feature={feature} />}
          />
          <DocumentPart shown={shown} />
        </>
      )}
    </SituationDetail>
  );
}

function DocumentPart({ shown: { facts, program, clock: by, publish = {} } }: { readonly shown: RuleSetShown }) {
  return (
    <section aria-labelledby="program">
      <h3 id="program">Program</h3>
      <pre class="mono" tabIndex={0} role="group" aria-label="Program">
        {program}
      </pre>
      <h3 id="facts">Facts</h3>
      <dl class="pairs">
        {Object.entries(facts).map(([name, { where, area, args = [], for_s }]) => (
          <Pair key={name} name={`${name}(${args.join(", ")})`}>
            {for_s === undefined ? "for ever" : `for ${span(for_s)}`}, <FilterWords where={where} area={area} />
          </Pair>
        ))}
        <Pair name="clock">{by === "event" ? "the time that events say" : "when events arrive"}</Pair>
      </dl>
      <h3 id="published">What is published</h3>
      <dl class="pairs">
        {Object.entries(publish).map(([name, { at, properties, key, ttl_s }]) => (
          <Pair key={name} name={name}>
            {at === undefined ? "where the event was that brought it" : `at arguments ${at[0]} and ${at[1]}`}
            {key !== undefined && `, key ${key}`}
            {ttl_s !== undefined && `, live for ${span(ttl_s)}`}
            <code class="where">
              <bdi>{valueText(properties, 1000)}</bdi>
            </code>
          </Pair>
        ))}
        {Object.keys(publish).length === 0 && <dd class="quiet">Nothing.</dd>}
      </dl>
    </section>
  );
}

/** An event that a rule set made: what it follows from, in words and on the map, and what else there is to say of it. */
export function DerivedDetail({ name, id }: { readonly name: string; readonly id: string }) {
  const { rules, live } = useConsole();
  const { find } = live.violations;
  const known = find(id);
  return (
    <FindingPage
      of={rules}
      name={name}
      id={id}
      known={known === undefined ? undefined : derivedOf(known, find)}
      read={(feature) => derivedOf(feature, find)}
      drawingOf={drawingOf}
    >
      {({ feature, origins }) => (
        <>
          <section class="origins" aria-labelledby="origins">
            <h3 id="origins">It follows from</h3>
            {origins.length === 0 ? (
              <p class="quiet">Events that this token does not permit to see, or none.</p>
            ) : (
              <BoundEvents bound={origins} />
            )}
          </section>
          <EventDetail feature={feature} />
        </>
      )}
    </FindingPage>
  );
}
