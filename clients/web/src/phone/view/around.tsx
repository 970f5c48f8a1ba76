// What of the surroundings one hears of, in a line that opens; and whether it is so.

import type { JSX } from "preact";

import { metres } from "../words.js";
import type { Props } from "./app.js";
import { FoldSign } from "./fold.js";
import { ChoiceSummary, Interests } from "./interests.js";
import { Known, PlaceControls, Sent } from "./place.js";
import { Radius } from "./radius.js";

export function Around({ phone }: Props): JSX.Element {
  return (
    <>
      <details class="around">
        <summary>
          <strong class="numbers">Within {metres(phone.preferences.value.radius_m)}</strong>
          <ChoiceSummary phone={phone} />
          <FoldSign />
          <Sent phone={phone} />
        </summary>
        <Radius phone={phone} />
        <Interests phone={phone} />
        <PlaceControls phone={phone} />
      </details>
      <Known phone={phone} />
    </>
  );
}
