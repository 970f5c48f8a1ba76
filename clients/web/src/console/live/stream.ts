// The session's deliveries over an event stream. A browser takes some 150 µs of processor time for each message of a WebSocket, and two for each of a
// stream, whose bytes come in large pieces: thousands of events a second can be read in no other way.

import type { Subscription } from "nearcast";

import { readProblem } from "../../../../typescript/src/problems.js";
import { openWebSocket, type Platform, type Socket, type SocketHandlers } from "../../../../typescript/src/socket.js";
import { call, HttpProblem } from "../../shared/http.js";
import { endLater, streamsBeside, sweep } from "./leftovers.js";

/** A browser has six connections to a broker without TLS, for all tabs together; as many of them may be streams. */
const STREAMS = 2;
/** The broker's close code for a token whose time is over, which a stream does not have. */
const TOKEN_ENDED = 4401;

/** A platform whose sockets are event streams where that is possible. `own`: whether nobody else has the client's name, so that it may be ended. */
export function platformOf(own: () => boolean): Platform {
  let last: EventStream | undefined;
  return {
    openSocket: (url, protocols, handlers) => {
      // A subscription that was made over HTTP outlives the stream: others of its client's name would go on receiving it.
      if (!own() || streamsBeside(clientOf(url).href) >= STREAMS) return openWebSocket(url, protocols, handlers);
      const stream = new EventStream(url, protocols, handlers);
      last?.follow(stream);
      return (last = stream);
    },
  };
}

/** The client's address, of that of its socket. */
function clientOf(url: string): URL {
  const socket = new URL(url.replace(/^ws/, "http"));
  return new URL(socket.pathname.replace(/\/ws$/, ""), socket);
}

/** A stream that looks like a WebSocket: requests go over HTTP, and their answers come as frames. */
export class EventStream implements Socket {
  readonly bufferedAmount = 0;
  readonly #handlers: SocketHandlers;
  readonly #client: URL;
  readonly #token: string | undefined;
  readonly #stop = new AbortController();
  #ended = false;
  #held: Promise<void> | undefined;
  #release = (): void => undefined;
  #tokenEnded = false;
  #ready = false;
  /** Ends the client. A stream that follows this one, for the connection was lost, takes it over. */
  #endClient: (() => void) | undefined;

  constructor(url: string, protocols: readonly string[], handlers: SocketHandlers) {
    this.#handlers = handlers;
    this.#client = clientOf(url);
    this.#token = protocols.find((protocol) => protocol.startsWith("nearcast.bearer."))?.slice("nearcast.bearer.".length);
    void this.#run(new URL(url).searchParams.get("resume"));
  }

  send(text: string): void {
    const frame = JSON.parse(text) as { op: string; ref?: number; id?: string } & Subscription;
    const { op, ref, id = "", ...subscription } = frame;
    const path = `${this.#client.href}/subscriptions/${encodeURIComponent(id)}`;
    if (op === "subscribe") void this.#ask(ref, path, { method: "PUT", body: subscription });
    else if (op === "unsubscribe") void this.#ask(ref, path, { method: "DELETE" });
  }

  close(code: number, reason: string): void {
    this.#end(code, reason);
    this.#endClient?.();
    this.#endClient = undefined;
  }

  /** Another stream of the same client comes after this one. */
  follow(stream: EventStream): void {
    stream.#endClient = this.#endClient;
  }

  drop(reason: string): void {
    this.#end(1006, reason);
  }

  pause(): void {
    this.#held ??= new Promise((resolve) => (this.#release = resolve));
  }

  resume(): void {
    this.#release();
    this.#held = undefined;
  }

  #end(code: number, reason: string, refused?: ReturnType<typeof readProblem>): void {
    if (this.#ended) return;
    this.#ended = true;
    this.resume();
    this.#stop.abort();
    this.#handlers.end({ code, reason, ...(refused === undefined ? {} : { refused }) });
  }

  /** What is sent is answered as over a WebSocket. */
  async #ask(ref: number | undefined, path: string, request: { method: string; body?: unknown }): Promise<void> {
    try {
      await call(path, this.#token, { ...request, signal: this.#stop.signal });
      this.#tell({ op: "ok", ref });
    } catch (error) {
      if (!(error instanceof HttpProblem)) this.#end(1006, "the broker cannot be reached");
      else
        this.#tell({
          op: "problem",
          ref,
          problem: { status: error.status, title: error.message, detail: error.message, errors: error.faults },
        });
    }
  }

  #tell(frame: object): void {
    if (!this.#ended) this.#handlers.message(JSON.stringify(frame));
  }

  async #run(resume: string | null): Promise<void> {
    try {
      const response = await fetch(`${this.#client.href}/events`, {
        headers: {
          ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
          ...(resume === null ? {} : { "last-event-id": resume }),
        },
        signal: this.#stop.signal,
      });
      if (!response.ok || response.body === null) {
        const problem = readProblem({ status: response.status, header: (name) => response.headers.get(name) }, await response.text());
        this.#end(1006, problem.message, problem);
        return;
      }
      if (this.#endClient === undefined) {
        void sweep(this.#token);
        this.#endClient = endLater(this.#client.href, this.#token);
      }
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        await this.#held;
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) this.#line(line);
      }
      this.#end(this.#tokenEnded ? TOKEN_ENDED : 1006, "");
    } catch {
      this.#end(1006, "");
    }
  }

  #line(line: string): void {
    if (this.#ended) return;
    if (line.startsWith('data: {"op"')) this.#handlers.message(line.slice(6));
    else if (line.startsWith("data: ")) this.#problem(line.slice(6));
    else if (line.startsWith(": nearcast ")) {
      const [, epoch, offset] = /^: nearcast (\S+):(\d+)/.exec(line) ?? [];
      this.#ready = true;
      this.#tell({ op: "ready", client: "", epoch, offset: Number(offset) });
    } else if (line.startsWith(":") && this.#ready) this.#tell({ op: "pong" });
    else if (line.startsWith("retry: ")) this.#tell({ op: "retry", retry_ms: Number(line.slice(7)) });
  }

  #problem(text: string): void {
    const problem = JSON.parse(text) as { type?: string };
    this.#tokenEnded ||= problem.type?.endsWith("token-expired") === true;
    this.#tell({ op: "problem", problem });
  }
}
