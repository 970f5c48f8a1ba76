// A rule set that was opened, and an event that it made.

import { useEffect } from "preact/hooks";

import { useConsole } from "../context.js";
import { areaWords } from "../map/areas.js";
import { placeOf } from "../model.js";
import { Findings, FoundBy, Pair, SituationDetail, useFinding } from "../situations/detail.js";
import { EventDetail } from "../why/event.js";
import { EventName, EventSummary, nameOf } from "../why/name.js";
import { clock, metres, span, valueText } from "../words.js";
import { derivedOf, drawingOf, type Origin } from "./derived.js";
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
            {for_s === undefined ? "for ever" : `for ${span(for_s)}`}, {areaWords(area, metres)}
            {where !== undefined && (
              <code class="where">
                <bdi>{valueText(where, 1000)}</bdi>
              </code>
            )}
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
  const { rules, live, view } = useConsole();
  const { find } = live.violations;
  const known = find(id);
  const { found, problem } = useFinding(rules, name, id, known === undefined ? undefined : derivedOf(known, find), (feature) =>
    derivedOf(feature, find),
  );
  const map = view.value;
  useEffect(() => {
    if (map === undefined || found === undefined) return;
    map.answer.show(drawingOf(map.base.plane, found));
    return () => map.answer.show(undefined);
  }, [map, found]);
  return (
    <>
      <FoundBy of={rules} name={name} time={found?.time} />
      {problem !== undefined && <p class="warn">{problem}</p>}
      {found === undefined && problem === undefined && <p class="quiet">Asking…</p>}
      {found !== undefined && (
        <>
          <section class="origins" aria-labelledby="origins">
            <h3 id="origins">It follows from</h3>
            <Origins origins={found.origins} />
          </section>
          <EventDetail feature={found.feature} />
        </>
      )}
    </>
  );
}

function Origins({ origins }: { readonly origins: readonly Origin[] }) {
  const console = useConsole();
  if (origins.length === 0) return <p class="quiet">Events that this token does not permit to see, or none.</p>;
  return (
    <ol class="bound">
      {origins.map(({ id, feature }) => (
        <li key={id}>
          {feature === undefined ? (
            <p>
              <bdi>{id}</bdi> <span class="quiet">came before this page was opened, or too long ago for it</span>
            </p>
          ) : (
            <>
              <p>
                <button type="button" class="link" onClick={() => console.open({ kind: "event", feature })}>
                  <EventName feature={feature} />
                </button>{" "}
                <span class="quiet numbers">{clock(feature.time)}</span>{" "}
                <button type="button" class="small" onClick={() => console.view.value?.goTo(placeOf(feature))}>
                  Show
                </button>
              </p>
              <EventSummary feature={feature} />
            </>
          )}
        </li>
      ))}
    </ol>
  );
}
