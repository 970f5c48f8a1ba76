// What checks, rule sets and group definitions that were opened have in common: what one does, what is done with it, and what it has found.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { DeliveredFeature } from "nearcast";

import type { Plane } from "../../shared/map/plane.js";
import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { areaWords, type AreaShown } from "../map/areas.js";
import type { WhyDrawing } from "../why/drawing.js";
import { clock, count, counted, metres, valueText } from "../words.js";
import { Rows } from "../rows.js";
import { FOUND, NOUNS, stateOf, type Situation, type Situations } from "./list.js";
import { ActivityFacts } from "./tab.js";

const EVERY_MS = 3000;
/** The number of findings that the broker keeps. */
const KEPT = 1000;

export function SituationDetail<Shown extends Situation>({
  of,
  name,
  children,
}: {
  readonly of: Situations<Shown>;
  readonly name: string;
  /** What stands below what it does. */
  readonly children: (shown: Shown) => ComponentChildren;
}) {
  const console = useConsole();
  const { access } = console;
  const shown = of.get(name);
  const said = useSignal<string | undefined>(undefined);
  const sure = useSignal(false);
  const change = async (method: string, part: string): Promise<void> => {
    said.value = undefined;
    try {
      await access.call(of.path(name, part), { method });
      await of.look();
      if (method === "DELETE") console.go(of.kind);
    } catch (error) {
      said.value = reasonOf(error);
    }
  };
  if (shown === undefined) {
    return (
      <p class={of.list.value === undefined ? "quiet" : "warn"}>
        {of.why.value ?? (of.list.value === undefined ? "Asking…" : `There is no ${NOUNS[of.kind]} of this name.`)}
      </p>
    );
  }
  const { word, why } = stateOf(shown);
  const { paused } = shown.activity;
  return (
    <>
      <section class="checks" aria-label="Activity">
        <div class="title">
          <span>
            <span class={`state ${word.replace(" ", "-")}`}>{word}</span> <span class={word === "problem" ? "bad" : "quiet"}>{why}</span>
          </span>
        </div>
        <ActivityFacts of={of.kind} activity={shown.activity} all />
        <div class="buttons">
          <button type="button" onClick={() => void change("POST", paused ? "/resume" : "/pause")}>
            {paused ? "Resume" : "Pause"}
          </button>
          <button type="button" onClick={() => console.open({ kind: "edit", of: of.kind, name })}>
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
      {children(shown)}
    </>
  );
}

/** A name and what it stands for, in a `dl`. */
export function Pair({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <>
      <dt>
        <bdi>{name}</bdi>
      </dt>
      <dd>{children}</dd>
    </>
  );
}

/** Which events something takes: where, and by which condition. */
export function FilterWords({ where, area }: { readonly where: unknown; readonly area: AreaShown | undefined }) {
  return (
    <>
      {areaWords(area, metres)}
      {where !== undefined && (
        <code class="where">
          <bdi>{valueText(where, 1000)}</bdi>
        </code>
      )}
    </>
  );
}

/** Findings as they are by now. */
export function Findings<Shown extends Situation, Found extends { readonly id: string; readonly time: string }>({
  of,
  name,
  read,
  title,
  none,
  nameOf,
  summaryOf,
}: {
  readonly of: Situations<Shown>;
  readonly name: string;
  /** Reads a finding; `undefined` of what is none. */
  readonly read: (feature: DeliveredFeature) => Found | undefined;
  readonly title: string;
  readonly none: string;
  readonly nameOf: (found: Found) => ComponentChildren;
  readonly summaryOf: (found: Found) => ComponentChildren;
}) {
  const console = useConsole();
  const { access } = console;
  const found = useSignal<readonly Found[] | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  // Rows stand still while somebody points at them or is among them.
  const held = useRef(false);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const look = async (): Promise<void> => {
      try {
        const features = (await access.call(of.path(name, "/findings"), { signal: stop.signal })) as readonly DeliveredFeature[];
        if (!held.current || found.peek() === undefined) found.value = features.flatMap((feature) => read(feature) ?? []);
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
  }, [name]);
  const list = found.value;
  return (
    <section class="found" aria-labelledby="found">
      <h3 id="found">{title}</h3>
      {problem.value !== undefined && <p class="warn">{problem.value}</p>}
      {list === undefined && problem.value === undefined && <p class="quiet">Asking…</p>}
      {list?.length === 0 && <p class="quiet">{none}</p>}
      {list !== undefined && list.length > 0 && (
        <>
          <p class="quiet" role="status">
            {list.length < KEPT
              ? `${counted(list.length, FOUND[of.kind])}, the newest first`
              : `The newest ${count(KEPT)}: the broker keeps no more`}
          </p>
          <Rows list={list} hold={(holds) => (held.current = holds)}>
            {(each) => (
              <li key={each.id}>
                <button type="button" class="row" onClick={() => console.visit({ kind: "finding", of: of.kind, name, id: each.id })}>
                  <span class="numbers quiet">{clock(each.time)}</span>
                  <span class="name">
                    <bdi>{nameOf(each)}</bdi>
                  </span>
                  {summaryOf(each)}
                </button>
              </li>
            )}
          </Rows>
        </>
      )}
    </section>
  );
}

/** A finding that an address names, as the page has seen it, else as the broker keeps it; while it is open the map shows it. */
export function FindingPage<Shown extends Situation, Found extends { readonly time: string }>(props: FindingProps<Shown, Found>) {
  return <FindingBody key={props.id} {...props} />;
}

interface FindingProps<Shown extends Situation, Found> {
  readonly of: Situations<Shown>;
  readonly name: string;
  readonly id: string;
  readonly known: Found | undefined;
  /** Reads a finding; `undefined` of what is none. */
  readonly read: (feature: DeliveredFeature) => Found | undefined;
  readonly drawingOf: (plane: Plane, found: Found) => WhyDrawing;
  /** What is said first. */
  readonly verdict?: (found: Found) => ComponentChildren;
  readonly children: (found: Found) => ComponentChildren;
}

function FindingBody<Shown extends Situation, Found extends { readonly time: string }>({
  of,
  name,
  id,
  known,
  read,
  drawingOf,
  verdict,
  children,
}: FindingProps<Shown, Found>) {
  const console = useConsole();
  const found = useSignal<Found | undefined>(known);
  const problem = useSignal<string | undefined>(undefined);
  useEffect(() => {
    if (found.peek() !== undefined) return;
    const stop = new AbortController();
    const look = async (): Promise<void> => {
      try {
        const features = (await console.access.call(of.path(name, "/findings"), { signal: stop.signal })) as readonly DeliveredFeature[];
        const feature = features.find((each) => String(each.id) === id);
        found.value = feature === undefined ? undefined : read(feature);
        if (found.value === undefined) problem.value = `It is not among the newest findings of this ${NOUNS[of.kind]} any more.`;
      } catch (error) {
        if (!stop.signal.aborted) problem.value = reasonOf(error);
      }
    };
    void look();
    return () => stop.abort();
  }, [name, id]);
  const [map, shown] = [console.view.value, found.value];
  useEffect(() => {
    if (map === undefined || shown === undefined) return;
    map.answer.show(drawingOf(map.base.plane, shown));
    return () => map.answer.show(undefined);
  }, [map, shown]);
  return (
    <>
      {shown !== undefined && verdict?.(shown)}
      <p>
        {of.kind === "rules" ? "Made" : "Found"} by {NOUNS[of.kind]}{" "}
        <button type="button" class="link" onClick={() => console.open({ kind: "situation", of: of.kind, name })}>
          <bdi>{name}</bdi>
        </button>
        {shown !== undefined && (
          <span class="quiet">
            {" "}
            at <time dateTime={shown.time}>{clock(shown.time)}</time>
          </span>
        )}
      </p>
      {problem.value !== undefined && <p class="warn">{problem.value}</p>}
      {shown === undefined && problem.value === undefined && <p class="quiet">Asking…</p>}
      {shown !== undefined && children(shown)}
    </>
  );
}
