// A client that was opened: its state and its subscriptions.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { SubscriptionDocument } from "nearcast";

import type { Place } from "../../shared/map/plane.js";
import { degrees } from "../../shared/degrees.js";
import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { FollowButton } from "../follow.js";
import { areaWords, shapesOf } from "../map/areas.js";
import { WhyForm } from "../why/form.js";
import { metres, span } from "../words.js";
import { ReceivedPart } from "./received.js";
import { stateOf } from "./state.js";
import { activityWords } from "./subscription.js";
import type { Way } from "./ways.js";

const EVERY_MS = 3000;
const HIDDEN = "hidden: this broker shows no positions (privacy.round_m = 0)";

export function ClientDetail({ client }: { readonly client: string }) {
  const { clients, view, settings } = useConsole();
  const documents = useSignal<readonly SubscriptionDocument[] | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  const listed = clients.list.value.find((each) => each.client === client);
  const place = clients.placeOf(client);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const look = async (): Promise<void> => {
      try {
        documents.value = await clients.subscriptionsOf(client, stop.signal);
        problem.value = undefined;
      } catch (error) {
        if (stop.signal.aborted) return;
        problem.value =
          statusOf(error) === 403
            ? "This token does not permit to see its subscriptions: it takes the scope admin, or a token of its own."
            : reasonOf(error);
      }
      timer = setTimeout(() => void look(), EVERY_MS);
    };
    void look();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [client]);
  useSignalEffect(() => {
    const map = view.value;
    if (map === undefined) return;
    const at = clients.placeOf(client);
    map.draw(
      "chosen",
      (documents.value ?? []).flatMap(({ filters }) =>
        filters.flatMap(({ area }) => shapesOf(map.base.plane, clients.ways.laid(client, area, at), at)),
      ),
    );
  });
  if (documents.value?.length === 0 && clients.knows(client) === false) return <Unknown />;
  const follows = documents.value?.some(({ filters }) =>
    filters.some(({ area }) => area !== undefined && areaWords(area, metres).includes("the client")),
  );
  return (
    <>
      {listed !== undefined && (
        <dl class="pairs">
          <dt>state</dt>
          <dd>
            <span class={`state ${stateOf(listed).word.replace(" ", "-")}`}>{stateOf(listed).word}</span>{" "}
            <span class="quiet">{stateOf(listed).why}</span>
          </dd>
          <dt>connections</dt>
          <dd class="numbers">{listed.connections}</dd>
          <dt>behind</dt>
          <dd class="numbers">{listed.behind}</dd>
          {listed.durable && (
            <>
              <dt>kept for it</dt>
              <dd class="numbers">{listed.kept_matches}</dd>
            </>
          )}
          {listed.silence_ms !== undefined && (
            <>
              <dt>last heard</dt>
              <dd class="numbers">{span(listed.silence_ms / 1000)} ago</dd>
            </>
          )}
          <dt>position</dt>
          <dd>
            {place === undefined ? (
              <span class="quiet">{settings.round_m === 0 ? HIDDEN : "not reported yet"}</span>
            ) : (
              <>
                {degrees(place, settings.world)} {settings.round_m > 1 && <span class="quiet">(shown to {metres(settings.round_m)}) </span>}
                <button type="button" class="small" onClick={() => view.value?.goTo(place)}>
                  Show
                </button>{" "}
                <FollowButton id={client} />
              </>
            )}
          </dd>
        </dl>
      )}
      <section aria-labelledby="subscriptions">
        <h3 id="subscriptions">Subscriptions</h3>
        {problem.value !== undefined && <p class="warn">{problem.value}</p>}
        {documents.value === undefined && problem.value === undefined && <p class="quiet">Asking…</p>}
        {documents.value?.length === 0 && <p class="quiet">It has none.</p>}
        {follows === true && (
          <p class="quiet">
            {place === undefined ? "Its areas around the client cannot be drawn without its position." : "Its areas move along with it."}
          </p>
        )}
        <ul class="list">
          {documents.value?.map((document) => (
            <SubscriptionItem key={document.id} client={client} document={document} place={place} />
          ))}
        </ul>
      </section>
      <ReceivedPart client={client} />
      {documents.value !== undefined && documents.value.length > 0 && (
        <section aria-labelledby="why">
          <h3 id="why">Why does it get an event, or not?</h3>
          <WhyForm client={client} />
        </section>
      )}
    </>
  );
}

/** In the place of a client that does not exist, or not yet: the page shows it as soon as it does. */
function Unknown() {
  const console = useConsole();
  return (
    <div class="empty">
      <p>
        <strong>There is no client of this name.</strong> It appears here once it connects, subscribes or reports a position.
      </p>
      <p>
        <button type="button" class="link" onClick={() => console.go("clients")}>
          All clients
        </button>
      </p>
    </div>
  );
}

/** The way of an area along a route. */
function WayWords({ found, why }: Way) {
  if (found !== undefined) {
    return (
      <p class="quiet">
        {metres(found.left_m ?? 0)}, {span(found.left_s ?? 0)} to go.
        {found.approximate && " The way is drawn from about where the client is; the corridor in force may lie elsewhere."}
      </p>
    );
  }
  return why === undefined ? null : <p class="warn">Its way cannot be drawn: {why}.</p>;
}

/** What becomes of deliveries to a client that is too slow. */
const OVERFLOWS = {
  "drop-oldest": "if it is slow, the oldest are dropped",
  "keep-latest": "if it is slow, outdated deliveries are dropped first",
  disconnect: "if it is slow, it is disconnected",
};

function SubscriptionItem({
  client,
  document: { id, filters, on, durable, overflow, activity },
  place,
}: {
  readonly client: string;
  readonly document: SubscriptionDocument;
  /** Where its client is. */
  readonly place: Place | undefined;
}) {
  const console = useConsole();
  const { ways } = console.clients;
  const view = console.view.value;
  const { quiet, text } = activityWords(activity, Date.now());
  const told = on.length === 1 && on[0] === "event" ? "each event" : on.join(" and ");
  const shapes = view === undefined ? [] : filters.flatMap(({ area }) => shapesOf(view.base.plane, ways.laid(client, area, place), place));
  return (
    <li class="subscription">
      <div class="title">
        <h4>
          <bdi>{id}</bdi>
        </h4>
        {shapes.length > 0 && (
          <button type="button" class="small" onClick={() => view?.goToShapes(shapes)}>
            Show area
          </button>
        )}
      </div>
      <ul>
        {filters.map(({ area, where }, index) => (
          <li key={index}>
            {areaWords(area, metres)}
            <WayWords {...ways.of(client, area, place)} />
            {where !== undefined && (
              <code class="where">
                <bdi>{where}</bdi>
              </code>
            )}
          </li>
        ))}
      </ul>
      <p class={quiet ? "warn" : "quiet"}>{text}</p>
      <p class="quiet">
        {told}
        {durable && ", durable"}; {OVERFLOWS[overflow]}
      </p>
    </li>
  );
}
