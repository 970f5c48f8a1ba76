// The page: a bar, the map, and the sheet that the thumb reaches.

import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { History, SlidersHorizontal } from "lucide";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Entry } from "../entry.js";
import type { PhoneMap } from "../map.js";
import type { Phone } from "../phone.js";
import { clockTime } from "../../shared/date-time.js";
import { Icon } from "../../shared/icon.js";
import { Around } from "./around.js";
import { Detail } from "./detail.js";
import { List } from "./list.js";
import { MapView } from "./map-view.js";
import { SettingsDialog } from "./settings.js";
import { TokenDialog } from "./token.js";
import { TripPart } from "./trip.js";
import { Welcome } from "./welcome.js";

export interface Props {
  readonly phone: Phone;
}

export function App({ phone }: Props): JSX.Element {
  const tall = useSignal(false);
  const settings = useSignal(false);
  const map = useSignal<PhoneMap | undefined>(undefined);
  const forgotten = phone.stage.value.at === "forgotten";
  const isAnything = phone.here.value !== undefined || (phone.inbox.value?.entries.value.length ?? 0) > 0;
  const opened = useOpened(phone);
  const show = ({ place }: Entry): (() => void) | undefined => {
    const drawn = map.value;
    if (drawn === undefined || place === undefined) return undefined;
    return () => {
      tall.value = false;
      drawn.show(place);
    };
  };
  useSignalEffect(() => {
    const unread = phone.unread.value;
    document.title = unread > 0 ? `(${unread}) nearcast around you` : "nearcast around you";
  });
  return (
    <div class={`page${tall.value ? " tall" : ""}${isAnything ? "" : " first"}`}>
      <header class="bar">
        <h1>{phone.near.value === undefined ? "Around you" : <bdi>Near {phone.near.value}</bdi>}</h1>
        <Connection phone={phone} />
        <Unread phone={phone} />
        <button type="button" class="plain icon" aria-label="Settings" disabled={forgotten} onClick={() => (settings.value = true)}>
          <Icon of={SlidersHorizontal} size={24} />
        </button>
      </header>
      <main>
        <MapView phone={phone} map={map} />
        <section class="sheet" aria-label="What comes in reach">
          <button type="button" class="grip" onClick={() => (tall.value = !tall.value)}>
            <span class="visually-hidden">{tall.value ? "More room for the map" : "More room for the list"}</span>
          </button>
          {/* It stays where it was while an event is open. */}
          <div class="scroll" hidden={opened !== undefined}>
            <Notice phone={phone} />
            <Newer phone={phone} />
            <Stopped phone={phone} />
            {!forgotten &&
              (phone.here.value === undefined ? (
                <Welcome phone={phone} putHere={map.value === undefined ? undefined : () => map.value?.putAtMiddle()} />
              ) : (
                <Around phone={phone} />
              ))}
            {!forgotten && phone.here.value !== undefined && <TripPart phone={phone} showMap={() => (tall.value = false)} />}
            {!forgotten && isAnything && <List phone={phone} />}
          </div>
          {opened !== undefined && (
            <div class="scroll">
              <Detail phone={phone} entry={opened} show={show(opened)} />
            </div>
          )}
        </section>
      </main>
      <Announcements phone={phone} />
      <TokenDialog phone={phone} />
      {settings.value && <SettingsDialog phone={phone} close={() => (settings.value = false)} />}
    </div>
  );
}

/** The entry that is open. It stays so when the list has no room for it any more; the line that it was opened from has the focus again afterwards. */
function useOpened(phone: Phone): Entry | undefined {
  const last = useRef<Entry | undefined>(undefined);
  const [key, entry] = [phone.selection.key.value, phone.selection.entry.value];
  const opened = key === undefined ? undefined : (entry ?? (last.current?.key === key ? last.current : undefined));
  const before = last.current;
  last.current = opened;
  useEffect(() => {
    if (opened !== undefined || before === undefined) return;
    const line = document.querySelector<HTMLElement>(`[data-key="${CSS.escape(before.key)}"] .line`) ?? document.getElementById("came");
    line?.focus();
  }, [opened?.key]);
  return opened;
}

/** What the broker says of all that is shown here, as that it is a replay. */
function Notice({ phone }: Props): JSX.Element | null {
  const notice = phone.world.value?.settings.notice;
  if (!notice) return null;
  return (
    <p class="broker-notice">
      <Icon of={History} size={16} /> <bdi>{notice}</bdi>
    </p>
  );
}

/** The page has been changed since it was loaded. */
function Newer({ phone }: Props): JSX.Element | null {
  if (!phone.shell.newer.value) return null;
  return (
    <div class="note across" role="status">
      <p>A new version is ready.</p>
      <button type="button" class="primary" onClick={() => void phone.shell.takeNewer()}>
        Reload
      </button>
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
        // Nobody misses a connection before they have said where they are.
        if (link?.at === "none") return phone.here.value === undefined ? ["none", ""] : ["quiet", "Not connected"];
        return link?.at === "offline" ? ["warn", `Offline since ${clockTime(link.since_ms)}`] : ["quiet", "Connecting…"];
    }
  }).value;
  return (
    <p class="connection" role="status" data-tone={tone}>
      <span>{words}</span>
    </p>
  );
}

function Unread({ phone }: Props): JSX.Element | null {
  const count = phone.unread.value;
  if (count === 0) return null;
  const show = (): void => {
    phone.selection.close();
    requestAnimationFrame(() => document.getElementById("came")?.scrollIntoView({ block: "start" }));
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
