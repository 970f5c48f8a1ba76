// The time that the map shows: a slider over the last minutes, and the way back to now.

import { useSignal } from "@preact/signals";
import { Pause, Play } from "lucide";
import { useEffect } from "preact/hooks";

import { Icon } from "../../shared/icon.js";
import { useConsole } from "../context.js";
import { SPEEDS } from "../live/replay.js";
import { span } from "../words.js";

const SECOND_MS = 1000;
/** Below so many seconds there is nothing to go back to. */
const LEAST_S = 3;
/** Of the bigger steps of the keyboard. */
const PAGE_S = 60;

function clock(at_ms: number): string {
  return new Date(performance.timeOrigin + at_ms).toLocaleTimeString("en-GB");
}

export function Time() {
  const { replay } = useConsole();
  const now_ms = useSignal(performance.now());
  useEffect(() => {
    const timer = setInterval(() => (now_ms.value = performance.now()), SECOND_MS);
    return () => clearInterval(timer);
  }, []);
  // Read before all else, so that each second is another look at whether something is kept.
  const time_ms = now_ms.value;
  const shown = replay.value;
  const from_ms = shown?.past.from_ms;
  if (shown === undefined || from_ms === undefined || time_ms - from_ms < LEAST_S * SECOND_MS) return null;
  const at_ms = shown.at_ms.value;
  const isLive = at_ms === undefined;
  const runs = isLive || shown.playing.value;
  const [from_s, now_s] = [Math.ceil(from_ms / SECOND_MS), Math.floor(time_ms / SECOND_MS)];
  const value_s = isLive ? now_s : Math.floor(at_ms / SECOND_MS);
  const ago = isLive ? "now" : `${span(Math.max(1, now_s - value_s))} ago`;
  return (
    <>
      {!isLive && <div class="past-edge" aria-hidden="true" />}
      <p class={isLive ? "visually-hidden" : "past-sign"} role="status">
        {isLive ? "" : "Not live: the map shows the past"}
      </p>
      <section class={isLive ? "time" : "time past"} aria-label="Time of the map">
        <button
          type="button"
          class="icon"
          aria-label={runs ? "Stop the map" : "Go on from here"}
          title={runs ? "Stop the map" : "Go on from here"}
          onClick={() => shown.toggle()}
        >
          <Icon of={runs ? Pause : Play} filled />
        </button>
        <input
          type="range"
          aria-label="Time that the map shows"
          aria-valuetext={isLive ? "now" : `${clock(at_ms)}, ${ago}`}
          min={from_s}
          max={now_s}
          step={1}
          value={value_s}
          onInput={({ currentTarget }) => shown.seek(Number(currentTarget.value) * SECOND_MS)}
          onKeyDown={(event) => {
            const by = { PageUp: PAGE_S, PageDown: -PAGE_S }[event.key];
            if (by === undefined) return;
            event.preventDefault();
            shown.seek((value_s + by) * SECOND_MS);
          }}
        />
        <output class="numbers">
          <strong>{clock(isLive ? time_ms : at_ms)}</strong>{" "}
          <span class="quiet">{isLive ? `${span(now_s - from_s)} of history` : ago}</span>
        </output>
        {!isLive && (
          <select
            aria-label="Speed"
            value={shown.speed.value}
            onChange={({ currentTarget }) => (shown.speed.value = Number(currentTarget.value))}
          >
            {SPEEDS.map((speed) => (
              <option key={speed} value={speed}>
                {speed}×
              </option>
            ))}
          </select>
        )}
        <button type="button" class="to-live" aria-pressed={isLive} onClick={() => shown.live()}>
          <span class="mark" aria-hidden="true" /> Live
        </button>
      </section>
    </>
  );
}
