// From the session to the list and the store. A message is acknowledged when it is stored, and not before: until then the broker keeps it.

import { signal } from "@preact/signals";
import type { Checkpoint, Message } from "nearcast";

import { Entries } from "./entries.js";
import { entryOf, type Entry } from "./entry.js";
import type { Store } from "./storage.js";

/** Of a flood of messages the list shows what there is so often. */
const SHOW_MS = 200;

export class Inbox {
  /** Newest first. */
  readonly entries = signal<readonly Entry[]>([]);
  /** Whether what came is stored; until it is, or where it cannot be, nothing is acknowledged. */
  readonly stored = signal(true);
  readonly #list: Entries;
  readonly #store: Store | undefined;
  readonly #came: (entry: Entry) => void;
  #serial: number;
  #checkpoint: Checkpoint | undefined;
  /** What the store does not have yet: by keys, `undefined` for entries that went. No longer than the list and what one message drops. */
  #unsaved = new Map<string, Entry | undefined>();
  /** The store is behind by more than that. */
  #anew = false;
  #acknowledge: (() => void) | undefined;
  #saving: Promise<void> | undefined;
  #showing: unknown;

  /** @param came told of each entry that a person has not heard of yet */
  constructor(
    store: Store | undefined,
    begin: { readonly entries: readonly Entry[]; readonly checkpoint: Checkpoint | undefined },
    came: (entry: Entry) => void,
  ) {
    this.#store = store;
    this.#came = came;
    this.#list = new Entries(begin.entries);
    this.#serial = this.#list.lastSerial;
    this.#checkpoint = begin.checkpoint;
    this.entries.value = this.#list.newestFirst();
    this.stored.value = store !== undefined;
  }

  /** Where the next session goes on. */
  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint;
  }

  /** Takes a message. `acknowledge` is called when it, and all before it, is stored. */
  take(message: Message, acknowledge: () => void): void {
    const entry = entryOf(message, this.#serial + 1, Date.now());
    if (entry !== undefined) {
      this.#serial = entry.serial;
      const { fresh, dropped } = this.#list.add(entry);
      this.#unsaved.set(entry.key, entry);
      for (const key of dropped) this.#unsaved.set(key, undefined);
      this.#showing ??= setTimeout(() => {
        this.#showing = undefined;
        this.entries.value = this.#list.newestFirst();
      }, SHOW_MS);
      if (fresh) this.#came(entry);
    }
    const offset = message.kind === "gap" ? message.to : message.offset;
    const before = this.#checkpoint;
    // An alarm before its turn has the offset of the delivery before it, which never leads back.
    this.#checkpoint = { epoch: message.epoch, offset: before?.epoch === message.epoch ? Math.max(before.offset, offset) : offset };
    this.#acknowledge = acknowledge;
    this.#saving ??= this.#save().finally(() => {
      this.#saving = undefined;
    });
  }

  /** Resolves when nothing is on its way to the store. */
  async settled(): Promise<void> {
    await this.#saving;
  }

  /** Several messages share a transaction: those that come while one is written. */
  async #save(): Promise<void> {
    const store = this.#store;
    if (store === undefined) {
      this.#unsaved.clear();
      return;
    }
    while (this.#acknowledge !== undefined && this.#checkpoint !== undefined) {
      const [acknowledge, unsaved] = [this.#acknowledge, this.#unsaved];
      this.#acknowledge = undefined;
      this.#unsaved = new Map();
      const put = this.#anew ? this.#list.newestFirst() : [...unsaved.values()].filter((entry) => entry !== undefined);
      const remove = [...unsaved].filter(([, entry]) => entry === undefined).map(([key]) => key);
      try {
        await store.save({ anew: this.#anew, put, remove, checkpoint: this.#checkpoint });
      } catch {
        // Full, or forbidden by now. The next message tries again, with all that is there then.
        this.#anew = true;
        this.stored.value = false;
        return;
      }
      this.#anew = false;
      this.stored.value = true;
      acknowledge();
    }
  }
}
