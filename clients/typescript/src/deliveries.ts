// What comes from the broker and waits for the application, and how far the application has come.

import type { Clock } from "./clock.js";
import type { DeliveredFeature, Properties } from "./events.js";
import type { Cause, EventFrame, GapFrame, GapReason, Trace } from "./frames.js";

/** A place in what is delivered to a client. Offsets of two epochs do not compare. */
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
   * and whoever breaks off in between gets the alarm again.
   */
  readonly ahead: boolean;
  /** The subscriptions that it is for. */
  readonly subscriptions: readonly string[];
  readonly cause: Cause;
  /** Of subscriptions to transitions: what became of the event's object. */
  readonly transition?: "enter" | "exit";
  readonly trace?: Trace;
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

/** Where a message brings who takes it. */
export function placeOf(message: Message<unknown>): Checkpoint {
  return { epoch: message.epoch, offset: message.kind === "gap" ? message.to : message.offset };
}

/** The further of two places; that of the newer epoch where they do not compare. Alarms before their turn never lead back. */
function further(before: Checkpoint | undefined, place: Checkpoint): Checkpoint {
  return before?.epoch === place.epoch && before.offset > place.offset ? before : place;
}

function message<P>(frame: EventFrame | GapFrame, epoch: string): Message<P> {
  if (frame.kind === "gap") {
    return { kind: "gap", epoch, from: frame.from, to: frame.to, count: frame.count, reason: frame.reason };
  }
  const { offset, subscriptions, cause, transition, traceparent, tracestate } = frame;
  return {
    kind: "event",
    epoch,
    offset,
    ahead: frame.ahead === true,
    subscriptions,
    cause,
    ...(transition !== undefined && { transition }),
    ...(traceparent !== undefined && { trace: tracestate === undefined ? { traceparent } : { traceparent, tracestate } }),
    feature: frame.event as DeliveredFeature<P>,
  };
}

interface Taker<P> {
  resolve(result: IteratorResult<Message<P>, undefined>): void;
  reject(error: Error): void;
}

/** The queue between the connection and the application, first in, first out. */
export class Deliveries<P> {
  /** How far the queue has come: where a connection goes on. */
  #received: Checkpoint | undefined;
  /** How far the application has come. */
  #taken: Checkpoint | undefined;
  /** What the application is at. */
  #current: Message<P> | undefined;
  #queue: Message<P>[] = [];
  /** Where the queue begins: what was taken is cut off now and then, since taking off the front one by one moves all others. */
  #head = 0;
  #takers: Taker<P>[] = [];
  #ended: { readonly error: Error | undefined } | undefined;
  readonly #processed: (place: Checkpoint) => void;
  readonly #took: () => void;

  /**
   * @param processed told of each message that the application is done with
   * @param took told when the application has taken one
   */
  constructor(resume: Checkpoint | undefined, processed: (place: Checkpoint) => void, took: () => void) {
    this.#received = resume;
    this.#taken = resume;
    this.#processed = processed;
    this.#took = took;
  }

  get received(): Checkpoint | undefined {
    return this.#received;
  }

  get taken(): Checkpoint | undefined {
    return this.#taken;
  }

  get waiting(): number {
    return this.#queue.length - this.#head;
  }

  /** A session that goes on from nowhere in particular begins where the broker says. One that goes on does where it was: a gap may follow. */
  begin(place: Checkpoint): void {
    this.#received ??= place;
    this.#taken ??= place;
  }

  put(frame: EventFrame | GapFrame, epoch: string): void {
    if (this.#ended !== undefined) return;
    const next = message<P>(frame, epoch);
    this.#received = further(this.#received, placeOf(next));
    const taker = this.#takers.shift();
    if (taker === undefined) this.#queue.push(next);
    else taker.resolve({ done: false, value: this.#take(next) });
  }

  next(): Promise<IteratorResult<Message<P>, undefined>> {
    const current = this.#current;
    this.#current = undefined;
    // Being done with an alarm before its turn says nothing of what comes before that turn.
    if (current?.kind === "gap" || current?.ahead === false) this.#processed(placeOf(current));
    const next = this.#queue[this.#head];
    if (next !== undefined) {
      this.#head += 1;
      if (this.#head * 2 >= this.#queue.length) {
        this.#queue = this.#queue.slice(this.#head);
        this.#head = 0;
      }
      const value = this.#take(next);
      this.#took();
      return Promise.resolve({ done: false, value });
    }
    if (this.#ended === undefined) {
      return new Promise((resolve, reject) => {
        this.#takers.push({ resolve, reject });
      });
    }
    if (this.#ended.error === undefined) return Promise.resolve({ done: true, value: undefined });
    return Promise.reject(this.#ended.error);
  }

  /** Nothing more comes. With an error the application gets what waits and then the error, else the end at once. */
  end(error: Error | undefined): void {
    if (this.#ended !== undefined) return;
    this.#ended = { error };
    if (error === undefined) {
      this.#queue = [];
      this.#head = 0;
    }
    for (const taker of this.#takers.splice(0)) {
      if (error === undefined) taker.resolve({ done: true, value: undefined });
      else taker.reject(error);
    }
  }

  #take(next: Message<P>): Message<P> {
    this.#current = next;
    this.#taken = further(this.#taken, placeOf(next));
    return next;
  }
}

/** So many deliveries may be done with before they are acknowledged. */
const ACK_EVERY = 100;
/** And for so long. */
const ACK_AFTER_MS = 1000;

/** Acknowledgements: at most one every 100 deliveries or second, and the last one again on each connection, since none is answered. */
export class Acknowledger {
  readonly #clock: Clock;
  readonly #send: (offset: number) => void;
  #last: Checkpoint | undefined;
  #epoch: string | undefined;
  #unsaid = 0;
  #timer: unknown;

  /** @param send writes an acknowledgement, where there is a connection */
  constructor(clock: Clock, send: (offset: number) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  /** The application is done with everything up to here. */
  processed(place: Checkpoint): void {
    this.#last = further(this.#last, place);
    this.#unsaid += 1;
    if (this.#unsaid >= ACK_EVERY) this.flush();
    else
      this.#timer ??= this.#clock.setTimeout(() => {
        this.flush();
      }, ACK_AFTER_MS);
  }

  /** The application says so itself: told at once. */
  say(place: Checkpoint): void {
    this.#last = further(this.#last, place);
    if (place.epoch === this.#epoch) this.#send(place.offset);
  }

  flush(): void {
    this.#stop();
    if (this.#unsaid > 0) this.#repeat();
  }

  /** A connection to a session of this epoch is there. */
  connected(epoch: string): void {
    this.#epoch = epoch;
    this.#stop();
    this.#repeat();
  }

  /** Says nothing more by itself. */
  end(): void {
    this.#stop();
  }

  #repeat(): void {
    this.#unsaid = 0;
    if (this.#last !== undefined && this.#last.epoch === this.#epoch) this.#send(this.#last.offset);
  }

  #stop(): void {
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
