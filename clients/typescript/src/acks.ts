// Acknowledgements: as few frames as will do.

import type { Clock } from "./clock.js";
import { further, type Checkpoint } from "./messages.js";

/** Deliveries that may be done with before they are acknowledged. */
const ACK_EVERY = 100;
/** Time for which a delivery may be done with before it is acknowledged. */
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
  processed(checkpoint: Checkpoint): void {
    this.#last = further(this.#last, checkpoint);
    this.#unsaid += 1;
    if (this.#unsaid >= ACK_EVERY) this.flush();
    else
      this.#timer ??= this.#clock.setTimeout(() => {
        this.flush();
      }, ACK_AFTER_MS);
  }

  /** The application says so itself: sent at once. */
  say(checkpoint: Checkpoint): void {
    this.#last = further(this.#last, checkpoint);
    if (checkpoint.epoch === this.#epoch) this.#send(checkpoint.offset);
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
