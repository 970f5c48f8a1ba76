// What a screen reader says of what comes: alarms at once, all else every few seconds, in few words.

import { signal } from "@preact/signals";

import type { Place } from "../shared/map/plane.js";
import type { PageSettings } from "../shared/pages.js";
import type { Entry } from "./entry.js";
import { whereabouts } from "./words.js";

const EVERY_MS = 4000;
/** So many are named; of more it is said how many. */
const NAMED = 2;

export class Announcer {
  /** For a region that is polite. */
  readonly news = signal("");
  /** For one that is assertive. */
  readonly alarm = signal("");
  readonly #phrase: (entry: Entry) => string;
  #named: string[] = [];
  #count = 0;
  #timer: unknown;

  /** @param here where one is when it is said */
  constructor(world: PageSettings["world"], here: () => Place | undefined) {
    this.#phrase = ({ title, place }) => {
      const from = here();
      return from === undefined || place === undefined ? title : `${title}, ${whereabouts(world, from, place)}`;
    };
  }

  came(entry: Entry): void {
    if (entry.alarm) {
      this.alarm.value = `Alarm: ${this.#phrase(entry)}`;
      return;
    }
    this.#count += 1;
    if (this.#named.length < NAMED) this.#named.push(this.#phrase(entry));
    this.#timer ??= setTimeout(() => {
      const more = this.#count - this.#named.length;
      this.news.value = `New: ${this.#named.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
      this.#named = [];
      this.#count = 0;
      this.#timer = undefined;
    }, EVERY_MS);
  }
}
