// Publishes a test event.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { DeliveredFeature } from "nearcast";

import { HttpProblem } from "../../shared/http.js";
import type { Place } from "../../shared/map/plane.js";
import { randomName, reasonOf, statusOf } from "../access.js";
import { ViolatingEvents } from "../checks/finding.js";
import { linksOf } from "../checks/violation.js";
import { useConsole } from "../context.js";
import { intoView } from "../into-view.js";
import { WhoGotIt } from "../why/event.js";
import { useMiddle } from "./middle.js";
import { NumberField } from "./number.js";
import { guess, propertiesOf, type Row } from "./properties.js";
import { rounded } from "./shape.js";

interface Line extends Row {
  readonly key: number;
}

export function PublishPart() {
  const console = useConsole();
  const { access, view, settings, live } = console;
  const place = useSignal(console.middle());
  const placing = useSignal(false);
  const { chosen } = useMiddle((middle) => void (place.value = middle));
  const lines = useSignal<readonly Line[]>([{ key: 0, name: "", value: "" }]);
  const key = useSignal("");
  const ttl_s = useSignal("");
  const problem = useSignal<string | undefined>(undefined);
  const said = useRef<HTMLDivElement>(null);
  const published = useSignal<DeliveredFeature | undefined>(undefined);
  /** Why a check has refused it. */
  const refusal = useSignal<{ readonly check: string; readonly links: ReturnType<typeof linksOf> } | undefined>(undefined);
  const names = settings.world === "planar" ? ["x, m", "y, m"] : ["longitude", "latitude"];
  const setPlace = ([x, y]: Place): void => {
    place.value = [rounded(x, settings.world), rounded(y, settings.world)];
    chosen.value = true;
    problem.value = undefined;
  };
  const pick = (): void => {
    if (placing.value) {
      view.value?.use(undefined);
      return;
    }
    view.value?.use({
      click: (clicked) => {
        setPlace(clicked);
        view.value?.use(undefined);
      },
      ended: () => (placing.value = false),
    });
    placing.value = true;
  };
  useEffect(
    () => () => {
      if (placing.peek()) view.peek()?.use(undefined);
    },
    [],
  );
  const change = (at: number, row: Partial<Row>): void =>
    void (lines.value = lines.value.map((line, index) => (index === at ? { ...line, ...row } : line)));
  const publish = async (): Promise<void> => {
    const { properties, twice } = propertiesOf(lines.value);
    const life = ttl_s.value.trim();
    problem.value =
      twice !== undefined
        ? `The property ${twice} is given twice.`
        : life !== "" && !(Number(life) > 0)
          ? "“Lives for” takes a number of seconds above 0, or nothing."
          : undefined;
    if (problem.value !== undefined) return;
    const event = {
      type: "Feature",
      id: `test-${randomName(6)}`,
      geometry: { type: "Point", coordinates: place.value },
      properties,
      ...(life === "" ? {} : { ttl_s: Number(life) }),
      ...(key.value === "" ? {} : { key: key.value }),
    } as const;
    published.value = undefined;
    refusal.value = undefined;
    try {
      await access.call("v1/events", { method: "POST", body: event });
      published.value = { ...event, time: new Date().toISOString() };
      intoView(said);
    } catch (error) {
      if (error instanceof HttpProblem && error.check !== undefined) {
        // The event itself is bound, too, and nobody but this page has seen it.
        const own = { ...event, time: new Date().toISOString() };
        const links = linksOf(error.links, (id) => (id === event.id ? own : live.violations.find(id)));
        refusal.value = { check: error.check, links };
      }
      problem.value =
        statusOf(error) === 403 ? `This token does not permit to publish that: ${reasonOf(error)}` : `Not published: ${reasonOf(error)}`;
    }
  };
  return (
    <section class="publish" aria-labelledby="publish">
      <h2 id="publish">Publish a test event</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void publish();
        }}
      >
        <div class="numbersRow">
          <NumberField label={names[0] ?? ""} value={place.value[0]} change={(x) => setPlace([x, place.value[1]])} />
          <NumberField label={names[1] ?? ""} value={place.value[1]} change={(y) => setPlace([place.value[0], y])} />
        </div>
        <button type="button" class="small" aria-pressed={placing.value} onClick={pick}>
          {placing.value ? "Now click on the map" : "Pick the place on the map"}
        </button>
        <table class="rowsOf">
          <caption>Properties</caption>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Value</th>
              <th scope="col">Kind</th>
            </tr>
          </thead>
          <tbody>
            {lines.value.map((line, index) => (
              <tr key={line.key}>
                <td>
                  <input
                    aria-label={`Name of property ${index + 1}`}
                    autocomplete="off"
                    value={line.name}
                    onInput={({ currentTarget }) => change(index, { name: currentTarget.value })}
                  />
                </td>
                <td>
                  <input
                    aria-label={`Value of property ${index + 1}`}
                    autocomplete="off"
                    value={line.value}
                    onInput={({ currentTarget }) => change(index, { value: currentTarget.value })}
                  />
                </td>
                <td class="quiet">{line.name.trim() === "" ? "" : guess(line.value).kind}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <button
          type="button"
          class="small"
          onClick={() => (lines.value = [...lines.value, { key: (lines.value.at(-1)?.key ?? 0) + 1, name: "", value: "" }])}
        >
          Add a property
        </button>
        <div class="pair">
          <div class="field">
            <label for="event-key">Key (optional)</label>
            <input id="event-key" autocomplete="off" value={key.value} onInput={({ currentTarget }) => (key.value = currentTarget.value)} />
          </div>
          <div class="field">
            <label for="event-ttl">Lives for, seconds</label>
            <input
              id="event-ttl"
              inputMode="decimal"
              autocomplete="off"
              value={ttl_s.value}
              onInput={({ currentTarget }) => (ttl_s.value = currentTarget.value)}
            />
          </div>
        </div>
        <p class="bad" role="alert">
          {problem.value}
        </p>
        {refusal.value?.links.map((bound, index) => (
          <div key={index} class="refused">
            <p>
              Held back by check <bdi>{refusal.value?.check}</bdi>:{" "}
              {bound.length === 1 ? "this event breaks it." : "these events do not fit together."}
            </p>
            <ViolatingEvents bound={bound} check={refusal.value?.check} />
          </div>
        ))}
        <button type="submit" class="primary">
          Publish
        </button>
      </form>
      <div ref={said}>{published.value !== undefined && <Published key={published.value.id} feature={published.value} />}</div>
    </section>
  );
}

function Published({ feature }: { readonly feature: DeliveredFeature }) {
  const console = useConsole();
  return (
    <>
      <p class="good" role="status">
        Published as{" "}
        <button type="button" class="link" onClick={() => console.open({ kind: "event", feature })}>
          {feature.id}
        </button>
      </p>
      <WhoGotIt id={feature.id} fresh why={(client) => console.open({ kind: "event", feature, why: client })} />
    </>
  );
}
