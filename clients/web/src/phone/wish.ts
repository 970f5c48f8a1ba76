// The subscriptions of this page, kept to what the person wants now: the events around, and a second one of the same filters that tells which objects left.

import { signal } from "@preact/signals";
import { ProblemError, type Session } from "nearcast";

import { ownOf, subscriptionOf, type AlongRoute, type Choice } from "./interests.js";

export const EVENTS = "around-me";
const OBJECTS = "around-me-objects";
/** The slider moves on: what it passes is not asked for. */
const DEBOUNCE_MS = 250;
/** A broker that has no time for it now is asked again after so long. */
const AGAIN_MS = 1000;

interface Wanted {
  readonly choice: Choice;
  readonly radius_m: number;
  readonly way: AlongRoute | undefined;
}

/** A choice that the broker refuses. */
export interface Fault {
  readonly choice: Choice;
  /** Whether it is the own condition alone: then the rest of the choice counts. */
  readonly own: boolean;
  readonly problem: ProblemError;
}

export class Wish {
  /** The broker takes it, has taken it (without what is at fault), or takes nothing of it. */
  readonly state = signal<"waits" | "in force" | "refused">("waits");
  readonly fault = signal<Fault | undefined>(undefined);
  /** What the broker has taken last, here or when the page was open before; `undefined` once it does not take that any more. */
  readonly inForce = signal<Choice | undefined>(undefined);
  /** Why the broker does not take the way; the rest is in force without it. */
  readonly wayFault = signal<ProblemError | undefined>(undefined);
  #session: Pick<Session, "subscribe"> | undefined;
  #wanted: Wanted | undefined;
  #made: Wanted | undefined;
  #making = false;
  #debounce: ReturnType<typeof setTimeout> | undefined;

  /** @param way what lies on it is wanted, too */
  want(choice: Choice, radius_m: number, way?: AlongRoute): void {
    clearTimeout(this.#debounce);
    this.state.value = "waits";
    const first = this.#wanted === undefined;
    this.#debounce = setTimeout(
      () => {
        if (way !== this.#wanted?.way) this.wayFault.value = undefined;
        this.#wanted = { choice, radius_m, way };
        void this.#make();
      },
      first ? 0 : DEBOUNCE_MS,
    );
  }

  /** There is a session. It makes the subscriptions again by itself should its broker forget them. */
  opened(session: Pick<Session, "subscribe">): void {
    this.#session = session;
    this.#made = undefined;
    void this.#make();
  }

  closed(): void {
    this.#session = undefined;
    this.#made = undefined;
    this.state.value = "waits";
  }

  /** A way that was refused may be taken now. */
  retryWay(): void {
    if (this.wayFault.peek() === undefined) return;
    this.wayFault.value = undefined;
    this.#made = undefined;
    void this.#make();
  }

  async #make(): Promise<void> {
    if (this.#making) return;
    this.#making = true;
    let again: Wanted | undefined;
    for (;;) {
      const [session, wanted] = [this.#session, this.#wanted];
      if (session === undefined || wanted === undefined || wanted === this.#made) break;
      const choice = this.#withoutFault(wanted.choice);
      if (choice === undefined) {
        this.#made = wanted;
        this.inForce.value = undefined;
        if (wanted === this.#wanted) this.state.value = "refused";
        break;
      }
      const way = this.wayFault.peek() === undefined ? wanted.way : undefined;
      const subscription = subscriptionOf(choice, wanted.radius_m, way);
      try {
        await session.subscribe(EVENTS, subscription);
        await session.subscribe(OBJECTS, { ...subscription, on: ["enter", "exit"] });
        if (session !== this.#session) continue;
        this.#made = wanted;
        this.inForce.value = choice;
        if (wanted === this.#wanted) this.state.value = "in force";
      } catch (error) {
        if (session !== this.#session) continue;
        if (!(error instanceof ProblemError)) break; // The session has ended.
        if (error.status === 429 || error.status === 503) {
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
          continue;
        }
        if (way !== undefined && isOfRoute(error)) {
          this.wayFault.value = error;
          continue;
        }
        const own =
          ownOf(choice) !== "" && error.errors.some(({ pointer }) => pointer.startsWith(`/filters/${choice.conditions.length}/where`));
        this.fault.value = { choice, own, problem: error };
        // What was in force before, with the radius of now, is tried once.
        if (again !== wanted) {
          again = wanted;
          continue;
        }
        this.#made = wanted;
        if (wanted === this.#wanted) this.state.value = "refused";
      }
    }
    this.#making = false;
  }

  /** What the broker can be asked for: of what it refuses the one before stands in the place. `undefined` where there is none. */
  #withoutFault(choice: Choice): Choice | undefined {
    const [fault, before] = [this.fault.value, this.inForce.value];
    if (fault === undefined) return choice;
    const refused = (other: Choice | undefined): boolean =>
      other === undefined || (fault.own ? ownOf(other) === ownOf(fault.choice) : JSON.stringify(other) === JSON.stringify(fault.choice));
    if (!refused(choice)) {
      this.fault.value = undefined;
      return choice;
    }
    if (!fault.own) return refused(before) ? undefined : before;
    if (before !== undefined && !refused(before)) return { ...choice, own: before.own, ownOn: ownOf(before) !== "" };
    return choice.conditions.length === 0 ? undefined : { ...choice, ownOn: false };
  }
}

/** Whether a refusal is of the area along a route: of the area itself, or of what the broker has room for. */
function isOfRoute({ errors, setting }: ProblemError): boolean {
  return errors.some(({ pointer }) => /^\/filters\/\d+\/area\/route/.test(pointer)) || setting?.startsWith("routes.") === true;
}
