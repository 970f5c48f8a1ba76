// nearcast in browsers and React Native, with what is there: WebSocket and fetch.

import { connectOn, type ConnectOptions } from "./connect.js";
import type { Properties } from "./events.js";
import type { Session } from "./session.js";
import { openWebSocket } from "./socket.js";

export * from "./index.js";

/** Connects to the broker. Resolves with the first `ready`; fails where the broker refuses, or after `connectTimeout_s`. */
export function connect<P = Properties>(options: ConnectOptions): Promise<Session<P>> {
  return connectOn<P>({ openSocket: openWebSocket }, options);
}
