// Ways of areas along routes. A subscription says where its way leads; where its corridor lies is asked for, and again when the client has left it.

import { signal, type Signal } from "@preact/signals";
import type { ClientRoute } from "nearcast";

import { along } from "../../shared/map/corridor.js";
import { distance_m, type Place } from "../../shared/map/plane.js";
import { reasonOf, type Access } from "../access.js";
import type { AreaShown } from "../map/areas.js";

/** Where the route of an area leads, as the broker shows it. */
interface RouteShown {
  readonly to: readonly number[];
  readonly by?: "duration" | "length";
}

/** What is known of a way; nothing until the broker has answered. */
export interface Way {
  readonly found?: ClientRoute & Required<Pick<ClientRoute, "route">>;
  /** Why there is none. */
  readonly why?: string;
}

/** What the broker tells of a client's areas along routes at once. */
interface Page {
  readonly routes: readonly ClientRoute[];
  readonly next?: string;
}

interface Asked {
  /** From where, and when. */
  readonly from: Place;
  readonly asked_ms: number;
  readonly way: Signal<Way>;
}

/** Ways that are known; those that nobody has looked at for longest go. */
const MOST = 100;
/** Questions beside each other. */
const AT_ONCE = 2;
/** Streets become slow, and quick again: after so long a way is asked for again. */
const STALE_MS = 60_000;
/** Off its way a client has to go so far until another is asked for. */
const STEP_M = 50;

export class Ways {
  /** Grows with each answer. */
  readonly answers = signal(0);
  readonly #access: Pick<Access, "call">;
  readonly #ways = new Map<string, Asked>();
  readonly #waiting = new Map<string, () => Promise<void>>();
  #asking = 0;

  constructor(access: Pick<Access, "call">) {
    this.#access = access;
  }

  /** The way of a client's area from where it is, as far as that is known; it is asked for where that is due. */
  of(client: string, area: AreaShown | undefined, from: Place | undefined): Way {
    const route = area?.route as RouteShown | undefined;
    if (route === undefined || from === undefined) return {};
    const name = JSON.stringify([client, route, area?.radius_m]);
    const known = this.#ways.get(name);
    if (known !== undefined && !isStale(known, from, area?.radius_m ?? 0)) {
      this.#ways.delete(name);
      this.#ways.set(name, known);
      return known.way.value;
    }
    // An old answer is shown until there is another.
    const way = known?.way ?? signal<Way>({});
    this.#ways.delete(name);
    this.#ways.set(name, { from, asked_ms: performance.now(), way });
    for (const oldest of this.#ways.keys()) {
      if (this.#ways.size <= MOST) break;
      this.#ways.delete(oldest);
      this.#waiting.delete(oldest);
    }
    this.#waiting.set(name, () => this.#ask(way, client, route, area?.radius_m));
    this.#next();
    return way.value;
  }

  /** The area with the corridor along the way in the place of the route; as it is where no way is known, or it has none. */
  laid<A extends AreaShown>(client: string, area: A | undefined, from: Place | undefined): A | AreaShown | undefined {
    const line = this.of(client, area, from).found?.route.coordinates;
    return line === undefined || area === undefined ? area : { corridor: { coordinates: line }, radius_m: area.radius_m ?? 0 };
  }

  #next(): void {
    for (const [name, ask] of this.#waiting) {
      if (this.#asking >= AT_ONCE) return;
      this.#waiting.delete(name);
      this.#asking += 1;
      void ask().finally(() => {
        this.#asking -= 1;
        this.answers.value = this.answers.peek() + 1;
        this.#next();
      });
    }
  }

  async #ask(way: Signal<Way>, client: string, { to, by = "duration" }: RouteShown, radius_m: number | undefined): Promise<void> {
    try {
      const isIt = (each: ClientRoute) => each.by === by && each.radius_m === radius_m && String(each.to) === String(to);
      let told: ClientRoute | undefined;
      let more: string | undefined = "";
      while (told === undefined && more !== undefined) {
        const page: Page = (await this.#access.call(`v1/clients/${encodeURIComponent(client)}/routes${more}`)) as Page;
        told = page.routes.find(isIt);
        more = page.next === undefined ? undefined : `?after=${encodeURIComponent(page.next)}`;
      }
      const { route, why = "it is gone" } = told ?? {};
      way.value = told === undefined || route === undefined ? { why } : { found: { ...told, route } };
    } catch (error) {
      way.value = { why: reasonOf(error) };
    }
  }
}

function isStale({ from, asked_ms, way }: Asked, now: Place, radius_m: number): boolean {
  const { found } = way.peek();
  if (performance.now() - asked_ms > STALE_MS) return true;
  if (distance_m("geodetic", from, now) < STEP_M) return false;
  return found === undefined || along(found.route.coordinates, now).away_m > radius_m;
}
