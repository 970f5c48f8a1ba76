// Where the brokers of a cluster are, of which one carries out requests.

const ADDRESS = /^https?:\/\/[^/?#]+[^?#]*$/;

/** Addresses by http, without a slash at their ends; the one in use stays so until somebody leaves it. */
export class Addresses {
  readonly #all: readonly string[];
  #at = 0;

  /** @param urls of brokers: http, https, ws or wss, with a path where a proxy has put it at one */
  constructor(urls: string | URL | readonly (string | URL)[]) {
    this.#all = (Array.isArray(urls) ? urls : [urls]).map((url) => addressOf(String(url)));
    if (this.#all.length === 0) throw new TypeError("a broker has an address");
  }

  get count(): number {
    return this.#all.length;
  }

  get current(): string {
    return this.#all[this.#at] ?? "";
  }

  /** Goes on to the next address, unless this one has been left already. */
  leave(address: string): void {
    if (address === this.current) this.#at = (this.#at + 1) % this.#all.length;
  }
}

function addressOf(url: string): string {
  const address = url.replace(/^ws/, "http").replace(/\/+$/, "");
  if (ADDRESS.test(address)) return address;
  const meant = `http://${url}`;
  const hint = !url.includes("://") && ADDRESS.test(meant) ? ` (is ${meant} meant?)` : "";
  throw new TypeError(`the url of a broker begins with http://, https://, ws:// or wss:// and has no query: ${url}${hint}`);
}
