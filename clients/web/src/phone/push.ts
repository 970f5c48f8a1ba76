// Notifications while the page is closed: the browser's push subscription, and the broker's word of it.

import { signal } from "@preact/signals";

import { call, HttpProblem } from "../shared/http.js";
import { brokerUrl } from "../shared/pages.js";
import { standalone } from "./shell.js";
import type { Identity } from "./subscriber.js";
import { CLIENT, keptName } from "./worker/names.js";

export type PushState =
  /** Nobody has asked yet. */
  | { readonly at: "unknown" }
  /** They cannot be had here, and why. */
  | { readonly at: "unable"; readonly why: string }
  | { readonly at: "off" | "on" | "changing" }
  /** They were wanted, and why they are not there. */
  | { readonly at: "failed"; readonly why: string };

const DENIED =
  "You have forbidden notifications of this page. Allow them in the browser's settings for this site, then switch this on again.";

export class Push {
  readonly state = signal<PushState>({ at: "unknown" });
  readonly #registration: Promise<ServiceWorkerRegistration>;

  constructor(registration: Promise<ServiceWorkerRegistration>) {
    this.#registration = registration;
  }

  /**
   * Learns whether there can be notifications. Where they are `wanted` already it brings the broker's word of them up to date: browsers renew subscriptions, and a
   * broker may have forgotten.
   */
  async look(identity: Identity, wanted: boolean): Promise<void> {
    const why = await this.#whyUnable();
    if (why !== undefined) {
      this.state.value = { at: "unable", why };
      return;
    }
    try {
      const key = await publicKey(identity);
      if (key === undefined) this.state.value = { at: "unable", why: "This broker sends no notifications." };
      else if (!wanted) this.state.value = { at: "off" };
      else if (Notification.permission === "granted") await this.#subscribe(identity, key);
      else this.state.value = { at: "failed", why: DENIED };
    } catch (error) {
      this.state.value = { at: "failed", why: whyOf(error) };
    }
  }

  /** Switches them on; called when somebody has tapped, since the browser asks them then. Resolves to whether they are. */
  async on(identity: Identity): Promise<boolean> {
    this.state.value = { at: "changing" };
    try {
      const permission = await Notification.requestPermission();
      const key = permission === "granted" ? await publicKey(identity) : undefined;
      if (permission === "denied") this.state.value = { at: "failed", why: DENIED };
      else if (key === undefined) this.state.value = { at: "off" };
      else await this.#subscribe(identity, key);
    } catch (error) {
      this.state.value = { at: "failed", why: whyOf(error) };
    }
    return this.state.value.at === "on";
  }

  /** Switches them off, here first: what the broker cannot be told it learns from the browser's service. */
  async off(identity: Identity): Promise<void> {
    this.state.value = { at: "changing" };
    const registration = await this.#registration.catch(() => undefined);
    await (await registration?.pushManager.getSubscription())?.unsubscribe();
    await remember(undefined);
    await call(path(identity), identity.token, { method: "DELETE" }).catch(() => undefined);
    this.state.value = { at: "off" };
  }

  /** Tells of an event while the page is open and nobody looks at it: the broker says nothing then, for it has a connection. */
  async show(title: string, client: string | undefined): Promise<void> {
    if (this.state.value.at !== "on") return;
    const registration = await this.#registration;
    const icon = new URL("assets/icon-192.png", brokerUrl).href;
    await registration.showNotification(title, { icon, ...(client !== undefined && { tag: client }) });
  }

  async #subscribe(identity: Identity, key: Uint8Array<ArrayBuffer>): Promise<void> {
    const { pushManager } = await this.#registration;
    let subscription = await pushManager.getSubscription();
    const before = subscription?.options.applicationServerKey;
    // A broker with another key could not use it.
    if (before != null && !isSame(new Uint8Array(before), key)) {
      await subscription?.unsubscribe();
      subscription = null;
    }
    subscription ??= await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    await call(path(identity), identity.token, { method: "PUT", body: subscription.toJSON() });
    await remember(identity.token === undefined ? identity.client : undefined);
    this.state.value = { at: "on" };
  }

  async #whyUnable(): Promise<string | undefined> {
    if (!isSecureContext) return "Browsers show notifications of pages over https only.";
    const browser = globalThis as Partial<typeof globalThis>;
    if (browser.PushManager === undefined || browser.Notification === undefined) {
      const isApple = /iPhone|iPad/.test(navigator.userAgent) && !standalone;
      return isApple
        ? "On this phone notifications come to installed pages alone: add this one to the home screen (Share, then Add to Home Screen)."
        : "This browser has no notifications of closed pages.";
    }
    const registration = await this.#registration.catch(() => undefined);
    return registration === undefined ? "This browser does not let this page work while it is closed." : undefined;
  }
}

function path({ client }: Identity): string {
  return `v1/clients/${encodeURIComponent(client)}/push`;
}

/** The broker's key; `undefined` where it sends no notifications. */
async function publicKey({ token }: Identity): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    const { public_key } = (await call("v1/push", token)) as { public_key: string };
    const bytes = atob(public_key.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(bytes, (letter) => letter.charCodeAt(0));
  } catch (error) {
    if (error instanceof HttpProblem && error.status === 404) return undefined;
    throw error;
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

/** Tells the service worker for whom it may renew the subscription while no page is open. */
async function remember(client: string | undefined): Promise<void> {
  const cache = await caches.open(keptName(brokerUrl));
  if (client === undefined) await cache.delete(CLIENT);
  else await cache.put(CLIENT, new Response(client));
}

function whyOf(error: unknown): string {
  const words = error instanceof Error ? error.message : String(error);
  // The browser's own service for them cannot be reached, or is not in this browser.
  if (error instanceof DOMException) return `The browser could not set them up: ${words}`;
  return `Not now: ${words}`;
}
