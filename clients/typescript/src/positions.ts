// Positions of the client, present and past, which are sent again on each connection.

import type { Clock } from "./clock.js";
import { QueueFull } from "./errors.js";
import { Recorder } from "./follow.js";
import { writeFrame, type ClientFrame, type TrackPoint } from "./frames.js";
import type { Outcome, Requests } from "./requests.js";

/** The frame of where a client is. */
export type PositionFrame = Extract<ClientFrame, { op: "move"; coordinates: unknown }>;
/** The frame of where a client was. */
export type TrackFrame = Extract<ClientFrame, { op: "move"; track: unknown }>;

/** The connection. */
export interface Wire {
  readonly ready: boolean;
  /** Bytes that wait to be sent. */
  readonly buffered: number;
  send(text: string): boolean;
}

export interface PositionsOptions {
  /** How many may wait until their position or their track is in force. */
  readonly limit: number;
  /** Points of what is recorded without a connection. */
  readonly trackPoints: number;
  /** Called for a track that was recorded and is refused. */
  readonly refused: (error: Error) => void;
}

/** Bytes to send from which on a connection gets no position for now; then it is the newest one. */
const CONGESTED_BYTES = 1 << 18;
const CONGESTED_MS = 100;

export class Positions {
  readonly #requests: Requests;
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #options: PositionsOptions;
  /** The one that was sent last, the end of a track included. */
  #position: PositionFrame | undefined;
  /** Whether it is the end of the last of the tracks that were not answered. */
  #tracked = false;
  /** Callers that wait until the position is in force, on the next connection. */
  #waiting: Outcome[] = [];
  /** Tracks that go out on the next connection. */
  #tracks: { readonly frame: TrackFrame; readonly outcome: Outcome }[] = [];
  /** Where a follower goes without a connection, from the position on that it sent before. */
  readonly #recorded: Recorder;
  #followed: TrackPoint | undefined;
  #congestion: unknown;

  constructor(requests: Requests, wire: Wire, clock: Clock, options: PositionsOptions) {
    this.#requests = requests;
    this.#wire = wire;
    this.#clock = clock;
    this.#options = options;
    this.#recorded = new Recorder(Math.max(3, options.trackPoints));
  }

  /** The client is here: sent now or on the next connection, where the newest position wins. */
  move(position: PositionFrame): void {
    this.#position = position;
    this.#tracked = false;
    if (this.#congestion === undefined) this.#tell();
  }

  /** The client is here; resolves when this position, or a newer one, is in force. */
  confirmed(position: PositionFrame): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= this.#options.limit) throw new QueueFull(this.#options.limit);
      this.#position = position;
      this.#tracked = false;
      this.#waiting.push({ ok: resolve, failed: reject });
      if (this.#wire.ready) this.#confirm(position, true);
    });
  }

  /** The client went along this track. Resolves when that is in force. */
  track(track: TrackFrame): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#tracks.length >= this.#options.limit) throw new QueueFull(this.#options.limit);
      this.#went(track, { ok: resolve, failed: reject });
    });
  }

  /** A follower is here. Without a connection that is recorded, and sent as a track on the next one. */
  followed(position: PositionFrame, unix_s: number): void {
    const point: TrackPoint = [position.coordinates[0], position.coordinates[1], unix_s];
    if (this.#wire.ready) {
      this.move(position);
    } else {
      if (this.#recorded.length === 0 && this.#followed !== undefined) this.#recorded.add(this.#followed);
      this.#recorded.add(point);
      this.#position = position;
      this.#tracked = true;
    }
    this.#followed = point;
  }

  /** A connection is there. Tracks go first, in their order, and then the position, unless a track ends there. */
  ready(): void {
    const tracks = this.#tracks.splice(0);
    for (const { frame, outcome } of tracks) this.#ask(frame, outcome, false);
    if (this.#recorded.length > 0) this.#tellRecorded();
    else if (tracks.length === 0) this.#tracked = false;
    const position = this.#position;
    if (position === undefined) return;
    if (this.#waiting.length > 0) this.#confirm(position, false);
    else if (!this.#tracked) this.#tell();
  }

  /** Nothing will be in force any more. */
  end(error: Error): void {
    this.#clock.clearTimeout(this.#congestion);
    const waiting = [...this.#waiting.splice(0), ...this.#tracks.splice(0).map(({ outcome }) => outcome)];
    for (const outcome of waiting) outcome.failed(error, false);
  }

  #tell(): void {
    if (this.#position === undefined || !this.#wire.ready) return;
    if (this.#wire.buffered < CONGESTED_BYTES) {
      this.#wire.send(writeFrame(this.#position));
      return;
    }
    this.#congestion = this.#clock.setTimeout(() => {
      this.#congestion = undefined;
      this.#tell();
    }, CONGESTED_MS);
  }

  /** Sends the position so that it is answered, to all callers that wait for that. */
  #confirm(position: PositionFrame, bounded: boolean): void {
    const waiting = this.#waiting.splice(0);
    const together: Outcome = {
      ok: () => {
        for (const outcome of waiting) outcome.ok();
      },
      failed: (error, resent) => {
        for (const outcome of waiting) outcome.failed(error, resent);
      },
      lost: () => {
        this.#waiting.unshift(...waiting);
      },
    };
    this.#requests.ask(position, together, bounded);
  }

  #went(track: TrackFrame, outcome: Outcome): void {
    const { track: points, ...position } = track;
    const end = points.at(-1);
    if (end !== undefined) {
      this.#position = { ...position, coordinates: [end[0], end[1]] };
      this.#tracked = true;
    }
    if (this.#wire.ready) this.#ask(track, outcome, true);
    else this.#tracks.push({ frame: track, outcome });
  }

  #ask(frame: TrackFrame, outcome: Outcome, bounded: boolean): void {
    this.#requests.ask(frame, { ...outcome, lost: () => this.#tracks.push({ frame, outcome }) }, bounded);
  }

  #tellRecorded(): void {
    const track = this.#recorded.take();
    const accuracy_m = this.#tracked ? this.#position?.accuracy_m : undefined;
    this.#requests.ask(
      { op: "move", track, ...(accuracy_m !== undefined && { accuracy_m }) },
      {
        ok: () => undefined,
        failed: (error) => {
          // Where the client went is not known then, but where it is.
          this.#tell();
          this.#options.refused(error);
        },
        lost: () => {
          this.#recorded.restore(track);
        },
      },
    );
  }
}
