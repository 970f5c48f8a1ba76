// The broker's calls over HTTP.

import { HOPS_MAX, type Addresses } from "./addresses.js";
import type { Coordinates } from "./areas.js";
import type { Clock } from "./clock.js";
import type { Checkpoint } from "./messages.js";
import { ConnectionError, ProblemError, Timeout } from "./errors.js";
import type { Feature } from "./events.js";
import type { Cause, RequestWarning, Subscription } from "./frames.js";
import { hiddenRedirect, readProblem } from "./problems.js";
import type { SocketEnd } from "./socket.js";
import type { Tokens } from "./tokens.js";

/** A subscription as the broker shows it: normalised, conditions as text in disjunctive form. */
export interface SubscriptionDocument extends Omit<Subscription, "filters"> {
  readonly id: string;
  readonly filters: readonly { readonly area?: Readonly<Record<string, unknown>>; readonly where?: string }[];
  readonly on: readonly ("event" | "enter" | "exit")[];
  readonly durable: boolean;
  readonly overflow: "drop-oldest" | "keep-latest" | "disconnect";
  /** What has happened to it; times are RFC 3339, `null` before the first. */
  readonly activity?: {
    readonly evaluations: number;
    readonly last_evaluation: string | null;
    readonly matches: number;
    readonly last_match: string | null;
    readonly deliveries: number;
    readonly last_delivery: string | null;
  };
  /** What is probably not meant so, in the answer that made it. */
  readonly warnings?: readonly RequestWarning[];
}

/** What {@link Session.explain} asks. */
export interface Question {
  /** The id of one of the client's subscriptions, or one that it might have. */
  readonly subscription: string | Subscription;
  /** The id of a live event, or an event as if it were published now. */
  readonly event: string | Feature<object>;
  /** A place to put in place of the client's. */
  readonly position?: Coordinates;
  /** Another client than the session's, which takes a token that permits it. */
  readonly client?: string;
}

/** Why an event comes to a client, or does not. What is not typed here is in the broker's docs/protocol/operate.md. */
export interface Explanation {
  readonly matched: boolean;
  readonly inside: boolean;
  /** For people; the words may change. */
  readonly why: string;
  readonly filters: readonly {
    readonly matched: boolean;
    readonly area: {
      readonly form: string;
      readonly holds: boolean;
      readonly metres_outside: number | null;
      /** The distance with longitude and latitude exchanged, where it is far outside and would be inside then. */
      readonly swapped_distance_m?: number;
    };
    readonly condition: {
      readonly truth: "true" | "false" | "unknown";
      readonly constraints: readonly {
        readonly constraint: string;
        readonly attribute: string;
        readonly value: unknown;
        readonly truth: "true" | "false" | "unknown";
        readonly reason: string;
      }[];
    };
  }[];
  /** Checks that the event would break; it is not published yet. */
  readonly checks?: readonly {
    readonly check: string;
    readonly on_violation: "mark" | "drop";
    /** Variables of the check with ids of events that do not fit. */
    readonly links: readonly Readonly<Record<string, string>>[];
  }[];
  /** How a check, a rule set or a group definition came to publish the event, while that is among what it found last. */
  readonly derived?: {
    /** The check, the rule set or the group definition, such as `rules/traffic`. */
    readonly by: string;
    /** The rule, by its name or its number. */
    readonly rule?: string;
    /** The ids of the events that it follows from. */
    readonly from: readonly string[];
  };
  readonly [member: string]: unknown;
}

/** To whom an event went, and what became of that. */
export interface EventDeliveries {
  readonly id: string;
  readonly deliveries: readonly {
    readonly client: string;
    readonly subscriptions: readonly string[];
    readonly offset: number;
    readonly cause: Cause;
    readonly transition?: "enter" | "exit";
    readonly state: "waiting" | "written" | "dropped" | "unread";
    /** Where the client was then, as others are shown it. */
    readonly position?: readonly [number, number];
  }[];
  /** How many more there were than are listed. */
  readonly omitted?: number;
}

export interface HttpOptions {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  readonly timeout_s: number;
}

interface Call {
  readonly body?: string;
  readonly contentType?: string;
  readonly signal?: AbortSignal | undefined;
  /** The client that it is about, where the path does not begin with that. */
  readonly client?: string | undefined;
}

interface Answer {
  readonly status: number;
  /** `undefined` for nothing. */
  readonly body: unknown;
}

/** Whether a call that failed so was not carried out, or may be carried out twice: then it is made at the next address. */
function isForAnother(error: unknown, method: string): boolean {
  if (error instanceof ProblemError) return ["recovering", "stopping", "elsewhere"].includes(error.code);
  return error instanceof ConnectionError && method !== "POST";
}

export class Http {
  readonly addresses: Addresses;
  readonly #tokens: Tokens;
  readonly #options: HttpOptions;

  constructor(addresses: Addresses, tokens: Tokens, options: HttpOptions) {
    this.addresses = addresses;
    this.#tokens = tokens;
    this.#options = options;
  }

  socketUrl(address: string, client: string, resume: Checkpoint | undefined): string {
    const query = resume === undefined ? "" : `?resume=${encodeURIComponent(`${resume.epoch}:${resume.offset}`)}`;
    return `${address.replace(/^http/, "ws")}${clientPath(client)}/ws${query}`;
  }

  /**
   * Why a WebSocket of this client's was never ready: another broker serves it, or it was refused. Browsers hide both, so it is asked in ways
   * whose answers can be seen. Neither comes where it is not so, or nobody is there.
   */
  async why(client: string, address: string, { refused, hidden }: SocketEnd): Promise<{ home?: string; refused?: ProblemError }> {
    if (refused === undefined && hidden !== true) return {};
    const path = `${clientPath(client)}/ws`;
    try {
      const home = await this.#elsewhere(address, path, client, refused ?? hiddenRedirect(), undefined);
      if (home !== undefined && home !== address) return { home };
      if (refused === undefined) await this.call("GET", path);
    } catch (error) {
      // Only a client that may open a WebSocket learns that this is no request for one.
      if (error instanceof ProblemError && error.status !== 400 && error.status !== 426) return { refused: error };
    }
    return refused === undefined ? {} : { refused };
  }

  /** Carries out a call and returns what it answers, `undefined` for nothing. A token that has just ended is asked for again, once. */
  async call(method: string, path: string, call: Call = {}): Promise<unknown> {
    return (await this.answer(method, path, call)).body;
  }

  /** As `call`, with the status of the answer. A broker that is away, or a standby, is left for the next address, and one that names another for that. */
  async answer(method: string, path: string, call: Call = {}): Promise<Answer> {
    const client = call.client ?? clientOf(path);
    let token = await this.#token(() => this.#tokens.current());
    let others = this.addresses.count - (this.addresses.home(client) === undefined ? 1 : 0);
    let renewed = false;
    let hops = 0;
    let first = this.addresses.of(client);
    let address = first;
    for (;;) {
      try {
        return await this.#once(address, method, path, call, token);
      } catch (error) {
        if (!renewed && error instanceof ProblemError && error.code === "token-expired" && this.#tokens.renewable) {
          renewed = true;
          token = await this.#token(() => this.#tokens.fresh());
          continue;
        }
        const home = hops < HOPS_MAX ? await this.#elsewhere(address, path, client, error, call.signal) : undefined;
        if (home !== undefined) {
          hops += 1;
          address = home;
          continue;
        }
        if (isForAnother(error, "GET") || error instanceof Timeout) {
          this.addresses.leave(first);
          this.addresses.leave(address);
        }
        if (others === 0 || !isForAnother(error, method)) throw error;
        others -= 1;
        first = address = this.addresses.of(client);
      }
    }
  }

  /** Which broker serves a client that the one at an address sends elsewhere: what the redirect says, or, where that is hidden, the broker. */
  async #elsewhere(
    address: string,
    path: string,
    client: string | undefined,
    error: unknown,
    signal: AbortSignal | undefined,
  ): Promise<string | undefined> {
    if (!(error instanceof ProblemError) || error.code !== "elsewhere") return undefined;
    let url: unknown;
    if (error.location !== undefined) {
      // Only the address is taken over, and the request stays the same.
      const [location, own] = [withoutQuery(error.location), withoutQuery(path)];
      url = location.endsWith(own) ? location.slice(0, -own.length) : undefined;
    } else if (client !== undefined) url = await this.#clientUrl(address, client, signal);
    return typeof url === "string" ? this.addresses.learn(address, client, url) : undefined;
  }

  async #clientUrl(address: string, client: string, signal: AbortSignal | undefined): Promise<unknown> {
    const token = await this.#token(() => this.#tokens.current());
    try {
      const { body } = await this.#once(address, "GET", `/v1/cluster?client=${encodeURIComponent(client)}`, { signal }, token);
      return (body as { readonly client_url?: unknown } | undefined)?.client_url;
    } catch (error) {
      if (error instanceof ProblemError) return undefined;
      throw error;
    }
  }

  async #token(get: () => Promise<string | undefined>): Promise<string | undefined> {
    try {
      return await get();
    } catch (cause) {
      throw new ConnectionError("no token could be had", { cause });
    }
  }

  async #once(
    address: string,
    method: string,
    path: string,
    { body, contentType, signal }: Call,
    token: string | undefined,
  ): Promise<Answer> {
    const { clock, timeout_s } = this.#options;
    const headers: Record<string, string> = {};
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    if (body !== undefined) headers["content-type"] = contentType ?? "application/json";
    const stop = new AbortController();
    // Kept here: not every platform has a signal keep its reason.
    let stopped: { readonly reason: unknown } | undefined;
    const giveUp = (reason: unknown): void => {
      stopped ??= { reason };
      stop.abort();
    };
    const abort = (): void => {
      giveUp(signal?.reason);
    };
    if (signal?.aborted === true) abort();
    signal?.addEventListener("abort", abort);
    const timer = clock.setTimeout(() => {
      giveUp(new Timeout(`the broker has not answered for ${timeout_s} s`));
    }, timeout_s * 1000);
    try {
      const answer = await this.#options.fetch(address + path, {
        method,
        headers,
        signal: stop.signal,
        // The platform would follow without the token.
        redirect: "manual",
        ...(body !== undefined && { body }),
      });
      if (answer.type === "opaqueredirect") throw hiddenRedirect();
      const text = await answer.text();
      if (answer.ok) return { status: answer.status, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
      throw readProblem({ status: answer.status, header: (name) => answer.headers.get(name) }, text);
    } catch (cause) {
      if (cause instanceof ProblemError) throw cause;
      if (stopped !== undefined) throw stopped.reason;
      throw new ConnectionError("the broker cannot be reached", { cause });
    } finally {
      clock.clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }
}

/** The path of a client; its name may have any characters but control characters. */
export function clientPath(client: string): string {
  return `/v1/clients/${encodeURIComponent(client)}`;
}

function clientOf(path: string): string | undefined {
  const name = /^\/v1\/clients\/([^/?]+)/.exec(path)?.[1];
  return name === undefined ? undefined : decodeURIComponent(name);
}

function withoutQuery(url: string): string {
  return url.replace(/\?.*$/, "");
}
