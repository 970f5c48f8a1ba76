// The page's state: what it is at, where one is, what one wants, what came. The view shows it and calls it; nothing here knows the document's elements.

import { batch, computed, effect, signal, untracked } from "@preact/signals";
import type { Fix } from "nearcast";

import { distance_m, type Place } from "../shared/map/plane.js";
import { pageSettings, type PageSettings } from "../shared/pages.js";
import { claimsOf, storedToken, storeToken } from "../shared/token.js";
import { Announcer } from "./announcer.js";
import type { Entry, Reach } from "./entry.js";
import { Inbox } from "./inbox.js";
import { offered, type Choice } from "./interests.js";
import { watch, whyUnlocatable } from "./locate.js";
import { bearing_deg } from "./words.js";
import { slowNow_ms } from "./now.js";
import { Push } from "./push.js";
import { Selection } from "./selection.js";
import { Shell } from "./shell.js";
import {
  clearPreferences,
  onForgotten,
  openStore,
  ownName,
  readPreferences,
  readWay,
  writePreferences,
  writeWay,
  type Preferences,
  type Store,
} from "./storage.js";
import { Subscriber, type Handlers, type Identity } from "./subscriber.js";
import { actAlone } from "./tabs.js";
import { Teller } from "./teller.js";
import { Trip } from "./trip.js";
import { Wish } from "./wish.js";
import type { Told } from "./worker/names.js";

export type Stage =
  /** The broker has not said yet what it is. */
  | { readonly at: "starting" | "unreachable" }
  /** A token is wanted: none is there, or the one that was given does not do, or (`running`) the person wants to give another. */
  | { readonly at: "token"; readonly why?: string; readonly running?: true }
  | { readonly at: "running" | "elsewhere" | "forgotten" }
  | { readonly at: "refused"; readonly why: string };

/** A shorter way has no direction, however good the fixes are. */
const HEADED_M = 5;

export interface Here {
  readonly place: Place;
  readonly accuracy_m?: number;
  /** Where one is headed, clockwise from north, as far as the last fixes show it. */
  readonly heading_deg?: number;
  /** It is where the phone was when the page was open before. */
  readonly last?: true;
}

const RETRY_MS = 2000;
/** A way without a network is written this often, and whenever nobody looks any more. */
const KEEP_WAY_MS = 5000;

/** All that there is once the broker has said what it is. */
export interface World {
  readonly settings: PageSettings;
  readonly teller: Teller;
  readonly announcer: Announcer;
}

export class Phone {
  readonly stage = signal<Stage>({ at: "starting" });
  readonly world = signal<World | undefined>(undefined);
  readonly preferences = signal<Preferences>(readPreferences());
  /** What the person has chosen; in the preferences is what the broker has taken of it. */
  readonly choice = signal<Choice>(this.preferences.value.choice);
  readonly here = signal<Here | undefined>(undefined);
  /** The place or quarter that one is near to, as the base map names it. */
  readonly near = signal<string | undefined>(undefined);
  /** From where the phone was the last time no way is looked for. */
  readonly trip = new Trip(computed(() => (this.here.value?.last === true ? undefined : this.here.value?.place)));
  /** What is near enough. */
  readonly reach = computed((): Reach => {
    const world = this.world.value?.settings.world ?? "geodetic";
    return { world, here: this.here.value?.place, radius_m: this.preferences.value.radius_m, corridor: this.trip.corridor.value };
  });
  /** Whether the browser is asked where the phone is. */
  readonly locating = signal(false);
  /** Why the browser does not tell. */
  readonly unlocated = signal<string | undefined>(undefined);
  readonly wish = new Wish();
  readonly inbox = signal<Inbox | undefined>(undefined);
  readonly subscriber = signal<Subscriber | undefined>(undefined);
  /** How many came that the person has not looked at. */
  readonly unread = signal(0);
  /** Whether the beginning of the list is in sight. */
  readonly listSeen = signal(false);
  readonly selection = new Selection(() => this.inbox.value?.entries.value ?? []);
  readonly shell = new Shell();
  readonly push = new Push(this.shell.registration);
  /** Somebody has looked whether there can be notifications. Before that the broker is not asked: one without them answers 404, which browsers log. */
  readonly pushWanted = signal(false);
  #store: Store | undefined;
  /** Lets other tabs act. */
  #release: (() => void) | undefined;
  /** Counts the times that somebody came or left: who waits in between sees that its time is over. */
  #turn = 0;
  #unwatch: (() => void) | undefined;
  /** When the way was written last. */
  #kept_ms = 0;

  async start(): Promise<void> {
    const settings = await this.#settings();
    const { place, located, choice } = this.preferences.value;
    const teller = new Teller(settings.world, located ? readWay() : []);
    const announcer = new Announcer(settings.world, () => this.here.value?.place);
    this.world.value = { settings, teller, announcer };
    this.trip.possible.value = settings.routes && settings.world === "geodetic";
    this.choice.value = offered(choice, settings.interests);
    this.prefer({ choice: this.choice.value });
    this.wish.inForce.value = this.choice.value;
    if (place !== undefined) {
      // Where the phone was the last time says nothing of where it is now; where somebody has put it does.
      this.here.value = { place, ...(located && { last: true }) };
      if (!located) teller.here({ coordinates: place });
    }
    if (located) this.locate();
    this.#travel();
    const radius_m = computed(() => this.preferences.value.radius_m);
    const way = computed(() => {
      const { destination, radius_m } = this.trip;
      return destination.value === undefined ? undefined : { to: destination.value.to, radius_m: radius_m.value };
    });
    // Before the person has said where they are nothing is asked of the broker, and it knows nobody.
    const placed = computed(() => this.here.value !== undefined);
    effect(() => {
      if (placed.value) this.wish.want(this.choice.value, radius_m.value, way.value);
    });
    effect(() => {
      if (placed.value) void this.subscriber.value?.run();
    });
    effect(() => {
      const choice = this.wish.inForce.value;
      if (choice !== undefined && choice !== this.preferences.peek().choice) this.prefer({ choice });
    });
    const look = (): void => {
      if (!this.listSeen.value || document.hidden) return;
      this.unread.value = 0;
      this.inbox.value?.look();
    };
    effect(() => {
      look();
    });
    effect(() => {
      if (this.selection.key.value !== undefined) this.inbox.peek()?.read(this.selection.key.value);
    });
    effect(() => {
      // Told now and then while there is a connection: that is since when one is offline, should the page be opened without one.
      if (this.subscriber.value?.link.value.at === "online") this.prefer({ online_ms: teller.told_ms.value ?? Date.now() });
    });
    let asked: Subscriber | undefined;
    effect(() => {
      const subscriber = this.subscriber.value;
      if (subscriber?.link.value.at !== "online" || subscriber === asked) return;
      if (!this.pushWanted.value && !this.preferences.value.notify) return;
      asked = subscriber;
      void this.push.look(subscriber.identity, this.preferences.peek().notify);
    });
    const wake = (): void => {
      if (document.visibilityState === "hidden") {
        // It may not come back: phones end pages that nobody looks at.
        this.#keepWay();
        return;
      }
      void this.shell.look();
      this.subscriber.value?.wake();
      look();
      // Allowed again, perhaps.
      if (this.preferences.value.located) this.locate();
    };
    onForgotten(() => {
      void this.#forgottenElsewhere();
    });
    addEventListener("online", wake);
    addEventListener("offline", () => this.subscriber.value?.away());
    this.shell.onMessage((told) => {
      const { kind, event } = told as Told & { readonly event?: string };
      if (kind === "open") this.selection.want(event);
      const subscriber = this.subscriber.value;
      if (kind === "renewed" && subscriber !== undefined) void this.push.look(subscriber.identity, this.preferences.value.notify);
    });
    void this.shell.look();
    document.addEventListener("visibilitychange", wake);
    await this.enter();
  }

  /** Becomes the client, by the token where there has to be one, and takes over from other tabs. */
  async enter(): Promise<void> {
    await this.#leave();
    const turn = this.#turn;
    this.stage.value = { at: "starting" };
    const identity = this.#identity();
    if (identity === undefined) return;
    const claims = identity.token === undefined ? undefined : claimsOf(identity.token);
    const name = `${claims?.tenant ?? ""}/${identity.client}`;
    this.#release = await actAlone(name, () => {
      this.stage.value = { at: "elsewhere" };
      return this.#leave();
    });
    try {
      this.#store = await openStore(name);
    } catch {
      this.#store = undefined; // The list says so.
    }
    const begin = (await this.#store?.load().catch(() => undefined)) ?? { entries: [], checkpoint: undefined };
    if (turn !== this.#turn) return; // Another tab was faster.
    const came = (entry: Entry): void => {
      this.#came(entry);
    };
    const inbox = new Inbox(this.#store, begin, came, this.world.value?.settings.object ?? undefined);
    const subscriber = this.#subscriber(identity, inbox);
    batch(() => {
      this.inbox.value = inbox;
      this.subscriber.value = subscriber;
      this.stage.value = { at: "running" };
    });
    // Whether a token counts only the broker can say.
    if (begin.checkpoint !== undefined || identity.token !== undefined) void subscriber.run();
  }

  /** Goes on by another token. */
  async useToken(token: string): Promise<void> {
    storeToken(token);
    await this.enter();
  }

  /** The person wants to be somebody else; the session goes on until then. */
  askForToken(): void {
    this.stage.value = { at: "token", running: true };
  }

  prefer(change: Partial<Preferences>): void {
    const preferences = { ...this.preferences.peek(), ...change };
    this.preferences.value = preferences;
    if (this.stage.value.at !== "forgotten") writePreferences(preferences);
  }

  choose(choice: Choice): void {
    this.choice.value = choice;
  }

  /** Switches notifications on or off. */
  async notify(wanted: boolean): Promise<void> {
    const identity = this.subscriber.value?.identity;
    if (identity === undefined) return;
    if (wanted) this.prefer({ notify: await this.push.on(identity) });
    else {
      this.prefer({ notify: false });
      await this.push.off(identity);
    }
  }

  /** Asks the browser where the phone is, from now on. */
  locate(): void {
    if (this.locating.value) return;
    const reason = whyUnlocatable();
    if (reason !== undefined) {
      this.unlocated.value = reason;
      return;
    }
    this.locating.value = true;
    this.prefer({ located: true });
    this.#unwatch = watch(
      (fix) => {
        this.unlocated.value = undefined;
        this.#isHere(fix);
      },
      (words, forGood) => {
        // That the person wants it stays so: the page asks again when it is opened or looked at again.
        if (forGood) this.#unfollow();
        this.unlocated.value = forGood && this.here.value !== undefined ? `This page does not follow you any more. ${words}` : words;
      },
    );
  }

  stopLocating(): void {
    this.#unfollow();
    this.unlocated.value = undefined;
    this.prefer({ located: false });
  }

  /** One is where one says. `told` is whether the broker is to know already, or one is still being moved. */
  putHere(place: Place, told = true): void {
    if (this.preferences.value.located) this.stopLocating();
    this.unlocated.value = undefined;
    if (told) this.#isHere({ coordinates: place });
    else this.here.value = { place };
  }

  /** Ends the client and clears all that this page has kept. @throws where the broker cannot be told: then all stays. */
  async forget(): Promise<void> {
    const subscriber = this.subscriber.value;
    try {
      await subscriber?.forget();
      if (subscriber !== undefined && this.preferences.value.notify) await this.push.off(subscriber.identity);
    } catch (error) {
      if (subscriber?.stopped() === true) void this.enter();
      throw error;
    }
    this.stopLocating();
    await this.inbox.value?.settled();
    await this.#store?.destroy().catch(() => undefined);
    await this.shell.forget();
    this.#blank();
    this.subscriber.value = undefined;
    clearPreferences();
    this.#release?.();
  }

  /** Another tab has ended the client: here it is not to begin again with what this one remembers. */
  async #forgottenElsewhere(): Promise<void> {
    if (this.stage.value.at === "forgotten") return;
    this.#unfollow();
    this.#blank();
    await this.#leave();
  }

  /** Nothing is remembered, until the page is loaded anew. */
  #blank(): void {
    storeToken(undefined);
    batch(() => {
      this.stage.value = { at: "forgotten" };
      this.trip.end();
      this.here.value = undefined;
      this.inbox.value = undefined;
      this.selection.key.value = undefined;
      this.unread.value = 0;
    });
  }

  /** Goes on where the person was going, and keeps where that is. */
  #travel(): void {
    const { trip, wish } = this;
    const { destination, corridor_m } = this.preferences.value;
    trip.destination.value = destination;
    trip.radius_m.value = corridor_m;
    effect(() => this.prefer({ destination: trip.destination.value, corridor_m: trip.radius_m.value }));
    effect(() => {
      // Whatever of these has changed, the trip knows whether the way has to be asked for.
      const [online] = [this.subscriber.value?.link.value.at === "online", this.here.value, trip.radius_m.value, slowNow_ms.value];
      if (online && !document.hidden) untracked(() => trip.look());
    });
    effect(() => {
      if (trip.route.value !== undefined) wish.retryWay();
    });
  }

  async #settings(): Promise<PageSettings> {
    for (;;) {
      try {
        return await pageSettings();
      } catch {
        this.stage.value = { at: "unreachable" };
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Who one is; `undefined` where a token has to be asked for first. */
  #identity(): Identity | undefined {
    const token = storedToken();
    if (token === undefined) {
      if (this.world.value?.settings.tokens !== true) return { client: ownName(), token: undefined };
      this.stage.value = { at: "token" };
      return undefined;
    }
    const client = claimsOf(token)?.sub;
    if (client !== undefined) return { client, token };
    this.stage.value = { at: "token", why: "This token does not say who you are: it has no claim “sub”." };
    return undefined;
  }

  #subscriber(identity: Identity, inbox: Inbox): Subscriber {
    const teller = this.world.value?.teller;
    const heard_ms = this.preferences.value.online_ms;
    const handlers: Handlers = {
      resume: () => inbox.checkpoint,
      opened: (session) => {
        // The place first: what is subscribed to then is around it.
        teller?.opened(session);
        this.wish.opened(session);
        if (this.world.value?.settings.world === "geodetic") this.trip.opened(session);
      },
      lost: () => teller?.lost(),
      closed: () => {
        teller?.closed();
        this.wish.closed();
        this.trip.closed();
      },
      message: (message, session) => {
        inbox.take(message, () => {
          session.ack(message);
        });
      },
      refused: (problem) => {
        const cause = problem.cause instanceof Error ? problem.cause.message : undefined;
        const why = cause ?? problem.message;
        const token = "status" in problem ? problem.status === 401 || identity.token !== undefined : identity.token !== undefined;
        this.stage.value = token ? { at: "token", why } : { at: "refused", why };
      },
    };
    return new Subscriber(identity, handlers, heard_ms);
  }

  async #leave(): Promise<void> {
    this.#turn += 1;
    const subscriber = this.subscriber.value;
    this.subscriber.value = undefined;
    await subscriber?.close();
    this.world.value?.teller.closed();
    this.wish.closed();
    this.trip.closed();
    await this.inbox.value?.settled();
    this.#release?.();
  }

  #unfollow(): void {
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.locating.value = false;
  }

  #isHere(fix: Fix): void {
    const { coordinates, accuracy_m } = fix;
    const place: Place = [coordinates[0], coordinates[1]];
    const heading_deg = this.#headingTo(place, accuracy_m);
    this.here.value = { place, ...(accuracy_m !== undefined && { accuracy_m }), ...(heading_deg !== undefined && { heading_deg }) };
    this.prefer({ place });
    const teller = this.world.value?.teller;
    teller?.here(fix);
    if (this.subscriber.value?.link.value.at === "offline" && Date.now() - this.#kept_ms > KEEP_WAY_MS) this.#keepWay();
  }

  /** A way that is shorter than what a fix may be off has no direction: the one before stays. */
  #headingTo(place: Place, accuracy_m = 0): number | undefined {
    const [before, world] = [this.here.value, this.world.value?.settings.world];
    if (before === undefined || before.last === true || world === undefined) return undefined;
    const isWay = distance_m(world, before.place, place) > Math.max(HEADED_M, accuracy_m / 2);
    return isWay ? bearing_deg(world, before.place, place) : before.heading_deg;
  }

  /** Keeps the way that the broker has not been told, for the next visit. */
  #keepWay(): void {
    if (this.stage.value.at === "forgotten") return;
    this.#kept_ms = Date.now();
    writeWay(this.preferences.value.located ? (this.world.value?.teller.untold ?? []) : []);
  }

  #came(entry: Entry): void {
    if (document.hidden || !this.listSeen.value) this.unread.value += 1;
    else this.inbox.value?.look();
    this.world.value?.announcer.came(entry);
    if (document.hidden && this.preferences.value.notify) void this.push.show(entry.title, this.subscriber.value?.identity.client);
    if (entry.alarm && this.preferences.value.vibrate) (navigator as Partial<Navigator>).vibrate?.([200, 100, 200]);
  }
}
