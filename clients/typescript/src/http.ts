// The broker's calls over HTTP.

import type { Addresses } from "./addresses.js";
import type { Coordinates } from "./areas.js";
import type { Clock } from "./clock.js";
import type { Checkpoint } from "./messages.js";
import { ConnectionError, ProblemError, Timeout } from "./errors.js";
import type { Feature } from "./events.js";
import type { Cause, RequestWarning, Subscription } from "./frames.js";
import { readProblem } from "./problems.js";
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
}

interface Answer {
  readonly status: number;
  /** `undefined` for nothing. */
  readonly body: unknown;
}

/** Whether a call that failed so was not carried out, or may be carried out twice: then it is made at the next address. */
function isForAnother(error: unknown, method: string): boolean {
  if (error instanceof ProblemError) return error.code === "recovering" || error.code === "stopping";
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

  socketUrl(client: string, resume: Checkpoint | undefined): string {
    const query = resume === undefined ? "" : `?resume=${encodeURIComponent(`${resume.epoch}:${resume.offset}`)}`;
    return `${this.addresses.current.replace(/^http/, "ws")}${clientPath(client)}/ws${query}`;
  }

  /** Why a WebSocket of this client's is refused, asked in a way whose answer can be seen; `undefined` where it is not, or nobody is there. */
  async refusal(client: string): Promise<ProblemError | undefined> {
    try {
      await this.call("GET", `${clientPath(client)}/ws`);
    } catch (error) {
      // Only a client that may open a WebSocket learns that this is no request for one.
      if (error instanceof ProblemError && error.status !== 400 && error.status !== 426) return error;
    }
    return undefined;
  }

  /** Carries out a call and returns what it answers, `undefined` for nothing. A token that has just ended is asked for again, once. */
  async call(method: string, path: string, call: Call = {}): Promise<unknown> {
    return (await this.answer(method, path, call)).body;
  }

  /** As `call`, with the status of the answer. A broker that is away, or a standby, is left for the next address. */
  async answer(method: string, path: string, call: Call = {}): Promise<Answer> {
    let token = await this.#token(() => this.#tokens.current());
    let others = this.addresses.count - 1;
    let renewed = false;
    for (;;) {
      const address = this.addresses.current;
      try {
        return await this.#once(address, method, path, call, token);
      } catch (error) {
        if (!renewed && error instanceof ProblemError && error.code === "token-expired" && this.#tokens.renewable) {
          renewed = true;
          token = await this.#token(() => this.#tokens.fresh());
          continue;
        }
        if (isForAnother(error, "GET") || error instanceof Timeout) this.addresses.leave(address);
        if (others === 0 || !isForAnother(error, method)) throw error;
        others -= 1;
      }
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
        ...(body !== undefined && { body }),
      });
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
