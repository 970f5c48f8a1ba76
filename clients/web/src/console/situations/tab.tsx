// A list of checks, of rule sets or of group definitions.

import type { ComponentChildren } from "preact";

import { useConsole } from "../context.js";
import { count, duration } from "../words.js";
import { NOUNS, stateOf, type Activity, type Situation, type SituationKind, type Situations } from "./list.js";

export function SituationsTab<Shown extends Situation>({
  of,
  title,
  says,
  none,
  lineOf,
  children,
}: {
  readonly of: Situations<Shown>;
  readonly title: string;
  readonly says: string;
  /** What stands there while there are none. */
  readonly none: ComponentChildren;
  /** What one of them says, on a line. */
  readonly lineOf: (shown: Shown) => string;
  /** What else there is to see of one. */
  readonly children?: (shown: Shown) => ComponentChildren;
}) {
  const console = useConsole();
  const { kind } = of;
  const list = of.list.value;
  return (
    <section class="checks" aria-labelledby={kind}>
      <div class="title">
        <h2 id={kind}>{title}</h2>
        <button type="button" class="primary" onClick={() => console.open({ kind: "edit", of: kind })}>
          New {NOUNS[kind]}
        </button>
      </div>
      <p class="quiet">{says}</p>
      {of.why.value !== undefined && <p class="warn">{of.why.value}</p>}
      {list === undefined && of.why.value === undefined && <p class="quiet">Asking…</p>}
      {list?.length === 0 && (
        <div class="empty">
          <p>{none}</p>
        </div>
      )}
      <ul class="cards">
        {list?.map((shown) => {
          const { word, why } = stateOf(shown);
          return (
            <li key={shown.name}>
              <div class="title">
                <h3>
                  <button type="button" class="link" onClick={() => console.open({ kind: "situation", of: kind, name: shown.name })}>
                    <bdi>{shown.name}</bdi>
                  </button>
                </h3>
                <span>
                  <span class={`state ${word.replace(" ", "-")}`}>{word}</span>
                </span>
              </div>
              {why !== "" && <p class={word === "problem" ? "bad" : "quiet"}>{why}</p>}
              <code class="where" title={lineOf(shown)}>
                <bdi>{lineOf(shown)}</bdi>
              </code>
              <ActivityFacts of={kind} activity={shown.activity} />
              {children?.(shown)}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** What its evaluations are. */
const EVALUATIONS = { checks: "evaluations", rules: "facts", groups: "changes" } as const;

/** What one has done. */
export function ActivityFacts({
  of,
  activity,
  all = false,
}: {
  readonly of: SituationKind;
  readonly activity: Activity;
  readonly all?: boolean;
}) {
  const { inputs, evaluations, published, queued, mean_us, p99_us, dropped, marked, passed, ahead, restarts, engine, constraints } =
    activity;
  const facts: (readonly [string, string])[] = [
    ["inputs", count(inputs)],
    [EVALUATIONS[of], count(evaluations)],
    ["published", count(published)],
  ];
  if (constraints !== undefined) facts.push(["in the store", count(constraints)]);
  facts.push(["queued", count(queued)], ["mean", duration(mean_us / 1e6)], ["p99", duration(p99_us / 1e6)]);
  if (all || dropped > 0) facts.push(["dropped", count(dropped)]);
  // Only checks see events before they go on.
  const holds = all && of === "checks";
  if (holds || marked > 0) facts.push(["marked", count(marked)]);
  if (holds || passed > 0) facts.push(["passed", count(passed)]);
  if (ahead > 0) facts.push(["dated ahead", count(ahead)]);
  if (all || restarts > 0) facts.push(["restarts", count(restarts)]);
  if (all) facts.push(["engine", engine]);
  return (
    <dl class="facts numbers">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd data-fact={name}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
