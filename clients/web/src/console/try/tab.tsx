// Try: a subscription before it is one, an event of one's own, and the way between two places.

import { useSignal } from "@preact/signals";

import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { brokerUrl } from "../../shared/pages.js";
import { CodeBlock } from "../copy.js";
import { EventName, EventSummary } from "../why/name.js";
import { clock, count, counted } from "../words.js";
import { AreaField } from "./area.js";
import { ConditionField } from "./condition.js";
import { faultWords } from "./faults.js";
import { LANGUAGES, snippet, type Language } from "./snippets.js";
import { unknownNames } from "./completion.js";
import { PublishPart } from "./publish.js";
import { RoutePart } from "./route.js";

export function TryTab() {
  const { settings } = useConsole();
  return (
    <>
      <section class="draft" aria-labelledby="draft">
        <h2 id="draft">What would a subscription match?</h2>
        <AreaField />
        <ConditionField />
        <UnknownAttributes />
        <TellPart />
        <TrialPart />
        <MatchesPart />
        <SavePart />
      </section>
      <PublishPart />
      {settings.world === "geodetic" && <RoutePart />}
    </>
  );
}

/** Names in the condition that no event has had. */
function UnknownAttributes() {
  const { draft, live } = useConsole();
  const known = new Set(live.attributes.list().map(({ name }) => name));
  // Attributes are learnt as events come: with the first point there are some.
  const unknown = live.points.value === 0 || known.size === 0 ? [] : unknownNames(draft.where.value, known);
  if (unknown.length === 0) return null;
  return (
    <p class="warn" role="status">
      No event so far has{" "}
      {unknown.map((name, index) => (
        <span key={name}>
          {index > 0 && ", "}
          <code>{name}</code>
        </span>
      ))}
      . Is it spelt like that?
    </p>
  );
}

const TELLS = [
  ["", "each event"],
  ["enter", "objects that enter"],
  ["exit", "objects that leave"],
  ["enter exit", "objects that enter or leave"],
] as const;

/** What of the matches is told. */
function TellPart() {
  const { draft } = useConsole();
  const on = draft.on.value?.join(" ") ?? "";
  const numberOf = (text: string): number | undefined => (Number(text) > 0 ? Number(text) : undefined);
  return (
    <>
      <div class="tells">
        <div class="field">
          <label for="tell">Tell about</label>
          <select
            id="tell"
            value={on}
            onChange={({ currentTarget: { value } }) =>
              (draft.on.value = value === "" ? undefined : (value.split(" ") as ("enter" | "exit")[]))
            }
          >
            {TELLS.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </div>
        {on.includes("enter") && (
          <div class="field">
            <label for="dwell">After, seconds</label>
            <input
              id="dwell"
              inputMode="decimal"
              placeholder="0"
              value={draft.dwell_s.value ?? ""}
              onChange={({ currentTarget }) => (draft.dwell_s.value = numberOf(currentTarget.value))}
            />
          </div>
        )}
        <div class="field">
          <label for="nearest">Only the nearest</label>
          <input
            id="nearest"
            inputMode="numeric"
            placeholder="all"
            value={draft.nearest.value ?? ""}
            onChange={({ currentTarget }) => {
              const k = numberOf(currentTarget.value);
              draft.nearest.value = k === undefined ? undefined : Math.ceil(k);
            }}
          />
        </div>
      </div>
      {(on !== "" || draft.nearest.value !== undefined) && (
        <p class="quiet">
          The count below is of events in the area that fulfil the condition. Transitions and the nearest concern live objects (events with
          a key or ttl_s) and are decided once it is saved.
        </p>
      )}
    </>
  );
}

/** Matches that are listed. */
const LISTED = 20;

function MatchesPart() {
  const console = useConsole();
  const { draft, live } = console;
  const trial = draft.trial.value;
  // The list is made again whenever the counts are; nothing was matched without any.
  if (trial.state !== "running" || trial.matched + live.draftMatches.value === 0) return null;
  const found = live.objects
    .newest()
    .filter(({ matched }) => matched)
    .slice(0, LISTED);
  if (found.length === 0) return null;
  return (
    <section aria-labelledby="matches">
      <h3 id="matches">Matches on the map</h3>
      <ol class="rows received">
        {found.map(({ id, feature }) => (
          <li key={id}>
            <button type="button" class="row" onClick={() => console.open({ kind: "event", feature })}>
              <span class="numbers quiet">{clock(feature.time)}</span>
              <span class="name">
                <EventName feature={feature} />
              </span>
              <EventSummary feature={feature} />
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}

function TrialPart() {
  const { draft, live } = useConsole();
  const trial = draft.trial.value;
  const fault = trial.state === "refused" ? trial.faults[0] : undefined;
  return (
    <div class="trial" id="trial" data-state={trial.state} role="status">
      {trial.state === "idle" && <p class="quiet">{trial.why ?? ""}</p>}
      {trial.state === "asking" && <p class="quiet">Asking the broker…</p>}
      {trial.state === "refused" && (
        <p class="bad">
          <bdi>{fault === undefined ? trial.why : faultWords(fault.detail)}</bdi>
        </p>
      )}
      {trial.state === "running" && (
        <>
          <p>
            <strong class="numbers" data-now={trial.matched}>
              {trial.matched}
            </strong>{" "}
            of {counted(trial.asked, "recent event")} {draft.shape.value.form === "everywhere" ? "" : "in or near the area "}
            {trial.matched === 1 ? "matches" : "match"}
            {trial.asked < trial.of && <span class="quiet"> (checking {trial.of - trial.asked} more)</span>}
          </p>
          {trial.why === undefined ? (
            <p>
              <strong class="numbers" data-since={live.draftMatches.value}>
                {count(live.draftMatches.value)}
              </strong>{" "}
              {live.draftMatches.value === 1 ? "event has" : "events have"} matched since then
            </p>
          ) : (
            <p class="warn">New events are not counted: {trial.why}</p>
          )}
        </>
      )}
    </div>
  );
}

function SavePart() {
  const { draft, access, clients } = useConsole();
  const client = useSignal("");
  /** What is replaced when it is saved once more. */
  const agreed = useSignal<string | undefined>(undefined);
  const id = useSignal("");
  const said = useSignal<{ readonly good: boolean; readonly text: string } | undefined>(undefined);
  const language = useSignal<Language>("curl");
  const names = { client: client.value.trim() || "ann", id: id.value.trim() || "near" };
  const text = snippet(language.value, draft.document(), names, brokerUrl.href);
  const exists = async (path: string): Promise<boolean> => {
    try {
      await access.call(path);
      return true;
    } catch (error) {
      if (statusOf(error) === 404) return false;
      throw error;
    }
  };
  const save = async (): Promise<void> => {
    const path = `v1/clients/${encodeURIComponent(client.value.trim())}/subscriptions/${encodeURIComponent(id.value.trim())}`;
    try {
      if (agreed.value !== path && (await exists(path))) {
        agreed.value = path;
        said.value = {
          good: false,
          text: `${client.value.trim()} has a subscription ${id.value.trim()} already. Save again to replace it.`,
        };
        return;
      }
      await access.call(path, { method: "PUT", body: draft.document() });
      said.value = { good: true, text: `Saved: ${client.value.trim()} has it as ${id.value.trim()} until it is deleted.` };
      agreed.value = undefined;
      clients.changed(client.value.trim());
    } catch (error) {
      said.value = { good: false, text: `Not saved: ${reasonOf(error)}` };
    }
  };
  return (
    <details>
      <summary>Save it, or copy it</summary>
      <form
        class="save"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <div class="languages" role="group" aria-label="Language">
          {LANGUAGES.map((name) => (
            <button key={name} type="button" class="small" aria-pressed={language.value === name} onClick={() => (language.value = name)}>
              {name}
            </button>
          ))}
        </div>
        <CodeBlock name="The subscription as code" text={text} />
        <div class="pair">
          <div class="field">
            <label for="save-client">Client</label>
            <input
              id="save-client"
              required
              autocomplete="off"
              value={client.value}
              onInput={({ currentTarget }) => (client.value = currentTarget.value)}
            />
          </div>
          <div class="field">
            <label for="save-id">Name</label>
            <input
              id="save-id"
              required
              autocomplete="off"
              value={id.value}
              onInput={({ currentTarget }) => (id.value = currentTarget.value)}
            />
          </div>
        </div>
        <div class="buttons">
          <button type="submit">Save as a subscription</button>
        </div>
        <p role="status" class={said.value?.good === true ? "good" : "bad"}>
          {said.value?.text}
        </p>
      </form>
    </details>
  );
}
