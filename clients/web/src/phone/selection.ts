// Which entry is open. The browser's own Back closes it, as it does any page of an app.

import { computed, effect, signal } from "@preact/signals";

import type { Entry } from "./entry.js";
import { hashEvent } from "./worker/names.js";

export class Selection {
  readonly key = signal<string | undefined>(keyOf(history.state));
  /** The entry itself, as it is by now; `undefined` where none is open, or it is in the list no more. */
  readonly entry = computed(() => {
    const key = this.key.value;
    return key === undefined ? undefined : this.#entries().find((entry) => entry.key === key);
  });
  readonly #entries: () => readonly Entry[];
  /** The browser goes back, which takes it a moment. */
  #closing = false;
  /** An event that is to be opened when it is there: a notification may be faster than its delivery. */
  readonly #wanted = signal<string | undefined>(undefined);

  constructor(entries: () => readonly Entry[]) {
    this.#entries = entries;
    addEventListener("popstate", ({ state }) => {
      const [isClosed, key] = [this.#closing, this.key.peek()];
      this.#closing = false;
      // One was opened while the browser was still on its way back.
      if (isClosed && key !== undefined) history.pushState({ entry: key }, "");
      else this.key.value = keyOf(state);
    });
    addEventListener("hashchange", () => {
      this.#takeHash();
    });
    this.#takeHash();
    effect(() => {
      const wanted = this.#wanted.value;
      const entry = wanted === undefined ? undefined : entries().find(({ id }) => id === wanted);
      if (entry === undefined) return;
      this.#wanted.value = undefined;
      this.open(entry.key);
    });
  }

  /** Opens an event as soon as it is in the list. */
  want(event: string | undefined): void {
    this.#wanted.value = event;
  }

  open(key: string): void {
    if (this.#closing) this.key.value = key;
    else if (this.key.peek() === undefined) history.pushState({ entry: key }, "");
    else history.replaceState({ entry: key }, "");
    this.key.value = key;
  }

  close(): void {
    if (this.key.peek() === undefined) return;
    this.key.value = undefined;
    if (this.#closing || keyOf(history.state) === undefined) return;
    this.#closing = true;
    history.back();
  }

  #takeHash(): void {
    const event = hashEvent(location.hash);
    if (event === undefined) return;
    history.replaceState(null, "", location.pathname + location.search);
    this.want(event);
  }
}

function keyOf(state: unknown): string | undefined {
  const { entry } = (state ?? {}) as { readonly entry?: unknown };
  return typeof entry === "string" ? entry : undefined;
}
