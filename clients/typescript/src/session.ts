// The session: what an application has of a broker.

import { Addresses } from "./addresses.js";
import type { Coordinates } from "./areas.js";
import { Batcher, type BatchOptions, type MoveReport, type NamedPosition, type PublishReport } from "./batches.js";
import type { Clock, Random } from "./clock.js";
import type { ConnectOptions } from "./connect.js";
import { Acknowledger } from "./acks.js";
import { Closed, ConnectionError, ProblemError, Timeout } from "./errors.js";
import { withId, type DeliveredFeature, type Feature, type Properties } from "./events.js";
import { follow, Throttle, type Fix, type FollowOptions } from "./follow.js";
import {
  writeFrame,
  type PositionOptions,
  type RequestWarning,
  type ReadyFrame,
  type ServerFrame,
  type Subscription,
  type Trace,
  type TrackPoint,
} from "./frames.js";
import { clientPath, Http, type EventDeliveries, type Explanation, type Question, type SubscriptionDocument } from "./http.js";
import { Link, type Connection } from "./link.js";
import { Inbox } from "./inbox.js";
import { checkpointOf, type Checkpoint, type Message } from "./messages.js";
import { Positions } from "./positions.js";
import { frameProblem } from "./problems.js";
import { deletePush, getPush, pushKey, putPush, type PushState, type PushSubscriptionDocument } from "./push.js";
import { liveEvents, type ClientPosition, type Query } from "./queries.js";
import { Requests } from "./requests.js";
import { allRoutes, question as routeQuestion, type ClientRoute, type FoundRoute, type RouteOptions } from "./routes.js";
import { SituationCalls } from "./situations.js";
import { Subscriptions } from "./subscriptions.js";
import type { Platform, SocketEnd } from "./socket.js";
import { Tokens } from "./tokens.js";

/** Options with what they are made of filled in. @internal */
export interface SessionOptions extends ConnectOptions {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  readonly random: Random;
}

/** Publishes, and other requests, that may wait for their answers. The broker reads no further when 1,024 wait to be taken. */
const QUEUE = 1000;
/** Places of warnings that the console is told of, at most. */
const NOTED = 32;
/** Multiple of the bound of the inbox up to which reading goes on while answers are awaited: they may stand behind deliveries. */
const INBOX_SLACK = 10;
/** setTimeout takes no more. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Calls what the application has given; what that throws is not to stop the session. */
function apart(call: () => void): void {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/**
 * A client of the broker: one WebSocket that reconnects by itself, and goes on where it was. Made by `connect`.
 *
 * It is an asynchronous iterable of {@link Message}s: `for await (const message of session)`. The iteration ends when the session is closed, and
 * throws when the broker has ended it.
 */
export class Session<P = Properties> extends SituationCalls implements AsyncIterable<Message<P>> {
  /** The client's name. */
  readonly client: string;
  readonly #options: SessionOptions;
  readonly #clock: Clock;
  readonly #tokens: Tokens;
  readonly #http: Http;
  readonly #link: Link;
  readonly #requests: Requests;
  readonly #subscriptions: Subscriptions;
  readonly #positions: Positions;
  readonly #inbox: Inbox<P>;
  readonly #acks: Acknowledger;
  readonly #listeners = new Set<(change: Connection) => void>();
  readonly #ended: Promise<void>;
  /** Codes of problems and places of warnings that the console was told of. */
  readonly #noted = new Set<string>();
  #connection: Connection = { state: "connecting" };
  #epoch: string | undefined;
  /** Deliveries are thrown away until there is room and the connection is made anew: it cannot be held, or is not to be. */
  #skipping = false;
  #renewal: unknown;
  #closing = false;

  /** @internal */
  constructor(platform: Platform, options: SessionOptions) {
    const { clock, client } = options;
    const tokens = new Tokens(options.token, clock);
    const http = new Http(new Addresses(options.url), tokens, { fetch: options.fetch, clock, timeout_s: options.httpTimeout_s ?? 30 });
    super(http);
    this.client = client;
    this.#options = options;
    this.#clock = clock;
    if (options.onConnection !== undefined) this.#listeners.add(options.onConnection);
    this.#tokens = tokens;
    this.#http = http;
    this.#acks = new Acknowledger(clock, (offset) => this.#link.send(writeFrame({ op: "ack", offset })));
    this.#inbox = new Inbox<P>(
      options.resume,
      (place) => {
        if (options.ack !== "manual") this.#acks.processed(place);
      },
      () => {
        this.#readOn();
      },
    );
    this.#requests = new Requests(options.queue ?? QUEUE, (text) => {
      this.#link.release(); // The answer may stand behind deliveries that are held.
      return this.#link.send(text);
    });
    this.#subscriptions = new Subscriptions(this.#requests, clock, (problem) => {
      if (options.onProblem === undefined) this.#link.cut(problem);
      else this.#unasked(problem);
    });
    let ended: () => void;
    this.#ended = new Promise((resolve) => {
      ended = resolve;
    });
    this.#link = new Link(
      platform,
      this.#http,
      this.#tokens,
      {
        client,
        backoff: options.backoff ?? {},
        handshakeTimeout_s: options.handshakeTimeout_s ?? 10,
        silence_s: options.silence_s ?? 45,
        clock,
        random: options.random,
      },
      {
        resume: () => this.#inbox.received,
        changed: (change) => {
          this.#changed(change);
        },
        ready: (frame) => {
          this.#ready(frame);
        },
        frame: (frame) => {
          this.#frame(frame);
        },
        lost: (end) => {
          this.#lost(end);
        },
        ended: (error) => {
          this.#end(error);
          ended();
        },
      },
    );
    this.#positions = new Positions(this.#requests, this.#link, clock, {
      limit: options.queue ?? QUEUE,
      trackPoints: options.trackPoints ?? 1000,
      refused: (error) => {
        this.#unasked(error);
      },
    });
  }

  /** Connects. @internal */
  async begin(): Promise<void> {
    const { signal } = this.#options;
    if (signal?.aborted === true) throw signal.reason;
    await new Promise<void>((resolve, reject) => {
      const seconds = this.#options.connectTimeout_s ?? 30;
      let last: Error | undefined;
      const timer = this.#clock.setTimeout(() => {
        const why = last === undefined ? "" : `: ${last.message}`;
        reject(new Timeout(`there is no connection after ${seconds} s${why}`, { cause: last }));
        this.#link.cut();
      }, seconds * 1000);
      const abort = (): void => {
        reject(signal?.reason as Error);
        void this.close();
      };
      signal?.addEventListener("abort", abort, { once: true });
      const stop = this.onConnection((change) => {
        if (change.state === "lost") last = change.error;
        if (change.state !== "ready" && change.state !== "closed") return;
        this.#clock.clearTimeout(timer);
        stop();
        if (change.state === "ready") resolve();
        else reject(change.error ?? new Closed("before it was connected"));
      });
      void this.#link.run();
      void this.#ended.then(() => {
        signal?.removeEventListener("abort", abort);
      });
    });
  }

  /** What the connection is at now. */
  get connection(): Connection {
    return this.#connection;
  }

  /** Tells a listener of each change of the connection from now on, until the function that is returned is called. */
  onConnection(listener: (change: Connection) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** The last message that was handed out, or where the session began. Stored, it is what another process hands to `connect` as `resume`. */
  get checkpoint(): Checkpoint {
    return this.#inbox.taken ?? { epoch: "", offset: 0 };
  }

  /**
   * Messages as they come. Several iterations share them. To ask for the next one acknowledges the one before, with `ack: "auto"`. To leave the
   * loop acknowledges nothing: see {@link Session.close}.
   */
  [Symbol.asyncIterator](): AsyncIterator<Message<P>, undefined> {
    return { next: () => this.#inbox.next(), return: () => Promise.resolve({ done: true, value: undefined }) };
  }

  /** Gives each message to a handler, one after the other, until the session is closed. A handler that returns has acknowledged. */
  async each(handler: (message: Message<P>) => void | Promise<void>): Promise<void> {
    for await (const message of this) await handler(message);
  }

  /**
   * Makes a subscription, or replaces the one of this id. Resolves when it is in force; throws the problem. One that is not durable ends with
   * the connection, and is made again on the next one, where its live events may come again.
   */
  subscribe(id: string, subscription: Subscription): Promise<void> {
    return this.#gone() ?? this.#subscriptions.make(id, subscription);
  }

  /** Ends a subscription, whoever made it. */
  unsubscribe(id: string): Promise<void> {
    return this.#gone() ?? this.#subscriptions.end(id);
  }

  /**
   * Publishes an event. Resolves to its id when the broker has it; throws the problem, or `QueueFull`. While there is no connection it waits for
   * one. What was not answered when a connection broke is sent again: a live event (`ttl_s`, `key`) then takes its own place, another one
   * may come twice, under the same id.
   */
  publish(event: Feature<object>, trace: Partial<Trace> = {}): Promise<string | number> {
    const gone = this.#gone();
    if (gone !== undefined) return gone;
    const published = withId(event, this.#options.random);
    return new Promise((resolve, reject) => {
      const ok = (): void => {
        resolve(published.id);
      };
      this.#requests.ask({ op: "publish", ...trace, event: published }, { ok, failed: reject }, true);
    });
  }

  /** Publishes many events over HTTP, reading the source no faster than the broker takes them. Resolves when all were taken or refused. */
  publishMany(events: Iterable<Feature<object>> | AsyncIterable<Feature<object>>, options: BatchOptions = {}): Promise<PublishReport> {
    const random = this.#options.random;
    return this.#batcher("/v1/events", "accepted", options).send(
      (async function* () {
        for await (const event of events) yield JSON.stringify(withId(event, random));
      })(),
    );
  }

  /** Ends the life of every live event of this id. */
  async revoke(id: string | number): Promise<void> {
    await this.#http.call("DELETE", `/v1/events/${encodeURIComponent(id)}`);
  }

  /**
   * Tells where the client is. By default nothing is waited for: while there is no connection the newest place wins, and a broker that refuses it
   * says so to `onProblem`. With `confirm` it resolves when the place, or a newer one, is in force.
   */
  move(coordinates: Coordinates, options: PositionOptions & { readonly confirm?: boolean } = {}): Promise<void> {
    const { confirm = false, ...position } = options;
    const gone = this.#gone();
    if (gone !== undefined) return gone;
    const place = { op: "move", coordinates, ...position } as const;
    if (confirm) return this.#positions.confirmed(place);
    this.#positions.move(place);
    return Promise.resolve();
  }

  /** Tells where the client was, oldest first; the last point is where it is now. Live events along the way come as well. */
  track(points: readonly TrackPoint[], options: PositionOptions = {}): Promise<void> {
    return this.#gone() ?? this.#positions.track({ op: "move", track: points, ...options });
  }

  /** Tells where many clients are, over HTTP; takes a token that permits it. */
  async moveMany(positions: Iterable<NamedPosition> | AsyncIterable<NamedPosition>, options: BatchOptions = {}): Promise<MoveReport> {
    const { accepted, ...rest } = await this.#batcher("/v1/positions", "moved", options).send(
      (async function* () {
        for await (const position of positions) yield JSON.stringify(position);
      })(),
    );
    return { moved: accepted, ...rest };
  }

  /**
   * Follows a source of positions until it ends, the signal says so, or the session is closed. Only fixes that are worth it are sent. While there is no
   * connection they are recorded, and told as a track afterwards.
   */
  async follow(source: AsyncIterable<Fix>, options: FollowOptions = {}): Promise<void> {
    await this.#gone();
    const throttle = new Throttle(options, this.#clock, ({ coordinates, accuracy_m, unix_s }) => {
      const accuracy = accuracy_m === undefined ? {} : { accuracy_m };
      this.#positions.followed({ op: "move", coordinates, ...accuracy }, unix_s ?? this.#clock.now() / 1000);
    });
    const stop = new AbortController();
    const abort = (): void => {
      stop.abort();
    };
    options.signal?.addEventListener("abort", abort);
    if (options.signal?.aborted === true) abort();
    void this.#ended.then(abort);
    try {
      await follow(source, throttle, stop.signal);
    } finally {
      options.signal?.removeEventListener("abort", abort);
    }
  }

  /**
   * Says that everything up to a message, or up to an offset of the session that the checkpoint is of, is not needed any more. Told at once, and again
   * after a reconnect.
   */
  ack(upTo: number | Message<P>): void {
    this.#acks.say(typeof upTo === "number" ? { ...this.checkpoint, offset: upTo } : checkpointOf(upTo));
  }

  /** The client's subscriptions, whoever made them. */
  async subscriptions(): Promise<readonly SubscriptionDocument[]> {
    return (await this.#http.call("GET", `${clientPath(this.client)}/subscriptions`)) as readonly SubscriptionDocument[];
  }

  /**
   * Live events, page by page as they are taken; with `near` the nearest first. What stays live comes once, whatever comes and goes.
   * `client: session.client` are those that this client's subscriptions take now.
   */
  events<E = Properties>(query: Query = {}): AsyncGenerator<DeliveredFeature<E>, void, undefined> {
    return liveEvents<E>(this.#http, query);
  }

  /** Where a client is, this one unless said: itself exactly, others as `privacy.round_m` of the broker permits. */
  async position(client: string = this.client): Promise<ClientPosition> {
    return (await this.#http.call("GET", `${clientPath(client)}/position`)) as ClientPosition;
  }

  /**
   * Where a client's areas along routes lie now, this one's unless said: to itself those in force, to others what they would be from where
   * `privacy.round_m` of the broker shows it.
   */
  async routes(client: string = this.client): Promise<readonly ClientRoute[]> {
    return allRoutes((query) => this.#http.call("GET", `${clientPath(client)}/routes${query}`));
  }

  /** The best way along the streets from one place to another, by what the broker knows of streets. */
  async route(from: Coordinates, to: Coordinates, options: RouteOptions = {}): Promise<FoundRoute> {
    return (await this.#http.call("POST", "/v1/routes", { body: routeQuestion(from, to, options) })) as FoundRoute;
  }

  /** The key that browsers subscribe to push messages with (`applicationServerKey`), in base64url. */
  async pushKey(): Promise<string> {
    return pushKey(this.#http);
  }

  /** Has the client woken at a push subscription while no connection reads; it replaces one that there is. */
  async putPush(subscription: PushSubscriptionDocument): Promise<PushState> {
    return putPush(this.#http, this.client, subscription);
  }

  /** The client's push subscription, without its address. */
  async push(): Promise<PushState> {
    return getPush(this.#http, this.client);
  }

  /** Ends the client's push subscription, if it has one. */
  async deletePush(): Promise<void> {
    return deletePush(this.#http, this.client);
  }

  /** Asks why an event comes to the client, or does not. */
  async explain(question: Question): Promise<Explanation> {
    const asked = { client: this.client, ...question };
    return (await this.#http.call("POST", "/v1/explain", { body: JSON.stringify(asked), client: asked.client })) as Explanation;
  }

  /** Asks to whom an event went; takes a token that permits it. */
  async deliveries(id: string | number): Promise<EventDeliveries> {
    return (await this.#http.call("GET", `/v1/events/${encodeURIComponent(id)}/deliveries`)) as EventDeliveries;
  }

  /** Ends the client: its position, its subscriptions and what is kept for it are gone, and the session is closed. */
  async forget(): Promise<void> {
    await this.close();
    await this.#http.call("DELETE", clientPath(this.client));
  }

  /**
   * Tries to connect now instead of when its time has come: the network is back, or the application in the foreground. A connection that
   * seems to have outlived the time without it is asked for an answer, and made anew where none comes within 5 s.
   */
  wake(): void {
    this.#link.wake();
  }

  /**
   * Closes the session: waits up to `timeout_s` (5) until what is under way was answered, acknowledges what was processed, and ends the iterations.
   * What the application has not taken it does not get; of a durable subscription the next session gets it.
   *
   * A loop that is left is at a message that nothing was asked for after. An iterator is told the same by a `break` and by an error that was
   * thrown, so that the message does not count as processed, and comes again, unless `processed: true` says that it is.
   */
  async close(options: { readonly timeout_s?: number; readonly processed?: boolean } = {}): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      if (options.processed === true) this.#inbox.finish();
      const timeout_ms = (options.timeout_s ?? 5) * 1000;
      const idle = this.#requests.idle();
      this.#link.release();
      await this.#atMost(timeout_ms, idle);
      this.#acks.flush();
      this.#link.close();
      await this.#atMost(timeout_ms, this.#ended);
      this.#link.cut();
    }
    await this.#ended;
  }

  #batcher(path: string, count: "accepted" | "moved", options: BatchOptions): Batcher {
    return new Batcher(this.#http, this.#clock, this.#options.random, path, count, options);
  }

  /** A rejected promise where there is no session any more. */
  #gone(): Promise<never> | undefined {
    if (this.#connection.state === "closed") return Promise.reject(this.#connection.error ?? new Closed("closed"));
    return this.#closing ? Promise.reject(new Closed("closed")) : undefined;
  }

  async #atMost(delay_ms: number, what: Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#clock.setTimeout(resolve, delay_ms);
      void what.then(() => {
        this.#clock.clearTimeout(timer);
        resolve();
      });
    });
  }

  #changed(change: Connection): void {
    this.#connection = change;
    for (const listener of [...this.#listeners])
      apart(() => {
        listener(change);
      });
  }

  #ready({ epoch, offset }: ReadyFrame): void {
    this.#epoch = epoch;
    this.#skipping = false;
    this.#inbox.begin({ epoch, offset });
    this.#acks.connected(epoch);
    this.#positions.ready();
    this.#subscriptions.ready(epoch);
    this.#requests.repeat("subscribe", "unsubscribe");
    this.#requests.repeat("publish");
    this.#renewLater();
  }

  #frame(frame: ServerFrame): void {
    switch (frame.kind) {
      case "event":
      case "gap":
        if (this.#skipping || this.#closing || this.#epoch === undefined) break;
        if (this.#full(INBOX_SLACK)) {
          this.#skipping = true;
          break;
        }
        this.#inbox.put(frame, this.#epoch);
        if (this.#full(1) && this.#requests.waiting === 0) this.#link.hold();
        break;
      case "ok":
        for (const warning of frame.warnings ?? []) this.#warned(warning);
        this.#requests.answered(frame.ref, undefined);
        break;
      case "problem": {
        const problem = frameProblem(frame.problem);
        if (!this.#requests.answered(frame.ref, problem)) this.#unasked(problem);
        break;
      }
      default:
        break; // `pong`, and what a newer broker may send.
    }
  }

  #full(times: number): boolean {
    return this.#inbox.waiting >= (this.#options.inbox ?? 1000) * times;
  }

  /** The application has taken a message. */
  #readOn(): void {
    if (this.#full(0.5)) return;
    this.#link.release();
    if (this.#skipping) this.#link.renew("the application did not keep up");
  }

  #lost(end: SocketEnd): void {
    this.#clock.clearTimeout(this.#renewal);
    this.#skipping = false;
    if (end.code === 1009) this.#requests.failLongest(new ConnectionError(end.reason, { code: end.code }));
    this.#requests.lost();
  }

  #end(error: Error | undefined): void {
    const reason = error ?? new Closed("closed");
    this.#acks.end();
    this.#subscriptions.stop();
    this.#requests.failAll(reason);
    this.#positions.end(reason);
    this.#inbox.end(error);
  }

  /** Tells what was refused without anybody waiting for the answer. */
  #unasked(error: Error): void {
    if (!(error instanceof ProblemError)) return;
    const { onProblem } = this.#options;
    if (onProblem === undefined) this.#warn(error);
    else
      apart(() => {
        onProblem(error);
      });
  }

  /** Tells what the broker warns of. Without a listener only what it says of events: an area may well be made before the client is anywhere. */
  #warned(warning: RequestWarning): void {
    const { onWarning } = this.#options;
    const { pointer, detail } = warning;
    if (onWarning !== undefined)
      apart(() => {
        onWarning(warning);
      });
    else if (pointer.startsWith("/event") && !this.#noted.has(pointer) && this.#noted.size < NOTED) {
      this.#noted.add(pointer);
      console.warn(`nearcast: the broker warns of ${pointer}: ${detail}; the option onWarning is told of each`);
    }
  }

  /** Once for each kind of problem, and without its details, which may tell a position. */
  #warn({ code, errors }: ProblemError): void {
    // The close that follows a token's end says so, too.
    if (code === "token-expired" || this.#noted.has(code)) return;
    this.#noted.add(code);
    const places = errors.map(({ pointer }) => pointer).join(", ");
    const at = places === "" ? "" : ` at ${places}`;
    console.warn(`nearcast: the broker refused what nobody waits for: ${code}${at}; the option onProblem is told of each`);
  }

  /** Has the connection go on by another token before its own ends. */
  #renewLater(): void {
    const wait_ms = this.#tokens.renewal();
    if (wait_ms === undefined) return;
    this.#renewal = this.#clock.setTimeout(
      () => {
        if (wait_ms > TIMER_MAX_MS) this.#renewLater();
        else void this.#renew();
      },
      Math.min(Math.max(wait_ms, 1000), TIMER_MAX_MS),
    );
  }

  async #renew(): Promise<void> {
    try {
      const token = await this.#tokens.fresh();
      if (token === undefined || !this.#link.ready) return;
      this.#requests.ask(
        { op: "auth", token },
        {
          ok: () => {
            this.#renewLater();
          },
          // The connection ends with its token, and the next one asks for another.
          failed: (error) => {
            this.#unasked(error);
          },
          lost: () => undefined,
        },
      );
    } catch {
      this.#renewLater(); // The provider has none now; half of what is left from now it is asked again.
    }
  }
}
