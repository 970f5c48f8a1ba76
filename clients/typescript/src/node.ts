// nearcast in Node. Sockets are those of the package `ws`: they can stop reading, and say why an upgrade was refused. Without it Node's
// own are taken (from Node 22 on), which can do neither.

import type { IncomingMessage } from "node:http";
import type { WebSocket as WsSocket } from "ws";

import { ConnectionError } from "./errors.js";
import { connectOn, type ConnectOptions } from "./connect.js";
import { readProblem } from "./problems.js";
import type { Properties } from "./events.js";
import type { Session } from "./session.js";
import { openWebSocket, type Platform, type Socket, type SocketEnd, type SocketHandlers } from "./socket.js";

export * from "./index.js";
export { checkpointFile } from "./checkpoint-file.js";

/** Of the body of a refused upgrade no more is read. */
const REFUSAL_BYTES = 65_536;

type WsConstructor = new (url: string, protocols: string[], options: object) => WsSocket;
let ws: WsConstructor | undefined;

const platform: Platform = {
  async prepare() {
    try {
      ws ??= (await import("ws")).WebSocket as WsConstructor;
    } catch (cause) {
      if (!("WebSocket" in globalThis)) {
        throw new ConnectionError("there is no WebSocket: install the package ws, or take Node 22 or later", { cause });
      }
    }
  },
  openSocket(url, protocols, handlers) {
    return ws === undefined ? openWebSocket(url, protocols, handlers) : openWs(ws, url, protocols, handlers);
  },
};

/** Connects to the broker. Resolves with the first `ready`; fails where the broker refuses, or after `connectTimeout_s`. */
export function connect<P = Properties>(options: ConnectOptions): Promise<Session<P>> {
  return connectOn<P>(platform, options);
}

function openWs(constructor: WsConstructor, url: string, protocols: readonly string[], handlers: SocketHandlers): Socket {
  const socket = new constructor(url, [...protocols], { perMessageDeflate: false });
  let ended = false;
  let reason = "";
  const end = (last: SocketEnd): void => {
    if (ended) return;
    ended = true;
    handlers.end(last);
  };
  socket.on("message", (data, isBinary) => {
    // With the default `binaryType` a message is one Buffer.
    if (!ended && !isBinary) handlers.message((data as Buffer).toString());
  });
  socket.on("unexpected-response", (_request, response: IncomingMessage) => {
    refusal(response).then(
      (refused) => {
        end({ code: 1006, reason: refused.message, refused });
        socket.terminate();
      },
      () => {
        socket.terminate();
      },
    );
  });
  socket.on("error", (error) => {
    reason = error.message;
  });
  socket.on("close", (code, text) => {
    end({ code, reason: text.toString() || reason });
  });
  return {
    send: (text) => {
      socket.send(text);
    },
    close: (code, text) => {
      socket.close(code, text);
    },
    drop: (text) => {
      end({ code: 1006, reason: text });
      socket.terminate();
    },
    get bufferedAmount() {
      return socket.bufferedAmount;
    },
    pause: () => {
      socket.pause();
    },
    resume: () => {
      socket.resume();
    },
  };
}

async function refusal(response: IncomingMessage) {
  let body = "";
  response.setEncoding("utf8");
  for await (const chunk of response) {
    body += String(chunk);
    if (body.length > REFUSAL_BYTES) break;
  }
  const header = (name: string): string | undefined => {
    const value = response.headers[name];
    return Array.isArray(value) ? value[0] : value;
  };
  return readProblem({ status: response.statusCode ?? 0, header }, body);
}
