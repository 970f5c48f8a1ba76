// From the session to the list and the store. A message is acknowledged when it is stored, and not before: until then the broker keeps it.

import { signal } from "@preact/signals";
import type { Checkpoint, Message } from "nearcast";

import { Entries, ENTRIES_MAX } from "./entries.js";
import { afterTransition, doubted, entryOf, pressing, type Entry } from "./entry.js";
import type { Store } from "./storage.js";

/** The list changes so often, and no more. */
const SHOW_MS = 1000;

export class Inbox {
  /** Newest first. */
  readonly entries = signal<readonly Entry[]>([]);
  /** Whether the list had no room for something that lasts, or that nobody has looked at. */
  readonly overfull = signal(false);
  /** Whether what came is stored; until it is, or where it cannot be, nothing is acknowledged. */
  readonly stored = signal(true);
  readonly #list: Entries;
  readonly #store: Store | undefined;
  readonly #came: (entry: Entry) => void;
  readonly #object: string | undefined;
  #serial: number;
  /** That of the newest entry that the person has looked at. */
  #seen: number;
  #checkpoint: Checkpoint | undefined;
  /** What the store does not have yet: by keys, `undefined` for entries that went. No longer than the list and what one message drops. */
  #unsaved = new Map<string, Entry | undefined>();
  /** The store is behind by more than that. */
  #anew = false;
  #acknowledge: (() => void) | undefined;
  #saving: Promise<void> | undefined;
  #showing: unknown;
  #shown_ms = 0;

  /**
   * @param came told of each entry that a person has not heard of yet
   * @param object the attribute that names the object of events without `key`
   */
  constructor(
    store: Store | undefined,
    begin: { readonly entries: readonly Entry[]; readonly checkpoint: Checkpoint | undefined },
    came: (entry: Entry) => void,
    object?: string,
  ) {
    this.#store = store;
    this.#came = came;
    this.#object = object;
    this.#list = new Entries(begin.entries);
    this.#serial = this.#list.lastSerial;
    this.#seen = this.#serial;
    this.overfull.value = begin.entries.length >= ENTRIES_MAX;
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
    const now_ms = Date.now();
    const doubts = message.kind === "event" && message.transition === undefined ? doubted(message, () => this.#list.newestFirst()) : [];
    const entry = doubts.length > 0 ? undefined : entryOf(message, this.#serial + 1, now_ms, this.#object);
    for (const each of doubts) this.#replace(each);
    if (entry !== undefined) this.#add(entry, now_ms);
    else if (message.kind === "event") this.#replace(afterTransition(message, (key) => this.#list.get(key), this.#object));
    const offset = message.kind === "gap" ? message.to : message.offset;
    const before = this.#checkpoint;
    // An alarm before its turn has the offset of the delivery before it, which never leads back.
    this.#checkpoint = { epoch: message.epoch, offset: before?.epoch === message.epoch ? Math.max(before.offset, offset) : offset };
    this.#acknowledge = acknowledge;
    this.#saveSoon();
  }

  /** The person has opened the line of an entry. */
  read(key: string): void {
    const entry = this.#list.get(key);
    if (entry?.alarm !== true || entry.read === true) return;
    this.#replace({ ...entry, read: true });
    this.#saveSoon();
  }

  /** The person looks at the list. */
  look(): void {
    this.#seen = this.#serial;
  }

  /** Resolves when nothing is on its way to the store. */
  async settled(): Promise<void> {
    await this.#saving;
  }

  #add(entry: Entry, now_ms: number): void {
    this.#serial = entry.serial;
    const { fresh, dropped } = this.#list.add(entry, now_ms);
    this.#unsaved.set(entry.key, this.#list.get(entry.key));
    for (const gone of dropped) this.#unsaved.set(gone.key, undefined);
    const lasts = ({ over_ms, gone }: Entry): boolean => gone === undefined && over_ms !== undefined && over_ms > now_ms;
    if (dropped.some((gone) => lasts(gone) || pressing(gone, now_ms) || gone.serial > this.#seen)) this.overfull.value = true;
    this.#showSoon();
    if (fresh) this.#came(entry);
  }

  #replace(entry: Entry | undefined): void {
    if (entry === undefined) return;
    this.#list.replace(entry);
    this.#unsaved.set(entry.key, entry);
    this.#showSoon();
  }

  #showSoon(): void {
    this.#showing ??= setTimeout(
      () => {
        this.#showing = undefined;
        this.#shown_ms = Date.now();
        this.entries.value = this.#list.newestFirst();
      },
      Math.min(SHOW_MS, Math.max(0, this.#shown_ms + SHOW_MS - Date.now())),
    );
  }

  #saveSoon(): void {
    this.#saving ??= this.#save().finally(() => {
      this.#saving = undefined;
    });
  }

  /** Several messages share a transaction: those that come while one is written. */
  async #save(): Promise<void> {
    const store = this.#store;
    if (store === undefined) {
      this.#unsaved.clear();
      return;
    }
    while ((this.#acknowledge !== undefined || this.#unsaved.size > 0) && this.#checkpoint !== undefined) {
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
      acknowledge?.();
    }
  }
}
