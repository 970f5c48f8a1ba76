// Messages for the application, and how far it has come with them.

import { delivered, type DeliveredFeature, type Feature, type Properties } from "./events.js";
import type { Cause, EventFrame, GapFrame, GapReason, Trace } from "./frames.js";

/** How far a client has come in its deliveries. Offsets of two epochs do not compare. */
export interface Checkpoint {
  readonly epoch: string;
  readonly offset: number;
}

/** An event that came to a subscription, or an object that came inside of one or left it. */
export interface Delivery<P = Properties> {
  readonly kind: "event";
  readonly epoch: string;
  readonly offset: number;
  /**
   * Whether it is an alarm before its turn. Then the offset is that of the delivery before it, a gap of reason `ahead` comes where its turn is,
   * and a client that breaks off in between gets the alarm again.
   */
  readonly ahead: boolean;
  /** The subscriptions that it is for. */
  readonly subscriptions: readonly string[];
  readonly cause: Cause;
  /** Of subscriptions to transitions: what became of the event's object. */
  readonly transition?: "enter" | "exit";
  readonly trace?: Trace;
  /** The checks that mark what violates them, and that the event violates. */
  readonly violates?: readonly string[];
  readonly feature: DeliveredFeature<P>;
}

/** Deliveries that will not come: lost ones, or, with reason `ahead`, an alarm that came before its turn. */
export interface Gap {
  readonly kind: "gap";
  readonly epoch: string;
  readonly from: number;
  readonly to: number;
  /** How many; 0 where the session is another one than before and nothing is known to be missing. */
  readonly count: number;
  readonly reason: GapReason;
}

export type Message<P = Properties> = Delivery<P> | Gap;

/** How far a client has come once it has taken a message. */
export function checkpointOf(message: Message<unknown>): Checkpoint {
  return { epoch: message.epoch, offset: message.kind === "gap" ? message.to : message.offset };
}

/** The further of two checkpoints; that of the newer epoch where they do not compare. Alarms before their turn never lead back. */
export function further(before: Checkpoint | undefined, checkpoint: Checkpoint): Checkpoint {
  return before?.epoch === checkpoint.epoch && before.offset > checkpoint.offset ? before : checkpoint;
}

/** The message of a frame, in the session of an epoch. */
export function message<P>(frame: EventFrame | GapFrame, epoch: string): Message<P> {
  if (frame.kind === "gap") {
    return { kind: "gap", epoch, from: frame.from, to: frame.to, count: frame.count, reason: frame.reason };
  }
  const { offset, subscriptions, cause, transition, traceparent, tracestate, violates } = frame;
  return {
    kind: "event",
    epoch,
    offset,
    ahead: frame.ahead === true,
    subscriptions,
    cause,
    ...(transition !== undefined && { transition }),
    ...(traceparent !== undefined && { trace: tracestate === undefined ? { traceparent } : { traceparent, tracestate } }),
    ...(violates !== undefined && { violates }),
    feature: delivered(frame.event as Feature<P>),
  };
}
