// Messages that wait for the application.

import type { EventFrame, GapFrame } from "./frames.js";
import { checkpointOf, further, message, type Checkpoint, type Message } from "./messages.js";

interface Taker<P> {
  resolve(result: IteratorResult<Message<P>, undefined>): void;
  reject(error: Error): void;
}

/** The queue between the connection and the application, first in, first out. */
export class Inbox<P> {
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
  readonly #processed: (checkpoint: Checkpoint) => void;
  readonly #took: () => void;

  /**
   * @param processed called for each message that the application is done with
   * @param took called when the application has taken one
   */
  constructor(resume: Checkpoint | undefined, processed: (checkpoint: Checkpoint) => void, took: () => void) {
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
  begin(checkpoint: Checkpoint): void {
    this.#received ??= checkpoint;
    this.#taken ??= checkpoint;
  }

  put(frame: EventFrame | GapFrame, epoch: string): void {
    if (this.#ended !== undefined) return;
    const next = message<P>(frame, epoch);
    this.#received = further(this.#received, checkpointOf(next));
    const taker = this.#takers.shift();
    if (taker === undefined) this.#queue.push(next);
    else taker.resolve({ done: false, value: this.#take(next) });
  }

  /** The application is done with the message that it is at. */
  finish(): void {
    const current = this.#current;
    this.#current = undefined;
    // Being done with an alarm before its turn says nothing of what comes before that turn.
    if (current?.kind === "gap" || current?.ahead === false) this.#processed(checkpointOf(current));
  }

  next(): Promise<IteratorResult<Message<P>, undefined>> {
    this.finish();
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
    this.#taken = further(this.#taken, checkpointOf(next));
    return next;
  }
}
