// A finding that was opened: the events that do not fit together, in words and on the map.

import { useEffect } from "preact/hooks";

import { degrees } from "../../shared/degrees.js";
import { useConsole } from "../context.js";
import { placeOf } from "../model.js";
import { FoundBy, useFinding } from "../situations/detail.js";
import { clock } from "../words.js";
import { EventName, EventSummary } from "../why/name.js";
import { drawingOf } from "./drawing.js";
import { stepOf, stepWords, violationOf, type Bound } from "./violation.js";

export function FindingDetail({ check, id }: { readonly check: string; readonly id: string }) {
  const { checks, live, view, settings } = useConsole();
  const { find } = live.violations;
  const { found: violation, problem } = useFinding(checks, check, id, live.violations.get(id), (feature) => violationOf(feature, find));
  const map = view.value;
  useEffect(() => {
    if (map === undefined || violation === undefined) return;
    map.answer.show(drawingOf(map.base.plane, violation));
    return () => map.answer.show(undefined);
  }, [map, violation]);
  return (
    <>
      <FoundBy of={checks} name={check} time={violation?.time} />
      {problem !== undefined && <p class="warn">{problem}</p>}
      {violation === undefined && problem === undefined && <p class="quiet">Asking…</p>}
      {violation !== undefined && (
        <section aria-labelledby="bound">
          <h3 id="bound">{violation.bound.length === 1 ? "This event breaks it" : "These events do not fit together"}</h3>
          <BoundEvents bound={violation.bound} />
          {violation.bound.some(({ feature }) => feature === undefined) && (
            <p class="quiet">
              The map shows where the newest of them is: {degrees(violation.place, settings.world)}. Events without more words came before
              this page was opened, or too long ago for it.
            </p>
          )}
        </section>
      )}
    </>
  );
}

/** Events that do not fit together, and what lies between each and the next. */
export function BoundEvents({ bound }: { readonly bound: readonly Bound[] }) {
  const console = useConsole();
  const { settings, view } = console;
  return (
    <ol class="bound">
      {bound.map(({ variable, id, feature }, index) => {
        const before = bound[index - 1]?.feature;
        return (
          <li key={`${variable} ${id}`}>
            {feature !== undefined && before !== undefined && (
              <p class="step numbers">
                <span aria-hidden="true">↓ </span>
                {stepWords(stepOf(settings.world, before, feature))}
              </p>
            )}
            <p>
              <code>{variable}</code>{" "}
              {feature === undefined ? (
                <bdi>{id}</bdi>
              ) : (
                <>
                  <button type="button" class="link" onClick={() => console.open({ kind: "event", feature })}>
                    <EventName feature={feature} />
                  </button>{" "}
                  <span class="quiet numbers">{clock(feature.time)}</span>{" "}
                  <button type="button" class="small" onClick={() => view.value?.goTo(placeOf(feature))}>
                    Show
                  </button>
                </>
              )}
            </p>
            {feature !== undefined && <EventSummary feature={feature} />}
          </li>
        );
      })}
    </ol>
  );
}
