// What stands where there is nothing yet: how to make something happen.

import { brokerUrl } from "../../shared/pages.js";
import { CodeBlock } from "../copy.js";
import { useConsole } from "../context.js";

/** A command that publishes an event in the middle of the map. */
export function publishCommand(place: readonly number[], tokens: boolean): string {
  const [x, y] = place.map((number) => Number(number.toFixed(4)));
  const event = `{"type": "Feature", "key": "bus-12", "geometry": {"type": "Point", "coordinates": [${x}, ${y}]}, "properties": {"kind": "bus"}}`;
  const lines = [`curl ${new URL("v1/events", brokerUrl).href}`, "-H 'content-type: application/json'", `-d '${event}'`];
  if (tokens) lines.splice(1, 0, '-H "authorization: Bearer $TOKEN"');
  return lines.join(" \\\n  ");
}

/** The empty list of events. */
export function NoEvents() {
  const console = useConsole();
  const { settings, access, live } = console;
  if (live.link.value.state !== "ready") return <p class="quiet">Events will be listed here once the console is connected.</p>;
  return (
    <div class="empty">
      <p>
        <strong>No events yet.</strong> Publish your first one:
      </p>
      <CodeBlock
        name="Command that publishes an event"
        text={publishCommand(console.middle(), settings.tokens || access.token.value !== undefined)}
      />
      <p>
        or{" "}
        <button type="button" class="link" onClick={() => console.go("try")}>
          publish one from here
        </button>
        . It appears on the map and in this list at once.
      </p>
    </div>
  );
}
