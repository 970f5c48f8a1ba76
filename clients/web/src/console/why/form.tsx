// The question why an event comes to a client's subscription, and its answer.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { DeliveredFeature, EventDeliveries, Explanation, SubscriptionDocument } from "nearcast";

import type { Place } from "../../shared/map/plane.js";
import { reasonOf, statusOf, type Access } from "../access.js";
import { useConsole } from "../context.js";
import { intoView } from "../into-view.js";
import { conditionWords } from "../clients/subscription.js";
import { placeOf } from "../place.js";
import { clock, valueText } from "../words.js";
import { whyDrawing } from "./drawing.js";
import { nameOf } from "./name.js";
import { Answer } from "./answer.js";
import type { Fate } from "./words.js";

/** Subscriptions of a client that are asked about until one takes the event. */
const ASKED = 8;

/** Newest events to choose from. */
const EVENTS = 30;

/** Somebody who has not typed for so long means the name that is there. */
const TYPED_MS = 300;

/** A client that has no subscription is asked for again after so long. */
const AGAIN_MS = 3000;

/** Why a client without subscriptions gets nothing. */
export function nothingWords(client: string, known: boolean | undefined): string {
  if (known === true) return `${client} has no subscription, so it receives nothing.`;
  return known === false
    ? `There is no client ${client}. Check the spelling, or choose one from the list.`
    : `${client} has no subscription, or there is no such client.`;
}

/** An event on one line: when, what, and a few of its values. */
export function eventWords(feature: DeliveredFeature, attribute: string | undefined): string {
  const values = Object.entries((feature.properties as Record<string, unknown> | null) ?? {})
    .filter(([name]) => name !== attribute)
    .slice(0, 3)
    .map(([name, value]) => `${valueText(name, 16)} ${valueText(value, 16)}`);
  return [clock(feature.time), nameOf(feature, attribute), values.join(", ")].filter((part) => part !== "").join(" · ");
}

/** An answer, with what was asked. */
interface Answered {
  readonly explanation: Explanation;
  readonly client: string;
  readonly subscription: string;
  readonly event: DeliveredFeature | undefined;
  readonly filters: SubscriptionDocument["filters"];
  /** Where the client is, as far as that is shown. */
  readonly place: Place | undefined;
  readonly fate: Fate;
  /** Whether it is of where the client was as the event was delivered, and not of where it is. */
  readonly isThen: boolean;
}

/** What became of the event at the client by the subscription that is asked about, as far as the broker still knows. */
async function fateOf(
  access: Access,
  { client, subscription, event }: { readonly client: string; readonly subscription: string; readonly event: DeliveredFeature | undefined },
): Promise<Fate> {
  if (event === undefined) return undefined;
  try {
    const { deliveries, omitted = 0 } = (await access.call(`v1/events/${encodeURIComponent(event.id)}/deliveries`)) as EventDeliveries;
    const sent = deliveries.find((delivery) => delivery.client === client && delivery.subscriptions.includes(subscription));
    if (sent !== undefined) return { delivered: true, at: sent.cause === "published" ? event.time : undefined, place: sent.position };
    return omitted > 0 ? undefined : { delivered: false };
  } catch {
    // It is too long ago, or this token does not permit to see it.
    return undefined;
  }
}

/**
 * Whether an answer for the place where a client was says why it received an event. It does not where the subscription is another one by now, or the place
 * is not shown exactly; and which events are the nearest is known of now alone.
 */
function holdsThen({ matched, filters }: Explanation): boolean {
  return matched && !filters.some((filter) => filter.matched && "nearest" in filter.area);
}

/** An event or a client is given; the other is chosen. Where `asks` names a client, its answer is there at once. */
export function WhyForm({
  event,
  client,
  asks,
}: {
  readonly event?: DeliveredFeature;
  readonly client?: string;
  readonly asks?: string | undefined;
}) {
  const console = useConsole();
  const { access, clients, live, view, following, reach } = console;
  /** What stands in the field, and what is asked about once somebody has stopped typing. */
  const typed = useSignal(client ?? asks ?? "");
  const name = useSignal(client ?? asks ?? "");
  useEffect(() => {
    const timer = setTimeout(() => (name.value = typed.value.trim()), TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed.value]);
  const documents = useSignal<readonly SubscriptionDocument[]>([]);
  const subscription = useSignal("");
  /** Somebody has pressed Why? for a name whose subscriptions are not there yet: it is asked when they come. */
  const pressed = useRef(false);
  const isOther = (): boolean => typed.value.trim() !== name.value;
  const events = useSignal<readonly DeliveredFeature[]>([]);
  const chosen = useSignal(0);
  const answer = useSignal<Answered | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  const newest = (): void => {
    // What it received, what is in or near its areas, and then the newest of all.
    const plane = view.value?.base.plane;
    const all = live.objects.newest();
    const near = all.filter(
      ({ place }) => client !== undefined && plane !== undefined && clients.mayReachOne(client, plane.toMap(place)) === true,
    );
    const offered = [...reach.received.value, ...near.slice(0, EVENTS / 2), ...all].map(({ feature }) => feature);
    events.value = [...new Map(offered.map((feature) => [feature.id, feature])).values()].slice(0, EVENTS);
    chosen.value = 0;
  };
  useEffect(() => {
    if (event === undefined) newest();
  }, []);
  useEffect(() => {
    const stop = new AbortController();
    documents.value = [];
    answer.value = undefined;
    problem.value = undefined;
    if (name.value === "") return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const find = async (): Promise<void> => {
      let refused = false;
      try {
        const found = await clients.subscriptionsOf(name.value, stop.signal);
        if (stop.signal.aborted) return;
        documents.value = found;
        subscription.value = found[0]?.id ?? "";
        problem.value = found.length === 0 ? nothingWords(name.value, clients.knows(name.value)) : undefined;
        if (found.length > 0 && (name.value === asks || pressed.current)) {
          pressed.current = false;
          await askBest(found, stop.signal);
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        refused = statusOf(error) === 403;
        problem.value = refused
          ? "This token does not permit to ask for that client: it takes the scope admin, or a token of its own."
          : reasonOf(error);
      }
      // The client may come, and so may the broker.
      if (!refused && documents.value.length === 0) timer = setTimeout(() => void find(), AGAIN_MS);
    };
    void find();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [name.value]);
  // What is drawn stands as long as what it answers; the map may come later.
  const [map, answered] = [view.value, answer.value];
  useEffect(() => {
    if (map === undefined || answered?.event === undefined) return;
    const { explanation, filters, place, fate, isThen } = answered;
    const laid = filters.map(({ area }) => clients.ways.laid(answered.client, area, place));
    const named = { place: placeOf(answered.event), name: nameOf(answered.event, live.objects.attribute) };
    const drawn = whyDrawing(map.base.plane, explanation, laid, named, { place, name: answered.client }, fate !== undefined && !isThen);
    map.answer.show(drawn);
    return () => map.answer.show(undefined);
  }, [map, answered]);
  const said = useRef<HTMLDivElement>(null);
  /** Asks about the subscription that takes the event, the first where none does. */
  const askBest = async (found: readonly SubscriptionDocument[], signal: AbortSignal): Promise<void> => {
    for (const { id } of found.slice(0, ASKED)) {
      subscription.value = id;
      await ask();
      if (signal.aborted || answer.value?.explanation.matched === true) return;
    }
    if (subscription.value === found[0]?.id) return;
    subscription.value = found[0]?.id ?? "";
    await ask();
  };
  const ask = async (): Promise<void> => {
    problem.value = undefined;
    const question = { client: name.value, subscription: subscription.value, event: event ?? events.value[chosen.value] };
    try {
      const explained = (body: object): Promise<Explanation> => access.call("v1/explain", { method: "POST", body }) as Promise<Explanation>;
      const [now, fate] = await Promise.all([explained(question), fateOf(access, question)]);
      const then =
        fate?.delivered === true && fate.place !== undefined ? await explained({ ...question, position: fate.place }) : undefined;
      // Somebody else is asked about by now.
      if (question.client !== name.value) return;
      following.value = undefined;
      const isThen = then !== undefined && holdsThen(then);
      const told = isThen ? then : now;
      const at = (told as { position?: { coordinates?: readonly number[] } | null }).position?.coordinates;
      answer.value = {
        explanation: told,
        fate,
        isThen,
        ...question,
        filters: documents.value.find(({ id }) => id === question.subscription)?.filters ?? [],
        place: at === undefined ? clients.placeOf(question.client) : [at[0] ?? 0, at[1] ?? 0],
      };
      intoView(said);
    } catch (error) {
      answer.value = undefined;
      problem.value = statusOf(error) === 403 ? `This token does not permit to ask that: ${reasonOf(error)}` : reasonOf(error);
    }
  };
  /** A press just after the last letter is about the name that stands in the field, and not about the one before it. */
  const press = (): void => {
    if (isOther()) {
      pressed.current = true;
      name.value = typed.value.trim();
    } else void ask();
  };
  const fields = (
    <>
      {client === undefined && (
        <div class="field">
          <label for="why-client">Client</label>
          <input
            id="why-client"
            list="why-clients"
            autocomplete="off"
            placeholder="Name of a client"
            value={typed.value}
            onInput={({ currentTarget }) => {
              pressed.current = false;
              typed.value = currentTarget.value;
            }}
          />
          <datalist id="why-clients">
            {clients.list.value.slice(0, 200).map((each) => (
              <option key={each.client} value={each.client} />
            ))}
          </datalist>
        </div>
      )}
      <div class="field">
        <label for="why-subscription">Subscription</label>
        <select
          id="why-subscription"
          disabled={isOther() || documents.value.length === 0}
          value={subscription.value}
          onChange={({ currentTarget }) => (subscription.value = currentTarget.value)}
        >
          {documents.value.map(({ id, filters }) => (
            <option key={id} value={id}>
              {valueText(id, 40)}: {valueText(conditionWords(filters), 60)}
            </option>
          ))}
        </select>
      </div>
      {event === undefined && (
        <div class="field">
          <label for="why-event">Event</label>
          <div class="pair">
            <select id="why-event" value={chosen.value} onChange={({ currentTarget }) => (chosen.value = Number(currentTarget.value))}>
              {events.value.map((each, index) => (
                <option key={index} value={index}>
                  {eventWords(each, live.objects.attribute)}
                </option>
              ))}
            </select>
            <button type="button" onClick={newest}>
              Newest
            </button>
          </div>
        </div>
      )}
      <button
        type="button"
        class="primary"
        disabled={
          (isOther() ? typed.value.trim() === "" : documents.value.length === 0) || (event === undefined && events.value.length === 0)
        }
        onClick={press}
      >
        Why?
      </button>
    </>
  );
  const words = (
    <div ref={said} aria-live="polite">
      {problem.value !== undefined && <p class="bad">{problem.value}</p>}
      {answer.value !== undefined && (
        <Answer
          explanation={answer.value.explanation}
          client={answer.value.client}
          subscription={answer.value.subscription}
          filters={answer.value.filters}
          event={answer.value.event}
          fate={answer.value.fate}
          isThen={answer.value.isThen}
        />
      )}
    </div>
  );
  return asks === undefined ? (
    <div class="why">
      {fields}
      {words}
    </div>
  ) : (
    <div class="why">
      {words}
      <details class="again">
        <summary>Ask about another client or subscription</summary>
        <div class="why">{fields}</div>
      </details>
    </div>
  );
}
