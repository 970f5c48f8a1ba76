// The best way between two places, by what the broker knows of streets.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Feature } from "geojson";
import type { FoundRoute } from "nearcast";

import type { Place } from "../../shared/map/plane.js";
import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { routeWords } from "../words.js";
import { useMiddle } from "./middle.js";
import { NumberField } from "./number.js";
import { rounded } from "./shape.js";

const ENDS = ["from", "to"] as const;
type End = (typeof ENDS)[number];

export function RoutePart() {
  const console = useConsole();
  const { access, view } = console;
  const ends = useSignal<Readonly<Record<End, Place>>>({ from: console.middle(), to: console.middle() });
  const { chosen } = useMiddle((middle) => void (ends.value = { from: middle, to: middle }));
  const by = useSignal<"duration" | "length">("duration");
  /** The end that the next click on the map is. */
  const picking = useSignal<End | undefined>(undefined);
  const answer = useSignal<{ readonly found: FoundRoute } | { readonly why: string } | undefined>(undefined);
  const set = (end: End, [x, y]: Place): void => {
    ends.value = { ...ends.value, [end]: [rounded(x, "geodetic"), rounded(y, "geodetic")] };
    chosen.value = true;
    answer.value = undefined;
  };
  const pick = (end: End | undefined): void => {
    if (end === undefined) {
      if (picking.peek() !== undefined) view.peek()?.use(undefined);
      return;
    }
    view.value?.use({
      click: (place) => {
        set(end, place);
        pick(end === "from" ? "to" : undefined);
      },
      ended: () => (picking.value = undefined),
    });
    picking.value = end;
  };
  useEffect(() => {
    view.value?.draw("route", shapesOf(ends.value, answer.value));
  }, [view.value, ends.value, answer.value]);
  useEffect(
    () => () => {
      view.peek()?.draw("route", []);
      pick(undefined);
    },
    [],
  );
  const find = async (): Promise<void> => {
    pick(undefined);
    const [asked, askedBy] = [ends.value, by.value];
    try {
      const found = (await access.call("v1/routes", { method: "POST", body: { ...asked, by: askedBy } })) as FoundRoute;
      if (asked !== ends.value || askedBy !== by.value) return;
      answer.value = { found };
      const shapes = shapesOf(asked, answer.value);
      if (shapes.length > 0) view.value?.goToShapes(shapes.slice(0, 1));
    } catch (error) {
      const isForbidden = statusOf(error) === 403;
      answer.value = {
        why: isForbidden ? "This token does not permit to ask for routes: that takes the scope subscribe." : reasonOf(error),
      };
    }
  };
  const told = answer.value;
  return (
    <section class="findRoute" aria-labelledby="find-route">
      <h2 id="find-route">Find a route</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void find();
        }}
      >
        {ENDS.map((end) => (
          <fieldset key={end}>
            <legend>{end === "from" ? "From" : "To"}</legend>
            <div class="numbersRow">
              <NumberField label="longitude" value={ends.value[end][0]} change={(x) => set(end, [x, ends.value[end][1]])} />
              <NumberField label="latitude" value={ends.value[end][1]} change={(y) => set(end, [ends.value[end][0], y])} />
            </div>
          </fieldset>
        ))}
        <button
          type="button"
          class="small"
          aria-pressed={picking.value !== undefined}
          onClick={() => pick(picking.value ? undefined : "from")}
        >
          {picking.value === undefined ? "Pick both on the map" : `Now click where it ${picking.value === "from" ? "begins" : "ends"}`}
        </button>
        <div class="field">
          <label for="route-by">Least</label>
          <select
            id="route-by"
            value={by.value}
            onChange={({ currentTarget }) => {
              by.value = currentTarget.value === "length" ? "length" : "duration";
              answer.value = undefined;
            }}
          >
            <option value="duration">time</option>
            <option value="length">length</option>
          </select>
        </div>
        <button type="submit">Find</button>
      </form>
      <p role="status" class={told !== undefined && "why" in told ? "bad" : undefined}>
        {told !== undefined && ("why" in told ? `No route: ${told.why}.` : routeWords(told.found))}
      </p>
    </section>
  );
}

/** The line of an answer; where there is none, one from end to end. */
function shapesOf(
  ends: Readonly<Record<End, Place>>,
  answer: { readonly found: FoundRoute } | { readonly why: string } | undefined,
): Feature[] {
  const point = (end: End): Feature => ({ type: "Feature", properties: { end }, geometry: { type: "Point", coordinates: [...ends[end]] } });
  // Both are in the middle of the map until somebody has said where they are.
  if (String(ends.from) === String(ends.to)) return [];
  if (answer === undefined || "why" in answer) return ENDS.map(point);
  const coordinates = answer.found.route.coordinates.map(([lon, lat]) => [lon, lat]);
  return [{ type: "Feature", properties: {}, geometry: { type: "LineString", coordinates } }, ...ENDS.map(point)];
}
