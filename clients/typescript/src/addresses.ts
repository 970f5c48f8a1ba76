// Where the brokers of a cluster are, and which of them serves a client.

const ADDRESS = /^https?:\/\/[^/?#]+[^?#]*$/;

/** Clients whose brokers are remembered. Beyond that all are forgotten, and learned again. */
const HOMES_MAX = 1000;
/** Brokers that one request is sent on to, at most: with more they send it round in circles. */
export const HOPS_MAX = 3;

/** Addresses by http, without a slash at their ends; the one in use stays so until somebody leaves it. */
export class Addresses {
  readonly #all: readonly string[];
  /** Where clients are served. These addresses need not be in the list. */
  readonly #homes = new Map<string, string>();
  #at = 0;

  /** @param urls of brokers: http, https, ws or wss, with a path where a proxy has put it at one */
  constructor(urls: string | URL | readonly (string | URL)[]) {
    this.#all = (Array.isArray(urls) ? urls : [urls]).map((url) => addressOf(String(url)));
    if (this.#all.length === 0) throw new TypeError("a broker has an address");
  }

  get count(): number {
    return this.#all.length;
  }

  /** The broker that serves a client, where that is known. */
  home(client: string | undefined): string | undefined {
    return client === undefined ? undefined : this.#homes.get(client);
  }

  /** Where a request goes that is about a client or none: to the broker that serves it, else to the one in use. */
  of(client: string | undefined): string {
    return this.home(client) ?? this.#all[this.#at] ?? "";
  }

  /**
   * Takes down the broker that the one at `from` names in place of itself. `undefined` where it names no broker, or where a token would
   * leave TLS.
   */
  learn(from: string, client: string | undefined, url: string): string | undefined {
    const home = httpOf(url);
    if (!ADDRESS.test(home) || (from.startsWith("https:") && !home.startsWith("https:"))) return undefined;
    if (client !== undefined) {
      if (this.#homes.size >= HOMES_MAX) this.#homes.clear();
      this.#homes.set(client, home);
    }
    return home;
  }

  /** Goes on to the next address, unless this one has been left already. Clients that were served there are looked for anew. */
  leave(address: string): void {
    for (const [client, home] of this.#homes) if (home === address) this.#homes.delete(client);
    if (address === this.#all[this.#at]) this.#at = (this.#at + 1) % this.#all.length;
  }
}

function httpOf(url: string): string {
  return url.replace(/^ws/, "http").replace(/\/+$/, "");
}

function addressOf(url: string): string {
  const address = httpOf(url);
  if (ADDRESS.test(address)) return address;
  const meant = `http://${url}`;
  const hint = !url.includes("://") && ADDRESS.test(meant) ? ` (is ${meant} meant?)` : "";
  throw new TypeError(`the url of a broker begins with http://, https://, ws:// or wss:// and has no query: ${url}${hint}`);
}
