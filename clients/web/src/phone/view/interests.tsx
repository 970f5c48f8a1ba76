// What one wants to hear of: everything, interests that the broker offers, a condition of one's own.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import type { Interest } from "../../shared/pages.js";
import { EVERYTHING, isEverything, ownOf, toggled, type Choice } from "../interests.js";
import { faultAt } from "../words.js";
import type { Props } from "./app.js";

export function Interests({ phone }: Props): JSX.Element {
  const choice = phone.choice.value;
  // Of two taps in a row, the second comes before the page shows what the first did.
  const chosen = (): Choice => phone.choice.peek();
  const interests = phone.world.value?.settings.interests ?? [];
  return (
    <section aria-labelledby="interests">
      <h2 id="interests">What</h2>
      <div class="chips" role="group" aria-labelledby="interests">
        <button
          type="button"
          aria-pressed={isEverything(choice) && !choice.ownOn}
          onClick={() => phone.choose({ ...EVERYTHING, own: chosen().own })}
        >
          Everything
        </button>
        {interests.map(({ label, where }) => (
          <button
            key={where}
            type="button"
            aria-pressed={choice.conditions.includes(where)}
            onClick={() => phone.choose(toggled(chosen(), where))}
          >
            <bdi>{label}</bdi>
          </button>
        ))}
        <button type="button" aria-pressed={choice.ownOn} onClick={() => phone.choose({ ...chosen(), ownOn: !chosen().ownOn })}>
          Own condition
        </button>
      </div>
      {choice.ownOn && <OwnCondition phone={phone} />}
      <Refused phone={phone} />
    </section>
  );
}

/** What one hears of, in a few words. */
export function ChoiceSummary({ phone }: Props): JSX.Element {
  const interests = phone.world.value?.settings.interests ?? [];
  const { fault, inForce } = phone.wish;
  if (fault.value === undefined) return <span class="quiet">{summary(phone.choice.value, interests)}</span>;
  return (
    <span class="warn">
      {fault.value.own ? "Own condition has a fault." : "This choice is refused."} In force:{" "}
      {inForce.value === undefined ? "nothing" : summary(inForce.value, interests)}
    </span>
  );
}

function summary(choice: Choice, interests: readonly Interest[]): string {
  if (isEverything(choice)) return "Everything";
  const labels = interests.filter(({ where }) => choice.conditions.includes(where)).map(({ label }) => label);
  return [...labels, ...(ownOf(choice) === "" ? [] : [ownOf(choice)])].join(", ");
}

function OwnCondition({ phone }: Props): JSX.Element {
  const draft = useSignal(phone.choice.peek().own);
  const use = (): void => phone.choose({ ...phone.choice.peek(), own: draft.value.trim() });
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
          aria-invalid={phone.wish.fault.value?.own === true}
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

/** What the broker finds wrong with the choice, and where. */
function Refused({ phone }: Props): JSX.Element {
  const fault = phone.wish.fault.value;
  if (fault === undefined) return <div id="refused" role="status" />;
  const { choice, own, problem } = fault;
  const detail = problem.errors.find(({ pointer }) => pointer.startsWith("/filters/"))?.detail ?? problem.detail ?? problem.title;
  const at = own ? faultAt(detail) : undefined;
  const characters = Array.from(ownOf(choice));
  return (
    <div id="refused" role="status" class="refused">
      <p class="bad">
        {own ? "This condition cannot be used: " : "The broker does not take this choice: "}
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
      <p class="quiet">
        {phone.wish.inForce.value === undefined
          ? "Nothing of it is in force."
          : "What was in force before stays so, with the radius of now."}
      </p>
    </div>
  );
}
