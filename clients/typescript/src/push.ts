// Push subscriptions: where a client is woken while no connection reads.

import type { Http } from "./http.js";
import { clientPath } from "./http.js";

/** What `PushSubscription.toJSON()` of a browser gives. */
export interface PushSubscriptionDocument {
  readonly endpoint?: string;
  readonly expirationTime?: number | null;
  readonly keys?: Readonly<Record<string, string>>;
}

/** The push subscription of a client, without its address. */
export interface PushState {
  readonly endpoint_origin: string;
  /** When the broker got it, RFC 3339. */
  readonly since: string;
  /** When the push service last took a message, RFC 3339. */
  readonly last_push: string | null;
  /** Tries that failed since then. */
  readonly failures: number;
}

export async function pushKey(http: Http): Promise<string> {
  return ((await http.call("GET", "/v1/push")) as { readonly public_key: string }).public_key;
}

export async function putPush(http: Http, client: string, subscription: PushSubscriptionDocument): Promise<PushState> {
  return (await http.call("PUT", pushPath(client), { body: JSON.stringify(subscription) })) as PushState;
}

export async function getPush(http: Http, client: string): Promise<PushState> {
  return (await http.call("GET", pushPath(client))) as PushState;
}

export async function deletePush(http: Http, client: string): Promise<void> {
  await http.call("DELETE", pushPath(client));
}

function pushPath(client: string): string {
  return `${clientPath(client)}/push`;
}
