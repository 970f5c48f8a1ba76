// One WebSocket that reconnects by itself.

import { HOPS_MAX } from "./addresses.js";
import { Backoff, isAway, type BackoffOptions } from "./backoff.js";
import { Pause, type Clock, type Random } from "./clock.js";
import type { Checkpoint } from "./messages.js";
import { Closed, ConnectionError, type ProblemError } from "./errors.js";
import { readFrame, writeFrame, type ReadyFrame, type ServerFrame } from "./frames.js";
import type { Http } from "./http.js";
import { frameProblem } from "./problems.js";
import type { Platform, Socket, SocketEnd } from "./socket.js";
import type { Tokens } from "./tokens.js";

/** What becomes of the connection. */
export type Connection =
  | { readonly state: "connecting" }
  /** `resumed`: whether it goes on in the session of before; where it does not, a gap of reason `epoch` follows. */
  | { readonly state: "ready"; readonly epoch: string; readonly offset: number; readonly resumed: boolean }
  /** It is tried again in `retry_ms` milliseconds. */
  | { readonly state: "lost"; readonly error: Error; readonly retry_ms: number }
  /** For good: by `close()`, or for the error. */
  | { readonly state: "closed"; readonly error?: Error };

/** What a link tells its session. */
export interface LinkHandlers {
  changed(change: Connection): void;
  /** Where to go on; asked before each connection. */
  resume(): Checkpoint | undefined;
  ready(frame: ReadyFrame): void;
  frame(frame: ServerFrame): void;
  lost(end: SocketEnd): void;
  ended(error: Error | undefined): void;
}

export interface LinkOptions {
  readonly client: string;
  readonly backoff: BackoffOptions;
  readonly handshakeTimeout_s: number;
  readonly silence_s: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** A connection that was ready for so long is taken for a good one: the next wait begins short again. */
const STABLE_MS = 10_000;
/** A connection that says nothing for so long after a wake has not outlived what the application woke from. */
const WAKE_ANSWER_MS = 5000;

/** How a connection ended, and what that means. */
interface Ending {
  readonly error: Error;
  readonly retry_after_s?: number | undefined;
  /** A takeover may end it. */
  readonly away?: boolean;
  /** When the broker said to come back. */
  readonly retry_ms?: number | undefined;
  /** There is no point in another one. */
  readonly final: boolean;
}

function forGood(error: Error): Ending {
  return { error, final: true };
}

export class Link {
  readonly #platform: Platform;
  readonly #http: Http;
  readonly #tokens: Tokens;
  readonly #options: LinkOptions;
  readonly #handlers: LinkHandlers;
  readonly #backoff: Backoff;
  readonly #pause: Pause;
  #socket: Socket | undefined;
  #ready = false;
  #paused = false;
  #closing = false;
  /** Comes back at once: the session itself has dropped the connection. */
  #renewing = false;
  #heard_ms = 0;
  /** Addresses that are tried without a wait where the present one fails. */
  #untried = 0;
  /** The timer of a wake that waits for its answer. */
  #waking: unknown;
  #lastProblem: ProblemError | undefined;
  #retry_ms: number | undefined;
  #failure: Error | undefined;

  constructor(platform: Platform, http: Http, tokens: Tokens, options: LinkOptions, handlers: LinkHandlers) {
    this.#platform = platform;
    this.#http = http;
    this.#tokens = tokens;
    this.#options = options;
    this.#handlers = handlers;
    this.#backoff = new Backoff(options.backoff, options.random);
    this.#pause = new Pause(options.clock);
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** Bytes that wait to be sent. */
  get buffered(): number {
    return this.#socket?.bufferedAmount ?? 0;
  }

  /** Connects, and again and again until it is closed or there is no point in it. */
  async run(): Promise<void> {
    for (;;) {
      if (!this.#closing) this.#handlers.changed({ state: "connecting" });
      const ending = this.#closing ? forGood(new Closed("closed")) : await this.#connection();
      if (this.#closing || ending.final) {
        const error = this.#closing ? this.#failure : ending.error;
        this.#handlers.changed(error === undefined ? { state: "closed" } : { state: "closed", error });
        this.#handlers.ended(error);
        return;
      }
      // Should the broker not be there when it said, the waits begin anew with short ones.
      if (ending.retry_ms !== undefined) this.#backoff.reset();
      const atOnce = this.#renewing || this.#untried > 0;
      const retry_ms = atOnce ? 0 : (ending.retry_ms ?? this.#backoff.next(ending.away === true, ending.retry_after_s));
      this.#renewing = false;
      this.#handlers.changed({ state: "lost", error: ending.error, retry_ms });
      await this.#pause.wait(retry_ms);
    }
  }

  /** Writes, where there is a connection that is ready; says whether there is. */
  send(text: string): boolean {
    if (!this.#ready) return false;
    this.#socket?.send(text);
    return true;
  }

  /** Reads no further for now, where the platform can do that. */
  hold(): void {
    if (this.#paused || this.#socket?.pause === undefined) return;
    this.#socket.pause();
    this.#paused = true;
  }

  /** Reads on. */
  release(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#heard_ms = this.#options.clock.now();
    this.#socket?.resume?.();
  }

  /** Drops the connection and makes another at once. */
  renew(reason: string): void {
    this.#renewing = true;
    this.#socket?.drop(reason);
  }

  /** Does not wait for the next try, which is made now. A connection that seems to be there has to give a sign of life soon. */
  wake(): void {
    this.#pause.wake();
    const { clock } = this.#options;
    const asked_ms = clock.now();
    if (this.#paused || !this.send(writeFrame({ op: "ping" }))) return;
    clock.clearTimeout(this.#waking);
    this.#waking = clock.setTimeout(() => {
      if (!this.#paused && this.#heard_ms < asked_ms) this.#socket?.drop("nothing was heard after a wake");
    }, WAKE_ANSWER_MS);
  }

  /** Closes for good; the handlers hear the rest. */
  close(): void {
    this.#closing = true;
    if (this.#ready) {
      this.release(); // What is not read would keep the close of the other side from being seen.
      this.#socket?.close(1000, "");
    } else this.#socket?.drop("closed");
    this.#pause.wake();
  }

  /** Closes for good and at once, for an error or for none. */
  cut(error?: Error): void {
    this.#closing = true;
    this.#failure = error;
    this.#socket?.drop("closed");
    this.#pause.wake();
  }

  /** One connection from its beginning to its end. */
  async #connection(): Promise<Ending> {
    try {
      await this.#platform.prepare?.();
    } catch (cause) {
      return forGood(cause instanceof Error ? cause : new ConnectionError("there is no WebSocket", { cause }));
    }
    let token: string | undefined;
    try {
      token = await this.#tokens.fresh();
    } catch (cause) {
      this.#untried = 0; // Another address would need one, too.
      return { error: new ConnectionError("no token could be had", { cause }), final: false };
    }
    if (this.#closing) return forGood(new Closed("closed"));
    return this.#conversations(token);
  }

  /** A conversation where the client is served: with the broker in use, or the one that it names. */
  async #conversations(token: string | undefined): Promise<Ending> {
    const { addresses } = this.#http;
    const { client } = this.#options;
    const first = addresses.of(client);
    const all = addresses.count + (addresses.home(client) === undefined ? 0 : 1);
    this.#untried = (this.#untried > 0 ? this.#untried : all) - 1;
    let address = first;
    for (let hops = 0; ; hops += 1) {
      let end: SocketEnd;
      let wasReady: boolean;
      try {
        [end, wasReady] = await this.#conversation(address, token);
      } catch (cause) {
        return forGood(new ConnectionError("the platform refuses to connect: is the token one?", { cause }));
      }
      const { home, refused = end.refused } = this.#closing ? {} : await this.#http.why(client, address, end);
      if (home !== undefined && hops < HOPS_MAX && !this.#closing) {
        address = home;
        this.#untried = 0; // Where nobody is there, the others would name it, too, until its standby has taken over.
        continue;
      }
      if (!wasReady) {
        addresses.leave(first);
        addresses.leave(address);
      }
      return refused === undefined ? this.#brokenOff(end) : this.#refused(refused);
    }
  }

  /** How it ended, and whether it was ready before. */
  async #conversation(address: string, token: string | undefined): Promise<[end: SocketEnd, wasReady: boolean]> {
    const { clock, client, handshakeTimeout_s } = this.#options;
    const resume = this.#handlers.resume();
    const protocols = token === undefined ? [] : ["nearcast", `nearcast.bearer.${token}`];
    this.#lastProblem = this.#retry_ms = undefined;
    let ready_ms: number | undefined;
    let unwatch: (() => void) | undefined;
    const handshake = clock.setTimeout(() => {
      this.#socket?.drop("the broker was not ready in time");
    }, handshakeTimeout_s * 1000);
    try {
      const end = await new Promise<SocketEnd>((resolve) => {
        this.#socket = this.#platform.openSocket(this.#http.socketUrl(address, client, resume), protocols, {
          message: (text) => {
            const frame = this.#read(text);
            if (ready_ms !== undefined) this.#handlers.frame(frame);
            else if (frame.kind === "ready") {
              clock.clearTimeout(handshake);
              ready_ms = clock.now();
              this.#untried = 0;
              unwatch = this.#watch();
              this.#ready = true;
              this.#handlers.ready(frame);
              const { epoch, offset } = frame;
              this.#handlers.changed({ state: "ready", epoch, offset, resumed: resume?.epoch === epoch });
            }
          },
          end: (last) => {
            unwatch?.();
            clock.clearTimeout(this.#waking);
            this.#ready = false;
            this.#paused = false;
            this.#socket = undefined;
            resolve(last);
          },
        });
      });
      if (ready_ms !== undefined) {
        if (clock.now() - ready_ms >= STABLE_MS) this.#backoff.reset();
        this.#handlers.lost(end);
      }
      return [end, ready_ms !== undefined];
    } finally {
      clock.clearTimeout(handshake);
    }
  }

  #read(text: string): ServerFrame {
    this.#heard_ms = this.#options.clock.now();
    let frame: ServerFrame;
    try {
      frame = readFrame(text);
    } catch {
      this.#socket?.drop("the broker has sent something that is no frame");
      return { kind: "unknown" };
    }
    if (frame.kind === "problem" && frame.ref === undefined) this.#lastProblem = frameProblem(frame.problem);
    if (frame.kind === "retry") this.#retry_ms = frame.retry_ms;
    return frame;
  }

  /** Whether the upgrade was refused for good. A token that has just ended is, if there is no other. */
  #refused(refused: ProblemError): Ending {
    const expired = refused.code === "token-expired" && this.#tokens.renewable;
    const final = [400, 401, 403].includes(refused.status) && !expired;
    return { error: refused, retry_after_s: refused.retry_after_s, away: isAway(refused), final };
  }

  #brokenOff(end: SocketEnd): Ending {
    const cause = this.#lastProblem;
    const final = end.code === 1008 || (end.code === 4401 && !this.#tokens.renewable);
    const reason = end.reason || (cause?.message ?? "");
    const error = final
      ? new Closed(reason, { code: end.code, cause })
      : new ConnectionError(reason || "it broke off", { code: end.code === 1006 ? undefined : end.code, cause });
    return { error, retry_ms: this.#retry_ms, away: isAway(error), final };
  }

  /** Notices a connection that is there no more although nobody said so: asks for a sign of life, and does not wait long for it. */
  #watch(): () => void {
    const { clock, silence_s } = this.#options;
    const step_ms = (silence_s * 1000) / 3;
    const look = (): void => {
      const silent_ms = clock.now() - this.#heard_ms;
      if (!this.#paused && silent_ms >= 3 * step_ms) {
        this.#socket?.drop(`nothing was heard for ${silence_s} s`);
        return;
      }
      // Who does not read does not answer pings either: these frames tell the broker that somebody is there.
      if (this.#paused || silent_ms >= step_ms) this.send(writeFrame({ op: "ping" }));
      schedule();
    };
    let timer: unknown;
    const schedule = (): void => {
      timer = clock.setTimeout(look, step_ms);
    };
    schedule();
    return () => {
      clock.clearTimeout(timer);
    };
  }
}
