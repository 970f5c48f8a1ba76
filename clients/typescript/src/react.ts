// Hooks for React: a session for as long as a component is there.

import { useEffect, useRef, useState } from "react";

import { connect } from "./browser.js";
import type { ConnectOptions } from "./connect.js";
import type { Properties } from "./events.js";
import type { Subscription } from "./frames.js";
import type { Connection } from "./link.js";
import type { Message } from "./messages.js";
import type { Session } from "./session.js";

/** What a component has of its session. */
export interface UsedSession<P = Properties> {
  /** The session, once it is connected and until the component goes. */
  readonly session: Session<P> | undefined;
  /** What its connection is at. */
  readonly connection: Connection;
}

const CONNECTING: UsedSession<never> = { session: undefined, connection: { state: "connecting" } };

/**
 * Connects when the component comes, and closes when it goes. Another `url` or `client` is another session; of the other options those of the
 * moment count at which it connects. A broker that refuses, or is not there in time, is a `connection` that is closed with an error.
 */
export function useSession<P = Properties>(options: ConnectOptions): UsedSession<P> {
  const [used, setUsed] = useState<UsedSession<P>>(CONNECTING);
  const latest = useRef(options);
  latest.current = options;
  const { client } = options;
  const url = String(options.url);
  useEffect(() => {
    const stop = new AbortController();
    let session: Session<P> | undefined;
    let connection: Connection = CONNECTING.connection;
    const tell = (change: Connection): void => {
      connection = change;
      if (!stop.signal.aborted) setUsed({ session, connection });
      latest.current.onConnection?.(change);
    };
    setUsed(CONNECTING);
    connect<P>({ ...latest.current, onConnection: tell, signal: stop.signal }).then(
      (connected) => {
        session = connected;
        if (!stop.signal.aborted) setUsed({ session, connection });
      },
      (error: unknown) => {
        if (!stop.signal.aborted) setUsed({ session, connection: { state: "closed", error: error as Error } });
      },
    );
    return () => {
      stop.abort(new Error("the component is gone"));
    };
  }, [url, client]);
  return used;
}

/** Gives each message of a session to a handler, one after the other; one that returns has acknowledged. The newest handler is called. */
export function useMessages<P = Properties>(session: Session<P> | undefined, handler: (message: Message<P>) => void | Promise<void>): void {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => {
    if (session === undefined) return undefined;
    let gone = false;
    const read = async (): Promise<void> => {
      for await (const message of session) {
        if (gone) break;
        await latest.current(message);
      }
    };
    read().catch((error: unknown) => {
      // What the broker ends is told by `connection`; what a handler throws is the application's to see.
      if (session.connection.state !== "closed") reportError(error);
    });
    return () => {
      gone = true;
    };
  }, [session]);
}

/** Subscribes for as long as the component is there, and again when the subscription changes. Returns why the broker refused it, if it did. */
export function useSubscription(
  session: Pick<Session, "subscribe" | "unsubscribe"> | undefined,
  id: string,
  subscription: Subscription,
): Error | undefined {
  const [error, setError] = useState<Error>();
  const text = JSON.stringify(subscription);
  useEffect(() => {
    if (session === undefined) return undefined;
    let gone = false;
    setError(undefined);
    session.subscribe(id, JSON.parse(text) as Subscription).catch((refused: unknown) => {
      if (!gone) setError(refused as Error);
    });
    return () => {
      gone = true;
      session.unsubscribe(id).catch(() => undefined); // It was refused, or the session is over, which ends it.
    };
  }, [session, id, text]);
  return error;
}
