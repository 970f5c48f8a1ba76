// Tells the broker where one is, and knows whether it knows.

import { signal } from "@preact/signals";
import { ProblemError, type Fix, type Session, type TrackPoint } from "nearcast";

import { distance_m, type Place } from "../shared/map/plane.js";
import type { PageSettings } from "../shared/pages.js";

/** The client's own 25 m are half of the smallest radius; a place that is off by so much is sent. */
const MIN_DISTANCE_M = 5;
const MAX_INTERVAL_S = 30;
/** Time after which it is sent again to a broker that has no time for it now. */
const AGAIN_MS = 1000;
/** Points of the way that the broker has not confirmed. Beyond that every other one is left out. */
const UNSURE_MAX = 1000;
/** Fixes that wait for the session; it takes them at once. */
const FIXES_MAX = 100;

export class Teller {
  /** When the broker confirmed a place of ours last. */
  readonly told_ms = signal<number | undefined>(undefined);
  /** Whether the newest place is not confirmed yet. */
  readonly waiting = signal(false);
  /** Why the broker does not take the place. */
  readonly refused = signal<string | undefined>(undefined);
  readonly #world: PageSettings["world"];
  #session: Session | undefined;
  #fixes: Fixes | undefined;
  #newest: Fix | undefined;
  /** The place that was asked about last, and when. */
  #asked: { readonly place: Place; readonly at_ms: number } | undefined;
  #asking = false;
  #again: unknown;
  /** From the last place that was confirmed on. What was sent just before a connection broke may be lost, and is sent as a track then. */
  #unsure: TrackPoint[] = [];
  /** The way of an earlier visit that the broker was not told. It is a track of its own: nobody knows the way between its end and now. */
  #earlier: readonly TrackPoint[];

  constructor(world: PageSettings["world"], earlier: readonly TrackPoint[] = []) {
    this.#world = world;
    this.#earlier = earlier;
  }

  /** What the broker has not confirmed, for a later visit; empty where it knows where one is. */
  get untold(): readonly TrackPoint[] {
    if (this.#earlier.length > 0) return this.#earlier;
    return this.waiting.peek() ? this.#unsure : [];
  }

  /** One is here now. */
  here(fix: Fix): void {
    this.#newest = fix;
    this.#unsure.push([fix.coordinates[0], fix.coordinates[1], fix.unix_s ?? Date.now() / 1000]);
    if (this.#unsure.length > UNSURE_MAX) this.#unsure = this.#unsure.filter((_, i, all) => i % 2 === 0 || i === all.length - 1);
    this.#fixes?.put(fix);
    this.#confirm();
  }

  /** There is a session, connected: positions are sent from now on. */
  opened(session: Session): void {
    this.#fixes?.end();
    this.#session = session;
    this.#asking = false;
    this.#fixes = new Fixes();
    this.#tellEarlier();
    this.#tellWay();
    const options = { minDistance_m: MIN_DISTANCE_M, maxInterval_s: MAX_INTERVAL_S, minInterval_s: 0, world: this.#world };
    session.follow(this.#fixes, options).catch(ended);
    if (this.#newest !== undefined) this.#fixes.put(this.#newest);
    this.#asked = undefined;
    this.#confirm();
  }

  /** The connection of the session broke. What comes from now on the session records. */
  lost(): void {
    this.#tellWay();
  }

  /** There is no session any more. */
  closed(): void {
    this.#fixes?.end();
    this.#fixes = undefined;
    this.#session = undefined;
    this.#asking = false;
  }

  #tellEarlier(): void {
    const way = this.#earlier;
    if (way.length === 0) return;
    const told = (): void => {
      if (this.#earlier === way) this.#earlier = [];
    };
    this.#session?.track(way).then(told, (error: unknown) => {
      // One that is refused would be refused again.
      if (error instanceof ProblemError && error.status !== 429 && error.status !== 503) told();
    });
  }

  #tellWay(): void {
    const way = [...this.#unsure];
    if (way.length < 2) return;
    this.#session?.track(way).then(() => {
      this.#sureOf(way.at(-1));
    }, ended);
  }

  /** Asks for an answer to the newest place, where it is not the one that was asked about: one question at a time. */
  #confirm(): void {
    const [session, fix] = [this.#session, this.#newest];
    if (fix === undefined || !this.#worthTelling(fix)) return;
    this.waiting.value = true;
    if (session === undefined || this.#asking) return;
    clearTimeout(this.#again as number | undefined);
    const end = this.#unsure.at(-1);
    this.#asking = true;
    this.#asked = { place: [fix.coordinates[0], fix.coordinates[1]], at_ms: Date.now() };
    const accuracy = fix.accuracy_m === undefined ? {} : { accuracy_m: fix.accuracy_m };
    const answered = (problem?: ProblemError): void => {
      if (session !== this.#session) return;
      this.#asking = false;
      if (problem?.status === 429 || problem?.status === 503) {
        this.#again = setTimeout(() => {
          this.#asked = undefined;
          this.#confirm();
        }, AGAIN_MS);
        return;
      }
      this.refused.value = problem === undefined ? undefined : (problem.errors[0]?.detail ?? problem.detail ?? problem.title);
      this.waiting.value = false;
      if (problem === undefined) {
        this.told_ms.value = Date.now();
        this.#sureOf(end);
      }
      this.#confirm();
    };
    session.move(fix.coordinates, { confirm: true, ...accuracy }).then(
      () => {
        answered();
      },
      (error: unknown) => {
        if (error instanceof ProblemError) answered(error);
      },
    );
  }

  #worthTelling({ coordinates }: Fix): boolean {
    if (this.#asked === undefined || Date.now() - this.#asked.at_ms >= MAX_INTERVAL_S * 1000) return true;
    return distance_m(this.#world, this.#asked.place, [coordinates[0], coordinates[1]]) >= MIN_DISTANCE_M;
  }

  #sureOf(point: TrackPoint | undefined): void {
    const at = point === undefined ? -1 : this.#unsure.indexOf(point);
    if (at > 0) this.#unsure.splice(0, at);
  }
}

/** The session has ended, which its owner learns in another way. */
function ended(): void {
  // Nothing to be done.
}

/** Fixes on their way to a session. */
class Fixes implements AsyncIterable<Fix> {
  readonly #waiting: Fix[] = [];
  #take: ((result: IteratorResult<Fix, undefined>) => void) | undefined;
  #ended = false;

  put(fix: Fix): void {
    const take = this.#take;
    this.#take = undefined;
    if (take !== undefined) take({ done: false, value: fix });
    else if (this.#waiting.push(fix) > FIXES_MAX) this.#waiting.shift();
  }

  end(): void {
    this.#ended = true;
    this.#take?.({ done: true, value: undefined });
    this.#take = undefined;
  }

  [Symbol.asyncIterator](): AsyncIterator<Fix, undefined> {
    return {
      next: () => {
        const value = this.#waiting.shift();
        if (value !== undefined) return Promise.resolve({ done: false, value });
        if (this.#ended) return Promise.resolve({ done: true, value: undefined });
        return new Promise((resolve) => {
          this.#take = resolve;
        });
      },
      return: () => {
        this.end();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }
}
