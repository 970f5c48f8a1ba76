// What came, as the list shows it: made once from a message, small, and of texts only.

import type { Delivery, Message } from "nearcast";

import { findingOf, idsOf } from "../shared/finding.js";
import type { Corridor } from "../shared/map/corridor.js";
import { distance_m, type Place } from "../shared/map/plane.js";
import type { PageSettings } from "../shared/pages.js";
import { KINDS, kindText, objectKind, objectName } from "../shared/readable.js";
import { gapWords } from "./words.js";

/** One line of the list: an event, or a word about events that are missing. */
export interface Entry {
  /** What it takes the place of, and what takes its place: of a live event its object, else the delivery itself. */
  readonly key: string;
  readonly kind: "event" | "gap";
  readonly title: string;
  /** Of an object that has no title of its own: what it is one of, such as `Taxi`. */
  readonly sort?: string;
  /** Names and values of the other properties. */
  readonly pairs: readonly (readonly [name: string, value: string])[];
  /** Where it is; absent where the place cannot be shown. */
  readonly place?: Place;
  readonly alarm: boolean;
  /** The event's id; absent of gaps. */
  readonly id?: string;
  /** When it was published, or, of a gap, when it was told. */
  readonly time_ms: number;
  /** When the event's life is over at the latest; absent of events that are not live. */
  readonly over_ms?: number;
  /** What the broker has said of it since: its life ended, its object left, or one has gone from it, or wants other things. */
  readonly gone?: Gone;
  /** Checks that say that it does not fit together with another event: its place may be wrong. */
  readonly doubts?: readonly string[];
  /** Of an alarm: the person has opened its line. */
  readonly read?: true;
  /** Entries that came later have a greater one. */
  readonly serial: number;
}

export type Gone = "over" | "left" | "away" | "unwanted";

/** Whether an alarm still wants to be looked at: it lasts, or nobody has opened it. */
export function pressing({ alarm, read, over_ms, gone }: Entry, now_ms: number): boolean {
  return alarm && (read !== true || (gone === undefined && over_ms !== undefined && over_ms > now_ms));
}

/** Where one is, and how far one hears. */
export interface Reach {
  readonly world: PageSettings["world"];
  readonly here: Place | undefined;
  readonly radius_m: number;
  /** What lies along one's way is near enough as well. */
  readonly corridor?: Corridor | undefined;
}

/** Edges belong to circles; the broker's distance and this one may differ in the last digits. */
const EDGE = 1 + 1e-9;

/** Why an entry is not of here and now any more; `undefined` where it is. */
export function status({ place, over_ms, gone }: Entry, { world, here, radius_m, corridor }: Reach, now_ms: number): Gone | undefined {
  if (gone === "over" || (over_ms !== undefined && over_ms <= now_ms)) return "over";
  if (gone === "left") return "left";
  if (place === undefined || here === undefined || distance_m(world, here, place) <= radius_m * EDGE) return gone;
  return corridor?.holds(place) === true ? gone : "away";
}

/** A line holds so much, however long the event is. */
const PAIRS_MAX = 40;
const NAME_MAX = 80;
const VALUE_MAX = 400;
const TITLE_MAX = 120;
/** Properties that say what an event is, the best first. `headline` and `event` are those of alerts (CAP). */
const TITLES = ["title", "name", "headline", "event", ...KINDS, "text", "description"];

/** Makes the line of a message; `undefined` where there is nothing to tell. `object` is the attribute that names the object of events without `key`. */
export function entryOf(message: Message, serial: number, now_ms: number, object?: string): Entry | undefined {
  if (message.kind === "event") return message.transition === undefined ? eventEntry(message, serial, now_ms, object) : undefined;
  const title = gapWords(message);
  if (title === undefined) return undefined;
  const key = `gap ${message.epoch}:${message.from}:${message.reason}`;
  return { key, kind: "gap", title, pairs: [], alarm: false, time_ms: now_ms, serial };
}

/** The entries that a check has found something about, if the event tells that; each with the check. */
export function doubted({ feature }: Delivery, entries: () => readonly Entry[]): Entry[] {
  const finding = findingOf(feature);
  if (finding === undefined) return [];
  const ids = new Set(idsOf(finding.bindings).map(([, id]) => id));
  return entries()
    .filter(({ id }) => id !== undefined && ids.has(id))
    .map((entry) => ({ ...entry, doubts: [...new Set([...(entry.doubts ?? []), cut(finding.check, NAME_MAX)])] }));
}

function eventEntry(delivery: Delivery, serial: number, now_ms: number, object: string | undefined): Entry {
  const { feature } = delivery;
  const flat = flattened(feature.properties);
  const name = TITLES.find((candidate) => (flat.get(candidate) ?? "") !== "");
  const subject = object === undefined ? undefined : objectOf(feature.properties, object);
  const said = name === undefined ? undefined : flat.get(name);
  const isKind = name === undefined || KINDS.includes(name);
  // Of a kind there are many: the object's name tells which it is.
  const kind = isKind && said !== undefined ? kindText(said) : said;
  const named =
    isKind && object !== undefined && subject !== undefined
      ? kind === undefined
        ? objectName(object, subject)
        : `${kind} ${subject}`
      : undefined;
  const sort = named === undefined || object === undefined ? undefined : (kind ?? objectKind(object));
  const finding = findingOf(feature);
  const title =
    finding === undefined ? (named ?? kind ?? feature.key ?? "Event") : `Check ${finding.check}: events that do not fit together`;
  if (name !== undefined) flat.delete(name);
  if (object !== undefined && named !== undefined) flat.delete(object);
  const [x, y] = feature.geometry.coordinates;
  const published_ms = Date.parse(feature.time);
  // Clocks differ: nothing is of later than now.
  const time_ms = Number.isNaN(published_ms) ? now_ms : Math.min(published_ms, now_ms);
  const ttl_s = feature.ttl_s;
  return {
    key: keyOf(delivery, subject),
    kind: "event",
    title: cut(title, TITLE_MAX),
    ...(sort !== undefined && finding === undefined && { sort: cut(sort, NAME_MAX) }),
    pairs: [...flat].slice(0, PAIRS_MAX),
    place: [x, y],
    alarm: feature.priority === "alarm",
    id: String(feature.id),
    time_ms,
    ...(typeof ttl_s === "number" && { over_ms: time_ms + ttl_s * 1000 }),
    ...(delivery.violates !== undefined && delivery.violates.length > 0 && { doubts: delivery.violates }),
    serial,
  };
}

/** What a transition says of the entry of its object, where that is of the same event or of its `key`. */
export function afterTransition(delivery: Delivery, find: (key: string) => Entry | undefined, object?: string): Entry | undefined {
  const { feature, transition, cause } = delivery;
  const entry = find(keyOf(delivery, object === undefined ? undefined : objectOf(feature.properties, object)));
  if (entry?.id !== String(feature.id)) return undefined;
  const { gone, ...rest } = entry;
  if (transition === "enter") return gone === undefined ? undefined : rest;
  return { ...rest, gone: GONE[cause] ?? "away" };
}

const GONE: Readonly<Record<string, Gone>> = { expired: "over", revoked: "over", published: "left", moved: "away", changed: "unwanted" };

/** An object has one line. So has an alarm that comes before its turn and then again, because the connection broke in between. */
function keyOf({ feature, epoch, offset }: Delivery, subject: string | undefined): string {
  if (typeof feature.key === "string") return `key ${feature.key}`;
  if (subject !== undefined) return `object ${subject}`;
  if (typeof feature.ttl_s === "number") return `id ${feature.id}`;
  return feature.priority === "alarm" ? `alarm ${feature.id} ${feature.time}` : `delivery ${epoch}:${offset}`;
}

/** What an attribute, named with dots, names: a text or a number. */
function objectOf(properties: unknown, name: string): string | undefined {
  if (typeof properties !== "object" || properties === null || Array.isArray(properties)) return undefined;
  const members = properties as Record<string, unknown>;
  const value = Object.hasOwn(members, name) ? members[name] : undefined;
  if (typeof value === "number" || (typeof value === "string" && value !== "")) return cut(String(value), NAME_MAX);
  for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
    const inner = objectOf(members[name.slice(0, dot)], name.slice(dot + 1));
    if (inner !== undefined) return inner;
  }
  return undefined;
}

/** Attributes by their names joined with dots, values as people read them. */
function flattened(properties: unknown): Map<string, string> {
  const flat = new Map<string, string>();
  const add = (prefix: string, value: unknown): void => {
    // One more than is shown: what is left out is left out behind the title.
    if (value === null || value === undefined || flat.size > PAIRS_MAX) return;
    if (typeof value === "object" && !Array.isArray(value)) {
      for (const [name, inner] of Object.entries(value)) add(prefix === "" ? name : `${prefix}.${name}`, inner);
    } else if (prefix !== "") flat.set(cut(prefix, NAME_MAX), cut(valueText(value), VALUE_MAX));
  };
  if (!Array.isArray(properties)) {
    const chosen = typeof properties === "object" && properties !== null ? (properties as Record<string, unknown>) : {};
    for (const name of TITLES) if (typeof chosen[name] !== "object") add(name, chosen[name]);
    add("", chosen);
  }
  return flat;
}

function valueText(value: unknown): string {
  switch (typeof value) {
    case "boolean":
      return value ? "yes" : "no";
    case "string":
      return value;
    case "number":
      return String(value);
    default:
      return Array.isArray(value) ? value.slice(0, PAIRS_MAX).map(valueText).join(", ") : JSON.stringify(value);
  }
}

/** At most so many characters, none of which moves a cursor. */
export function cut(text: string, length: number): string {
  // Cut before it is cleaned: a text may have 64 KiB. By code points, so that no half of a character is left.
  const [...characters] = text.slice(0, 2 * length);
  const clean = (part: readonly string[]): string =>
    part
      .join("")
      .replaceAll(/\p{Cc}+/gu, " ")
      .trim();
  return characters.length > length || text.length > 2 * length ? `${clean(characters.slice(0, length))}…` : clean(characters);
}
