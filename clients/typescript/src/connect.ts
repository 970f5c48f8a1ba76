// Options of a session, and how it begins.

import type { BackoffOptions } from "./backoff.js";
import { systemClock, type Clock, type Random } from "./clock.js";
import type { Checkpoint } from "./messages.js";
import type { ProblemError } from "./errors.js";
import type { RequestWarning } from "./frames.js";
import type { Connection } from "./link.js";
import { Session } from "./session.js";
import type { Platform } from "./socket.js";
import type { TokenSource } from "./tokens.js";

export interface ConnectOptions {
  /**
   * Of the broker: `http`, `https`, `ws` or `wss`, with a path where a proxy has put it at one. Of a cluster, those of its brokers: where one
   * does not answer, or is a standby, the next one is asked.
   */
  readonly url: string | URL | readonly (string | URL)[];
  /** The client's name. */
  readonly client: string;
  /** A JSON Web Token, or what gets one: asked before each connection, and a minute before the one in use ends. */
  readonly token?: TokenSource;
  /** Go on here: a checkpoint that an earlier process has stored. */
  readonly resume?: Checkpoint | undefined;
  /**
   * `auto` (the default): a message counts as processed when the next one is asked for, and is acknowledged within a second; the one
   * that a loop is left at when `close({ processed: true })` says so. `manual`: by {@link Session.ack} alone.
   */
  readonly ack?: "auto" | "manual";
  /** Told of each change of the connection, the first included. */
  readonly onConnection?: (change: Connection) => void;
  /**
   * Told of what is refused without anybody waiting for the answer: a position, or a subscription that is made again after a reconnect.
   * Without it `console.warn` is told of each kind once, and the latter ends the session.
   */
  readonly onProblem?: (problem: ProblemError) => void;
  /**
   * Told what is probably not meant so in a request of the session that was carried out: a misspelt member of an event, for one. Without it
   * `console.warn` is told of each place in an event once.
   */
  readonly onWarning?: (warning: RequestWarning) => void;
  /** Publishes that may wait for their answer, over a connection or for one (1,000), and as many other requests. */
  readonly queue?: number;
  /**
   * Messages that may wait for the application (1,000). Beyond that the connection is not read, so that the broker keeps or loses them by the
   * subscription's `overflow`. Where the platform cannot do that, or answers are awaited, it is read on: beyond ten times as many messages are
   * thrown away, and the connection is made anew when there is room.
   */
  readonly inbox?: number;
  /** Points of a track that is recorded while there is no connection (1,000). Beyond that every other one is left out. */
  readonly trackPoints?: number;
  readonly backoff?: BackoffOptions;
  /** For how many seconds `connect` tries (30). */
  readonly connectTimeout_s?: number;
  /** How many seconds one connection may take to be ready (10). */
  readonly handshakeTimeout_s?: number;
  /** Seconds after which a connection is given up over which nothing is heard, pings included (45). */
  readonly silence_s?: number;
  /** How many seconds a call over HTTP may take (30). */
  readonly httpTimeout_s?: number;
  /** Gives up connecting, or closes the session. */
  readonly signal?: AbortSignal;
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  readonly random?: Random;
}

export async function connectOn<P>(platform: Platform, options: ConnectOptions): Promise<Session<P>> {
  if (typeof options.client !== "string" || options.client === "") throw new TypeError("a client has a name");
  const { resume } = options;
  if (resume !== undefined && (typeof resume.epoch !== "string" || !Number.isSafeInteger(resume.offset) || resume.offset < 0)) {
    throw new TypeError("resume is a checkpoint: an epoch and an offset");
  }
  const session = new Session<P>(platform, {
    ...options,
    fetch: options.fetch ?? ((...call) => globalThis.fetch(...call)),
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
  });
  await session.begin();
  return session;
}
