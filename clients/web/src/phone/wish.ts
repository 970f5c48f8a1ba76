// The one subscription of this page, kept to what the person wants now.

import { signal } from "@preact/signals";
import { ProblemError, type Session, type Subscription } from "nearcast";

const SUBSCRIPTION = "around-me";
/** The slider moves on: what it passes is not asked for. */
const DEBOUNCE_MS = 250;
/** A broker that has no time for it now is asked again after so long. */
const AGAIN_MS = 1000;

export class Wish {
  /** The broker takes it, has taken it, or says why it does not. Then what it took before stays in force. */
  readonly state = signal<"waits" | "in force" | ProblemError>("waits");
  #session: Session | undefined;
  #wanted: Subscription | undefined;
  #made: Subscription | undefined;
  #making = false;
  #debounce: number | undefined;

  want(subscription: Subscription): void {
    window.clearTimeout(this.#debounce);
    this.state.value = "waits";
    const first = this.#wanted === undefined;
    this.#debounce = window.setTimeout(
      () => {
        this.#wanted = subscription;
        void this.#make();
      },
      first ? 0 : DEBOUNCE_MS,
    );
  }

  /** There is a session. It makes the subscription again by itself should its broker forget it. */
  opened(session: Session): void {
    this.#session = session;
    this.#made = undefined;
    void this.#make();
  }

  closed(): void {
    this.#session = undefined;
    this.#made = undefined;
    this.state.value = "waits";
  }

  async #make(): Promise<void> {
    if (this.#making) return;
    this.#making = true;
    for (;;) {
      const [session, wanted] = [this.#session, this.#wanted];
      if (session === undefined || wanted === undefined || wanted === this.#made) break;
      try {
        await session.subscribe(SUBSCRIPTION, wanted);
        if (session === this.#session) this.#made = wanted;
        if (wanted === this.#wanted) this.state.value = "in force";
      } catch (error) {
        if (session !== this.#session) continue;
        if (!(error instanceof ProblemError)) break; // The session has ended.
        if (error.status === 429 || error.status === 503) {
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
          continue;
        }
        this.#made = wanted;
        if (wanted === this.#wanted) this.state.value = error;
      }
    }
    this.#making = false;
  }
}
