// The checks that there are, with what they do.

import { effect, signal } from "@preact/signals";

import { reasonOf, statusOf, type Access } from "../access.js";
import type { CheckShown } from "./formula.js";

/** Somebody looks at them so often. */
const SEEN_MS = 2000;

export class Checks {
  /** In the order of their names; `undefined` until the broker has told them. */
  readonly list = signal<readonly CheckShown[] | undefined>(undefined);
  /** Why there is no list. */
  readonly why = signal<string | undefined>(undefined);
  /** Somebody looks at them. */
  readonly seen = signal(false);
  readonly #access: Access;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #turn = 0;

  constructor(access: Access) {
    this.#access = access;
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
    if (!document.hidden && this.#access.usable.peek()) {
      try {
        const list = (await this.#access.call("v1/checks")) as readonly CheckShown[];
        if (turn !== this.#turn) return;
        this.list.value = list;
        this.why.value = undefined;
      } catch (error) {
        if (turn !== this.#turn) return;
        this.why.value =
          statusOf(error) === 403
            ? "This token does not permit to see checks: that takes the scope admin."
            : `There is no list now: ${reasonOf(error)}.`;
      }
    }
    if (this.seen.peek() && turn === this.#turn) this.#timer = setTimeout(() => void this.look(), SEEN_MS);
  }

  get(name: string): CheckShown | undefined {
    return this.list.value?.find((check) => check.name === name);
  }
}

/** The address of a check. */
export function pathOf(name: string, part = ""): string {
  return `v1/checks/${encodeURIComponent(name)}${part}`;
}

/** What a check is at, in a word with its reason. */
export function stateOf({ activity: { paused, problem, queued } }: CheckShown): {
  readonly word: "at work" | "paused" | "problem" | "behind";
  readonly why: string;
} {
  if (paused) return { word: "paused", why: queued > 0 ? `${queued} wait` : "" };
  if (problem !== undefined) return { word: "problem", why: problem };
  return queued > 1000 ? { word: "behind", why: `${queued} wait` } : { word: "at work", why: "" };
}
