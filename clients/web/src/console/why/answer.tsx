// An answer to Why: one sentence, the steps from the event to the client, and what holds and what does not.

import { Check, CircleCheck, CircleQuestionMark, CircleX, ListChecks, MapPin, Radar, Smartphone, X, type IconNode } from "lucide";
import type { DeliveredFeature, Explanation } from "nearcast";

import { Icon } from "../../shared/icon.js";
import { metres } from "../words.js";
import { useConsole } from "../context.js";
import { Gauge } from "./gauge.js";
import { decisive, filterWords, notes, nowWords, sentence, type Fate, type FilterWords } from "./words.js";

const MARKS = { yes: [Check, "holds"], no: [X, "does not hold"], unknown: [CircleQuestionMark, "unknown"] } as const;

export function Mark({ mark }: { readonly mark: keyof typeof MARKS }) {
  const [icon, word] = MARKS[mark];
  return (
    <span class={`sign ${mark}`} role="img" aria-label={word}>
      <Icon of={icon} size={14} />
    </span>
  );
}

export function Answer({
  explanation,
  client,
  subscription,
  event,
  fate,
}: {
  readonly explanation: Explanation;
  readonly client: string;
  readonly subscription: string;
  readonly event: DeliveredFeature | undefined;
  readonly fate: Fate;
}) {
  const console = useConsole();
  const { matched } = explanation;
  const filter = decisive(explanation);
  const { reach, position, isOld = false } = notes(explanation);
  const mayBeElsewhere = isOld && !(fate?.delivered === true && matched);
  return (
    <div class="answer" data-matched={matched}>
      <div class={`verdict ${matched ? "good" : "bad"}`}>
        <Icon of={matched ? CircleCheck : CircleX} size={22} />
        <p>
          <bdi>{sentence(explanation, client, fate)}</bdi>
          {fate !== undefined && <small>{nowWords(explanation)}</small>}
        </p>
      </div>
      {filter !== undefined && <Steps {...filterWords(filter)} matched={matched} />}
      {explanation.filters.map(filterWords).map((each, index) => (
        <FilterPart key={index} words={each} number={explanation.filters.length > 1 ? index + 1 : undefined} />
      ))}
      {reach !== undefined && <p class="quiet">{reach}</p>}
      <dl class="basis">
        <div>
          <dt>Subscription</dt>
          <dd>
            <button type="button" class="link" title={`Open ${client}`} onClick={() => console.open({ kind: "client", client })}>
              <bdi>{subscription}</bdi>
            </button>
          </dd>
        </div>
        {position !== undefined && (
          <div>
            <dt>Position</dt>
            {/* Where the client was when it received the event, another position counts. */}
            <dd class={mayBeElsewhere ? "warn" : undefined}>
              {position}
              {mayBeElsewhere && ": the client may be elsewhere by now"}
            </dd>
          </div>
        )}
        {fate === undefined && (
          <div>
            <dt>Evaluated</dt>
            <dd title={event === undefined ? undefined : "As if the event were published now"}>now</dd>
          </div>
        )}
      </dl>
    </div>
  );
}

/** The way of the event: each step lets it pass, or it does not; beyond the first that does not, the way is broken. */
function Steps({ area, nearest, constraints, conditionHolds: met, matched }: FilterWords) {
  const inArea = area.mark === "yes" && nearest?.mark !== "no";
  const steps: readonly (readonly [icon: IconNode, label: string, taken: boolean])[] = [
    [MapPin, "Event", true],
    [Radar, "Area", inArea],
    [ListChecks, constraints.length === 0 ? "No condition" : "Conditions", met],
    [Smartphone, "Client", matched],
  ];
  const stopped = steps.findIndex(([, , taken]) => !taken);
  return (
    <ol class="steps" aria-hidden="true">
      {steps.map(([icon, label, taken], index) => (
        <li key={index} class={`${taken ? "taken" : "stopped"} ${stopped >= 0 && index > stopped ? "beyond" : ""}`}>
          <span class="stop">
            <Icon of={icon} size={18} />
            {index > 0 && (
              <span class="tick">
                <Icon of={taken ? Check : X} size={10} />
              </span>
            )}
          </span>
          <span>{label}</span>
        </li>
      ))}
    </ol>
  );
}

function FilterPart({ words, number }: { readonly words: FilterWords; readonly number: number | undefined }) {
  const { matched, area, nearest, constraints } = words;
  return (
    <section class="filter">
      {number !== undefined && (
        <h4>
          Filter {number} {matched ? "takes it" : "does not take it"}
        </h4>
      )}
      <ul>
        <li class={area.mark}>
          <Mark mark={area.mark} />
          <div>
            {area.distance === undefined ? (
              <span>{area.text}</span>
            ) : (
              <>
                <span class="saw">
                  <span>
                    Distance <strong>{metres(area.distance.distance_m)}</strong>
                  </span>
                  <code>at most {metres(area.distance.radius_m)}</code>
                </span>
                <Gauge value={area.distance.distance_m} limit={area.distance.radius_m} text={metres} />
              </>
            )}
          </div>
        </li>
        {nearest !== undefined && (
          <li class={nearest.mark}>
            <Mark mark={nearest.mark} />
            <span>{nearest.text}</span>
          </li>
        )}
        {constraints.map(({ mark, constraint, label, value, reason }, at) => (
          <li key={at} class={mark}>
            <Mark mark={mark} />
            <div>
              <span class="saw">
                <span>
                  <bdi>{label}</bdi> <strong>{<bdi>{value}</bdi>}</strong>
                </span>
                <code>
                  <bdi>{constraint}</bdi>
                </code>
              </span>
              {mark !== "yes" && <bdi class="quiet">{reason}</bdi>}
            </div>
          </li>
        ))}
        {constraints.length === 0 && (
          <li class="yes">
            <Mark mark="yes" />
            <span>No condition: any properties will do.</span>
          </li>
        )}
      </ul>
    </section>
  );
}
