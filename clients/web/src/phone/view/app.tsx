// The page: a bar, the map, and the sheet that the thumb reaches.

import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";

import type { Phone } from "../phone.js";
import { clockTime } from "../words.js";
import { Interests } from "./interests.js";
import { List } from "./list.js";
import { MapView } from "./map-view.js";
import { PlaceControls } from "./place.js";
import { Radius } from "./radius.js";
import { SettingsDialog } from "./settings.js";
import { TokenDialog } from "./token.js";

export interface Props {
  readonly phone: Phone;
}

export function App({ phone }: Props): JSX.Element {
  const tall = useSignal(false);
  const settings = useSignal(false);
  const forgotten = phone.stage.value.at === "forgotten";
  useSignalEffect(() => {
    const unread = phone.unread.value;
    document.title = unread > 0 ? `(${unread}) nearcast around you` : "nearcast around you";
  });
  return (
    <div class={tall.value ? "page tall" : "page"}>
      <header class="bar">
        <h1>Around you</h1>
        <Connection phone={phone} />
        <Unread phone={phone} />
        <button type="button" disabled={forgotten} onClick={() => (settings.value = true)}>
          Settings
        </button>
      </header>
      <main>
        <MapView phone={phone} />
        <section class="sheet" aria-label="What comes in reach">
          <button type="button" class="grip" onClick={() => (tall.value = !tall.value)}>
            <span class="visually-hidden">{tall.value ? "More room for the map" : "More room for the list"}</span>
          </button>
          <div class="scroll">
            <Stopped phone={phone} />
            {!forgotten && (
              <>
                <PlaceControls phone={phone} />
                <Radius phone={phone} />
                <Interests phone={phone} />
                <List phone={phone} />
              </>
            )}
          </div>
        </section>
      </main>
      <Announcements phone={phone} />
      <TokenDialog phone={phone} />
      {settings.value && <SettingsDialog phone={phone} close={() => (settings.value = false)} />}
    </div>
  );
}

/** How the connection is, in the bar. What it means for the person is in the sheet. */
function Connection({ phone }: Props): JSX.Element {
  const [tone, words] = useComputed((): readonly [string, string] => {
    const link = phone.subscriber.value?.link.value;
    switch (phone.stage.value.at) {
      case "starting":
        return ["quiet", "Connecting…"];
      case "unreachable":
        return ["warn", "No broker"];
      case "token":
        return ["warn", "Token wanted"];
      case "elsewhere":
        return ["quiet", "In another tab"];
      case "forgotten":
        return ["quiet", "Forgotten"];
      case "refused":
        return ["bad", "Refused"];
      case "running":
        if (link?.at === "online") return ["good", "Connected"];
        if (link?.at === "none") return ["quiet", "Not connected yet"];
        return link?.at === "offline" ? ["warn", `Offline since ${clockTime(link.since_ms)}`] : ["quiet", "Connecting…"];
    }
  }).value;
  return (
    <p class="connection" role="status" data-tone={tone}>
      {words}
    </p>
  );
}

function Unread({ phone }: Props): JSX.Element | null {
  const count = phone.unread.value;
  if (count === 0) return null;
  const show = (): void => {
    document.getElementById("came")?.scrollIntoView({ block: "start" });
  };
  return (
    <button type="button" class="badge primary numbers" onClick={show}>
      {count > 99 ? "99+" : count} new
    </button>
  );
}

/** Why nothing comes at all, and what helps. */
function Stopped({ phone }: Props): JSX.Element | null {
  const stage = phone.stage.value;
  switch (stage.at) {
    case "unreachable":
      return <p class="note">The broker cannot be reached. This page tries again every two seconds.</p>;
    case "token":
      return (
        <div class="note">
          <p>The broker wants a token that says who you are.</p>
          <button type="button" class="primary" onClick={() => (phone.stage.value = { ...stage })}>
            Give a token
          </button>
        </div>
      );
    case "elsewhere":
      return (
        <div class="note">
          <p>This page goes on in another tab. What came until then is still here.</p>
          <button type="button" class="primary" onClick={() => void phone.enter()}>
            Go on here
          </button>
        </div>
      );
    case "refused":
      return (
        <div class="note">
          <p class="bad">
            The broker does not serve you: <bdi>{stage.why}</bdi>
          </p>
          <button type="button" onClick={() => void phone.enter()}>
            Try again
          </button>
        </div>
      );
    case "forgotten":
      return (
        <div class="note">
          <p>You are forgotten: the broker has ended your client, and nothing is kept on this phone.</p>
          <button type="button" class="primary" onClick={() => location.reload()}>
            Begin anew
          </button>
        </div>
      );
    default:
      return null;
  }
}

function Announcements({ phone }: Props): JSX.Element {
  const announcer = phone.world.value?.announcer;
  return (
    <>
      <div class="visually-hidden" aria-live="polite">
        {announcer?.news}
      </div>
      <div class="visually-hidden" aria-live="assertive">
        {announcer?.alarm}
      </div>
    </>
  );
}
