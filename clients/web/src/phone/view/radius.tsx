import type { JSX } from "preact";

import { radiusAt, stepOf, STEPS } from "../radius.js";
import { metres, spokenMetres } from "../words.js";
import type { Props } from "./app.js";

export function Radius({ phone }: Props): JSX.Element {
  const { radius_m } = phone.preferences.value;
  return (
    <div class="radius">
      <label for="radius">Within</label>
      <output for="radius" class="numbers">
        {metres(radius_m)}
      </output>
      <input
        id="radius"
        type="range"
        min="0"
        max={STEPS}
        step="1"
        value={stepOf(radius_m)}
        aria-valuetext={spokenMetres(radius_m)}
        onInput={({ currentTarget }) => {
          phone.prefer({ radius_m: radiusAt(currentTarget.valueAsNumber) });
        }}
      />
    </div>
  );
}
