// The checks, rule sets or group definitions that there are, with what they do.

import { effect, signal } from "@preact/signals";

import { reasonOf, statusOf, type Access } from "../access.js";

/** What there is that finds something in events, as the broker's addresses have it. */
export type SituationKind = "checks" | "rules" | "groups";

/** What one of them is called. */
export const NOUNS = { checks: "check", rules: "rule set", groups: "group definition" } as const;

/** What one finding of each is called. */
export const FOUND = { checks: "violation", rules: "derived event", groups: "change" } as const;

export interface Activity {
  readonly inputs: number;
  readonly evaluations: number;
  readonly published: number;
  readonly queued: number;
  readonly mean_us: number;
  readonly p99_us: number;
  readonly engine: string;
  readonly dropped: number;
  readonly marked: number;
  readonly passed: number;
  readonly ahead: number;
  readonly restarts: number;
  /** Of a rule set: how many are in its store. */
  readonly constraints?: number;
  /** Of a group definition: how many live objects are candidates of each role, and how many of these have partners in the other roles. */
  readonly candidates?: Readonly<Record<string, number>>;
  readonly consistent?: Readonly<Record<string, number>>;
  readonly paused: boolean;
  readonly problem?: string;
}

/** What they have in common. */
export interface Situation {
  readonly name: string;
  readonly activity: Activity;
}

/** Somebody looks at them so often. */
const SEEN_MS = 2000;

export class Situations<Shown extends Situation> {
  readonly kind: SituationKind;
  /** In the order of their names; `undefined` until the broker has told them. */
  readonly list = signal<readonly Shown[] | undefined>(undefined);
  /** Why there is no list. */
  readonly why = signal<string | undefined>(undefined);
  /** Somebody looks at them. */
  readonly seen = signal(false);
  readonly #access: Access;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #turn = 0;

  constructor(access: Access, kind: SituationKind) {
    this.#access = access;
    this.kind = kind;
    effect(() => {
      // Another token may permit more.
      const [seen] = [this.seen.value, this.#access.given.value];
      if (seen) void this.look();
      else clearTimeout(this.#timer);
    });
  }

  /** Asks for them now, and again while somebody looks. */
  async look(): Promise<void> {
    clearTimeout(this.#timer);
    const turn = ++this.#turn;
    let refused = false;
    if (!document.hidden && this.#access.usable.peek()) {
      try {
        const list = (await this.#access.call(`v1/${this.kind}`)) as readonly Shown[];
        if (turn !== this.#turn) return;
        this.list.value = list;
        this.why.value = undefined;
      } catch (error) {
        if (turn !== this.#turn) return;
        refused = statusOf(error) === 403;
        this.why.value = refused
          ? `This token does not permit to see ${NOUNS[this.kind]}s: that takes the scope admin.`
          : `There is no list now: ${reasonOf(error)}.`;
      }
    }
    // What this token does not permit it will not permit later.
    if (this.seen.peek() && turn === this.#turn && !refused) this.#timer = setTimeout(() => void this.look(), SEEN_MS);
  }

  get(name: string): Shown | undefined {
    return this.list.value?.find((each) => each.name === name);
  }

  /** The address of one of them. */
  path(name: string, part = ""): string {
    return `v1/${this.kind}/${encodeURIComponent(name)}${part}`;
  }
}

/** What one is at, in a word with its reason. */
export function stateOf({ activity: { paused, problem, queued } }: Situation): {
  readonly word: "at work" | "paused" | "problem" | "behind";
  readonly why: string;
} {
  if (paused) return { word: "paused", why: queued > 0 ? `${queued} wait` : "" };
  if (problem !== undefined) return { word: "problem", why: problem };
  return queued > 1000 ? { word: "behind", why: `${queued} wait` } : { word: "at work", why: "" };
}
