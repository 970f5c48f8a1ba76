// An event that was clicked: what it says, who got it, and why somebody does or does not.

import { useSignal } from "@preact/signals";
import { ChevronRight, CircleCheck, Clock } from "lucide";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { DeliveredFeature, EventDeliveries } from "nearcast";

import { degrees } from "../../shared/degrees.js";
import { Icon } from "../../shared/icon.js";
import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { ViolatingEvents } from "../checks/finding.js";
import { ObjectGroups } from "../groups/detail.js";
import { FollowButton } from "../follow.js";
import { useNear } from "../live/near.js";
import { placeOf } from "../place.js";
import { clock, counted, span, valueText } from "../words.js";
import { WhyForm } from "./form.js";
import { ViolationSign } from "./name.js";

export function EventDetail({ feature, why }: { readonly feature: DeliveredFeature; readonly why?: string | undefined }) {
  const console = useConsole();
  if (why !== undefined) {
    return (
      <>
        <section aria-label="Why a client receives it, or not">
          <WhyForm event={feature} asks={why} />
        </section>
        <h3>The event</h3>
        <EventFacts feature={feature} />
      </>
    );
  }
  return (
    <>
      <EventFacts feature={feature} />
      <ViolatedPart id={String(feature.id)} />
      {(feature.key !== undefined || feature.ttl_s !== undefined) && <ObjectGroups object={feature.key ?? String(feature.id)} />}
      <WhoGotIt id={feature.id} why={(client) => console.open({ kind: "event", feature, why: client })} />
      <section aria-labelledby="why">
        <h3 id="why">Why does a client receive it, or not?</h3>
        <WhyForm event={feature} />
      </section>
    </>
  );
}

function EventFacts({ feature }: { readonly feature: DeliveredFeature }) {
  const console = useConsole();
  const { view, settings, live, same } = console;
  const point = live.objects.idOf(feature);
  const client = point === undefined ? undefined : same.clientOf(point);
  const place = placeOf(feature);
  const near = useNear(place);
  const properties = Object.entries((feature.properties as Record<string, unknown> | null) ?? {});
  const life =
    feature.ttl_s !== undefined
      ? `for ${span(feature.ttl_s)}, or until a newer event replaces it`
      : feature.key !== undefined
        ? "until a newer event with this key replaces it"
        : "no: delivered once, then forgotten (no ttl_s and no key)";
  return (
    <section aria-label="The event">
      <dl class="fields">
        {properties.map(([name, value]) => (
          <Fact key={name} name={valueText(name, 80)}>
            <bdi>{valueText(value, 1000)}</bdi>
          </Fact>
        ))}
        <Fact name="id">
          <bdi>{valueText(feature.id)}</bdi>
        </Fact>
        {feature.key !== undefined && (
          <Fact name="key">
            <bdi>{valueText(feature.key)}</bdi>
          </Fact>
        )}
        <Fact name="time">
          <time dateTime={feature.time}>{clock(feature.time)}</time> <span class="quiet">{feature.time.slice(0, 10)}</span>
        </Fact>
        {client !== undefined && (
          <Fact name="client">
            <button type="button" class="link" onClick={() => console.open({ kind: "client", client })}>
              <bdi>{client}</bdi>
            </button>
          </Fact>
        )}
        <Fact name="stays live">{life}</Fact>
        {near !== undefined && (
          <Fact name="near">
            <bdi>{near}</bdi>
          </Fact>
        )}
        <Fact name="place">
          <span class="numbers">{degrees(place, settings.world)}</span>
          <span class="buttons">
            <button type="button" class="small" onClick={() => view.value?.goTo(place)}>
              Show
            </button>
            {point !== undefined && live.objects.get(point) !== undefined && <FollowButton id={point} />}
          </span>
        </Fact>
      </dl>
    </section>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>
        <bdi>{name}</bdi>
      </dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Which checks the event violates, and together with which other events. */
function ViolatedPart({ id }: { readonly id: string }) {
  const console = useConsole();
  const { violations } = console.live;
  const marked = violations.violatedBy(id);
  const found = violations.count.value === 0 ? [] : violations.of(id);
  if (marked.length + found.length === 0) return null;
  return (
    <section class="violated" aria-labelledby="violated">
      <h3 id="violated">
        <ViolationSign /> Its place may be wrong
      </h3>
      {marked.map((check) => (
        <p key={check}>
          Marked by check <CheckLink check={check} />.
        </p>
      ))}
      {found.slice(0, 5).map((violation) => (
        <div key={violation.id}>
          <p>
            Check <CheckLink check={violation.check} /> says that these do not fit together (
            <button
              type="button"
              class="link"
              onClick={() => console.visit({ kind: "finding", of: "checks", name: violation.check, id: violation.id })}
            >
              show on the map
            </button>
            ):
          </p>
          <ViolatingEvents bound={violation.bound} check={violation.check} />
        </div>
      ))}
    </section>
  );
}

function CheckLink({ check }: { readonly check: string }) {
  const console = useConsole();
  return (
    <button type="button" class="link" onClick={() => console.open({ kind: "situation", of: "checks", name: check })}>
      <bdi>{check}</bdi>
    </button>
  );
}

const STATES = {
  written: "sent",
  waiting: "waiting for a slow connection",
  dropped: "lost: the client did not keep up",
  unread: "not sent: the client was not connected",
};
/** What was just published is asked for some times more: it may not have gone out yet. */
const TRIES = 5;
const AGAIN_MS = 400;

/** Whether subscriptions have names that say nothing: a console's has its own name, and those of checks and rule sets are made up. */
function namesOwn(client: string, subscriptions: readonly string[]): boolean {
  return client.startsWith("~") || subscriptions.every((subscription) => subscription === client);
}

/** Consoles look at everything: they come after those that were meant. */
function ordered(deliveries: EventDeliveries["deliveries"]): EventDeliveries["deliveries"] {
  const late = ({ client, subscriptions }: (typeof deliveries)[number]): number => Number(namesOwn(client, subscriptions));
  return [...deliveries].sort((one, other) => late(one) - late(other)).slice(0, 100);
}

type Answer = { readonly found: EventDeliveries } | { readonly nothing: string } | undefined;

/** To whom an event went, and what became of that. */
export function WhoGotIt({
  id,
  fresh = false,
  why,
}: {
  readonly id: string | number;
  readonly fresh?: boolean;
  /** Shows why a client got it. */
  readonly why?: (client: string) => void;
}) {
  const console = useConsole();
  const { access } = console;
  const answer = useSignal<Answer>(undefined);
  const asked = useSignal(0);
  useEffect(() => {
    const stop = new AbortController();
    const ask = async (tries: number): Promise<void> => {
      try {
        answer.value = {
          found: (await access.call(`v1/events/${encodeURIComponent(id)}/deliveries`, { signal: stop.signal })) as EventDeliveries,
        };
      } catch (error) {
        if (stop.signal.aborted) return;
        if (statusOf(error) === 404 && tries > 1) {
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
          await ask(tries - 1);
        } else if (statusOf(error) === 404)
          answer.value = { nothing: "Nobody received it, or it is too long ago for the broker to remember." };
        else if (statusOf(error) === 403) answer.value = { nothing: "This token does not permit to see that: it takes the scope admin." };
        else answer.value = { nothing: `That could not be asked: ${reasonOf(error)}.` };
      }
    };
    void ask(fresh ? TRIES : 1);
    return () => stop.abort();
  }, [id, asked.value]);
  const shown = answer.value;
  return (
    <section aria-labelledby="who" class="who">
      <div class="title">
        <h3 id="who">Who received it</h3>
        <button type="button" class="small" onClick={() => (asked.value += 1)}>
          Refresh
        </button>
      </div>
      <div aria-live="polite">
        {shown === undefined ? (
          <p class="quiet">Asking…</p>
        ) : "nothing" in shown ? (
          <p class="quiet">{shown.nothing}</p>
        ) : (
          <>
            <p class="quiet">{counted(shown.found.deliveries.length + (shown.found.omitted ?? 0), "delivery", "deliveries")}</p>
            <ul class="deliveries">
              {ordered(shown.found.deliveries).map(({ client, subscriptions, offset, cause, transition, state }) => (
                <li key={`${client} ${offset}`}>
                  <button
                    type="button"
                    class="delivery"
                    onClick={() => (why === undefined || client.startsWith("~") ? console.open({ kind: "client", client }) : why(client))}
                  >
                    <span class={`state-icon ${state === "written" ? "good" : "warn"}`}>
                      <Icon of={state === "written" ? CircleCheck : Clock} />
                    </span>
                    <span>
                      <bdi class="name">{client.replace(/^~checks\//, "check ").replace(/^~rules\//, "rule set ")}</bdi>
                      {client === access.client.value && " (this console)"}
                      {namesOwn(client, subscriptions) ? "" : " by subscription "}
                      {(namesOwn(client, subscriptions) ? [] : subscriptions).map((subscription, index) => (
                        <span key={subscription}>
                          {index > 0 && ", "}
                          <bdi>{subscription}</bdi>
                        </span>
                      ))}
                      <br />
                      <span class={state === "written" ? "good" : "warn"}>{STATES[state]}</span>
                      <span class="quiet">
                        {" "}
                        · {transition ?? cause} · offset {offset}
                      </span>
                    </span>
                    {why !== undefined && !client.startsWith("~") && (
                      <span class="go">
                        Why <Icon of={ChevronRight} size={14} />
                      </span>
                    )}
                  </button>
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </section>
  );
}
