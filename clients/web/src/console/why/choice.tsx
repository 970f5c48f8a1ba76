import { useConsole } from "../context.js";
import type { Detail } from "../model.js";
import { EventName, EventSummary } from "./name.js";

/** What was near a click, nearest first. */
export function ChoiceDetail({ detail }: { readonly detail: Extract<Detail, { kind: "choice" }> }) {
  const console = useConsole();
  return (
    <ol class="rows">
      {detail.events.map((feature) => (
        <li key={feature.id}>
          <button type="button" class="row" onClick={() => console.open({ kind: "event", feature })}>
            <span class="quiet">event</span>
            <span class="name">
              <EventName feature={feature} />
            </span>
            <EventSummary feature={feature} />
          </button>
        </li>
      ))}
      {detail.clients.map((client) => (
        <li key={client}>
          <button type="button" class="row" onClick={() => console.open({ kind: "client", client })}>
            <span class="quiet">client</span>
            <span class="name">
              <bdi>{client}</bdi>
            </span>
          </button>
        </li>
      ))}
    </ol>
  );
}
