// Where one is going, and the way there. The broker keeps its corridor along the best route by itself; this draws the same: a route is asked for when one
// has a destination, when one has left the line, and now and then, since streets become slow.

import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";
import { ProblemError, type FoundRoute, type Session } from "nearcast";

import { along, Corridor } from "../shared/map/corridor.js";
import { distance_m, type Place } from "../shared/map/plane.js";
import { EVENTS } from "./wish.js";
import { metres, minutes, spokenMetres } from "./words.js";

export interface Destination {
  readonly to: Place;
  /** As the person has chosen it; absent where it was pointed at. */
  readonly name?: string;
}

/** What a trip asks of a session. */
export type Asked = Pick<Session, "route" | "explain">;

/** Within the corridor the route is asked for again after so long. */
const RENEW_MS = 60_000;
/** Off the line, and where no way leads on, it is asked for again once one is so far from where one was. */
const STEP_M = 50;
/** A broker that has no time for it now, or that is out of reach, is asked again after so long. */
const AGAIN_MS = 2000;

export class Trip {
  /** Whether the broker knows streets. */
  readonly possible = signal(false);
  /** The person is about to say where to. */
  readonly choosing = signal(false);
  /** A destination to which the way is looked for. */
  readonly sought = signal<Destination | undefined>(undefined);
  /** Where one is going; events on the way are asked for until it is ended. */
  readonly destination = signal<Destination | undefined>(undefined);
  /** How far from the way one hears. */
  readonly radius_m = signal(200);
  readonly route = signal<FoundRoute | undefined>(undefined);
  /** Why there is no way, in a sentence. */
  readonly problem = signal<string | undefined>(undefined);
  /** What a screen reader says of a way that was found. */
  readonly news = signal("");
  readonly #here: ReadonlySignal<Place | undefined>;
  readonly corridor = computed(() => {
    const route = this.route.value;
    return route === undefined ? undefined : new Corridor(route.route.coordinates, this.radius_m.value);
  });
  /** What of the way is left: metres, and seconds as if all of it were equally fast. */
  readonly left = computed(() => {
    const [route, here] = [this.route.value, this.#here.value];
    if (route === undefined) return undefined;
    const left_m = here === undefined ? route.length_m : Math.min(route.length_m, along(route.route.coordinates, here).left_m);
    return { left_m, left_s: route.length_m === 0 ? 0 : (route.duration_s * left_m) / route.length_m };
  });
  #session: Asked | undefined;
  #asking = false;
  /** What was asked last. */
  #asked: { readonly here: Place; readonly destination: Destination; readonly at_ms: number } | undefined;
  #again: ReturnType<typeof setTimeout> | undefined;

  /** @param here where one is, and nothing where that is not known now */
  constructor(here: ReadonlySignal<Place | undefined>) {
    this.#here = here;
  }

  /** There is a session. */
  opened(session: Asked): void {
    this.#session = session;
    this.look();
  }

  closed(): void {
    this.#session = undefined;
    clearTimeout(this.#again);
  }

  /** Looks for the way to another destination. The one before stays until it is found. */
  seek(destination: Destination): void {
    this.choosing.value = false;
    this.problem.value = undefined;
    this.sought.value = destination;
    this.look();
  }

  /** Goes nowhere. */
  end(): void {
    this.choosing.value = false;
    this.sought.value = undefined;
    this.destination.value = undefined;
    this.route.value = undefined;
    this.problem.value = undefined;
    this.news.value = "";
  }

  /** Asks for the way where that is due: to be called when one has moved, when there is a connection again, and now and then. */
  look(): void {
    if (this.#asking) return;
    this.#asking = true;
    void this.#ask();
  }

  async #ask(): Promise<void> {
    try {
      for (;;) {
        const [session, here] = [this.#session, this.#here.peek()];
        const destination = this.sought.peek() ?? this.destination.peek();
        if (session === undefined || here === undefined || destination === undefined || !this.#isDue(here, destination)) return;
        clearTimeout(this.#again);
        this.#asked = { here, destination, at_ms: Date.now() };
        const isWanted = (): boolean => session === this.#session && destination === (this.sought.peek() ?? this.destination.peek());
        try {
          const found = await session.route(here, destination.to);
          const change = await this.#changeBy(session, found, destination);
          if (isWanted()) this.#take(found, destination, change);
        } catch (error) {
          if (!isWanted()) continue;
          if (error instanceof ProblemError && error.status !== 429 && error.status !== 503) this.#refuse(error);
          else {
            this.problem.value = wordsOf(error);
            this.#again = setTimeout(() => {
              this.#asked = undefined;
              this.look();
            }, AGAIN_MS);
            return;
          }
        }
      }
    } finally {
      this.#asking = false;
    }
  }

  #isDue(here: Place, destination: Destination): boolean {
    const asked = this.#asked;
    if (asked?.destination !== destination) return true;
    const route = this.route.peek();
    if (route !== undefined && along(route.route.coordinates, here).away_m <= this.radius_m.peek())
      return Date.now() - asked.at_ms >= RENEW_MS;
    return distance_m("geodetic", asked.here, here) >= STEP_M;
  }

  /**
   * What an answer means for the line that is drawn. A best way that leads off the line may be one that has become quicker, which the broker does not take before
   * one leaves the corridor, or the way around a street that has become slow, which it does: whether it holds a place of it only the broker can say.
   */
  async #changeBy(session: Asked, found: FoundRoute, destination: Destination): Promise<"none" | "same way" | "other way"> {
    const [drawn, here] = [this.route.peek(), this.#here.peek()];
    if (drawn === undefined || here === undefined || destination !== this.destination.peek()) return "other way";
    const away = (place: Place): number => along(drawn.route.coordinates, place).away_m;
    const radius_m = this.radius_m.peek();
    if (away(here) > radius_m) return "other way";
    let farthest: { readonly at?: Place; readonly away_m: number } = { away_m: radius_m };
    for (const at of found.route.coordinates) if (away(at) > farthest.away_m) farthest = { at, away_m: away(at) };
    if (farthest.at === undefined) return "same way";
    const event = { type: "Feature", geometry: { type: "Point", coordinates: farthest.at }, properties: {} } as const;
    try {
      const { filters } = await session.explain({ subscription: EVENTS, event });
      return filters.some(({ area }) => area.form === "route" && area.holds) ? "other way" : "none";
    } catch {
      return "none"; // Nobody knows now; it is asked again.
    }
  }

  #take(found: FoundRoute, destination: Destination, change: "none" | "same way" | "other way"): void {
    const isNew = destination !== this.destination.peek() || this.route.peek() === undefined;
    this.possible.value = true;
    this.problem.value = undefined;
    if (change === "other way") {
      this.news.value = `${isNew ? "The way is found" : "Another way is found"}: ${spokenMetres(found.length_m)}, about ${minutes(found.duration_s)}.`;
    }
    batch(() => {
      if (change !== "none") this.route.value = found;
      this.destination.value = destination;
      this.sought.value = undefined;
    });
  }

  #refuse(problem: ProblemError): void {
    if (problem.code === "no-streets") this.possible.value = false;
    this.problem.value = wordsOf(problem);
    const destination = this.destination.peek();
    if (this.sought.peek() === undefined) this.route.value = undefined;
    else if (this.#asked !== undefined && destination !== undefined) this.#asked = { ...this.#asked, destination }; // One goes on as before.
    this.sought.value = undefined;
  }
}

/** Why there is no way, for a person. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof ProblemError)) return "Without a connection no way can be found. It is looked for as soon as there is one.";
  const { code, status, detail = error.title } = error;
  if (code === "no-streets")
    return "This service knows no streets, so that it finds no way: its operator has to name them (routes.streets).";
  if (code === "no-route") {
    // The broker names the end that lies off the streets.
    const [, limit, end] = /within (\d+) m of (from|to)$/.exec(detail) ?? [];
    if (end === "from") return `There is no street within ${metres(Number(limit))} of you.`;
    if (end === "to") return `There is no street within ${metres(Number(limit))} of that place. Choose another one.`;
    return "No way leads there along the streets. Choose another place.";
  }
  if (status === 429 || status === 503) return "The broker has no time for it now. This page asks again by itself.";
  return `No way can be found: ${detail}.`;
}
