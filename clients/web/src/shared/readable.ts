// Names and values of properties as people read them: `speed_kmh` 12 is `Speed` `12 km/h`.

import { dateTime } from "./date-time.js";

/** Endings of names that are units, and how units are written behind numbers. */
const UNITS: Readonly<Record<string, string>> = {
  c: " °C",
  cm: " cm",
  db: " dB",
  deg: "°",
  h: " h",
  kg: " kg",
  km: " km",
  kmh: " km/h",
  kph: " km/h",
  m: " m",
  min: " min",
  mm: " mm",
  mph: " mph",
  ms: " ms",
  pct: " %",
  percent: " %",
  s: " s",
};

/** Properties whose values say what an event is: shown without their names. */
export const KINDS: readonly string[] = ["type", "category", "kind"];

/** What is counted for each of a unit. */
const RATE = /^(?<stem>.+)_per_(?<unit>s|min|h|day|week|month|year|km|m|kg|person)$/i;
const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/;

/** Words of a name that a program has given: `road.laneCount` is `Road lane count`. */
export function words(name: string): string {
  const parts = name
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
    .split(/[\s._-]+/)
    .filter((part) => part !== "")
    // What is written in capitals alone is an abbreviation.
    .map((part) => (/^\p{Lu}+$/u.test(part) ? part : part.toLowerCase()))
    .join(" ");
  return begun(parts === "" ? name : parts);
}

/** With a capital at its beginning. */
export function begun(text: string): string {
  const [first = "", ...rest] = text;
  return first.toUpperCase() + rest.join("");
}

/** A kind of things, which may be a program's word (`road_works`) or people's own. */
export function kindText(kind: string): string {
  return /\s/.test(kind) ? begun(kind) : words(kind);
}

/** What an object is called by the attribute that names it: `taxi_id` 5724 is `Taxi 5724`. */
export function objectName(attribute: string, value: string): string {
  return `${objectKind(attribute)} ${value}`;
}

/** What objects are by the attribute that names them: `taxi_id` names a `Taxi`. */
export function objectKind(attribute: string): string {
  const name = attribute.slice(attribute.lastIndexOf(".") + 1);
  const stem = name.replace(/[_-](id|no|nr|number|ref|key)$|(?<=\p{Ll})(Id|ID|No|Number|Key)$/u, "");
  return /^(id|key)$/i.test(stem) ? "Object" : words(stem);
}

/** A property as it is read. */
export function readable(name: string, value: string): readonly [label: string, text: string] {
  if (TIME.test(value)) {
    const unix_ms = Date.parse(value);
    if (!Number.isNaN(unix_ms)) return [words(name), dateTime(unix_ms)];
  }
  const cut = name.lastIndexOf("_");
  const unit = cut > 0 ? UNITS[name.slice(cut + 1).toLowerCase()] : undefined;
  const rate = RATE.exec(name);
  // `price_per_h`: whatever it counts, it counts it for each hour.
  if (rate?.groups !== undefined && /\d/.test(value)) return [words(rate.groups["stem"] ?? name), `${value}/${rate.groups["unit"] ?? ""}`];
  if (unit !== undefined && NUMBER.test(value)) return [words(name.slice(0, cut)), value + unit];
  return [words(name), KINDS.includes(name) ? kindText(value) : value];
}

/** The same in one text, for a line. */
export function inLine(name: string, value: string): string {
  const [label, text] = readable(name, value);
  if (KINDS.includes(name)) return text;
  return /^\D{4}/.test(text) ? `${label}: ${text}` : `${label} ${text}`;
}

/** The same text, in which no line ends between a number and its unit. */
export function unbroken(text: string): string {
  return text.replaceAll(/(?<=\d) (?=(µs|ms|s|min|h|days|mm|cm|m|km|km\/h|mph|kg|dB|°C|%)(?![\p{L}\d]))/gu, "\u00a0");
}
