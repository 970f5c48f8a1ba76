// Frames of the WebSocket, both ways; docs/protocol/connections.md of the broker describes them.

import type { Area, Coordinates } from "./areas.js";
import type { Condition } from "./conditions.js";
import type { Problem } from "./errors.js";
import type { DeliveredFeature, Feature } from "./events.js";

/** `[longitude, latitude, unix_s]`: where a client was, and when. */
export type TrackPoint = readonly [number, number, number];

/** An area and a condition; everywhere and every event where they are absent. */
export interface Filter {
  readonly area?: Area;
  /** A condition, CQL2 text, or CQL2 as JSON. */
  readonly where?: Condition | string | boolean | Readonly<Record<string, unknown>>;
}

/** What a client wants: events that satisfy one of the filters. */
export interface Subscription {
  /** The alternatives, at least one; `{}` is everything. */
  readonly filters: readonly Filter[];
  /** Each event (so when it is absent), or the objects that come inside and leave. */
  readonly on?: readonly ("event" | "enter" | "exit")[];
  /** Of transitions: begin with an enter for each object that is inside already. */
  readonly initial?: boolean;
  /** Of transitions: for how many seconds an object has to be inside before it enters. */
  readonly dwell_s?: number;
  /** Of transitions: how many metres outside an object has to be before it leaves. */
  readonly hysteresis_m?: number;
  /** Keep what matches until it is acknowledged, also while nobody is connected. */
  readonly durable?: boolean;
  /** What is lost first by a reader that does not keep up. */
  readonly overflow?: "drop-oldest" | "keep-latest" | "disconnect";
}

/** What belongs to the trace of an event (W3C Trace Context). */
export interface Trace {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** How good a position is. */
export interface PositionOptions {
  /** How many metres it may be off; exact when it is absent. */
  readonly accuracy_m?: number;
  /** When it was measured, RFC 3339; the broker checks it and does not use it. */
  readonly time?: string;
}

/** Comes back in the answer to a request. */
export type Ref = number | string;

/** What a client sends. */
export type ClientFrame =
  | ({ readonly op: "subscribe"; readonly ref?: Ref; readonly id: string } & Subscription)
  | { readonly op: "unsubscribe"; readonly ref?: Ref; readonly id: string }
  | ({ readonly op: "move"; readonly ref?: Ref; readonly coordinates: Coordinates } & PositionOptions)
  | ({ readonly op: "move"; readonly ref?: Ref; readonly track: readonly TrackPoint[] } & PositionOptions)
  | ({ readonly op: "publish"; readonly ref?: Ref; readonly event: Feature<object> } & Partial<Trace>)
  | { readonly op: "ack"; readonly offset: number }
  | { readonly op: "auth"; readonly ref?: Ref; readonly token: string }
  | { readonly op: "ping" };

/** What brought a delivery. A newer broker may have more. */
export type Cause = "published" | "moved" | "changed" | "expired" | "revoked" | (string & {});

/** Why deliveries are missing. A newer broker may have more. */
export type GapReason = "overflow" | "members" | "age" | "not-durable" | "acknowledged" | "ahead" | "late" | "epoch" | (string & {});

export interface ReadyFrame {
  readonly kind: "ready";
  readonly client: string;
  readonly epoch: string;
  readonly offset: number;
}

export interface EventFrame {
  readonly kind: "event";
  readonly offset: number;
  readonly ahead?: boolean;
  readonly subscriptions: readonly string[];
  readonly cause: Cause;
  readonly transition?: "enter" | "exit";
  readonly traceparent?: string;
  readonly tracestate?: string;
  readonly violates?: readonly string[];
  readonly event: DeliveredFeature;
}

export interface GapFrame {
  readonly kind: "gap";
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly reason: GapReason;
}

/** Something that is probably not meant so, in a request that was carried out: a misspelt member of an event, for one. */
export interface RequestWarning {
  /** Where in the request, as a JSON pointer; in an event it begins with `/event`. */
  readonly pointer: string;
  readonly detail: string;
}

/** What the broker sends, as far as this version knows it. */
export type ServerFrame =
  | ReadyFrame
  | { readonly kind: "ok"; readonly ref?: Ref; readonly warnings?: readonly RequestWarning[] }
  | { readonly kind: "problem"; readonly ref?: Ref; readonly problem: Problem }
  | EventFrame
  | GapFrame
  /** The broker stops; the client is to come back after this time. */
  | { readonly kind: "retry"; readonly retry_ms: number }
  | { readonly kind: "pong" }
  | { readonly kind: "unknown" };

/** The members of each frame that are read. Others, which a newer broker may add, are left out. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  ready: ["client", "epoch", "offset"],
  ok: ["ref", "warnings"],
  problem: ["ref", "problem"],
  event: ["offset", "ahead", "subscriptions", "cause", "transition", "traceparent", "tracestate", "violates", "event"],
  gap: ["from", "to", "count", "reason"],
  retry: ["retry_ms"],
  pong: [],
};

/** Reads a frame. What is no object, or of a kind that is not known, is `unknown`; what is no JSON throws. */
export function readFrame(text: string): ServerFrame {
  const document: unknown = JSON.parse(text);
  if (typeof document !== "object" || document === null || !("op" in document)) return { kind: "unknown" };
  const { op } = document;
  const members = typeof op === "string" && Object.hasOwn(MEMBERS, op) ? MEMBERS[op] : undefined;
  if (members === undefined) return { kind: "unknown" };
  const frame: Record<string, unknown> = { kind: op };
  for (const member of members) {
    const value = (document as Record<string, unknown>)[member];
    if (value !== undefined) frame[member] = value;
  }
  return frame as unknown as ServerFrame; // The broker is trusted to write what the protocol says.
}

export function writeFrame(frame: ClientFrame): string {
  return JSON.stringify(frame);
}
