// Requests over the WebSocket that wait for their answer.

import { QueueFull, type ProblemError } from "./errors.js";
import { writeFrame, type ClientFrame } from "./frames.js";

/** A request as it is made; it gets its `ref` here. */
export type Asked = Exclude<ClientFrame, { op: "ack" | "ping" }>;

/** How a request goes on. */
export interface Outcome {
  ok(): void;
  /** @param resent whether it was sent on an earlier connection already, which may have carried it out */
  failed(error: Error, resent: boolean): void;
  /** The connection broke before the answer. Where this is absent the request stays, and is sent again on the next one. */
  lost?(): void;
}

interface Request {
  readonly op: ClientFrame["op"];
  /** With its `ref`, which is the same on each connection. */
  readonly text: string;
  readonly outcome: Outcome;
  /** On how many connections it was sent. */
  sent: number;
  /** On which the last time, counted from 0. */
  sentOn: number;
}

/** Requests by their `ref`, in the order in which they were made. */
export class Requests {
  readonly #waiting = new Map<number, Request>();
  readonly #limit: number;
  readonly #send: (text: string) => boolean;
  #next = 1;
  #publishes = 0;
  #connection = 0;
  #idle: (() => void)[] = [];

  /**
   * @param limit how many publishes may wait that are bounded, and how many others
   * @param send writes to the connection, and says whether there is one
   */
  constructor(limit: number, send: (text: string) => boolean) {
    this.#limit = limit;
    this.#send = send;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Sends it now, or when there is a connection. Throws `QueueFull` beyond the bound, where it is bounded: what an application asks for is. */
  ask(frame: Asked, outcome: Outcome, bounded = false): void {
    const publish = frame.op === "publish";
    const waiting = publish ? this.#publishes : this.#waiting.size - this.#publishes;
    if (bounded && waiting >= this.#limit) throw new QueueFull(this.#limit);
    if (publish) this.#publishes += 1;
    const ref = this.#next;
    this.#next += 1;
    const request: Request = { op: frame.op, text: writeFrame({ ...frame, ref }), outcome, sent: 0, sentOn: -1 };
    this.#waiting.set(ref, request);
    this.#write(request);
  }

  /** The answer to the request with this `ref`; `false` where none waits for it. */
  answered(ref: unknown, problem: ProblemError | undefined): boolean {
    const request = typeof ref === "number" ? this.#remove(ref) : undefined;
    if (request === undefined) return false;
    if (problem === undefined) request.outcome.ok();
    else request.outcome.failed(problem, request.sent > 1);
    return true;
  }

  /** A new connection is there: sends those of these kinds that were not answered on one before. */
  repeat(...ops: readonly ClientFrame["op"][]): void {
    for (const request of this.#waiting.values()) {
      if (ops.includes(request.op) && request.sentOn !== this.#connection) this.#write(request);
    }
  }

  /** The connection is gone. */
  lost(): void {
    this.#connection += 1;
    for (const [ref, request] of [...this.#waiting]) {
      if (request.outcome.lost === undefined) continue;
      this.#remove(ref);
      request.outcome.lost();
    }
  }

  /** The one that was too long for the broker, which has closed the connection for it, will always be: it fails, and the others go on. */
  failLongest(error: Error): void {
    let longest: [number, Request] | undefined;
    for (const entry of this.#waiting) {
      if (entry[1].sent > 0 && entry[1].text.length > (longest?.[1].text.length ?? 0)) longest = entry;
    }
    if (longest !== undefined) this.#remove(longest[0])?.outcome.failed(error, false);
  }

  /** Nothing will be answered any more. */
  failAll(error: Error): void {
    for (const ref of [...this.#waiting.keys()]) this.#remove(ref)?.outcome.failed(error, false);
  }

  /** Resolves when nothing waits. */
  idle(): Promise<void> {
    if (this.#waiting.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }

  #write(request: Request): void {
    if (!this.#send(request.text)) return;
    request.sent += 1;
    request.sentOn = this.#connection;
  }

  #remove(ref: number): Request | undefined {
    const request = this.#waiting.get(ref);
    this.#waiting.delete(ref);
    if (request?.op === "publish") this.#publishes -= 1;
    if (this.#waiting.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
    return request;
  }
}
