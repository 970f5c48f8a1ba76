// A check that was opened: what it does, what it asks for, and what it has found.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { DeliveredFeature } from "nearcast";

import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { areaWords } from "../map/areas.js";
import { clock, count, counted, metres, span, valueText } from "../words.js";
import { ACTIONS, formulaText, type CheckShown } from "./formula.js";
import { pathOf, stateOf } from "./list.js";
import { ActivityFacts } from "./tab.js";
import { violationOf, violationWords, type Violation } from "./violation.js";
import { subjectOf } from "../why/name.js";

const EVERY_MS = 3000;
/** The number of findings that the broker keeps. */
const KEPT = 1000;
/** Rows that are shown at once. */
const ROWS = 50;

export function CheckDetail({ check: name }: { readonly check: string }) {
  const console = useConsole();
  const { checks, access } = console;
  const check = checks.get(name);
  const said = useSignal<string | undefined>(undefined);
  const sure = useSignal(false);
  const change = async (method: string, part: string): Promise<void> => {
    said.value = undefined;
    try {
      await access.call(pathOf(name, part), { method });
      await checks.look();
      if (method === "DELETE") console.go("checks");
    } catch (error) {
      said.value = reasonOf(error);
    }
  };
  if (check === undefined) {
    return (
      <p class={checks.list.value === undefined ? "quiet" : "warn"}>
        {checks.why.value ?? (checks.list.value === undefined ? "Asking…" : "There is no check of this name.")}
      </p>
    );
  }
  const { word, why } = stateOf(check);
  const { paused } = check.activity;
  return (
    <>
      <section class="checks" aria-label="Activity">
        <div class="title">
          <span>
            <span class={`state ${word.replace(" ", "-")}`}>{word}</span> <span class={word === "problem" ? "bad" : "quiet"}>{why}</span>
          </span>
        </div>
        <ActivityFacts activity={check.activity} all />
        <div class="buttons">
          <button type="button" onClick={() => void change("POST", paused ? "/resume" : "/pause")}>
            {paused ? "Resume" : "Pause"}
          </button>
          <button type="button" onClick={() => console.open({ kind: "edit-check", check: name })}>
            Edit
          </button>
          <button
            type="button"
            class={sure.value ? "danger" : ""}
            onClick={() => {
              if (sure.value) void change("DELETE", "");
              sure.value = !sure.value;
            }}
            onBlur={() => (sure.value = false)}
          >
            {sure.value ? "Delete for good" : "Delete"}
          </button>
        </div>
        <p class="bad" role="alert">
          {said.value}
        </p>
      </section>
      <Findings check={name} />
      <DocumentPart check={check} />
    </>
  );
}

function DocumentPart({ check: { contexts, formula, clock: by, on_violation = "tell" } }: { readonly check: CheckShown }) {
  return (
    <section aria-labelledby="holds">
      <h3 id="holds">What has to hold</h3>
      <pre class="mono" tabIndex={0} role="group" aria-label="Formula">
        {formulaText(formula)}
      </pre>
      <dl class="pairs">
        {Object.entries(contexts).map(([name, { where, area, for_s }]) => (
          <Pair key={name} name={name}>
            events of the last {span(for_s)}, {areaWords(area, metres)}
            {where !== undefined && (
              <code class="where">
                <bdi>{valueText(where, 1000)}</bdi>
              </code>
            )}
          </Pair>
        ))}
        <Pair name="clock">{by === "event" ? "the time that events say" : "when events arrive"}</Pair>
        <Pair name="a violation is">{ACTIONS[on_violation]}</Pair>
      </dl>
    </section>
  );
}

function Pair({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <>
      <dt>
        <bdi>{name}</bdi>
      </dt>
      <dd>{children}</dd>
    </>
  );
}

/** Findings as they are by now. */
function Findings({ check }: { readonly check: string }) {
  const console = useConsole();
  const { access, live, settings } = console;
  const found = useSignal<readonly Violation[] | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  const rows = useSignal(ROWS);
  // Rows stand still while somebody points at them or is among them.
  const held = useRef(false);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const look = async (): Promise<void> => {
      try {
        const features = (await access.call(pathOf(check, "/findings"), { signal: stop.signal })) as readonly DeliveredFeature[];
        // What came while the page was open says where its events were.
        if (!held.current || found.peek() === undefined)
          found.value = features.flatMap(
            (feature) => live.violations.get(String(feature.id)) ?? violationOf(feature, live.violations.find) ?? [],
          );
        problem.value = undefined;
      } catch (error) {
        if (stop.signal.aborted) return;
        problem.value = statusOf(error) === 404 ? undefined : reasonOf(error);
      }
      timer = setTimeout(() => void look(), EVERY_MS);
    };
    void look();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [check]);
  const list = found.value;
  return (
    <section class="found" aria-labelledby="found">
      <h3 id="found">Findings</h3>
      {problem.value !== undefined && <p class="warn">{problem.value}</p>}
      {list === undefined && problem.value === undefined && <p class="quiet">Asking…</p>}
      {list?.length === 0 && <p class="quiet">Nothing so far: all events fit together.</p>}
      {list !== undefined && list.length > 0 && (
        <>
          <p class="quiet" role="status">
            {list.length < KEPT ? `${counted(list.length, "finding")}, the newest first` : `The newest ${count(KEPT)}`}
          </p>
          <ol
            class="rows received"
            onPointerEnter={() => (held.current = true)}
            onPointerLeave={() => (held.current = false)}
            onFocusCapture={() => (held.current = true)}
            onBlurCapture={() => (held.current = false)}
          >
            {list.slice(0, rows.value).map((violation) => (
              <li key={violation.id}>
                <button type="button" class="row" onClick={() => console.visit({ kind: "finding", check, id: violation.id })}>
                  <span class="numbers quiet">{clock(violation.time)}</span>
                  <span class="name">
                    <bdi>{subjectOf(violation, live.objects.attribute)}</bdi>
                  </span>
                  <span class="summary numbers">{violationWords(violation, settings.world)}</span>
                </button>
              </li>
            ))}
          </ol>
          {list.length > rows.value && (
            <button type="button" onClick={() => (rows.value += ROWS)}>
              Show {Math.min(ROWS, list.length - rows.value)} more
            </button>
          )}
        </>
      )}
    </section>
  );
}
