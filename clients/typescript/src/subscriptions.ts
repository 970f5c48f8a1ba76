// Subscriptions that a session has made: those that end with a connection are made again on the next one.

import type { Clock } from "./clock.js";
import { ProblemError } from "./errors.js";
import type { ClientFrame, Subscription } from "./frames.js";
import type { Requests } from "./requests.js";

type SubscribeFrame = Extract<ClientFrame, { op: "subscribe" }>;

interface Made {
  readonly frame: SubscribeFrame;
  /** Of the session in which it was made last. */
  epoch: string;
}

/** A subscription that the broker has no time for now is tried again after so long. */
const AGAIN_MS = 1000;

export class Subscriptions {
  readonly #requests: Requests;
  readonly #clock: Clock;
  readonly #refused: (problem: ProblemError) => void;
  /** What is in force, in the order in which it was first made. */
  readonly #made = new Map<string, Made>();
  #epoch = "";
  #again: unknown;

  /** @param refused told of what cannot be made again */
  constructor(requests: Requests, clock: Clock, refused: (problem: ProblemError) => void) {
    this.#requests = requests;
    this.#clock = clock;
    this.#refused = refused;
  }

  make(id: string, subscription: Subscription): Promise<void> {
    // A copy: what the application does to its objects later is not meant.
    const frame: SubscribeFrame = { op: "subscribe", id, ...(JSON.parse(JSON.stringify(subscription)) as Subscription) };
    return new Promise((resolve, reject) => {
      const ok = (): void => {
        this.#made.set(id, { frame, epoch: this.#epoch });
        resolve();
      };
      this.#requests.ask(frame, { ok, failed: reject }, true);
    });
  }

  end(id: string): Promise<void> {
    const before = this.#made.get(id);
    this.#made.delete(id);
    return new Promise((resolve, reject) => {
      this.#requests.ask(
        { op: "unsubscribe", id },
        {
          ok: resolve,
          failed: (error, resent) => {
            const gone = error instanceof ProblemError && error.code === "not-found";
            if (gone && resent) resolve();
            else reject(error);
            if (!gone && before !== undefined && !this.#made.has(id)) this.#made.set(id, before);
          },
        },
        true,
      );
    });
  }

  /** A connection is there. */
  ready(epoch: string): void {
    this.#epoch = epoch;
    this.#clock.clearTimeout(this.#again);
    this.#again = undefined;
    for (const [id, made] of this.#made) {
      // A durable one is still there, unless the broker has forgotten everything; where it has not, this changes nothing.
      if (made.frame.durable !== true || made.epoch !== epoch) this.#makeAgain(id, made);
    }
  }

  /** Makes nothing again. */
  stop(): void {
    this.#clock.clearTimeout(this.#again);
  }

  #makeAgain(id: string, made: Made): void {
    const epoch = this.#epoch;
    this.#requests.ask(made.frame, {
      ok: () => {
        made.epoch = epoch;
      },
      failed: (error) => {
        if (!(error instanceof ProblemError) || this.#made.get(id) !== made) return;
        if (error.status === 429 || error.status === 503) {
          made.epoch = "";
          this.#again ??= this.#clock.setTimeout(() => {
            this.#again = undefined;
            for (const [other, one] of this.#made) if (one.epoch === "") this.#makeAgain(other, one);
          }, AGAIN_MS);
          return;
        }
        this.#made.delete(id);
        this.#refused(error);
      },
      lost: () => undefined, // The next connection begins anew.
    });
  }
}
