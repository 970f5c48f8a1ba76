// A finding that was opened: the events that do not fit together, in words and on the map.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { DeliveredFeature } from "nearcast";

import { degrees } from "../../shared/degrees.js";
import { reasonOf } from "../access.js";
import { useConsole } from "../context.js";
import { placeOf } from "../model.js";
import { clock } from "../words.js";
import { EventName, EventSummary } from "../why/name.js";
import { drawingOf } from "./drawing.js";
import { pathOf } from "./list.js";
import { stepOf, stepWords, violationOf, type Bound, type Violation } from "./violation.js";

export function FindingDetail({ check, id }: { readonly check: string; readonly id: string }) {
  const console = useConsole();
  const { access, live, view, settings } = console;
  const found = useSignal<Violation | undefined>(live.violations.get(id));
  const problem = useSignal<string | undefined>(undefined);
  useEffect(() => {
    if (found.peek() !== undefined) return;
    const stop = new AbortController();
    const look = async (): Promise<void> => {
      try {
        const features = (await access.call(pathOf(check, "/findings"), { signal: stop.signal })) as readonly DeliveredFeature[];
        const feature = features.find((each) => String(each.id) === id);
        found.value = feature === undefined ? undefined : violationOf(feature, live.violations.find);
        if (found.value === undefined) problem.value = "It is not among the newest findings of this check any more.";
      } catch (error) {
        if (!stop.signal.aborted) problem.value = reasonOf(error);
      }
    };
    void look();
    return () => stop.abort();
  }, [check, id]);
  const violation = found.value;
  const map = view.value;
  useEffect(() => {
    if (map === undefined || violation === undefined) return;
    map.answer.show(drawingOf(map.base.plane, violation));
    return () => map.answer.show(undefined);
  }, [map, violation]);
  return (
    <>
      <p>
        Found by check{" "}
        <button type="button" class="link" onClick={() => console.open({ kind: "check", check })}>
          <bdi>{check}</bdi>
        </button>
        {violation !== undefined && (
          <span class="quiet">
            {" "}
            at <time dateTime={violation.time}>{clock(violation.time)}</time>
          </span>
        )}
      </p>
      {problem.value !== undefined && <p class="warn">{problem.value}</p>}
      {violation === undefined && problem.value === undefined && <p class="quiet">Asking…</p>}
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
