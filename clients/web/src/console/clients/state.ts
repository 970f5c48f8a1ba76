// What the broker shows of a client, and what that means.

import { count, span } from "../words.js";

/** A client as `GET /v1/clients` shows it. */
export interface ClientShown {
  readonly client: string;
  readonly tenant?: string;
  readonly connections: number;
  readonly subscriptions: number;
  readonly durable: boolean;
  readonly behind: number;
  readonly waiting_frames: number;
  readonly kept_matches: number;
  readonly silence_ms?: number;
  readonly position?: readonly number[];
}

/** A connection that was heard of since then is not called silent: the broker pings more often. */
const SILENT_MS = 30_000;

/** What a client is at, in a word with its reason. */
export function stateOf({ client, connections, behind, waiting_frames, kept_matches, silence_ms }: ClientShown): {
  readonly word: "connected" | "slow" | "away" | "not connected";
  readonly why: string;
} {
  if (connections === 0) {
    return kept_matches > 0
      ? { word: "away", why: `${count(kept_matches)} kept for it` }
      : { word: "not connected", why: "nobody reads for it" };
  }
  if (behind > 0 || waiting_frames > 0) return { word: "slow", why: `${count(Math.max(behind, waiting_frames))} wait` };
  return {
    word: "connected",
    // The broker's own clients have no connection that could be silent.
    why: silence_ms === undefined || silence_ms < SILENT_MS || client.startsWith("~") ? "" : `silent for ${span(silence_ms / 1000)}`,
  };
}

/** How many clients did not keep up at two looks in a row: what waits at one look is about to be written. The broker's own clients tell that elsewhere. */
export function slowOf(clients: readonly ClientShown[], before: readonly ClientShown[]): number {
  const isSlow = (each: ClientShown): boolean => !each.client.startsWith("~") && stateOf(each).word === "slow";
  const wereSlow = new Set(before.filter(isSlow).map(({ client }) => client));
  return clients.filter((each) => isSlow(each) && wereSlow.has(each.client)).length;
}
