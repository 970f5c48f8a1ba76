// What a client has received since its page was opened.

import { useEffect } from "preact/hooks";

import { useConsole } from "../context.js";
import { ASKED_PER_S } from "../live/reach.js";
import { EventName, EventSummary } from "../why/name.js";
import { clock, counted } from "../words.js";

export function ReceivedPart({ client }: { readonly client: string }) {
  const console = useConsole();
  const { reach } = console;
  useEffect(() => {
    reach.watch(client);
    return () => reach.watch(undefined);
  }, [client]);
  const rows = reach.received.value;
  return (
    <section aria-labelledby="received">
      <h3 id="received">Received since you opened this</h3>
      {rows.length === 0 && (
        <p class="quiet">{reach.skipped.value > 0 ? "Nothing among the events that were looked at." : "Nothing yet."}</p>
      )}
      {reach.skipped.value > 0 && (
        <p class="quiet">
          A sample: the console looks at {ASKED_PER_S} events a second at most, and left {counted(reach.skipped.value, "event")} out.
        </p>
      )}
      <ol class="rows received">
        {rows.slice(0, 20).map(({ feature, subscriptions }) => (
          <li key={feature.id}>
            <button type="button" class="row" onClick={() => console.open({ kind: "event", feature })}>
              <span class="numbers quiet">{clock(feature.time)}</span>
              <span class="name">
                <EventName feature={feature} /> <span class="quiet">by {subscriptions.join(", ")}</span>
              </span>
              <EventSummary feature={feature} />
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
