// What one wants to hear of: everything, interests that the broker offers, a condition of one's own.

import { useSignal } from "@preact/signals";
import { ProblemError } from "nearcast";
import type { JSX } from "preact";

import type { Interest } from "../../shared/pages.js";
import { EVERYTHING, isEverything, toggled, type Choice } from "../interests.js";
import { faultAt } from "../words.js";
import type { Props } from "./app.js";

export function Interests({ phone }: Props): JSX.Element {
  const { choice } = phone.preferences.value;
  const interests = phone.world.value?.settings.interests ?? [];
  return (
    <details class="interests">
      <summary>
        <strong>Interests</strong> <span class="quiet">{summary(choice, interests)}</span>
      </summary>
      <div class="chips" role="group" aria-label="What interests you">
        <button
          type="button"
          aria-pressed={isEverything(choice) && !choice.ownOn}
          onClick={() => phone.choose({ ...EVERYTHING, own: choice.own })}
        >
          Everything
        </button>
        {interests.map(({ label, where }) => (
          <button
            key={where}
            type="button"
            aria-pressed={choice.conditions.includes(where)}
            onClick={() => phone.choose(toggled(choice, where))}
          >
            <bdi>{label}</bdi>
          </button>
        ))}
        <button type="button" aria-pressed={choice.ownOn} onClick={() => phone.choose({ ...choice, ownOn: !choice.ownOn })}>
          Own condition
        </button>
      </div>
      {choice.ownOn && <OwnCondition phone={phone} />}
      <Refused phone={phone} />
    </details>
  );
}

function summary(choice: Choice, interests: readonly Interest[]): string {
  if (isEverything(choice)) return "Everything";
  const labels = interests.filter(({ where }) => choice.conditions.includes(where)).map(({ label }) => label);
  return [...labels, ...(choice.ownOn && choice.own !== "" ? [choice.own] : [])].join(", ");
}

function OwnCondition({ phone }: Props): JSX.Element {
  const { choice } = phone.preferences.value;
  const draft = useSignal(choice.own);
  const use = (): void => phone.choose({ ...choice, own: draft.value.trim() });
  return (
    <div class="own">
      <label for="own">Condition</label>
      <div class="row">
        <input
          id="own"
          class="mono"
          type="text"
          value={draft.value}
          maxLength={4000}
          autocapitalize="none"
          autocomplete="off"
          spellcheck={false}
          placeholder="type = 'accident' AND severity >= 2"
          aria-invalid={phone.wish.state.value instanceof ProblemError}
          aria-describedby="refused"
          onInput={({ currentTarget }) => (draft.value = currentTarget.value)}
          onKeyDown={({ key }) => {
            if (key === "Enter") use();
          }}
        />
        <button type="button" onClick={use}>
          Use it
        </button>
      </div>
    </div>
  );
}

/** What the broker finds wrong with the subscription, and where. */
function Refused({ phone }: Props): JSX.Element {
  const problem = phone.wish.state.value;
  const { own, ownOn, conditions } = phone.preferences.value.choice;
  if (!(problem instanceof ProblemError)) return <div id="refused" role="status" />;
  const fault = problem.errors.find(({ pointer }) => pointer.startsWith("/filters/"));
  const detail = fault?.detail ?? problem.detail ?? problem.title;
  const ownFault = ownOn && fault?.pointer.startsWith(`/filters/${conditions.length}/where`) === true;
  const at = ownFault ? faultAt(detail) : undefined;
  const characters = Array.from(own);
  return (
    <div id="refused" role="status" class="refused">
      <p class="bad">
        {ownFault ? "This condition cannot be used: " : "The broker does not take this choice: "}
        <bdi>{detail}</bdi>
      </p>
      {at !== undefined && (
        <p class="mono">
          <bdi>
            {characters.slice(0, at).join("")}
            <mark>{characters[at] ?? "\u00a0"}</mark>
            {characters.slice(at + 1).join("")}
          </bdi>
        </p>
      )}
      <p class="quiet">What you chose before stays in force.</p>
    </div>
  );
}
