// What the console shows, in its address: so that it can be linked, the browser's Back works, and a reload shows the same.

import type { Marks } from "./map/density.js";
import type { SituationKind } from "./situations/list.js";

/** Where the map is: the middle in the world's units, and the zoom. */
export interface Sight {
  readonly place: readonly [x: number, y: number];
  readonly zoom: number;
}

/** What is opened in the panel. */
export type Opened =
  | { readonly kind: "client"; readonly client: string }
  /** `object`: the point of its object, whose newest event is meant where that one is gone; `why`: the client that is asked about. */
  | { readonly kind: "event"; readonly id: string; readonly object?: string; readonly why?: string }
  /** A check, a rule set or a group definition. */
  | { readonly kind: "situation"; readonly of: SituationKind; readonly name: string }
  | { readonly kind: "finding"; readonly of: SituationKind; readonly name: string; readonly id: string }
  /** Without a name: a new one. */
  | { readonly kind: "edit"; readonly of: SituationKind; readonly name?: string };

export interface Address {
  readonly tab: (typeof TABS)[number];
  readonly opened?: Opened;
  readonly sight?: Sight;
  /** The filter of the event list. */
  readonly filter: string;
  readonly marks: Marks | "auto";
  readonly colourBy?: string;
  /** What the map follows: a client's name or a point. */
  readonly following?: string;
}

const TABS = ["live", "clients", "checks", "rules", "groups", "try"] as const;
/** The names in an address of what is opened, and of what is edited. */
const NAMED = { checks: ["check", "edit"], rules: ["rules", "edit-rules"], groups: ["group", "edit-group"] } as const;
const MARKS = ["auto", "points", "clusters", "heat"] as const;

/** The query of an address, with its question mark; empty for what the console shows by itself. */
export function toQuery({ tab, opened, sight, filter, marks, colourBy, following }: Address): string {
  const query = new URLSearchParams();
  if (tab !== "live") query.set("tab", tab);
  if (opened?.kind === "client") query.set("client", opened.client);
  if (opened?.kind === "event") {
    query.set("event", opened.id);
    if (opened.object !== undefined) query.set("object", opened.object);
    if (opened.why !== undefined) query.set("why", opened.why);
  }
  if (opened?.kind === "situation" || opened?.kind === "finding") query.set(NAMED[opened.of][0], opened.name);
  if (opened?.kind === "finding") query.set("finding", opened.id);
  if (opened?.kind === "edit") query.set(NAMED[opened.of][1], opened.name ?? "");
  if (following !== undefined) query.set("follow", following);
  if (filter !== "") query.set("filter", filter);
  if (marks !== "auto") query.set("marks", marks);
  if (colourBy !== undefined) query.set("colour", colourBy);
  if (sight !== undefined)
    query.set("at", [...sight.place.map((part) => Number(part.toFixed(5))), Number(sight.zoom.toFixed(2))].join(","));
  const text = query.toString().replaceAll("%2C", ",");
  return text === "" ? "" : `?${text}`;
}

/** Reads a query. What is not understood counts as absent. */
export function fromQuery(text: string): Address {
  const query = new URLSearchParams(text);
  const get = (name: string): string | undefined => query.get(name) ?? undefined;
  const [client, event, object, why, colourBy, following] = ["client", "event", "object", "why", "colour", "follow"].map(get);
  const opened: Opened | undefined =
    client !== undefined
      ? { kind: "client", client }
      : event !== undefined
        ? { kind: "event", id: event, ...(object === undefined ? {} : { object }), ...(why === undefined ? {} : { why }) }
        : (openedOf("checks", get) ?? openedOf("rules", get) ?? openedOf("groups", get));
  const sight = sightOf(get("at") ?? "");
  return {
    tab: TABS.find((tab) => tab === get("tab")) ?? "live",
    filter: get("filter") ?? "",
    marks: MARKS.find((marks) => marks === get("marks")) ?? "auto",
    ...(opened === undefined ? {} : { opened }),
    ...(sight === undefined ? {} : { sight }),
    ...(colourBy === undefined ? {} : { colourBy }),
    ...(following === undefined ? {} : { following }),
  };
}

function openedOf(of: SituationKind, get: (name: string) => string | undefined): Opened | undefined {
  const [name, edited, finding] = [get(NAMED[of][0]), get(NAMED[of][1]), get("finding")];
  if (edited !== undefined) return { kind: "edit", of, ...(edited === "" ? {} : { name: edited }) };
  if (name === undefined) return undefined;
  return finding === undefined ? { kind: "situation", of, name } : { kind: "finding", of, name, id: finding };
}

function sightOf(text: string): Sight | undefined {
  const [x, y, zoom, ...more] = text.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
  if (x === undefined || y === undefined || zoom === undefined || more.length > 0) return undefined;
  if (![x, y, zoom].every(Number.isFinite) || zoom < 0 || zoom > 24) return undefined;
  return { place: [x, y], zoom };
}
