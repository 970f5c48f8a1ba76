// What the page and its service worker call the same.

/** The cache of what came over the network, of the broker at a place. The page removes it when it forgets. */
export function keptName(broker: URL): string {
  return `nearcast.phone ${broker.pathname} kept`;
}

/** In that cache: the name of the client whose notifications the worker may renew by itself. */
export const CLIENT = "client";

/** What a service worker says to the page. */
export type Told =
  /** Somebody has tapped a notification, of this event. */
  | { readonly kind: "open"; readonly event: string | undefined }
  /** The browser has renewed its push subscription. */
  | { readonly kind: "renewed" };

/** The address's part that opens an event. */
export function eventHash(id: string): string {
  return `#event=${encodeURIComponent(id)}`;
}

/** The event that an address opens, by itself or beside the client that the broker names. */
export function hashEvent(hash: string): string | undefined {
  const event = new URLSearchParams(hash.slice(1)).get("event");
  return event === "" ? undefined : (event ?? undefined);
}
