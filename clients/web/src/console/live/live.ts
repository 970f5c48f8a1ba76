// The console as a client of the broker: its session, its subscription of everything, and what came of it.

import { effect, signal } from "@preact/signals";
import { Closed, ProblemError, type DeliveredFeature, type Message, type Session, type Subscription } from "nearcast";

import { connectOn } from "../../../../typescript/src/connect.js";
import { brokerUrl } from "../../shared/pages.js";
import { reasonOf, statusOf, type Access } from "../access.js";
import { changeOf } from "../groups/groups.js";
import { Attributes } from "./attributes.js";
import { Feed, type FeedRow } from "./feed.js";
import { Objects, type Seen } from "./objects.js";
import { platformOf } from "./stream.js";
import { Violations } from "./violations.js";

/** What the connection is at, in a word for machines and a sentence for people. */
export interface Link {
  readonly state: "connecting" | "ready" | "lost" | "refused";
  readonly why?: string;
}

/** What shows points: the map, when it is there. */
export interface Shown {
  put(seen: Seen): void;
  remove(id: string): void;
  clear(): void;
}

/** Counters are looked at so often. */
const LOOK_MS = 500;
/** Of so many events a second the attributes are learnt. */
const LEARNT = 50;
/** Events that another filter finds at once. */
const LISTED = 40;
/** A session that ended for another reason than its token is tried again after so long. */
const AGAIN_MS = 2000;
/** The code of a close for a token whose time is over. */
const TOKEN_ENDED = 4401;

export class Live {
  readonly #access: Access;
  readonly #platform = platformOf(() => !this.#access.borrowed.peek());
  readonly link = signal<Link>({ state: "connecting" });
  readonly rows = signal<readonly FeedRow[]>([]);
  readonly paused = signal(false);
  /** More events come than the list shows. */
  readonly flooded = signal(false);
  /** Points that are there. */
  readonly points = signal(0);
  /** Events that came to the console a second. */
  readonly came_per_s = signal(0);
  /** Events that the console was too slow for, or that were lost on the way, since the page was opened. */
  readonly missed = signal(0);
  readonly attributes = new Attributes();
  readonly objects: Objects;
  readonly violations = new Violations();
  /** Told of each event, and whether the draft's subscription had it. */
  readonly draft = signal<string | undefined>(undefined);
  readonly draftMatches = signal(0);
  /** Somebody wants the events under a name that is not the console's own: other connections of that name get them, too. */
  readonly wanted = signal(false);
  readonly #feed = new Feed();
  readonly #everything: string;
  /** Whether an event is for the list, and for the map. */
  listed: (feature: DeliveredFeature) => boolean = () => true;
  /** Hears of each event after it is shown. */
  onEvent: (feature: DeliveredFeature) => void = () => undefined;
  /** Hears of each event that comes into the list. */
  onListed: (feature: DeliveredFeature) => void = () => undefined;
  #shown: Shown | undefined;
  #session: Session | undefined;
  #came = 0;
  #matched = 0;
  #learnt = 0;
  #looked_ms = performance.now();

  constructor(access: Access, object: string | undefined) {
    this.#access = access;
    this.#everything = `console-${access.tab}`;
    this.objects = new Objects(object);
    setInterval(() => this.#look(), LOOK_MS);
    void this.#run();
  }

  /** Shows all points there are, and those that come. */
  show(shown: Shown): void {
    this.#shown = shown;
    for (const seen of this.objects.newest().reverse()) shown.put(seen);
  }

  /** Events of one value of this attribute are one object from now on. */
  tellApartBy(attribute: string | undefined): void {
    this.objects.tellApartBy(attribute);
    this.violations.clear();
    this.#shown?.clear();
    this.points.value = 0;
  }

  /** Says of a point whether the draft has it. */
  mark(id: string, matched: boolean): void {
    const seen = this.objects.mark(id, matched);
    if (seen !== undefined) this.#shown?.put(seen);
  }

  /** Nothing is marked any more. */
  unmark(): void {
    for (const seen of this.objects.newest()) if (seen.matched) this.mark(seen.id, false);
    this.#matched = 0;
    this.draftMatches.value = 0;
  }

  /** Makes the draft's subscription, which is made again on each connection, and ends the one before. Throws what the broker refuses. */
  async subscribe(id: string | undefined, subscription: Subscription): Promise<void> {
    const before = this.draft.value;
    this.draft.value = id;
    const session = this.#session;
    if (session === undefined) return;
    if (id !== undefined && !this.#may) throw new Error("this token's client would get it on its other connections, too: see Live");
    if (before !== undefined) void session.unsubscribe(before).catch(() => undefined); // It may be gone with its connection.
    if (id !== undefined) await session.subscribe(id, subscription);
  }

  get #may(): boolean {
    return this.wanted.peek() || !this.#access.borrowed.peek();
  }

  /** Resolves when events may be subscribed to. */
  #allowed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const stop = effect(() => {
        if (!this.wanted.value && this.#access.borrowed.value && !signal.aborted) return;
        queueMicrotask(() => stop());
        resolve();
      });
      signal.addEventListener("abort", () => resolve());
    });
  }

  async #run(): Promise<never> {
    for (;;) {
      const stop = new AbortController();
      const given = this.#access.given.peek();
      const unsubscribe = this.#access.given.subscribe((now) => {
        if (now !== given) stop.abort(new Error("another token"));
      });
      const changed = new Promise<void>((resolve) => {
        stop.signal.addEventListener("abort", () => resolve());
      });
      try {
        if (this.#access.usable.peek()) await this.#conversation(stop.signal);
        else this.link.value = { state: "refused", why: "it takes a token" };
        await changed;
      } catch (error) {
        if (!stop.signal.aborted) await this.#ended(error, changed);
      } finally {
        unsubscribe();
      }
    }
  }

  /** Says why the session is over, and waits until there is a point in another one. */
  async #ended(error: unknown, changed: Promise<void>): Promise<void> {
    const problem = error instanceof Error && error.cause instanceof ProblemError ? error.cause : error;
    const status = error instanceof Closed && error.code === TOKEN_ENDED ? 401 : statusOf(problem);
    const why = reasonOf(problem);
    if (status === 401) {
      this.link.value = { state: "refused", why };
      this.#access.refused(why);
      await changed;
    } else if (status === 403) {
      this.link.value = { state: "refused", why: `This token does not permit to see events: ${why}` };
      await changed;
    } else {
      this.link.value = { state: "lost", why };
      await Promise.race([changed, new Promise((resolve) => setTimeout(resolve, AGAIN_MS))]);
    }
  }

  async #conversation(signal: AbortSignal): Promise<void> {
    const token = this.#access.token.value;
    let epoch: string | undefined;
    const session: Session = await connectOn(this.#platform, {
      url: brokerUrl,
      client: this.#access.client.value,
      ...(token === undefined ? {} : { token }),
      // What is kept for a client of this name is for the program that works under it, not for an onlooker.
      ack: "manual",
      inbox: 5000,
      connectTimeout_s: 86_400,
      signal,
      onConnection: (change) => {
        if (change.state === "ready") {
          if (epoch !== undefined && epoch !== change.epoch) this.#forget();
          epoch = change.epoch;
          this.link.value = { state: "ready" };
        }
        if (change.state === "lost") this.link.value = { state: "lost", why: reasonOf(change.error) };
        else if (change.state === "connecting" && this.link.value.state !== "lost") this.link.value = { state: "connecting" };
      },
      // A broker that came back with other settings does not take the draft any more.
      onProblem: () => {
        this.draft.value = undefined;
      },
    });
    this.#session = session;
    try {
      await this.#allowed(signal);
      await session.subscribe(this.#everything, { filters: [{}], overflow: "keep-latest" });
      for await (const message of session) this.#take(message);
    } finally {
      this.#session = undefined;
      this.draft.value = undefined;
      void session.close({ timeout_s: 1 });
    }
  }

  #take(message: Message): void {
    if (message.kind === "gap") {
      // An alarm before its turn is no loss.
      if (message.reason !== "ahead") this.missed.value += message.count;
      return;
    }
    const draft = this.draft.value;
    const matched = draft !== undefined && message.subscriptions.includes(draft);
    const now_ms = performance.now();
    if (!message.subscriptions.includes(this.#everything)) {
      // What was there before the draft: it comes for the draft alone, and is no news.
      const known = matched ? this.objects.known(message.feature) : undefined;
      if (known !== undefined) this.mark(known.id, true);
      return;
    }
    this.#came += 1;
    if (matched) this.#matched += 1;
    const found = this.violations.take(message.feature, now_ms);
    const concerned = found?.point === undefined ? undefined : this.objects.get(found.point);
    const ofGroup = changeOf(message.feature)?.group !== undefined;
    if (concerned !== undefined || ofGroup) {
      // It is shown at the marks of the objects that it is about, and has none of its own.
      if (concerned !== undefined) this.#shown?.put(concerned);
      if (ofGroup) {
        this.violations.learn(message.feature, undefined, message.violates ?? [], now_ms);
        this.onEvent(message.feature);
      }
      if (!this.paused.value && this.listed(message.feature)) this.#feed.offer(message.feature, matched);
      return;
    }
    const { seen, gone } = this.objects.put(message.feature, matched, now_ms);
    if (found === undefined) this.violations.learn(message.feature, seen.id, message.violates ?? [], now_ms);
    if (gone !== undefined) this.#shown?.remove(gone);
    this.#shown?.put(seen);
    this.onEvent(seen.feature);
    if (!this.paused.value && this.listed(seen.feature)) this.#feed.offer(seen.feature, matched);
    if (this.#learnt < LEARNT) {
      this.#learnt += 1;
      this.attributes.learn(seen.feature.properties);
    }
  }

  /** The broker is another one, or has forgotten everything: what was shown is not there. */
  #forget(): void {
    this.objects.clear();
    this.violations.clear();
    this.#shown?.clear();
    this.points.value = 0;
  }

  /** Fills the list anew, of what is there. */
  list(): void {
    this.#feed.clear();
    const found = this.objects.newest().filter(({ feature }) => this.listed(feature));
    for (const { feature, matched } of found.slice(0, LISTED).reverse()) this.#feed.offer(feature, matched);
    this.#feed.look(LISTED);
    this.rows.value = this.#feed.rows;
  }

  #look(): void {
    const now_ms = performance.now();
    for (const id of this.objects.sweep(now_ms)) this.#shown?.remove(id);
    for (const point of this.violations.sweep(now_ms)) {
      const seen = this.objects.get(point);
      if (seen !== undefined) this.#shown?.put(seen);
    }
    this.came_per_s.value = (this.#came * 1000) / (now_ms - this.#looked_ms);
    this.#looked_ms = now_ms;
    this.#came = 0;
    this.#learnt = 0;
    this.points.value = this.objects.size;
    this.draftMatches.value = this.#matched;
    if (this.paused.value) return;
    for (const { feature } of this.#feed.look()) this.onListed(feature);
    this.rows.value = this.#feed.rows;
    this.flooded.value = this.#feed.flooded;
  }
}
