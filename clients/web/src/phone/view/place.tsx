// Where one is, how the page knows, and whether the broker does.

import { useComputed } from "@preact/signals";
import type { JSX } from "preact";

import { now_ms } from "../now.js";
import { ago, clockTime, metres } from "../words.js";
import type { Props } from "./app.js";

export function PlaceControls({ phone }: Props): JSX.Element {
  const world = phone.world.value;
  const here = phone.here.value;
  const planar = world?.settings.world === "planar";
  const coordinates = here === undefined ? undefined : here.place.map((part) => part.toFixed(planar ? 1 : 5)).reverse();
  if (planar) coordinates?.reverse();
  return (
    <section class="place" aria-label="Your place">
      <div class="row">
        <strong class="numbers">{coordinates === undefined ? "Where are you?" : coordinates.join(", ")}</strong>
        {!planar && world !== undefined && (
          <button
            type="button"
            class={here === undefined ? "primary" : ""}
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
      <Known phone={phone} />
    </section>
  );
}

/** Whether the broker has the place, and what becomes of it where it cannot. */
function Known({ phone }: Props): JSX.Element {
  const words = useComputed((): string => {
    const [teller, here, link] = [phone.world.value?.teller, phone.here.value, phone.subscriber.value?.link.value];
    if (teller === undefined || phone.stage.value.at !== "running") return "";
    if (phone.unlocated.value !== undefined) return "";
    const accuracy = here?.accuracy_m === undefined ? "" : `Known to ${metres(here.accuracy_m)}. `;
    if (link?.at === "offline") {
      const since = `Offline since ${clockTime(link.since_ms)}, catching up when it is back.`;
      return teller.waiting.value ? `${since} Your way is recorded and waits for the network.` : since;
    }
    if (here === undefined) return phone.locating.value ? "The phone is looking for its place…" : "Nothing is near you until you say.";
    if (teller.refused.value !== undefined) return `The broker does not take your place: ${teller.refused.value}`;
    const told_ms = teller.told_ms.value;
    // Nothing comes before both are in force.
    return told_ms === undefined || phone.wish.state.value === "waits"
      ? "Telling the broker…"
      : `${accuracy}The broker has your place, told ${ago(now_ms.value - told_ms)}.`;
  });
  return (
    <p class="known numbers">
      <span role="status">{phone.unlocated.value}</span>
      {words}
    </p>
  );
}
