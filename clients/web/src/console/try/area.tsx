// The draft's area: which form, and its numbers.

import { useSignal } from "@preact/signals";

import type { Place } from "../../shared/map/plane.js";
import { useConsole } from "../context.js";
import { NumberField } from "./number.js";
import { missing, type Form, type Shape } from "./shape.js";

const FORMS: readonly (readonly [Form, string])[] = [
  ["everywhere", "Everywhere"],
  ["circle", "Circle"],
  ["polygon", "Polygon"],
  ["corridor", "Corridor"],
];

const HINTS = {
  circle: "Click the middle on the map, then the edge.",
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
      {drawn !== undefined && drawn !== "everywhere" && (
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
      {shape.form !== "everywhere" && drawn === undefined && (
        <p class="quiet">{missing(shape) ?? "Drag its dots on the map, or change the numbers."}</p>
      )}
    </section>
  );
}

const RADIUS_M = 1000;

/** Something to begin with by keyboard. */
function begun(form: Exclude<Form, "everywhere">, [x, y]: Place): Shape {
  return form === "circle"
    ? { form, center: [x, y], radius_m: RADIUS_M }
    : form === "polygon"
      ? { form, corners: [[x, y]] }
      : { form, corners: [[x, y]], radius_m: RADIUS_M };
}

/** Corners that are shown as fields; a shape with more is drawn. */
const FIELDS = 50;

function Numbers({
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
  if (shape.form === "everywhere") return null;
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
