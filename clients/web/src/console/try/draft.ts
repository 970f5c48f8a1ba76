// The draft of a subscription: what it would match of what is there, and what it matches of what comes.

import { batch, effect, signal, untracked } from "@preact/signals";
import { ProblemError, type Explanation, type Fault, type Filter, type Subscription } from "nearcast";

import { HttpProblem } from "../../shared/http.js";
import type { PageSettings } from "../../shared/pages.js";
import { reasonOf, statusOf, type Access } from "../access.js";
import type { Live } from "../live/live.js";
import type { Seen } from "../live/objects.js";
import type { DraftDocument } from "./snippets.js";
import { areaOf, boxOf, inBox, missing, triedArea, type Shape } from "./shape.js";

/** A pause in typing or dragging of so long makes a version of the draft. */
const PAUSE_MS = 350;
/** Newest events that are asked about at once, and how many questions are under way. */
const ASKED = 100;
const AT_ONCE = 6;

/** What is known of a version of the draft. */
export type Trial =
  | { readonly state: "idle"; readonly why?: string }
  | { readonly state: "asking" }
  | { readonly state: "refused"; readonly faults: readonly Fault[]; readonly why: string }
  /** `why`: there is no subscription, so that what comes is not counted. */
  | { readonly state: "running"; readonly matched: number; readonly asked: number; readonly of: number; readonly why?: string };

export class Draft {
  readonly shape = signal<Shape>({ form: "everywhere" });
  readonly where = signal("");
  /** The k nearest live objects count alone; `undefined` for all. */
  readonly nearest = signal<number | undefined>(undefined);
  /** Transitions that are told in place of each event. */
  readonly on = signal<readonly ("enter" | "exit")[] | undefined>(undefined);
  /** How long an object is inside before it counts as entered. */
  readonly dwell_s = signal<number | undefined>(undefined);
  readonly trial = signal<Trial>({ state: "idle" });
  /** Only while its tab is seen the draft is tried. */
  readonly active = signal(false);
  readonly #access: Access;
  readonly #live: Live;
  readonly #world: PageSettings["world"];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stop = new AbortController();
  #version = 0;

  constructor(access: Access, live: Live, world: PageSettings["world"]) {
    this.#access = access;
    this.#live = live;
    this.#world = world;
    effect(() => {
      const [shape, where, active, connected] = [
        this.shape.value,
        this.where.value,
        this.active.value,
        this.#live.link.value.state === "ready",
      ];
      this.#stop.abort();
      clearTimeout(this.#timer);
      if (!active || !connected) {
        if (!active) untracked(() => void this.#end());
        return;
      }
      this.#timer = setTimeout(() => void this.#try(shape, where), PAUSE_MS);
    });
  }

  /** The subscription as it is sent, and copied. */
  document(): DraftDocument {
    const k = this.nearest.value;
    const plain = areaOf(this.shape.value)?.toJSON();
    const area = k === undefined ? plain : { ...plain, nearest: k };
    const where = this.where.value.trim();
    const [on, dwell_s] = [this.on.value, this.dwell_s.value];
    return {
      filters: [{ ...(area === undefined ? {} : { area }), ...(where === "" ? {} : { where }) }],
      ...(on === undefined ? {} : { on, ...(dwell_s === undefined || !on.includes("enter") ? {} : { dwell_s }) }),
    };
  }

  /** What is tried of it: which events are in its area and fulfil its condition. Transitions and ranks need live objects and time. */
  #tried(): { readonly filters: readonly [Filter] } {
    const area = triedArea(this.shape.peek());
    const where = this.where.peek().trim();
    return { filters: [{ ...(area === undefined ? {} : { area }), ...(where === "" ? {} : { where }) }] };
  }

  async #end(): Promise<void> {
    this.#live.unmark();
    this.trial.value = { state: "idle" };
    await this.#live.subscribe(undefined, { filters: [{}] });
  }

  async #try(shape: Shape, where: string): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    const over = (): boolean => stop.signal.aborted;
    const lacking = missing(shape);
    if (lacking !== undefined || (shape.form === "everywhere" && where.trim() === "")) {
      await this.#end();
      this.trial.value = { state: "idle", why: lacking ?? "Draw an area or write a condition, and see at once what it matches." };
      return;
    }
    const subscription = this.#tried();
    this.trial.value = { state: "asking" };
    const box = boxOf(shape, this.#world);
    const asked = this.#live.objects
      .newest()
      .filter(({ place }) => inBox(box, place, this.#world))
      .slice(0, ASKED);
    try {
      // The broker says what is wrong with the draft before anything of it is in force.
      await this.#ask(subscription, asked[0], stop.signal);
      if (over()) return;
      // Before that the marks of the version before stand.
      this.#live.unmark();
      const why = await this.#begin(subscription);
      const running = { state: "running", asked: 0, matched: 0, of: asked.length, ...(why === undefined ? {} : { why }) } as const;
      if (over()) return;
      this.trial.value = running;
      await this.#askAll(subscription, asked, stop.signal);
    } catch (error) {
      if (over()) return;
      const faults = error instanceof HttpProblem ? error.faults : error instanceof ProblemError ? error.errors : [];
      await this.#end();
      const forbidden = statusOf(error) === 403 ? "This token does not permit to ask: it takes the scope subscribe. " : "";
      this.trial.value = { state: "refused", faults, why: forbidden + reasonOf(error) };
    }
  }

  /** Makes this version's subscription; tells why there is none. */
  async #begin(subscription: Subscription): Promise<string | undefined> {
    try {
      await this.#live.subscribe(`try-${this.#access.tab}-${this.#version++}`, { ...subscription, overflow: "keep-latest" });
      return undefined;
    } catch (error) {
      return reasonOf(error);
    }
  }

  async #askAll(subscription: object, asked: readonly Seen[], signal: AbortSignal): Promise<void> {
    const waiting = [...asked];
    const worker = async (): Promise<void> => {
      for (let seen = waiting.shift(); seen !== undefined; seen = waiting.shift()) {
        const { matched } = await this.#ask(subscription, seen, signal);
        const trial = this.trial.value;
        if (signal.aborted || trial.state !== "running") return;
        batch(() => {
          this.trial.value = { ...trial, asked: trial.asked + 1, matched: trial.matched + (matched ? 1 : 0) };
          // A newer event of the object speaks for itself.
          if (matched && this.#live.objects.get(seen.id)?.feature === seen.feature) this.#live.mark(seen.id, true);
        });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  /** Asks about an event, or about any at all. */
  async #ask(subscription: object, seen: Seen | undefined, signal: AbortSignal): Promise<Explanation> {
    const event = seen?.feature ?? { type: "Feature", geometry: { type: "Point", coordinates: [0, 0] } };
    const body = { client: this.#access.client.value, subscription, event };
    return (await this.#access.call("v1/explain", { method: "POST", body, signal })) as Explanation;
  }
}
