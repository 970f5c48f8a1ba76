// Which client is the same thing as an object that events speak of: a taxi that moves and that reports where it is.

import type { Seen } from "./objects.js";

/** The names by which a client would be the object of an event. */
export function namesOf({ object, feature }: Pick<Seen, "object" | "feature">, attribute: string | undefined): string[] {
  if (feature.key !== undefined) return [feature.key];
  if (object === undefined || !object.startsWith("a") || attribute === undefined) return [];
  const value = object.slice(1);
  // `taxi_id` 12 is the client `12`, or `taxi-12`.
  const kind = attribute.replace(/[_.-]?id$/i, "");
  return [value, `${kind}-${value}`, `${kind}_${value}`, `${kind}${value}`];
}

/** Clients by what their objects are called. Bounded by what the map shows. */
export class Same {
  #clients = new Set<string>();
  readonly #ofClient = new Map<string, string>();
  readonly #ofPoint = new Map<string, string>();

  /** Takes the clients that there are; what is not among them is no client any more. */
  learn(clients: Iterable<string>): void {
    this.#clients = new Set(clients);
    for (const [client, point] of this.#ofClient) if (!this.#clients.has(client)) this.#drop(client, point);
  }

  /** Finds the client of a point, and remembers it. */
  put(seen: Seen, attribute: string | undefined): string | undefined {
    const known = this.#ofPoint.get(seen.id);
    if (known !== undefined) return known;
    const client = namesOf(seen, attribute).find((name) => this.#clients.has(name));
    if (client === undefined) return undefined;
    this.#ofClient.set(client, seen.id);
    this.#ofPoint.set(seen.id, client);
    return client;
  }

  remove(point: string): void {
    const client = this.#ofPoint.get(point);
    if (client !== undefined) this.#drop(client, point);
  }

  clear(): void {
    this.#ofClient.clear();
    this.#ofPoint.clear();
  }

  /** The client of a point. */
  clientOf(point: string): string | undefined {
    return this.#ofPoint.get(point);
  }

  /** The point of a client. */
  pointOf(client: string): string | undefined {
    return this.#ofClient.get(client);
  }

  #drop(client: string, point: string): void {
    this.#ofClient.delete(client);
    this.#ofPoint.delete(point);
  }
}
