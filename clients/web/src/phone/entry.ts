// What came, as the list shows it: made once from a message, small, and of texts only.

import type { Delivery, Message } from "nearcast";

import type { Place } from "../shared/map/plane.js";
import { gapWords } from "./words.js";

/** One line of the list: an event, or a word about events that are missing. */
export interface Entry {
  /** What it takes the place of, and what takes its place: of a live event its object, else the delivery itself. */
  readonly key: string;
  readonly kind: "event" | "gap";
  readonly title: string;
  /** Names and values of the other properties. */
  readonly pairs: readonly (readonly [name: string, value: string])[];
  /** Where it is; absent where the place cannot be shown. */
  readonly place?: Place;
  readonly alarm: boolean;
  readonly received_ms: number;
  /** When the event's life is over at the latest; absent of events that are not live. */
  readonly over_ms?: number;
  /** Entries that came later have a greater one. */
  readonly serial: number;
}

/** A line holds so much, however long the event is. */
const PAIRS_MAX = 40;
const NAME_MAX = 80;
const VALUE_MAX = 400;
const TITLE_MAX = 120;
/** Properties that say what an event is, the best first. */
const TITLES = ["title", "name", "type", "text"];

/** Makes the line of a message; `undefined` where there is nothing to tell. */
export function entryOf(message: Message, serial: number, now_ms: number): Entry | undefined {
  if (message.kind === "event") return eventEntry(message, serial, now_ms);
  const title = gapWords(message);
  if (title === undefined) return undefined;
  const key = `gap ${message.epoch}:${message.from}:${message.reason}`;
  return { key, kind: "gap", title, pairs: [], alarm: false, received_ms: now_ms, serial };
}

function eventEntry({ feature, epoch, offset }: Delivery, serial: number, now_ms: number): Entry {
  const flat = flattened(feature.properties);
  const name = TITLES.find((candidate) => (flat.get(candidate) ?? "") !== "");
  const title = (name === undefined ? undefined : flat.get(name)) ?? feature.key ?? "Event";
  if (name !== undefined) flat.delete(name);
  const [x, y] = feature.geometry.coordinates;
  const alarm = feature.priority === "alarm";
  const ttl_s = feature.ttl_s;
  return {
    key: keyOf(feature, alarm, `${epoch}:${offset}`),
    kind: "event",
    title: cut(title, TITLE_MAX),
    pairs: [...flat].slice(0, PAIRS_MAX),
    place: [x, y],
    alarm,
    received_ms: now_ms,
    ...(typeof ttl_s === "number" && { over_ms: now_ms + ttl_s * 1000 }),
    serial,
  };
}

/** An object has one line. So has an alarm that comes before its turn and then again, because the connection broke in between. */
function keyOf(feature: Delivery["feature"], alarm: boolean, delivery: string): string {
  if (typeof feature.key === "string") return `key ${feature.key}`;
  if (typeof feature.ttl_s === "number") return `id ${feature.id}`;
  return alarm ? `alarm ${feature.id} ${feature.time}` : `delivery ${delivery}`;
}

/** Attributes by their names joined with dots, values as people read them. */
function flattened(properties: unknown): Map<string, string> {
  const flat = new Map<string, string>();
  const add = (prefix: string, value: unknown): void => {
    // One more than is shown: whoever is left out is left out behind the title.
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
function cut(text: string, length: number): string {
  // Cut before it is cleaned: a text may have 64 KiB. By code points, so that no half of a character is left.
  const [...characters] = text.slice(0, 2 * length);
  const clean = (part: readonly string[]): string =>
    part
      .join("")
      .replaceAll(/\p{Cc}+/gu, " ")
      .trim();
  return characters.length > length || text.length > 2 * length ? `${clean(characters.slice(0, length))}…` : clean(characters);
}
