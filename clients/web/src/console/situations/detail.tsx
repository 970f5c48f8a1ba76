// What a check and a rule set that was opened have in common: what it does, what is done with it, and what it has found.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { DeliveredFeature } from "nearcast";

import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { clock, count, counted } from "../words.js";
import { NOUNS, stateOf, type Situation, type Situations } from "./list.js";
import { ActivityFacts } from "./tab.js";

const EVERY_MS = 3000;
/** The number of findings that the broker keeps. */
const KEPT = 1000;
/** Rows that are shown at once. */
const ROWS = 50;

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
        <ActivityFacts activity={shown.activity} all />
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
  const rows = useSignal(ROWS);
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
            {list.length < KEPT ? `${counted(list.length, "finding")}, the newest first` : `The newest ${count(KEPT)}`}
          </p>
          <ol
            class="rows received"
            onPointerEnter={() => (held.current = true)}
            onPointerLeave={() => (held.current = false)}
            onFocusCapture={() => (held.current = true)}
            onBlurCapture={() => (held.current = false)}
          >
            {list.slice(0, rows.value).map((each) => (
              <li key={each.id}>
                <button type="button" class="row" onClick={() => console.visit({ kind: "finding", of: of.kind, name, id: each.id })}>
                  <span class="numbers quiet">{clock(each.time)}</span>
                  <span class="name">
                    <bdi>{nameOf(each)}</bdi>
                  </span>
                  {summaryOf(each)}
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

/** A finding that an address names: as the page has seen it, else as the broker keeps it. */
export function useFinding<Shown extends Situation, Found>(
  of: Situations<Shown>,
  name: string,
  id: string,
  known: Found | undefined,
  read: (feature: DeliveredFeature) => Found | undefined,
): { readonly found: Found | undefined; readonly problem: string | undefined } {
  const { access } = useConsole();
  const found = useSignal<Found | undefined>(known);
  const problem = useSignal<string | undefined>(undefined);
  useEffect(() => {
    if (found.peek() !== undefined) return;
    const stop = new AbortController();
    const look = async (): Promise<void> => {
      try {
        const features = (await access.call(of.path(name, "/findings"), { signal: stop.signal })) as readonly DeliveredFeature[];
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
  return { found: found.value, problem: problem.value };
}

/** What found it, with a link there, and when. */
export function FoundBy({
  of,
  name,
  time,
}: {
  readonly of: Situations<Situation>;
  readonly name: string;
  readonly time: string | undefined;
}) {
  const console = useConsole();
  return (
    <p>
      {of.kind === "checks" ? "Found" : "Made"} by {NOUNS[of.kind]}{" "}
      <button type="button" class="link" onClick={() => console.open({ kind: "situation", of: of.kind, name })}>
        <bdi>{name}</bdi>
      </button>
      {time !== undefined && (
        <span class="quiet">
          {" "}
          at <time dateTime={time}>{clock(time)}</time>
        </span>
      )}
    </p>
  );
}
