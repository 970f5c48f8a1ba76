// The list: events of here and now, the nearest or the newest first, and below them those that are over or out of reach.

import { ChevronDown, ChevronRight, ChevronUp } from "lucide";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { ENTRIES_MAX, held, isNow, ordered, type Order } from "../entries.js";
import { isTaken, kindOf } from "../kind.js";
import { cut, pressing, status, type Entry } from "../entry.js";
import { grouped, groupShares, groupTitle, type Group } from "../groups.js";
import { Hold } from "../hold.js";
import { slowNow_ms } from "../now.js";
import { radiusAt, stepOf } from "../radius.js";
import { Icon } from "../../shared/icon.js";
import { distance_m } from "../../shared/map/plane.js";
import { inLine, unbroken } from "../../shared/readable.js";
import { ago, doubtWords, goneWords, metres, whereabouts } from "../words.js";
import { Arrow } from "./arrow.js";
import type { Props } from "./app.js";
import { KindMark } from "./kind-mark.js";

export function List({ phone }: Props): JSX.Element {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const heading = head.current;
    if (heading === null) return;
    const observer = new IntersectionObserver(([seen]) => {
      phone.listSeen.value = seen?.isIntersecting === true;
    });
    observer.observe(heading);
    return () => observer.disconnect();
  }, []);
  const [hold] = useState(() => new Hold());
  useEffect(() => {
    const up = (): void => hold.up();
    addEventListener("pointerup", up);
    addEventListener("pointercancel", up);
    return () => {
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", up);
    };
  }, []);
  const shown = useRef<readonly Entry[]>([]);
  const inbox = phone.inbox.value;
  const entries = inbox?.entries.value ?? [];
  const { order } = phone.preferences.value;
  const all = useCalm(ordered(entries, order, phone.reach.value, slowNow_ms.value), order);
  const { lines, waiting } = hold.on.value ? held(shown.current, all) : { lines: all, waiting: [] };
  shown.current = lines;
  // What a finger keeps in its place is in the section that it was in.
  const ended = lines.findIndex((entry) => !isNow(entry, phone.reach.value, slowNow_ms.value));
  const now = ended < 0 ? lines : lines.slice(0, ended);
  const alarmed = now.filter((entry) => pressing(entry, slowNow_ms.value));
  const show = (): void => {
    hold.release();
    head.current?.focus();
    head.current?.scrollIntoView({ block: "start" });
  };
  const alarms = waiting.filter(({ alarm }) => alarm).length;
  return (
    <section class="came" aria-labelledby="came">
      <div class="head">
        <h2 id="came" ref={head} tabIndex={-1}>
          Events near you{all.length > 0 && <span class="quiet numbers"> ({all.length})</span>}
        </h2>
        {waiting.length === 0 && all.length > 1 && <Sort order={order} choose={(chosen) => phone.prefer({ order: chosen })} />}
        {waiting.length > 0 && (
          <button type="button" class="waiting primary numbers" onClick={show}>
            {waiting.length} new{alarms > 0 && `, ◆ ${alarms === 1 ? "an alarm" : `${alarms} alarms`}`}
          </button>
        )}
      </div>
      {inbox?.stored.value === false && (
        <p class="note warn">
          This browser keeps nothing for this page just now. What comes stays at the broker and comes again the next time.
        </p>
      )}
      {lines.length === 0 ? (
        <Empty phone={phone} />
      ) : (
        <div
          class="sections"
          onPointerDown={() => hold.down()}
          onFocusIn={() => hold.focus(true)}
          onFocusOut={({ currentTarget, relatedTarget }) =>
            hold.focus(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))
          }
        >
          <Section phone={phone} title={alarmed.length === 1 ? "Alarm" : "Alarms"} pressing entries={alarmed} />
          <Section
            phone={phone}
            title={alarmed.length === 0 ? "In reach" : "Also in reach"}
            entries={now.filter((entry) => !alarmed.includes(entry))}
          />
          <Section phone={phone} title="Earlier" entries={lines.slice(now.length)} />
        </div>
      )}
      {inbox?.overfull.value === true && <p class="quiet">Older ones are not shown any more: the list has room for {ENTRIES_MAX}.</p>}
    </section>
  );
}

/** Distances change all the time: lines change places so often at most, and at once where there are others. */
const CALM_MS = 1000;

function useCalm(sorted: readonly Entry[], order: Order): readonly Entry[] {
  const last = useRef({ order, keys: [] as readonly string[], sorted_ms: 0 });
  const { keys, sorted_ms, order: before } = last.current;
  const current = new Map(sorted.map((entry) => [entry.key, entry]));
  const isSame = order === before && keys.length === sorted.length && keys.every((key) => current.has(key));
  if (isSame && performance.now() - sorted_ms < CALM_MS) return keys.flatMap((key) => current.get(key) ?? []);
  last.current = { order, keys: [...current.keys()], sorted_ms: performance.now() };
  return sorted;
}

const ORDERS: readonly (readonly [Order, string])[] = [
  ["nearest", "Nearest"],
  ["newest", "Newest"],
];

function Sort({ order, choose }: { readonly order: Order; readonly choose: (order: Order) => void }): JSX.Element {
  return (
    <div class="sort" role="group" aria-label="Sort by">
      {ORDERS.map(([each, label]) => (
        <button key={each} type="button" aria-pressed={order === each} onClick={() => choose(each)}>
          {label}
        </button>
      ))}
    </div>
  );
}

interface SectionProps extends Props {
  readonly title: string;
  /** Its title says already that these are alarms. */
  readonly pressing?: boolean;
  readonly entries: readonly Entry[];
}

function Section({ phone, title, pressing = false, entries }: SectionProps): JSX.Element | null {
  if (entries.length === 0) return null;
  const lines = pressing ? entries : grouped(entries);
  return (
    <section class={pressing ? "pressing" : undefined}>
      <h3>{title}</h3>
      <ol>
        {lines.map((line) =>
          "entries" in line ? (
            <GroupLine key={`group ${line.sort}`} phone={phone} group={line} />
          ) : (
            <Line key={line.key} phone={phone} entry={line} tagged={line.alarm && !pressing} />
          ),
        )}
      </ol>
    </section>
  );
}

/** A screen with room for the members of a group beside the map, and how many it has room for. */
const roomy = matchMedia("(min-width: 1100px) and (min-height: 760px)");
const ROOM = 12;

/** Many objects of one sort in a line, which opens. */
function GroupLine({ phone, group }: Props & { readonly group: Group }): JSX.Element | null {
  const [open, setOpen] = useState(() => roomy.matches && group.entries.length <= ROOM);
  const { world, here } = phone.reach.value;
  const away = ({ place }: Entry): number => (here === undefined || place === undefined ? Infinity : distance_m(world, here, place));
  const [first, ...others] = group.entries;
  if (first === undefined) return null;
  const shares = groupShares(group);
  const nearest = others.reduce((best, entry) => (away(entry) < away(best) ? entry : best), first);
  return (
    <li class="entry group">
      <button type="button" class="line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <KindMark entry={first} isMany />
        <span class="what">
          <span class="title">{groupTitle(group)}</span>
          {here !== undefined && nearest.place !== undefined && (
            <span class="whereabouts numbers">
              <Arrow world={world} from={here} to={nearest.place} />
              <span>
                nearest <strong>{unbroken(whereabouts(world, here, nearest.place))}</strong> · <bdi>{nearest.title}</bdi>
              </span>
            </span>
          )}
          {shares.length > 0 && (
            <span class="shares quiet" style={{ "--paint": `var(--map-c${kindOf(first).colour})` }}>
              {shares.map(([value, number]) => (
                <span key={value}>
                  <i class={isTaken({ pairs: [["", value]] }) ? "taken" : undefined} aria-hidden="true" />
                  <bdi>
                    {number} {value}
                  </bdi>
                </span>
              ))}
            </span>
          )}
        </span>
        <span class="more">
          <Icon of={open ? ChevronUp : ChevronDown} size={20} />
        </span>
      </button>
      {open && (
        <ol>
          {group.entries.map((entry) => (
            <Line key={entry.key} phone={phone} entry={entry} tagged={false} />
          ))}
        </ol>
      )}
    </li>
  );
}

function Empty({ phone }: Props): JSX.Element {
  const { radius_m } = phone.preferences.value;
  const wider_m = radiusAt(stepOf(2 * radius_m));
  return (
    <div class="empty">
      <p>
        <strong>Nothing near you yet.</strong>
      </p>
      <p class="quiet">
        What happens within {unbroken(metres(radius_m))} of you{phone.trip.destination.value !== undefined && ", or on your way,"} appears
        here by itself.
      </p>
      {wider_m > radius_m && (
        <button type="button" onClick={() => phone.prefer({ radius_m: wider_m })}>
          Look within {metres(wider_m)}
        </button>
      )}
    </div>
  );
}

interface LineProps extends Props {
  readonly entry: Entry;
  /** It says itself that it is an alarm. */
  readonly tagged: boolean;
}

/** So many properties stand in the line itself; all of them where it is opened. */
const IN_LINE = 2;
const IN_LINE_LENGTH = 40;

function Line({ phone, entry, tagged }: LineProps): JSX.Element {
  const { key, kind, title, pairs, place, alarm, time_ms } = entry;
  if (kind === "gap") {
    return (
      <li class="entry gap">
        <p>{title}</p>
        <p class="quiet numbers">{unbroken(ago(slowNow_ms.value - time_ms))}</p>
      </li>
    );
  }
  const { world, here, corridor } = phone.reach.value;
  const gone = status(entry, phone.reach.value, slowNow_ms.value);
  const words = [
    here !== undefined && place !== undefined ? unbroken(whereabouts(world, here, place)) : undefined,
    gone === undefined && place !== undefined && corridor?.holds(place) === true ? "on your way" : undefined,
    unbroken(ago(slowNow_ms.value - time_ms)),
    gone === undefined ? undefined : goneWords(gone),
  ].filter((word) => word !== undefined);
  return (
    <li class={`entry${alarm ? " alarm" : ""}${gone === undefined ? "" : " gone"}`} data-key={key}>
      <button type="button" class="line" onClick={() => phone.selection.open(key)}>
        <KindMark entry={entry} />
        <span class="what">
          <span class="title">
            {tagged && <strong class="tag">◆ Alarm</strong>} <bdi>{title}</bdi>
          </span>
          <span class="whereabouts numbers">
            <Arrow world={world} from={here} to={place} />
            <span>
              {/* How far it is is what people look for. */}
              {words.map((word, index) => (index === 0 ? <strong key={word}>{word}</strong> : ` · ${word}`))}
            </span>
          </span>
          {entry.doubts !== undefined && <span class="doubt">{doubtWords(entry.doubts)}</span>}
          {pairs.length > 0 && (
            <span class="summary quiet">
              {pairs.slice(0, IN_LINE).map(([name, value]) => (
                <bdi key={name}>{inLine(name, cut(value, IN_LINE_LENGTH))}</bdi>
              ))}
            </span>
          )}
        </span>
        <span class="more">
          <Icon of={ChevronRight} size={20} />
        </span>
      </button>
    </li>
  );
}
