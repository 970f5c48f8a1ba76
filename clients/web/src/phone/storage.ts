// What this page keeps on the phone. The name and the choices, which are little, stand in localStorage, where they can be read before the
// first paint; what came stands in IndexedDB together with how far it goes, so that both change at once or not at all.

import type { Checkpoint, TrackPoint } from "nearcast";

import type { Place } from "../shared/map/plane.js";
import { brokerUrl } from "../shared/pages.js";
import type { Order } from "./entries.js";
import type { Entry } from "./entry.js";
import { EVERYTHING, type Choice } from "./interests.js";
import type { Destination } from "./trip.js";

export interface Preferences {
  readonly radius_m: number;
  readonly choice: Choice;
  /** Whether the place is that of the phone, or was set by hand. */
  readonly located: boolean;
  readonly place?: Place;
  /** How the list is sorted. */
  readonly order: Order;
  readonly vibrate: boolean;
  /** Whether the broker is to tell this browser what comes while the page is closed. */
  readonly notify: boolean;
  /** Where one is going. */
  readonly destination?: Destination | undefined;
  /** How far from the way there one hears. */
  readonly corridor_m: number;
  /** When the broker was heard of last. */
  readonly online_ms?: number;
}

const DEFAULTS: Preferences = {
  radius_m: 1000,
  choice: EVERYTHING,
  located: false,
  order: "nearest",
  vibrate: false,
  notify: false,
  corridor_m: 200,
};

/** So old a way says nothing of what was near one's place any more. */
const WAY_MAX_MS = 12 * 3600_000;

/** Brokers at several paths of one origin are several. */
const PREFIX = `nearcast.phone${brokerUrl.pathname}`;

/** The name of this page's client: random, and kept where that is possible. */
export function ownName(): string {
  const place = `${PREFIX}client`;
  let name: string | undefined;
  try {
    name = localStorage.getItem(place) ?? undefined;
  } catch {
    // Forbidden: the name is for this visit.
  }
  if (name !== undefined) return name;
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  name = `phone-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  write(place, name);
  return name;
}

export function readPreferences(): Preferences {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(`${PREFIX}preferences`) ?? "{}");
    return { ...DEFAULTS, ...(stored as Partial<Preferences>) };
  } catch {
    return DEFAULTS;
  }
}

export function writePreferences(preferences: Preferences): void {
  write(`${PREFIX}preferences`, JSON.stringify(preferences));
}

/** The way that the broker has not been told, oldest point first; empty where there is none, or it is old. */
export function readWay(): readonly TrackPoint[] {
  try {
    const way = JSON.parse(localStorage.getItem(`${PREFIX}way`) ?? "[]") as readonly TrackPoint[];
    const [, , end_s] = way.at(-1) ?? [0, 0, 0];
    return Date.now() - end_s * 1000 > WAY_MAX_MS ? [] : way;
  } catch {
    return [];
  }
}

export function writeWay(way: readonly TrackPoint[]): void {
  if (way.length > 0) write(`${PREFIX}way`, JSON.stringify(way));
  else remove(`${PREFIX}way`);
}

/** Clears what is not a client's own: the name, the choices and the way. */
export function clearPreferences(): void {
  for (const what of ["client", "way", "preferences"]) remove(PREFIX + what);
}

function remove(place: string): void {
  try {
    localStorage.removeItem(place);
  } catch {
    // There was nothing then.
  }
}

/** Calls when another tab has cleared them. */
export function onForgotten(call: () => void): void {
  addEventListener("storage", ({ key, newValue }) => {
    // All at once (`null`) is the browser's own way to forget.
    if (key === null || (key === `${PREFIX}preferences` && newValue === null)) call();
  });
}

function write(place: string, text: string): void {
  try {
    localStorage.setItem(place, text);
  } catch {
    // Forbidden or full: the page works, and begins with its defaults the next time.
  }
}

/** What is stored at once. */
export interface Saving {
  /** All that was there before goes. */
  readonly anew: boolean;
  readonly put: readonly Entry[];
  readonly remove: readonly string[];
  readonly checkpoint: Checkpoint;
}

/** What came for one client. */
export interface Store {
  load(): Promise<{ readonly entries: readonly Entry[]; readonly checkpoint: Checkpoint | undefined }>;
  /** Resolves when it is stored, as a whole. */
  save(saving: Saving): Promise<void>;
  /** Ends it, and all that is in it. */
  destroy(): Promise<void>;
}

/** Opens the store of a client. @throws where the browser keeps nothing for this page. */
export async function openStore(client: string): Promise<Store> {
  const name = `${PREFIX}:${client}`;
  const opening = indexedDB.open(name, 1);
  opening.onupgradeneeded = () => {
    opening.result.createObjectStore("entries", { keyPath: "key" });
    opening.result.createObjectStore("progress");
  };
  const database = await answered(opening);
  // Another tab forgets the client: it is not to wait for this one.
  database.onversionchange = () => {
    database.close();
  };
  return {
    async load() {
      const reading = database.transaction(["entries", "progress"], "readonly");
      const entries = answered(reading.objectStore("entries").getAll() as IDBRequest<Entry[]>);
      const checkpoint = answered(reading.objectStore("progress").get("checkpoint") as IDBRequest<Checkpoint | undefined>);
      return { entries: await entries, checkpoint: await checkpoint };
    },
    async save({ anew, put, remove, checkpoint }) {
      const writing = database.transaction(["entries", "progress"], "readwrite", { durability: "strict" });
      const written = new Promise<void>((resolve, reject) => {
        writing.oncomplete = () => {
          resolve();
        };
        writing.onabort = () => {
          reject(writing.error ?? new Error("nothing was stored"));
        };
      });
      const entries = writing.objectStore("entries");
      if (anew) entries.clear();
      for (const key of remove) entries.delete(key);
      for (const entry of put) entries.put(entry);
      writing.objectStore("progress").put(checkpoint, "checkpoint");
      await written;
    },
    async destroy() {
      database.close();
      await answered(indexedDB.deleteDatabase(name));
    },
  };
}

function answered<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => {
      resolve(request.result);
    };
    request.onerror = () => {
      reject(request.error ?? new Error("the browser keeps nothing for this page"));
    };
  });
}
