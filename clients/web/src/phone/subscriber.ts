// The session, for as long as the page is this client: connected, lost, connected again.

import { computed, signal } from "@preact/signals";
import { Closed, connect, ProblemError, type Checkpoint, type Connection, type Message, type Session } from "nearcast";

import { brokerUrl } from "../shared/pages.js";

/** As whom one connects. */
export interface Identity {
  readonly client: string;
  readonly token: string | undefined;
}

/** `none` until it is run. */
export type Link = { readonly at: "none" | "connecting" | "online" } | { readonly at: "offline"; readonly since_ms: number };

export interface Handlers {
  /** Where to go on; asked when a session begins. */
  resume(): Checkpoint | undefined;
  opened(session: Session): void;
  lost(): void;
  closed(): void;
  message(message: Message, session: Session): void;
  /** The broker refuses this client or its token: there is no point in trying again. */
  refused(problem: ProblemError | Closed): void;
}

/** One try of the client's; it has to be short, since only a new one can be made at once when the network is back. */
const CONNECT_S = 10;

export class Subscriber {
  readonly link = computed((): Link => {
    const [link, since_ms] = [this.#link.value, this.#away_ms.value];
    const isShown = since_ms === undefined || link.at === "none" || link.at === "offline";
    return isShown ? link : { at: "offline", since_ms };
  });
  readonly identity: Identity;
  readonly #handlers: Handlers;
  readonly #link = signal<Link>({ at: "none" });
  /** Since when the browser has no network; the connection itself notices it only when it next expects an answer. */
  readonly #away_ms = signal<number | undefined>(undefined);
  readonly #stop = new AbortController();
  #attempt: AbortController | undefined;
  #session: Session | undefined;
  #closing: Promise<void> | undefined;
  /** When the broker was heard of last, in an earlier visit. */
  readonly #heard_ms: number | undefined;

  constructor(identity: Identity, handlers: Handlers, heard_ms?: number) {
    this.identity = identity;
    this.#handlers = handlers;
    this.#heard_ms = heard_ms;
  }

  /** Is there until it is closed, or refused. Called again it changes nothing. */
  async run(): Promise<void> {
    if (this.#link.peek().at !== "none") return;
    this.#link.value = { at: "connecting" };
    // Nobody has to wait for what the browser knows.
    if (!navigator.onLine) this.#offline();
    while (!this.stopped()) {
      try {
        await this.#connected();
      } catch (error) {
        this.#session = undefined;
        this.#handlers.closed();
        if (this.stopped()) return;
        if (error instanceof ProblemError || error instanceof Closed) {
          this.#handlers.refused(error);
          return;
        }
        // One that was given up for another at once says nothing of the network.
        if (this.#attempt?.signal.aborted !== true) this.#offline();
      }
    }
  }

  /** Whether it has ended, or is about to. */
  stopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /** The browser says that there is no network. */
  away(): void {
    this.#away_ms.value = Date.now();
  }

  /** The network is back, or somebody looks: tries now. */
  wake(): void {
    if (navigator.onLine) this.#away_ms.value = undefined;
    this.#session?.wake();
    this.#attempt?.abort();
  }

  /** Ends the session; what it was given stays the client's. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#attempt?.abort();
    this.#closing ??= this.#session?.close({ timeout_s: 2 });
    await this.#closing;
  }

  /** Ends the client at the broker. @throws where that cannot be done now. */
  async forget(): Promise<void> {
    if (this.link.value.at === "none") {
      this.#stop.abort(); // The broker knows of nobody.
      return;
    }
    if (this.#session === undefined || this.link.value.at !== "online") throw new Error("there is no connection to the broker");
    this.#stop.abort();
    await this.#session.forget();
  }

  async #connected(): Promise<void> {
    const { client, token } = this.identity;
    const attempt = new AbortController();
    this.#attempt = attempt;
    const resume = this.#handlers.resume();
    const session = await connect({
      url: brokerUrl,
      client,
      ack: "manual",
      connectTimeout_s: CONNECT_S,
      signal: attempt.signal,
      onConnection: (change) => {
        this.#changed(change);
      },
      ...(token !== undefined && { token }),
      ...(resume !== undefined && { resume }),
      // Told where they are asked for: the page waits for every answer.
      onProblem: () => undefined,
    });
    this.#attempt = undefined;
    this.#session = session;
    this.#handlers.opened(session);
    for await (const message of session) this.#handlers.message(message, session);
  }

  #changed(change: Connection): void {
    if (change.state === "ready") {
      // A broker on this device is reached without a network.
      this.#away_ms.value = undefined;
      this.#link.value = { at: "online" };
    }
    if (change.state !== "lost") return;
    this.#offline();
    if (this.#session !== undefined) this.#handlers.lost();
  }

  #offline(): void {
    const { at } = this.#link.peek();
    if (at === "offline") return;
    // Before the first connection of this visit one is offline since an earlier one.
    this.#link.value = { at: "offline", since_ms: (at === "connecting" ? this.#heard_ms : undefined) ?? Date.now() };
  }
}
