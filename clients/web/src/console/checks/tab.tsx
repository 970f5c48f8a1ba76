// The list of checks.

import { useConsole } from "../context.js";
import { count, duration } from "../words.js";
import { formulaLine, type Activity } from "./formula.js";
import { stateOf } from "./list.js";

export function ChecksTab() {
  const console = useConsole();
  const { checks } = console;
  const list = checks.list.value;
  return (
    <section class="checks" aria-labelledby="checks">
      <div class="title">
        <h2 id="checks">Checks</h2>
        <button type="button" class="primary" onClick={() => console.open({ kind: "edit-check" })}>
          New check
        </button>
      </div>
      <p class="quiet">
        A check holds recent events against one another, and tells which do not fit: a taxi that jumps, a tag that is frozen, a camera that
        sees double.
      </p>
      {checks.why.value !== undefined && <p class="warn">{checks.why.value}</p>}
      {list === undefined && checks.why.value === undefined && <p class="quiet">Asking…</p>}
      {list?.length === 0 && (
        <div class="empty">
          <p>
            <strong>No checks yet.</strong> Begin with a preset: no object is faster than it can be, or events stay within a polygon.
          </p>
        </div>
      )}
      <ul class="cards">
        {list?.map((check) => {
          const { word, why } = stateOf(check);
          return (
            <li key={check.name}>
              <div class="title">
                <h3>
                  <button type="button" class="link" onClick={() => console.open({ kind: "check", check: check.name })}>
                    <bdi>{check.name}</bdi>
                  </button>
                </h3>
                <span>
                  <span class={`state ${word.replace(" ", "-")}`}>{word}</span>
                </span>
              </div>
              {why !== "" && <p class={word === "problem" ? "bad" : "quiet"}>{why}</p>}
              <code class="where" title={formulaLine(check.formula)}>
                <bdi>{formulaLine(check.formula)}</bdi>
              </code>
              <ActivityFacts activity={check.activity} />
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** What a check has done. */
export function ActivityFacts({ activity, all = false }: { readonly activity: Activity; readonly all?: boolean }) {
  const { inputs, evaluations, published, queued, mean_us, p99_us, dropped, marked, passed, restarts, engine } = activity;
  const facts: (readonly [string, string])[] = [
    ["inputs", count(inputs)],
    ["evaluations", count(evaluations)],
    ["published", count(published)],
    ["queued", count(queued)],
    ["mean", duration(mean_us / 1e6)],
    ["p99", duration(p99_us / 1e6)],
  ];
  if (all || dropped > 0) facts.push(["dropped", count(dropped)]);
  if (all || marked > 0) facts.push(["marked", count(marked)]);
  if (all || passed > 0) facts.push(["passed", count(passed)]);
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
