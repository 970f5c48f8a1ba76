// The draft's area: which form, and its numbers.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Place } from "../../shared/map/plane.js";
import { useConsole } from "../context.js";
import type { Console } from "../model.js";
import type { DrawnForm } from "./draw.js";
import { NumberField } from "./number.js";
import { missing, type Form, type Shape } from "./shape.js";

const FORMS: readonly (readonly [Form, string])[] = [
  ["everywhere", "Everywhere"],
  ["around", "Around a client"],
  ["circle", "Circle"],
  ["polygon", "Polygon"],
  ["corridor", "Corridor"],
];

const HINTS = {
  circle: "Drag from the middle to the edge on the map, or click both.",
  polygon: "Click the corners on the map; double-click, or Done, ends it.",
  corridor: "Click the places of its line on the map; double-click, or Done, ends it.",
};

export function AreaField() {
  const console = useConsole();
  const { draft, drawing, settings } = console;
  const shape = draft.shape.value;
  const drawn = drawing.value?.active.value;
  const choose = (form: Form): void => {
    drawing.value?.finish();
    if (form === "everywhere") draft.shape.value = { form };
    else if (form === "around") draft.shape.value = aroundOf(console, "", RADIUS_M);
    else if (drawing.value === undefined) draft.shape.value = begun(form, console.middle());
    else drawing.value.begin(form);
  };
  return (
    <section aria-labelledby="area-label">
      <h3 id="area-label">Area</h3>
      <div class="forms" role="group" aria-labelledby="area-label">
        {FORMS.map(([form, label]) => (
          <button key={form} type="button" aria-pressed={(drawn ?? shape.form) === form} onClick={() => choose(form)}>
            {label}
          </button>
        ))}
      </div>
      {shape.form === "around" && drawn === undefined && <AroundFields shape={shape} />}
      {drawn !== undefined && drawn !== "everywhere" && drawn !== "around" && (
        <p class="hint" role="status">
          {HINTS[drawn]}{" "}
          <button type="button" class="small" onClick={() => drawing.value?.finish()}>
            Done
          </button>{" "}
          <button
            type="button"
            class="small"
            onClick={() => {
              drawing.value?.finish();
              draft.shape.value = begun(drawn, console.middle());
            }}
          >
            Write it instead
          </button>
        </p>
      )}
      <Numbers
        shape={shape}
        change={(changed) => (draft.shape.value = changed)}
        names={settings.world === "planar" ? ["x, m", "y, m"] : ["longitude", "latitude"]}
      />
      {shape.form !== "everywhere" && shape.form !== "around" && drawn === undefined && (
        <p class="quiet">{missing(shape) ?? "Drag its dots on the map, or change the numbers."}</p>
      )}
    </section>
  );
}

const RADIUS_M = 1000;
/** An area that is tried follows its client so often. */
const FOLLOW_MS = 3000;

function aroundOf({ clients }: Console, client: string, radius_m: number): Extract<Shape, { form: "around" }> {
  return { form: "around", client, radius_m, center: clients.placeOf(client) };
}

function AroundFields({ shape }: { readonly shape: Extract<Shape, { form: "around" }> }) {
  const console = useConsole();
  const { draft, clients } = console;
  const change = (client: string, radius_m: number): void => void (draft.shape.value = aroundOf(console, client.trim(), radius_m));
  useEffect(() => {
    const timer = setInterval(() => {
      const now = aroundOf(console, shape.client, shape.radius_m);
      if (JSON.stringify(now.center) !== JSON.stringify(shape.center)) draft.shape.value = now;
    }, FOLLOW_MS);
    return () => clearInterval(timer);
  }, [shape]);
  return (
    <>
      <div class="numbersRow">
        <div class="field">
          <label for="around-client">client to try it for</label>
          <input
            id="around-client"
            list="around-clients"
            autocomplete="off"
            value={shape.client}
            onInput={({ currentTarget }) => change(currentTarget.value, shape.radius_m)}
          />
          <datalist id="around-clients">
            {clients.list.value
              .filter(({ position }) => position !== undefined)
              .slice(0, 200)
              .map(({ client }) => (
                <option key={client} value={client} />
              ))}
          </datalist>
        </div>
        <NumberField label="radius, m" value={shape.radius_m} min={0} change={(radius_m) => change(shape.client, radius_m)} />
      </div>
      <p class="quiet">{missing(shape) ?? "The area moves with whichever client subscribes; here it is tried where this one is."}</p>
    </>
  );
}

/** Something to begin with by keyboard. */
function begun(form: DrawnForm, [x, y]: Place): Shape {
  return form === "circle"
    ? { form, center: [x, y], radius_m: RADIUS_M }
    : form === "polygon"
      ? { form, corners: [[x, y]] }
      : { form, corners: [[x, y]], radius_m: RADIUS_M };
}

/** Corners that are shown as fields; a shape with more is drawn. */
const FIELDS = 50;

export function Numbers({
  shape,
  change,
  names,
}: {
  readonly shape: Shape;
  readonly change: (shape: Shape) => void;
  readonly names: readonly [string, string];
}) {
  // Keys of the rows, so that a removed one takes its own fields along.
  const keys = useSignal<{ next: number; of: number[] }>({ next: 0, of: [] });
  if (shape.form === "everywhere" || shape.form === "around") return null;
  if (shape.form === "circle") {
    return (
      <div class="numbersRow">
        <PlaceFields names={names} place={shape.center} change={(center) => change({ ...shape, center })} />
        <NumberField label="radius, m" value={shape.radius_m} min={0} change={(radius_m) => change({ ...shape, radius_m })} />
      </div>
    );
  }
  const { corners } = shape;
  const rows = keys.peek();
  while (rows.of.length < corners.length) rows.of.push(rows.next++);
  rows.of.length = corners.length;
  const last = corners.at(-1) ?? [0, 0];
  return (
    <>
      {shape.form === "corridor" && (
        <div class="numbersRow">
          <NumberField label="metres to each side" value={shape.radius_m} min={0} change={(radius_m) => change({ ...shape, radius_m })} />
        </div>
      )}
      <ol class="corners">
        {corners.slice(0, FIELDS).map((corner, index) => (
          <li key={rows.of[index]} class="numbersRow">
            <PlaceFields
              names={names}
              place={corner}
              change={(place) => change({ ...shape, corners: corners.map((other, at) => (at === index ? place : other)) })}
            />
            <button
              type="button"
              class="small"
              aria-label={`Remove place ${index + 1}`}
              onClick={() => {
                rows.of.splice(index, 1);
                change({ ...shape, corners: corners.filter((_, at) => at !== index) });
              }}
            >
              <span aria-hidden="true">×</span>
            </button>
          </li>
        ))}
      </ol>
      {corners.length > 0 && corners.length < FIELDS && (
        <button type="button" class="small" onClick={() => change({ ...shape, corners: [...corners, last] })}>
          Add a place
        </button>
      )}
    </>
  );
}

function PlaceFields({
  names,
  place,
  change,
}: {
  readonly names: readonly [string, string];
  readonly place: Place;
  readonly change: (place: Place) => void;
}) {
  return (
    <>
      <NumberField label={names[0]} value={place[0]} change={(x) => change([x, place[1]])} />
      <NumberField label={names[1]} value={place[1]} change={(y) => change([place[0], y])} />
    </>
  );
}
