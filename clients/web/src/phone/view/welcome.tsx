// What a person reads first: what the page does, and why it asks where they are, before the browser asks.

import type { JSX } from "preact";

import { unbroken } from "../../shared/readable.js";
import { metres } from "../words.js";
import type { Props } from "./app.js";
import { Typed } from "./place.js";

interface WelcomeProps extends Props {
  /** Says that one is where the map's pin is; absent until there is a map. */
  readonly putHere: (() => void) | undefined;
}

export function Welcome({ phone, putHere }: WelcomeProps): JSX.Element {
  const settings = phone.world.value?.settings;
  const planar = settings?.world === "planar";
  return (
    <section class="welcome" aria-labelledby="welcome">
      <h2 id="welcome">Where are you?</h2>
      <p>
        Events within <strong>{unbroken(metres(phone.preferences.value.radius_m))}</strong> of you appear here as they happen, and go along
        when you move.
      </p>
      {settings !== undefined && !planar && (
        <>
          <button type="button" class="primary wide" aria-pressed={phone.locating.value} onClick={() => phone.locate()}>
            Use my location
          </button>
        </>
      )}
      {settings !== undefined && putHere !== undefined && (
        <button type="button" class={planar ? "primary wide" : "wide"} onClick={putHere}>
          Put me here
        </button>
      )}
      {settings !== undefined && (
        <p class="quiet">
          {!planar && phone.unlocated.value === undefined && "The browser asks you before it tells your location. "}
          “Put me here” takes the pin: move the map below it.
        </p>
      )}
      <p role="status" class={phone.unlocated.value === undefined ? "quiet" : "warn"}>
        {phone.unlocated.value ?? (phone.locating.value ? "The phone is looking for its place…" : undefined)}
      </p>
      {settings?.base_map === false && <Typed phone={phone} planar={planar} />}
      <p class="quiet privacy">Your place goes to this service alone, and no other user sees it. “Forget me” in the settings deletes it.</p>
    </section>
  );
}
