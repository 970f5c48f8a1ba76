import type { JSX } from "preact";

import { radiusAt, stepOf, STEPS } from "../radius.js";
import { metres, spokenMetres } from "../words.js";
import type { Props } from "./app.js";

export function Radius({ phone }: Props): JSX.Element {
  return (
    <RadiusSlider
      id="radius"
      label="Within"
      radius_m={phone.preferences.value.radius_m}
      change={(radius_m) => phone.prefer({ radius_m })}
    />
  );
}

interface RadiusSliderProps {
  readonly id: string;
  readonly label: string;
  readonly radius_m: number;
  readonly change: (radius_m: number) => void;
}

export function RadiusSlider({ id, label, radius_m, change }: RadiusSliderProps): JSX.Element {
  return (
    <div class="radius">
      <label for={id}>{label}</label>
      <output for={id} class="numbers">
        {metres(radius_m)}
      </output>
      <input
        id={id}
        type="range"
        min="0"
        max={STEPS}
        step="1"
        value={stepOf(radius_m)}
        aria-valuetext={spokenMetres(radius_m)}
        onInput={({ currentTarget }) => {
          change(radiusAt(currentTarget.valueAsNumber));
        }}
      />
    </div>
  );
}
