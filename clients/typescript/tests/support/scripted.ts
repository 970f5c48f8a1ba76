// A WebSocket server on loopback that does what a test says.

import { createServer, type IncomingMessage, type Server } from "node:http";
import { Socket, type AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";

import { Inbox } from "./wait.js";

export type Json = Record<string, unknown>;

/** Somebody who wants a WebSocket, and waits. */
export interface Upgrade {
  readonly url: URL;
  readonly token: string | undefined;
  accept(): Promise<Peer>;
  refuse(status: number, headers: Record<string, string>, body: string): void;
}

/** The server's side of a WebSocket. */
export class Peer {
  readonly #socket: WebSocket;
  readonly #raw: Socket;
  readonly #frames = new Inbox<Json>();
  readonly closed: Promise<number>;

  constructor(socket: WebSocket, raw: Socket) {
    this.#socket = socket;
    this.#raw = raw;
    socket.on("message", (data) => {
      const frame = JSON.parse((data as Buffer).toString()) as Json;
      if (frame["op"] === "ping") this.send({ op: "pong" });
      else this.#frames.put(frame);
    });
    socket.on("error", () => undefined);
    this.closed = new Promise((resolve) => socket.on("close", resolve));
  }

  send(frame: object): void {
    this.#socket.send(JSON.stringify(frame));
  }

  ready(members: Json = {}): void {
    this.send({ op: "ready", client: "ann", epoch: "e1", offset: 0, ...members });
  }

  /** The offset of the last event. */
  offset = 0;

  event(offset: number, members: Json = {}): void {
    this.offset = offset;
    const geometry = { type: "Point", coordinates: [9.19, 45.46] };
    const event = { type: "Feature", id: `e${offset}`, geometry, properties: {}, time: "2026-03-01T07:30:00Z" };
    this.send({ op: "event", offset, subscriptions: ["s1"], cause: "published", event, ...members });
  }

  sendText(text: string): void {
    this.#socket.send(text);
  }

  /** Whether the other side does not read: much waits to be sent. */
  get stalled(): boolean {
    return this.#socket.bufferedAmount > 1 << 20;
  }

  receive(): Promise<Json> {
    return this.#frames.take("a frame of the client's");
  }

  /** Frames that came and were not taken. */
  get waiting(): number {
    return this.#frames.length;
  }

  reset(): void {
    this.#raw.resetAndDestroy();
  }

  close(code: number, reason = ""): void {
    this.#socket.close(code, reason);
  }
}

export class ScriptedServer {
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "nearcast" });
  readonly #upgrades = new Inbox<Upgrade>();
  readonly #connections = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", (connection) => this.#connections.add(connection));
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (!(socket instanceof Socket)) throw new Error("no TCP connection");
      socket.on("error", () => undefined);
      this.#upgrades.put(this.#upgrade(request, socket, head));
    });
  }

  static async start(): Promise<ScriptedServer> {
    // Other requests it does not carry out.
    const server = createServer((_, answer) => answer.writeHead(503).end());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new ScriptedServer(server);
  }

  get url(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** The next one who wants a WebSocket. */
  upgrade(): Promise<Upgrade> {
    return this.#upgrades.take("an upgrade");
  }

  /** Takes the next one, and says that it is ready. */
  async accept(ready: Json = {}): Promise<Peer> {
    const peer = await (await this.upgrade()).accept();
    peer.ready(ready);
    return peer;
  }

  get upgradesWaiting(): number {
    return this.#upgrades.length;
  }

  async stop(): Promise<void> {
    for (const connection of this.#connections) connection.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Upgrade {
    const bearer = (request.headers["sec-websocket-protocol"] ?? "")
      .split(",")
      .map((protocol) => protocol.trim())
      .find((protocol) => protocol.startsWith("nearcast.bearer."));
    return {
      url: new URL(request.url ?? "/", this.url),
      token: bearer?.slice("nearcast.bearer.".length),
      accept: () =>
        new Promise((resolve) => {
          this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
            resolve(new Peer(webSocket, socket));
          });
        }),
      refuse: (status, headers, body) => {
        const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
        const length = `content-length: ${Buffer.byteLength(body)}\r\n`;
        socket.end(`HTTP/1.1 ${status} No\r\nconnection: close\r\n${length}${lines.join("")}\r\n${body}`);
      },
    };
  }
}
