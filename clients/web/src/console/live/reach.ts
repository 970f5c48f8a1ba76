// Whom events reach, as the broker tells it: asked for a few of them a second, so that the map can show matching and a client's page what it received.

import { signal } from "@preact/signals";
import type { DeliveredFeature, EventDeliveries } from "nearcast";

import { statusOf, type Access } from "../access.js";

/** Questions a second. */
export const ASKED_PER_S = 5;
/** The broker has written a delivery by then. */
const LATER_MS = 350;
const WAITING = 40;
/** What is kept of a client that somebody looks at. */
const KEPT = 50;

/** Events whose clients are counted. */
const COUNTED = 1000;

/** An event that a client received. */
export interface Received {
  readonly feature: DeliveredFeature;
  readonly subscriptions: readonly string[];
}

/** Later events after which the broker may have forgotten an event's deliveries: it remembers a thousand (`sessions.recent_events`). */
const FORGOTTEN = 700;
/** A page takes so long until it keeps up. */
const SETTLED_MS = 5000;
/** A page that was behind asks again after so long. */
const BEHIND_MS = 5000;

/** A client that an event has reached, by which of its subscriptions. */
export interface Reached {
  readonly client: string;
  readonly subscriptions: readonly string[];
}

interface Offered {
  readonly feature: DeliveredFeature;
  readonly due_ms: number;
  /** Its number among all that came. */
  readonly number: number;
  readonly isListed: boolean;
}

export class Reach {
  /** Of the client that is watched, the newest first. */
  readonly received = signal<readonly Received[]>([]);
  /** How many clients each of the last listed events has reached, by its id. */
  readonly counts = signal<ReadonlyMap<string | number, number>>(new Map());
  /** Listed events that the broker is asked about, whose numbers are not there yet. */
  readonly awaited = signal<ReadonlySet<string | number>>(new Set());
  /** Events that may have reached it and were not asked about, as too many came. */
  readonly skipped = signal(0);
  readonly #access: Access;
  #waiting: Offered[] = [];
  /** Questions that are on their way. */
  readonly #asked = new Set<Offered>();
  #came = 0;
  #again_ms = 0;
  #watched: string | undefined;
  /** Whether an event may reach somebody of interest. */
  #wanted: (feature: DeliveredFeature) => boolean = () => false;
  #told: (feature: DeliveredFeature, reached: readonly Reached[]) => void = () => undefined;
  #refused: { readonly token: string | undefined } | undefined;

  constructor(access: Access) {
    this.#access = access;
    setInterval(() => void this.#ask(), 1000 / ASKED_PER_S);
  }

  /** `wanted` says which events are asked about; `told` hears whom one reached, the console left out. */
  show(wanted: (feature: DeliveredFeature) => boolean, told: (feature: DeliveredFeature, reached: readonly Reached[]) => void): void {
    this.#wanted = wanted;
    this.#told = told;
  }

  /** Keeps what this client receives from now on; nothing any more without one. */
  watch(client: string | undefined): void {
    if (client === this.#watched) return;
    this.#watched = client;
    this.received.value = [];
    this.skipped.value = 0;
    this.#wait([]);
  }

  /** What waits from now on. */
  #wait(waiting: Offered[]): void {
    this.#waiting = waiting;
    const listed = [...waiting, ...this.#asked].flatMap(({ feature, isListed }) => (isListed ? feature.id : []));
    const before = this.awaited.peek();
    if (listed.length !== before.size || listed.some((id) => !before.has(id))) this.awaited.value = new Set(listed);
  }

  /** The client that is watched. */
  get watched(): string | undefined {
    return this.#watched;
  }

  /** `isListed`: somebody reads it, so that it is asked about wherever it happened. */
  offer(feature: DeliveredFeature, isListed = false): void {
    if (!isListed) this.#came += 1;
    // What a busy broker sent while the page was made is old by now.
    if (this.#came > FORGOTTEN / 2 && performance.now() < Math.max(SETTLED_MS, this.#again_ms)) return;
    if (isListed && this.counts.peek().has(feature.id)) return;
    if (document.hidden || (this.#refused !== undefined && this.#refused.token === this.#access.token.peek())) return;
    const known = this.#waiting.find((offered) => offered.feature.id === feature.id);
    if (known !== undefined) {
      if (isListed) this.#wait(this.#waiting.map((offered) => (offered === known ? { ...known, isListed } : offered)));
      return;
    }
    // Where nobody is watched some that are shown will do.
    const isIdle = this.#watched === undefined;
    if (!isListed && ((isIdle && this.#waiting.length >= ASKED_PER_S) || !this.#wanted(feature))) return;
    const waiting = [...this.#waiting];
    if (waiting.length >= (isIdle ? 2 * ASKED_PER_S : WAITING)) {
      // The list waits for its numbers: what is not listed goes first.
      const unlisted = isIdle ? waiting.findIndex((offered) => !offered.isListed) : 0;
      waiting.splice(Math.max(0, unlisted), 1);
      if (!isIdle) this.skipped.value += 1;
    }
    this.#wait([...waiting, { feature, due_ms: performance.now() + LATER_MS, number: this.#came, isListed }]);
  }

  async #ask(): Promise<void> {
    const token = this.#access.token.peek();
    const fresh = this.#waiting.filter(({ number }) => this.#came - number <= FORGOTTEN);
    if (this.#watched !== undefined) this.skipped.value += this.#waiting.length - fresh.length;
    const isDue = ({ due_ms }: Offered): boolean => due_ms <= performance.now();
    const isIdle = this.#watched === undefined;
    const next = (isIdle ? fresh.find((offered) => offered.isListed && isDue(offered)) : undefined) ?? fresh.find(isDue);
    if (next === undefined || !this.#access.usable.peek()) {
      if (fresh.length < this.#waiting.length) this.#wait(fresh);
      return;
    }
    this.#asked.add(next);
    this.#wait(fresh.filter((offered) => offered !== next));
    const { feature } = next;
    try {
      const path = `v1/events/${encodeURIComponent(feature.id)}/deliveries`;
      const { deliveries } = (await this.#access.call(path)) as EventDeliveries;
      const own = this.#access.client.peek();
      const others = deliveries.filter(({ client }) => client !== own);
      const reached = [...new Map(others.map((delivery) => [delivery.client, delivery])).values()];
      this.counts.value = new Map([...[...this.counts.value].slice(-COUNTED + 1), [feature.id, reached.length]]);
      if (reached.length > 0) this.#told(feature, reached);
      const mine = others.find(({ client }) => client === this.#watched);
      if (mine !== undefined) this.received.value = [{ feature, subscriptions: mine.subscriptions }, ...this.received.value].slice(0, KEPT);
    } catch (error) {
      // A token that does not permit it will not permit it the next time either.
      if (statusOf(error) === 403) {
        this.#refused = { token };
        this.#waiting = [];
      }
      // The page is behind, so that the broker has forgotten what it would ask about next.
      if (statusOf(error) === 404) {
        this.#again_ms = performance.now() + BEHIND_MS;
        if (this.#watched !== undefined) this.skipped.value += this.#waiting.length;
        this.#waiting = [];
      }
    }
    this.#asked.delete(next);
    this.#wait(this.#waiting);
  }
}
