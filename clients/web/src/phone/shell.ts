// The page as an app of the phone: its service worker, new versions of itself, and how it is installed.

import { signal } from "@preact/signals";

import { brokerUrl } from "../shared/pages.js";
import { keptName } from "./worker/names.js";

/** What a browser gives that can install the page (Chromium's; not in the standard). */
interface InstallPrompt extends Event {
  prompt(): Promise<unknown>;
}

/** A page that stays open asks for a new version this often, when somebody looks. */
const UPDATE_EVERY_MS = 3600_000;

/** Whether it was opened from the home screen. */
export const standalone = matchMedia("(display-mode: standalone)").matches;

export class Shell {
  /** A newer version waits until the person wants it. */
  readonly newer = signal(false);
  /** The browser can install the page now. */
  readonly installable = signal<InstallPrompt | undefined>(undefined);
  /** The service worker; rejected where there is none. */
  readonly registration: Promise<ServiceWorkerRegistration>;
  #asked_ms = Date.now();

  constructor() {
    addEventListener("beforeinstallprompt", (event) => {
      // The page has a button of its own, which does not come in the way.
      event.preventDefault();
      this.installable.value = event as InstallPrompt;
    });
    addEventListener("appinstalled", () => (this.installable.value = undefined));
    this.registration = this.#register();
    this.registration.catch(() => undefined);
  }

  /** Calls with what the service worker says. */
  onMessage(call: (data: unknown) => void): void {
    (navigator as Partial<Navigator>).serviceWorker?.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
      call(data);
    });
  }

  /** Goes on with the newer version. */
  async takeNewer(): Promise<void> {
    (await this.registration).waiting?.postMessage("take over");
  }

  async install(): Promise<void> {
    const prompt = this.installable.value;
    this.installable.value = undefined; // It can be asked once.
    await prompt?.prompt();
  }

  /** Somebody looks. */
  async look(): Promise<void> {
    const registration = await this.registration.catch(() => undefined);
    if (registration === undefined) return;
    // Whoever opens the page has seen what it told.
    for (const shown of await registration.getNotifications()) shown.close();
    if (Date.now() - this.#asked_ms < UPDATE_EVERY_MS) return;
    this.#asked_ms = Date.now();
    await registration.update().catch(() => undefined);
  }

  /** Forgets what the service worker has kept of where one was. */
  async forget(): Promise<void> {
    const names = await (globalThis as Partial<typeof globalThis>).caches?.keys();
    for (const name of names ?? []) if (name === keptName(brokerUrl)) await caches.delete(name);
  }

  async #register(): Promise<ServiceWorkerRegistration> {
    const workers = (navigator as Partial<Navigator>).serviceWorker;
    if (workers === undefined) throw new Error("this browser has no service workers here");
    // There is none while the page is being developed: it would show yesterday's.
    if (import.meta.env.DEV) throw new Error("there is no service worker without a build");
    const isFirst = workers.controller === null;
    let reloading = false;
    workers.addEventListener("controllerchange", () => {
      // The first one takes over a page of its own version.
      if (isFirst && !this.newer.value) return;
      if (!reloading) location.reload();
      reloading = true;
    });
    // For all of the broker's pages, though it does something for this one alone: the map's workers have their scripts, and fetch, below `assets`.
    const registration = await workers.register(new URL("phone-worker.js", brokerUrl), { updateViaCache: "none" });
    const waits = (): void => {
      if (registration.waiting !== null && workers.controller !== null) this.newer.value = true;
    };
    waits();
    registration.addEventListener("updatefound", () => registration.installing?.addEventListener("statechange", waits));
    return registration;
  }
}
