// What a session needs of a WebSocket, and the one that browsers, React Native and Node from 22 on have.

import type { ProblemError } from "./errors.js";

/** How a socket ended. */
export interface SocketEnd {
  /** The code of the close; 1006 where there was none. */
  readonly code: number;
  readonly reason: string;
  /** Why the upgrade was refused, where the platform lets one see that. */
  readonly refused?: ProblemError;
  /** The connection was never there, and the platform does not say why. */
  readonly hidden?: boolean;
}

/** What a socket tells. `end` comes once, and nothing after it. */
export interface SocketHandlers {
  message(text: string): void;
  end(end: SocketEnd): void;
}

export interface Socket {
  send(text: string): void;
  close(code: number, reason: string): void;
  /** Ends it without waiting for the other side; `end` is called before this returns. */
  drop(reason: string): void;
  /** Bytes that wait to be sent. */
  readonly bufferedAmount: number;
  /** Stops reading, so that the broker feels it; absent where the platform cannot. What was read already may still come. */
  readonly pause?: () => void;
  readonly resume?: () => void;
}

/** What the SDK takes from where it runs. */
export interface Platform {
  /** Called before the first socket is opened. */
  prepare?(): Promise<void>;
  openSocket(url: string, protocols: readonly string[], handlers: SocketHandlers): Socket;
}

/** Opens the platform's own WebSocket. */
export function openWebSocket(url: string, protocols: readonly string[], handlers: SocketHandlers): Socket {
  const socket = new WebSocket(url, [...protocols]);
  let opened = false;
  let ended = false;
  const end = (code: number, reason: string): void => {
    if (ended) return;
    ended = true;
    handlers.end({ code, reason, hidden: !opened });
  };
  socket.onopen = () => {
    opened = true;
  };
  socket.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (!ended && typeof data === "string") handlers.message(data);
  };
  socket.onclose = ({ code, reason }) => {
    end(code, reason);
  };
  return {
    send: (text) => {
      socket.send(text);
    },
    close: (code, reason) => {
      socket.close(code, reason);
    },
    drop: (reason) => {
      end(1006, reason);
      socket.close();
    },
    get bufferedAmount() {
      return socket.bufferedAmount;
    },
  };
}
