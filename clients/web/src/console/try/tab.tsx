// Try: a subscription before it is one, and an event of one's own.

import { useSignal } from "@preact/signals";

import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { count } from "../words.js";
import { AreaField } from "./area.js";
import { ConditionField } from "./condition.js";
import { faultWords } from "./faults.js";
import { PublishPart } from "./publish.js";

export function TryTab() {
  return (
    <>
      <section class="draft" aria-labelledby="draft">
        <h2 id="draft">What would a subscription match?</h2>
        <AreaField />
        <ConditionField />
        <TrialPart />
        <SavePart />
      </section>
      <PublishPart />
    </>
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
            of the newest {trial.of} in or near the area {trial.matched === 1 ? "matches" : "match"}
            {trial.asked < trial.of && <span class="quiet"> ({trial.asked} asked)</span>}
          </p>
          {trial.why === undefined ? (
            <p>
              <strong class="numbers" data-since={live.draftMatches.value}>
                {count(live.draftMatches.value)}
              </strong>{" "}
              {live.draftMatches.value === 1 ? "event has" : "events have"} matched since
            </p>
          ) : (
            <p class="warn">What comes from now on is not counted: {trial.why}</p>
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
  const text = JSON.stringify(draft.document(), null, 1).replace(/\n\s*/g, " ");
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
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      said.value = { good: true, text: "Copied." };
    } catch {
      said.value = { good: false, text: "The browser does not permit to copy: mark the text instead." };
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
        <pre class="mono" tabIndex={0} aria-label="The subscription as JSON">
          {text}
        </pre>
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
          <button type="button" onClick={() => void copy()}>
            Copy the JSON
          </button>
        </div>
        <p role="status" class={said.value?.good === true ? "good" : "bad"}>
          {said.value?.text}
        </p>
      </form>
    </details>
  );
}
