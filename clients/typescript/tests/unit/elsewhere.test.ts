// Brokers that name another one as that of the client, and platforms that hide what they say.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { WebSocket as NodeSocket } from "ws";

import { connect, type Connection, type ConnectOptions, type Session } from "nearcast";
import { connect as connectInBrowser } from "../../src/browser.js";
import { Addresses } from "../../src/addresses.js";
import { Http } from "../../src/http.js";
import { Tokens } from "../../src/tokens.js";
import { FakeClock } from "../support/clock.js";
import { ScriptedServer } from "../support/scripted.js";
import { within } from "../support/wait.js";

const ELSEWHERE = { type: "urn:nearcast:problem:elsewhere", title: "another broker serves the client", status: 307 };

/** A broker that serves no client and names another one. */
class Door {
  readonly #server: Server;
  readonly asked: { readonly line: string; readonly token: string | undefined }[] = [];
  /** The address that it names; none yet. */
  other = "";

  private constructor() {
    this.#server = createServer((request, response) => {
      const path = this.#note(request);
      if (path.startsWith("/v1/cluster")) response.end(JSON.stringify({ members: [], client_url: this.other }));
      else response.writeHead(307, this.#headers(path)).end(JSON.stringify(ELSEWHERE));
    });
    this.#server.on("upgrade", (request: IncomingMessage, socket) => {
      const lines = Object.entries(this.#headers(this.#note(request))).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(`HTTP/1.1 307 No\r\nconnection: close\r\n${lines.join("")}\r\n${JSON.stringify(ELSEWHERE)}`);
    });
  }

  static async open(): Promise<Door> {
    const door = new Door();
    await new Promise<void>((resolve) => door.#server.listen(0, "127.0.0.1", resolve));
    return door;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #note({ url = "", method = "", headers }: IncomingMessage): string {
    const token = headers.authorization ?? headers["sec-websocket-protocol"];
    this.asked.push({ line: `${method} ${url}`, token });
    return url;
  }

  #headers(path: string): Record<string, string> {
    return { "content-type": "application/problem+json", location: this.other + path };
  }
}

/** Says as little as that of a browser about why it was not opened. */
class BrowserSocket extends NodeSocket {
  constructor(url: string, protocols: string[]) {
    super(url, protocols);
    this.on("error", () => undefined);
  }
}

let home: ScriptedServer;
let doors: Door[];
let sessions: Session[] = [];
beforeEach(async () => {
  vi.stubGlobal("WebSocket", BrowserSocket);
  home = await ScriptedServer.start();
  doors = await Promise.all(Array.from({ length: 4 }, () => Door.open()));
});
afterEach(async () => {
  await Promise.all(sessions.map((session) => session.close({ timeout_s: 0.01 })));
  sessions = [];
  for (const door of doors) door.close();
  await home.stop();
  vi.unstubAllGlobals();
});

describe("a session", () => {
  test.each([
    ["Node", connect],
    ["a browser, which hides the redirect", connectInBrowser],
  ])("in %s goes where its client is served, until that is away", async (platform, begin: typeof connect) => {
    const [door] = doors as [Door];
    door.other = home.url;
    const losses: Connection[] = [];
    const connecting = begin({
      url: door.url,
      client: "ann",
      token: "secret",
      backoff: { base_s: 0, cap_s: 0 },
      onConnection: (change) => {
        if (change.state === "lost") losses.push(change);
      },
    });
    const first = await home.upgrade();
    expect(first.token).toBe("secret");
    expect(first.url.search).toBe("");
    const peer = await first.accept();
    peer.ready();
    const session = await within(connecting, "the session");
    sessions.push(session);
    expect(losses).toEqual([]);
    const asked = ["GET /v1/clients/ann/ws", ...(platform === "Node" ? [] : ["GET /v1/cluster?client=ann"])];
    expect(door.asked.map(({ line }) => line)).toEqual(asked);
    expect(door.asked.every(({ token }) => token?.includes("secret"))).toBe(true);

    // The next connection goes there at once. Where it is refused, the list is asked again.
    peer.reset();
    const second = await home.upgrade();
    expect(second.url.search).toBe("?resume=e1%3A0");
    expect(door.asked.length).toBe(asked.length);
    second.refuse(503, {}, "");
    await home.accept();
    expect(door.asked.length).toBeGreaterThan(asked.length);
  });

  test("waits where a broker names one that cannot be reached, and then asks the next one", async () => {
    const [first, second] = doors as [Door, Door];
    // Nobody listens there.
    first.other = second.other = "http://127.0.0.1:1";
    const waits: number[] = [];
    const stop = new AbortController();
    const options: ConnectOptions = {
      url: [first.url, second.url],
      client: "ann",
      signal: stop.signal,
      backoff: { base_s: 0.001, cap_s: 0.001 },
      random: () => 1,
      onConnection: (change) => {
        if (change.state !== "lost") return;
        waits.push(change.retry_ms);
        if (waits.length === 4) stop.abort(change.error);
      },
    };
    await expect(connect(options)).rejects.toThrow("ECONNREFUSED");
    expect(waits).toEqual([1, 1, 1, 1]);
    expect(doors.map(({ asked }) => asked.length)).toEqual([2, 2, 0, 0]);
  });

  test("asks the list at once where the broker that it knows is gone", async () => {
    const [door] = doors as [Door];
    door.other = home.url;
    const waits: number[] = [];
    const connecting = connect({
      url: door.url,
      client: "ann",
      backoff: { base_s: 0.001, cap_s: 0.001 },
      random: () => 1,
      onConnection: (change) => {
        if (change.state === "lost") waits.push(change.retry_ms);
      },
    });
    const peer = await home.accept();
    sessions.push(await within(connecting, "the session"));
    peer.reset();
    (await home.upgrade()).refuse(503, {}, "");
    (await home.upgrade()).refuse(503, {}, "");
    await home.accept();
    // The connection that broke, the broker that was known, and the one that the list named.
    expect(waits).toEqual([1, 0, 1]);
  });

  test("is sent on three times and not more, and then waits", async () => {
    const [first, second, third, fourth] = doors as [Door, Door, Door, Door];
    for (const [door, next] of [
      [first, second],
      [second, third],
      [third, fourth],
      [fourth, home],
    ] as const)
      door.other = next.url;
    const waits: number[] = [];
    const stop = new AbortController();
    const options: ConnectOptions = {
      url: first.url,
      client: "ann",
      signal: stop.signal,
      backoff: { base_s: 60, cap_s: 60 },
      random: () => 1,
      onConnection: (change) => {
        if (change.state !== "lost") return;
        waits.push(change.retry_ms);
        stop.abort(change.error);
      },
    };
    await expect(connect(options)).rejects.toMatchObject({ code: "elsewhere" });
    expect(waits).toEqual([60_000]);
    expect(doors.map(({ asked }) => asked.length)).toEqual([1, 1, 1, 1]);
    expect(home.upgradesWaiting).toBe(0);
  });
});

describe("a call", () => {
  const http = (url: string, fetch: typeof globalThis.fetch = globalThis.fetch): Http => {
    const clock = new FakeClock();
    return new Http(new Addresses(url), new Tokens("secret", clock), { fetch, clock, timeout_s: 30 });
  };

  test("is sent on with its token, and not for ever", async () => {
    const [first, second] = doors as [Door, Door];
    first.other = second.url;
    second.other = first.url;
    const calls = http(first.url);
    await expect(calls.call("PUT", "/v1/clients/ann/position?a=1", { body: "{}" })).rejects.toMatchObject({ code: "elsewhere" });
    const asked = { line: "PUT /v1/clients/ann/position?a=1", token: "Bearer secret" };
    expect([first.asked, second.asked]).toEqual([
      [asked, asked],
      [asked, asked],
    ]);
    expect(calls.addresses.home("ann")).toBeUndefined();
  });

  test("whose redirect is hidden asks the broker, also where the body names the client", async () => {
    const asked: string[] = [];
    const fetch = (url: unknown, request: RequestInit = {}): Promise<Response> => {
      asked.push(`${request.method ?? "GET"} ${String(url)}`);
      expect(request.redirect).toBe("manual");
      if (String(url).startsWith("http://b")) return Promise.resolve(Response.json([]));
      if (String(url).includes("/v1/cluster")) return Promise.resolve(Response.json({ members: [], client_url: "http://b/" }));
      return Promise.resolve(Object.defineProperty(new Response(null), "type", { value: "opaqueredirect" }));
    };
    const calls = http("http://a", fetch);
    await calls.call("POST", "/v1/explain", { body: "{}", client: "a/b" });
    expect(asked).toEqual(["POST http://a/v1/explain", "GET http://a/v1/cluster?client=a%2Fb", "POST http://b/v1/explain"]);
    await calls.call("GET", "/v1/clients/a%2Fb/position");
    expect(asked.at(-1)).toBe("GET http://b/v1/clients/a%2Fb/position");
    expect(asked.length).toBe(4);
  });
});

test("a broker that is named is taken where it is one, and a token does not leave TLS", () => {
  const learned = (from: string, url: string): string | undefined => new Addresses(from).learn(from, "ann", url);
  expect(learned("http://a", "https://b/at/")).toBe("https://b/at");
  expect(learned("https://a", "https://b")).toBe("https://b");
  expect(learned("https://a", "http://b")).toBeUndefined();
  for (const url of ["", "/v1", "ftp://b", "javascript:alert(1)", "http://b?a=b"]) expect(learned("http://a", url)).toBeUndefined();
  const addresses = new Addresses("http://a");
  for (let client = 0; client <= 1000; client++) addresses.learn("http://a", String(client), "http://b");
  expect([addresses.of("0"), addresses.of("1000")]).toEqual(["http://a", "http://b"]);
});
