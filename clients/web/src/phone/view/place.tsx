// Where one is, how the page knows, and whether the broker does.

import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { now_ms } from "../now.js";
import { clockTime } from "../../shared/date-time.js";
import { ago, metres, typedPlace } from "../words.js";
import { degrees } from "../../shared/degrees.js";
import { unbroken } from "../../shared/readable.js";
import type { Phone } from "../phone.js";
import type { Props } from "./app.js";
import { FoldSign } from "./fold.js";

export function PlaceControls({ phone }: Props): JSX.Element {
  const world = phone.world.value;
  const here = phone.here.value;
  const planar = world?.settings.world === "planar";
  return (
    <section class="place" aria-labelledby="place">
      <h2 id="place">Where</h2>
      <div class="row">
        <strong class="numbers">{here !== undefined && degrees(here.place, planar ? "planar" : "geodetic")}</strong>
        {!planar && world !== undefined && (
          <button
            type="button"
            aria-pressed={phone.locating.value}
            onClick={() => {
              if (phone.locating.value) phone.stopLocating();
              else phone.locate();
            }}
          >
            Use my location
          </button>
        )}
      </div>
      {world?.settings.base_map === false && <Typed phone={phone} planar={planar} />}
    </section>
  );
}

/** Without a base map nobody finds themselves on it. */
export function Typed({ phone, planar }: Props & { readonly planar: boolean }): JSX.Element {
  const text = useSignal("");
  const fault = useSignal("");
  const put = (): void => {
    const place = typedPlace(text.value, planar ? "planar" : "geodetic");
    fault.value = typeof place === "string" ? place : "";
    if (typeof place !== "string") phone.putHere(place);
  };
  return (
    <details class="typed">
      <summary>
        Type your place <FoldSign />
      </summary>
      <label for="typed">{planar ? "x, y in metres" : "Latitude, longitude"}</label>
      <div class="row">
        <input
          id="typed"
          class="mono"
          type="text"
          autocomplete="off"
          maxLength={100}
          value={text.value}
          placeholder={planar ? "1200, 850" : "45.4641, 9.1895"}
          aria-invalid={fault.value !== ""}
          aria-describedby="typed-fault"
          onInput={({ currentTarget }) => (text.value = currentTarget.value)}
          onKeyDown={({ key }) => {
            if (key === "Enter") put();
          }}
        />
        <button type="button" onClick={put}>
          Put me there
        </button>
      </div>
      <p id="typed-fault" class="bad" role="status">
        {fault.value}
      </p>
    </details>
  );
}

/** That the broker has the place, and since when: as long as all is well that is a part of the field that says how far one hears. */
export function Sent({ phone }: Props): JSX.Element | null {
  const words = useComputed((): string | undefined => {
    if (troubleOf(phone) !== undefined) return undefined;
    const [told_ms, here] = [phone.world.value?.teller.told_ms.value, phone.here.value];
    // Receivers that say 0 m do not know.
    const exact = here?.accuracy_m === undefined || here.accuracy_m < 1 ? "" : `, accurate to ${metres(here.accuracy_m)}`;
    // Nothing comes before both are in force.
    if (told_ms === undefined || phone.wish.state.value === "waits") return "Sending your place…";
    return unbroken(`Your place was sent ${ago(now_ms.value - told_ms)}${exact}.`);
  });
  return words.value === undefined ? null : <small class="sent quiet numbers">{words}</small>;
}

/** Why the broker does not have the place, and what becomes of it. */
export function Known({ phone }: Props): JSX.Element {
  const words = useComputed(() => troubleOf(phone));
  const offline = phone.subscriber.value?.link.value.at === "offline";
  return (
    <p class={`known numbers${offline ? " note" : ""}`}>
      <span role="status">{phone.unlocated.value}</span>
      {words}
    </p>
  );
}

/** What keeps the place from the broker; `undefined` while nothing does. */
function troubleOf(phone: Phone): string | undefined {
  const [teller, here, link] = [phone.world.value?.teller, phone.here.value, phone.subscriber.value?.link.value];
  if (teller === undefined || phone.stage.value.at !== "running") return "";
  if (phone.unlocated.value !== undefined) return "";
  if (link?.at === "offline") {
    const since = `Offline since ${clockTime(link.since_ms)}. You see what came until then.`;
    return teller.waiting.value ? `${since} Your way is recorded and sent later.` : since;
  }
  if (here?.last === true) return "You were here the last time. The phone is looking for its place…";
  return teller.refused.value === undefined ? undefined : `Your place is refused: ${teller.refused.value}`;
}
