// The service worker: the page without a network, notifications while it is closed. It holds nothing that took a token.

import { CLIENT, hashEvent, keptName, type Told } from "./names.js";
import { noticeOf, target, type Notice } from "./notice.js";

declare const self: ServiceWorkerGlobalScope;
/** The page's files by their paths below the broker, and what tells this build from others; both are put in by the build. */
declare const FILES: readonly string[];
declare const VERSION: string;

const broker = new URL("./", self.location.href);
const page = new URL("phone", broker);
const KEPT = keptName(broker);
const PREFIX = KEPT.slice(0, -"kept".length);
const PAGE = PREFIX + VERSION;
/** So many parts of the map are kept, the newest. */
const KEPT_MAX = 400;
/** A broker that does not answer for so long counts as gone where there is something to show in its place. */
const PATIENCE_MS = 3000;

self.addEventListener("install", (event) => {
  // Names with a hash in them come from the browser's own cache, which has them for good; of all others it asks the broker.
  event.waitUntil(Promise.all([caches.open(PAGE).then((cache) => cache.addAll([...FILES])), begin()]));
});

/** What a page has asked that was loaded before there was a service worker. */
async function begin(): Promise<void> {
  const cache = await caches.open(KEPT);
  await cache.add("pages.json");
  const { base_map } = (await (await cache.match("pages.json"))?.json()) as { base_map: boolean };
  if (base_map) await cache.add("base-map.json").catch(() => undefined);
}

self.addEventListener("activate", (event) => {
  const clear = async (): Promise<void> => {
    const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== PAGE && name !== KEPT);
    await Promise.all(names.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(clear());
});

self.addEventListener("message", ({ data }) => {
  if (data === "take over") void self.skipWaiting();
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  // Answers to a token are for its holder alone, and parts of a file are no files.
  if (request.method !== "GET" || request.headers.has("authorization") || request.headers.has("range")) return;
  if (!url.href.startsWith(broker.href)) return;
  const path = url.pathname.slice(broker.pathname.length);
  if (FILES.includes(path)) event.respondWith(own(path, request));
  else if (path === "pages.json" || path.startsWith("base-map")) event.respondWith(newest(event));
});

/** A file of the page, of this version. */
async function own(path: string, request: Request): Promise<Response> {
  const cache = await caches.open(PAGE);
  return (await cache.match(path)) ?? fetch(request);
}

/** What the broker says now, or what it said the last time. */
async function newest(event: FetchEvent): Promise<Response> {
  const { request } = event;
  const cache = await caches.open(KEPT);
  const before = await cache.match(request);
  const answer = fetch(request).then(async (response) => {
    if (response.ok) {
      await cache.put(request, response.clone());
      const keys = await cache.keys();
      const parts = keys.filter(({ url }) => url.includes("/base-map/"));
      await Promise.all(parts.slice(0, Math.max(0, parts.length - KEPT_MAX)).map((key) => cache.delete(key)));
    }
    return response;
  });
  if (before === undefined) return answer;
  event.waitUntil(answer.catch(() => undefined));
  const late = new Promise<Response>((resolve) => setTimeout(() => resolve(before), PATIENCE_MS));
  return Promise.race([answer.catch(() => before), late]);
}

self.addEventListener("push", (event) => {
  event.waitUntil(show(noticeOf(event.data?.text())));
});

async function show(notice: Notice): Promise<void> {
  const { title, body, tag } = notice;
  const icon = (name: string): string => new URL(`assets/${name}`, broker).href;
  // TypeScript's library does not know all that browsers do.
  const options = { body, tag, renotify: true, icon: icon("icon-192.png"), badge: icon("badge-96.png"), data: notice };
  await self.registration.showNotification(title, options);
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(target(event.notification.data as Notice, page)));
});

/** Brings the page to the front, at an event; one that is open stays as it is otherwise. */
async function open(url: URL): Promise<void> {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const there = windows.find((window) => new URL(window.url).pathname === page.pathname);
  if (there === undefined) {
    await self.clients.openWindow(url.href);
    return;
  }
  tell(there, { kind: "open", event: hashEvent(url.hash) });
  await there.focus();
}

function tell(window: Client, told: Told): void {
  window.postMessage(told);
}

interface Change extends ExtendableEvent {
  readonly oldSubscription?: PushSubscription | null;
  readonly newSubscription?: PushSubscription | null;
}

self.addEventListener("pushsubscriptionchange", (event) => {
  const { oldSubscription, newSubscription } = event as Change;
  event.waitUntil(renew(oldSubscription ?? undefined, newSubscription ?? undefined));
});

/** Tells the broker of a new subscription. With a token only the page can: it does when it is opened. */
async function renew(old: PushSubscription | undefined, given: PushSubscription | undefined): Promise<void> {
  const key = old?.options.applicationServerKey ?? null;
  const renewed = given ?? (await self.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }));
  const client = await (await (await caches.open(KEPT)).match(CLIENT))?.text();
  if (client !== undefined) {
    await fetch(new URL(`v1/clients/${encodeURIComponent(client)}/push`, broker), {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(renewed),
    });
  }
  for (const window of await self.clients.matchAll({ type: "window" })) tell(window, { kind: "renewed" });
}
