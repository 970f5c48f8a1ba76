// Whether a finger or the focus is on the list: then its lines stay where they are.

import { computed, signal } from "@preact/signals";

/** A finger that has left may come back, and what it had aimed at is still there. */
const AFTER_MS = 1000;

export class Hold {
  readonly #touched = signal(false);
  readonly #focused = signal(false);
  readonly on = computed(() => this.#touched.value || this.#focused.value);
  #timer: ReturnType<typeof setTimeout> | undefined;

  down(): void {
    clearTimeout(this.#timer);
    this.#touched.value = true;
  }

  up(): void {
    if (!this.#touched.value) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.#touched.value = false), AFTER_MS);
  }

  focus(inside: boolean): void {
    this.#focused.value = inside;
  }

  /** The person wants to see what waits. */
  release(): void {
    clearTimeout(this.#timer);
    this.#touched.value = false;
    this.#focused.value = false;
  }
}
