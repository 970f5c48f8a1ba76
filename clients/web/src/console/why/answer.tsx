// An answer to Why: one sentence, the steps from the event to the client, and what holds and what does not.

import { Check, CircleCheck, CircleQuestionMark, CircleX, ListChecks, MapPin, Radar, Smartphone, X, type IconNode } from "lucide";
import type { DeliveredFeature, Explanation, SubscriptionDocument } from "nearcast";

import { Icon } from "../../shared/icon.js";
import { unbroken } from "../../shared/readable.js";
import { conditionWords } from "../clients/subscription.js";
import { useConsole } from "../context.js";
import { metres, valueText } from "../words.js";
import { Gauge } from "./gauge.js";
import { decisive, filterWords, notes, nowSentence, sentence, verdict, type Fate, type FilterWords } from "./words.js";

const MARKS = { yes: [Check, "holds"], no: [X, "does not hold"], unknown: [CircleQuestionMark, "unknown"] } as const;

export function Mark({ mark }: { readonly mark: keyof typeof MARKS }) {
  const [icon, word] = MARKS[mark];
  return (
    <span class={`sign ${mark}`} role="img" aria-label={word}>
      <Icon of={icon} size={14} />
    </span>
  );
}

/** The verdict first, which is of the past where that is known; apart from it, what holds now where nothing is known of then. */
export function Answer({
  explanation,
  client,
  subscription,
  filters,
  event,
  fate,
  isThen,
}: {
  readonly explanation: Explanation;
  readonly client: string;
  readonly subscription: string;
  /** Those of the subscription. */
  readonly filters: SubscriptionDocument["filters"];
  readonly event: DeliveredFeature | undefined;
  readonly fate: Fate;
  /** Whether the explanation is of where the client was then. */
  readonly isThen: boolean;
}) {
  const console = useConsole();
  const { matched } = explanation;
  const isGood = fate?.delivered ?? matched;
  return (
    <div class="answer" data-matched={matched}>
      <div class={`verdict ${isGood ? "good" : "bad"}`}>
        <Icon of={isGood ? CircleCheck : CircleX} size={22} />
        <p>
          <bdi>
            {unbroken(fate === undefined ? sentence(explanation, client) : verdict(client, fate, isThen ? explanation : undefined))}
          </bdi>
          <small>
            Subscription{" "}
            <button type="button" class="link" title={`Open ${client}`} onClick={() => console.open({ kind: "client", client })}>
              <bdi>{subscription}</bdi>
            </button>
            : {unbroken(valueText(conditionWords(filters), 120))}
          </small>
        </p>
      </div>
      {fate === undefined || isThen ? (
        <Holds explanation={explanation} fate={fate} isPublished={event !== undefined} />
      ) : (
        <section class="now" aria-label="Now">
          <h3 class="quiet">As it stands now</h3>
          <p>{unbroken(nowSentence(explanation, fate))}</p>
          {!fate.delivered && <p class="quiet">Where the client was then is not known: the broker remembers deliveries.</p>}
          <Holds explanation={explanation} fate={fate} isPublished />
        </section>
      )}
    </div>
  );
}

/** What holds: the steps from the event to the client, and each part of the filters. */
function Holds({
  explanation,
  fate,
  isPublished,
}: {
  readonly explanation: Explanation;
  readonly fate: Fate;
  readonly isPublished: boolean;
}) {
  const filter = decisive(explanation);
  const { reach, position, isOld = false } = notes(explanation);
  const mayBeElsewhere = isOld && !(fate?.delivered === true && explanation.matched);
  return (
    <>
      {filter !== undefined && <Steps {...filterWords(filter)} matched={explanation.matched} />}
      {explanation.filters.map(filterWords).map((each, index) => (
        <FilterPart key={index} words={each} number={explanation.filters.length > 1 ? index + 1 : undefined} />
      ))}
      {reach !== undefined && <p class="quiet">{unbroken(reach)}</p>}
      {(position !== undefined || fate === undefined) && (
        <dl class="basis">
          {position !== undefined && (
            <div>
              <dt>Position of the client</dt>
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
              <dd>now{isPublished && ", as if the event were published now"}</dd>
            </div>
          )}
        </dl>
      )}
    </>
  );
}

/** The way of the event: each step lets it pass until one stops it, which stands out; those behind that one are not reached. */
function Steps({ area, nearest, constraints, conditionHolds: met, matched }: FilterWords) {
  const inArea = area.mark === "yes" && nearest?.mark !== "no";
  const conditions = constraints.length === 0 ? "No condition" : "Conditions";
  // What a step says where the event does not come to it.
  const steps: readonly (readonly [icon: IconNode, label: string, taken: boolean, beyond: string])[] = [
    [MapPin, "Event", true, ""],
    [Radar, "Area", inArea, ""],
    [ListChecks, conditions, met, met ? "would hold" : "would not hold"],
    [Smartphone, "Client", matched, "not reached"],
  ];
  const found = steps.findIndex(([, , taken]) => !taken);
  const stopped = found < 0 ? steps.length : found;
  return (
    <ol class="steps" aria-hidden="true">
      {steps.map(([icon, label, , beyond], index) => (
        <li key={index} class={index < stopped ? "taken" : index === stopped ? "stopped" : "beyond"}>
          <span class="stop">
            <Icon of={icon} size={18} />
            {index > 0 && index <= stopped && (
              <span class="tick">
                <Icon of={index < stopped ? Check : X} size={10} />
              </span>
            )}
          </span>
          <span>
            {label}
            {index > stopped && <small>{beyond}</small>}
            {index === stopped && <small>stops here</small>}
          </span>
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
              <span>{unbroken(area.text)}</span>
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
