// One event, with all that is known of it, in the place of the list.

import { useSignal } from "@preact/signals";
import { X } from "lucide";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { degrees } from "../../shared/degrees.js";
import { Icon } from "../../shared/icon.js";
import type { Entry } from "../entry.js";
import { status } from "../entry.js";
import { now_ms } from "../now.js";
import { dateTime } from "../../shared/date-time.js";
import { readable, unbroken } from "../../shared/readable.js";
import { ago, doubtWords, goneWords, whereabouts } from "../words.js";
import { Arrow } from "./arrow.js";
import type { Props } from "./app.js";
import { KindMark } from "./kind-mark.js";

interface DetailProps extends Props {
  readonly entry: Entry;
  /** Brings the event's place to the middle of the map. */
  readonly show: (() => void) | undefined;
}

export function Detail({ phone, entry, show }: DetailProps): JSX.Element {
  const { key, title, pairs, place, alarm, time_ms, over_ms } = entry;
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    head.current?.focus({ preventScroll: true });
    head.current?.closest(".scroll")?.scrollTo(0, 0);
  }, [key]);
  useEffect(() => {
    const escape = (event: KeyboardEvent): void => {
      // A dialog above closes by itself, and alone.
      if (event.key === "Escape" && !(event.target instanceof Element && event.target.closest("dialog") !== null)) phone.selection.close();
    };
    addEventListener("keydown", escape);
    return () => removeEventListener("keydown", escape);
  }, []);
  const { world, here } = phone.reach.value;
  const gone = status(entry, phone.reach.value, now_ms.value);
  const isAround = here !== undefined && place !== undefined;
  return (
    <article class={`detail${alarm ? " alarm" : ""}`} aria-labelledby="detail-title">
      <div class="head">
        <KindMark entry={entry} />
        <h2 id="detail-title" ref={head} tabIndex={-1}>
          {alarm && <strong class="tag">◆ Alarm</strong>} <bdi>{title}</bdi>
        </h2>
        <button type="button" class="plain" aria-label="Close" onClick={() => phone.selection.close()}>
          <Icon of={X} size={22} />
        </button>
      </div>
      <p class="whereabouts numbers">
        {isAround && <Arrow world={world} from={here} to={place} />}
        <span>
          {isAround && <strong>{unbroken(whereabouts(world, here, place))}</strong>}
          {isAround && " · "}
          {unbroken(ago(now_ms.value - time_ms))}
          {gone !== undefined && ` · ${goneWords(gone)}`}
        </span>
      </p>
      {entry.doubts !== undefined && <p class="doubt">{doubtWords(entry.doubts)}</p>}
      <div class="actions">
        {place !== undefined && world === "geodetic" && (
          <a class="button primary" href={geoLink(entry)}>
            Directions
          </a>
        )}
        {place !== undefined && show !== undefined && (
          <button type="button" onClick={show}>
            Show on map
          </button>
        )}
        <Share entry={entry} world={world} />
      </div>
      <dl>
        {pairs.map(([name, value]) => {
          const [label, text] = readable(name, value);
          return (
            <Pair key={name} label={label}>
              <bdi>{/^https?:\/\/\S+$/.test(text) ? <Link href={text} /> : text}</bdi>
            </Pair>
          );
        })}
        <Pair label="Published">{dateTime(time_ms)}</Pair>
        {over_ms !== undefined && <Pair label={over_ms > now_ms.value ? "Until" : "Over since"}>{dateTime(over_ms)}</Pair>}
        {place !== undefined && <Pair label="Place">{degrees(place, world)}</Pair>}
      </dl>
    </article>
  );
}

function Pair({ label, children }: { readonly label: string; readonly children: JSX.Element | string }): JSX.Element {
  return (
    <div>
      <dt>
        <bdi>{label}</bdi>
      </dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The address is the text, so that nobody is led elsewhere than they read. */
function Link({ href }: { readonly href: string }): JSX.Element {
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {href}
    </a>
  );
}

/** What the phone's own map opens (RFC 5870; the name behind it as Android reads it). */
export function geoLink({ place, title }: Pick<Entry, "place" | "title">): string {
  const [lon, lat] = place ?? [0, 0];
  return `geo:${lat},${lon}?q=${lat},${lon}(${encodeURIComponent(title)})`;
}

function Share({ entry, world }: { readonly entry: Entry; readonly world: "geodetic" | "planar" }): JSX.Element {
  const said = useSignal<string | undefined>(undefined);
  const can = (navigator as Partial<Navigator>).share !== undefined;
  // Where the event is, not where the person is.
  const { title, pairs, place, time_ms } = entry;
  const text = [
    title,
    ...pairs.map(([name, value]) => readable(name, value).join(": ")),
    dateTime(time_ms),
    ...(place === undefined ? [] : [degrees(place, world)]),
  ].join("\n");
  const share = async (): Promise<void> => {
    try {
      if (can) await navigator.share({ title, text });
      else {
        await navigator.clipboard.writeText(text);
        said.value = "Copied";
      }
    } catch (error) {
      // Whoever closes the system's sheet has changed their mind.
      if (!(error instanceof DOMException && error.name === "AbortError")) said.value = "Not permitted here";
    }
  };
  return (
    <>
      <button type="button" onClick={() => void share()}>
        {said.value ?? (can ? "Share" : "Copy")}
      </button>
      <span class="visually-hidden" role="status">
        {said.value}
      </span>
    </>
  );
}
