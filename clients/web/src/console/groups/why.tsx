// The question why an object is in groups of a definition or in none, and its answer.

import { CircleCheck, CircleX } from "lucide";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ExplainedObject } from "nearcast";

import { reasonOf } from "../access.js";
import { useConsole } from "../context.js";
import { intoView } from "../into-view.js";
import { Icon } from "../../shared/icon.js";
import { Mark } from "../why/answer.js";
import { count, counted } from "../words.js";

/** Objects that are offered. */
const OFFERED = 200;

/** One of both is given; the other is chosen. */
export function WhyObject({ definition, object }: { readonly definition?: string; readonly object?: string }) {
  const { access, groups, live } = useConsole();
  const list = groups.list.value ?? [];
  const chosen = useSignal(definition ?? list[0]?.name ?? "");
  const typed = useSignal(object ?? "");
  const offered = useSignal<readonly string[]>([]);
  const answer = useSignal<ExplainedObject | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  const said = useRef<HTMLDivElement>(null);
  const forget = (): void => void ([answer.value, problem.value] = [undefined, undefined]);
  useEffect(() => forget(), [definition, object]);
  const offer = (): void => {
    offered.value = live.objects.names(OFFERED);
  };
  const ask = async (): Promise<void> => {
    forget();
    try {
      answer.value = (await access.call(
        groups.path(chosen.value, `/objects/${encodeURIComponent(typed.value.trim())}`),
      )) as ExplainedObject;
    } catch (error) {
      problem.value = reasonOf(error);
    }
    intoView(said);
  };
  return (
    <form
      class="why"
      onSubmit={(event) => {
        event.preventDefault();
        void ask();
      }}
    >
      {definition === undefined && (
        <div class="field">
          <label for="why-definition">Group definition</label>
          <select
            id="why-definition"
            value={chosen.value}
            onChange={({ currentTarget }) => {
              chosen.value = currentTarget.value;
              forget();
            }}
          >
            {list.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </div>
      )}
      {object === undefined && (
        <div class="field">
          <label for="why-object">Object</label>
          <input
            id="why-object"
            required
            autocomplete="off"
            list="why-objects"
            placeholder="its key, or the id of its event"
            value={typed.value}
            onFocus={offer}
            onInput={({ currentTarget }) => {
              typed.value = currentTarget.value;
              forget();
            }}
          />
          <datalist id="why-objects">
            {offered.value.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </div>
      )}
      <button type="submit" class={definition === undefined ? "" : "primary"} disabled={chosen.value === ""}>
        Why?
      </button>
      <div ref={said} aria-live="polite">
        {problem.value !== undefined && <p class="bad">{problem.value}</p>}
        {answer.value !== undefined && <ObjectAnswer explained={answer.value} />}
      </div>
    </form>
  );
}

function ObjectAnswer({ explained: { object, groups, why, roles } }: { readonly explained: ExplainedObject }) {
  return (
    <div class="answer" data-groups={groups}>
      <div class={`verdict ${groups > 0 ? "good" : "bad"}`}>
        <Icon of={groups > 0 ? CircleCheck : CircleX} size={22} />
        <p>
          <bdi>{object}</bdi> is in {groups === 0 ? "no group" : counted(groups, "group")}
        </p>
      </div>
      {groups === 0 && (
        <p>
          <bdi>{why}</bdi>
        </p>
      )}
      {roles.map(({ role, failed = [], consistent, partners }) => (
        <section key={role} class="filter">
          <h4>
            <Mark mark={consistent ? "yes" : "no"} /> As <bdi>{role}</bdi>
          </h4>
          <ul>
            {failed.map((condition) => (
              <li key={condition}>
                <Mark mark="no" />
                <span>
                  <code>
                    <bdi>{condition}</bdi>
                  </code>{" "}
                  is not true of it.
                </span>
              </li>
            ))}
            {partners.map((partner) => (
              <li key={partner.role}>
                <Mark mark={partner.consistent > 0 ? "yes" : "no"} />
                <div>
                  Of {counted(partner.candidates, "candidate")} for <bdi>{partner.role}</bdi>, {fitWords(partner)}.
                  {partner.left.map(({ where, candidates }) => (
                    <p key={where}>
                      <code>
                        <bdi>{where}</bdi>
                      </code>{" "}
                      <span class="quiet">leaves {count(candidates)}</span>
                    </p>
                  ))}
                </div>
              </li>
            ))}
            {failed.length + partners.length === 0 && (
              <li>
                <Mark mark="yes" />
                <span>No condition: any object will do.</span>
              </li>
            )}
          </ul>
        </section>
      ))}
    </div>
  );
}

function fitWords({ fitting, consistent }: { readonly fitting: number; readonly consistent: number }): string {
  const many = (number: number): string => (number === 0 ? "none" : count(number));
  const fit = `${many(fitting)} ${fitting > 1 ? "fit" : "fits"}`;
  return fitting > consistent ? `${fit}, ${many(consistent)} with partners of its own` : fit;
}
