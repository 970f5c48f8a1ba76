// What people read: distances, directions, times, and what is missing.

import type { Gap } from "nearcast";

import { distance_m, type Place } from "../shared/map/plane.js";
import type { PageSettings } from "../shared/pages.js";
import type { Gone } from "./entry.js";

const DIRECTIONS = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"] as const;

/** `850 m`, `1.2 km`, `13 km`. */
export function metres(distance: number): string {
  if (distance < 999.5) return `${Math.round(distance)} m`;
  return distance < 9950 ? `${(distance / 1000).toFixed(1)} km` : `${Math.round(distance / 1000)} km`;
}

/** The same for a voice, which would read `m` as a letter. */
export function spokenMetres(distance: number): string {
  return metres(distance).replace(/ m$/, " metres").replace(/ km$/, " kilometres");
}

/** `less than a minute`, `9 min`, `1 h 12 min`. */
export function minutes(seconds: number): string {
  const whole = Math.round(seconds / 60);
  if (whole < 1) return "less than a minute";
  if (whole < 60) return `${whole} min`;
  return whole % 60 === 0 ? `${whole / 60} h` : `${Math.floor(whole / 60)} h ${whole % 60} min`;
}

/** In which direction one sets out from one place to another, in degrees clockwise from north. */
export function bearing_deg(world: PageSettings["world"], [x1, y1]: Place, [x2, y2]: Place): number {
  if (world === "planar") return ((Math.atan2(x2 - x1, y2 - y1) * 180) / Math.PI + 360) % 360;
  const rad = Math.PI / 180;
  const east = Math.sin((x2 - x1) * rad) * Math.cos(y2 * rad);
  const north = Math.cos(y1 * rad) * Math.sin(y2 * rad) - Math.sin(y1 * rad) * Math.cos(y2 * rad) * Math.cos((x2 - x1) * rad);
  return (Math.atan2(east, north) / rad + 360) % 360;
}

export function direction(bearing: number): (typeof DIRECTIONS)[number] {
  return DIRECTIONS[Math.round(bearing / 45) % 8] ?? "north";
}

/** `350 m north-east`; `here` within so few metres that a direction means nothing. */
export function whereabouts(world: PageSettings["world"], from: Place, to: Place): string {
  const distance = distance_m(world, from, to);
  return distance < 1 ? "here" : `${metres(distance)} ${direction(bearing_deg(world, from, to))}`;
}

/** `just now`, `3 s ago`, `5 min ago`, `2 h ago`, `4 days ago`; the day of what is two months old. */
export function ago(elapsed_ms: number): string {
  const seconds = Math.floor(elapsed_ms / 1000);
  if (seconds < 2) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 60 * 86_400) return `${Math.floor(seconds / 86_400)} days ago`;
  return new Date(Date.now() - elapsed_ms).toLocaleDateString([], { dateStyle: "medium" });
}

/** Why something is not of here and now. */
export function goneWords(gone: Gone): string {
  return { over: "over", left: "left your reach", away: "out of reach", unwanted: "not asked for any more" }[gone];
}

/** What checks say of an event. */
export function doubtWords(checks: readonly string[]): string {
  return `▲ Its place may be wrong: ${checks.length === 1 ? "check" : "checks"} ${checks.join(", ")}`;
}

/** What a gap means; `undefined` where nothing is missing. */
export function gapWords({ reason, count }: Gap): string | undefined {
  const events = count === 1 ? "1 event is" : `${count} events are`;
  switch (reason) {
    case "ahead":
    case "members": // An object of too many of which it would have been told that it left.
      return undefined;
    case "epoch":
      return count === 0
        ? "The broker began anew. What happened while you were away may be missing."
        : `The broker began anew. ${events} missing, and what happened while you were away may be, too.`;
    case "age":
      return `${events} missing: they were kept for you until their time was over.`;
    case "late":
      return `${events} missing: it was too late for them.`;
    case "acknowledged":
      return `${events} missing here: another page of yours has taken them.`;
    case "not-durable":
      return `${events} missing: they came when nothing was kept for you.`;
    default:
      return `${events} missing: more came than could be kept for you.`;
  }
}

/** The place that a person has typed, latitude before longitude as it is shown; what is wrong with it where it is none. */
export function typedPlace(text: string, world: PageSettings["world"]): Place | string {
  const parts = text.trim().split(/\s*[,;]\s*|\s+/);
  const [first, second] = parts.map((part) => (part === "" ? NaN : Number(part)));
  if (parts.length !== 2 || first === undefined || second === undefined || !Number.isFinite(first) || !Number.isFinite(second)) {
    return "Type two numbers with a comma between, and points for decimals.";
  }
  if (world === "planar") return Math.abs(first) > 1e9 || Math.abs(second) > 1e9 ? "Each is within ±1,000,000,000 m." : [first, second];
  return Math.abs(first) > 90 || Math.abs(second) > 180 ? "Latitude is within ±90, longitude within ±180." : [second, first];
}

/** Where in a condition the broker has found a fault, counted in characters from 0; `undefined` where it does not say. */
export function faultAt(detail: string): number | undefined {
  const column = /, at column (\d+)/.exec(detail)?.[1];
  return column === undefined ? undefined : Number(column) - 1;
}
