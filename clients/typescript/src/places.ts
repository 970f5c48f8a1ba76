// Where the client is, and was: told again on each connection.

import type { Clock } from "./clock.js";
import { QueueFull } from "./errors.js";
import { Track } from "./follow.js";
import { writeFrame, type ClientFrame, type TrackPoint } from "./frames.js";
import type { Outcome, Requests } from "./requests.js";

/** Where a client is. */
export type Place = Extract<ClientFrame, { op: "move"; coordinates: unknown }>;
/** Where it was. */
export type Way = Extract<ClientFrame, { op: "move"; track: unknown }>;

/** The connection. */
export interface Wire {
  readonly ready: boolean;
  /** Bytes that wait to be sent. */
  readonly buffered: number;
  send(text: string): boolean;
}

export interface PlacesOptions {
  /** How many may wait until their place or their track is in force. */
  readonly limit: number;
  /** Points of what is recorded without a connection. */
  readonly trackPoints: number;
  /** Told of a track that was recorded and is refused. */
  readonly refused: (error: Error) => void;
}

/** Over a connection that has so many bytes to send no place is told for now; then it is the newest one. */
const CONGESTED_BYTES = 1 << 18;
const CONGESTED_MS = 100;

export class Places {
  readonly #requests: Requests;
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #options: PlacesOptions;
  /** The one that was told last, the end of a track included. */
  #place: Place | undefined;
  /** Whether it is the end of the last of the tracks that were not answered. */
  #tracked = false;
  /** Who waits until the place is in force, on the next connection. */
  #waiting: Outcome[] = [];
  /** Tracks that go out on the next connection. */
  #ways: { readonly frame: Way; readonly outcome: Outcome }[] = [];
  /** Where a follower goes without a connection, from the place on that it told before. */
  readonly #recorded: Track;
  #followed: TrackPoint | undefined;
  #congestion: unknown;

  constructor(requests: Requests, wire: Wire, clock: Clock, options: PlacesOptions) {
    this.#requests = requests;
    this.#wire = wire;
    this.#clock = clock;
    this.#options = options;
    this.#recorded = new Track(Math.max(3, options.trackPoints));
  }

  /** The client is here: told now or on the next connection, where the newest place wins. */
  move(place: Place): void {
    this.#place = place;
    this.#tracked = false;
    if (this.#congestion === undefined) this.#tell();
  }

  /** The same; resolves when this place, or a newer one, is in force. */
  confirmed(place: Place): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= this.#options.limit) throw new QueueFull(this.#options.limit);
      this.#place = place;
      this.#tracked = false;
      this.#waiting.push({ ok: resolve, failed: reject });
      if (this.#wire.ready) this.#confirm(place, true);
    });
  }

  /** The client went this way. Resolves when that is in force. */
  track(way: Way): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#ways.length >= this.#options.limit) throw new QueueFull(this.#options.limit);
      this.#went(way, { ok: resolve, failed: reject });
    });
  }

  /** A follower is here. Without a connection that is recorded, and told as a track on the next one. */
  followed(place: Place, unix_s: number): void {
    const point: TrackPoint = [place.coordinates[0], place.coordinates[1], unix_s];
    if (this.#wire.ready) {
      this.move(place);
    } else {
      if (this.#recorded.length === 0 && this.#followed !== undefined) this.#recorded.add(this.#followed);
      this.#recorded.add(point);
      this.#place = place;
      this.#tracked = true;
    }
    this.#followed = point;
  }

  /** A connection is there. Tracks go first, in their order, and then the place, unless a track ends there. */
  ready(): void {
    const ways = this.#ways.splice(0);
    for (const { frame, outcome } of ways) this.#ask(frame, outcome, false);
    if (this.#recorded.length > 0) this.#tellRecorded();
    else if (ways.length === 0) this.#tracked = false;
    const place = this.#place;
    if (place === undefined) return;
    if (this.#waiting.length > 0) this.#confirm(place, false);
    else if (!this.#tracked) this.#tell();
  }

  /** Nothing will be in force any more. */
  end(error: Error): void {
    this.#clock.clearTimeout(this.#congestion);
    const waiting = [...this.#waiting.splice(0), ...this.#ways.splice(0).map(({ outcome }) => outcome)];
    for (const outcome of waiting) outcome.failed(error, false);
  }

  #tell(): void {
    if (this.#place === undefined || !this.#wire.ready) return;
    if (this.#wire.buffered < CONGESTED_BYTES) {
      this.#wire.send(writeFrame(this.#place));
      return;
    }
    this.#congestion = this.#clock.setTimeout(() => {
      this.#congestion = undefined;
      this.#tell();
    }, CONGESTED_MS);
  }

  /** Tells the place so that it is answered, to all who wait for that. */
  #confirm(place: Place, bounded: boolean): void {
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
    this.#requests.ask(place, together, bounded);
  }

  #went(way: Way, outcome: Outcome): void {
    const { track, ...position } = way;
    const end = track.at(-1);
    if (end !== undefined) {
      this.#place = { ...position, coordinates: [end[0], end[1]] };
      this.#tracked = true;
    }
    if (this.#wire.ready) this.#ask(way, outcome, true);
    else this.#ways.push({ frame: way, outcome });
  }

  #ask(frame: Way, outcome: Outcome, bounded: boolean): void {
    this.#requests.ask(frame, { ...outcome, lost: () => this.#ways.push({ frame, outcome }) }, bounded);
  }

  #tellRecorded(): void {
    const track = this.#recorded.take();
    const accuracy_m = this.#tracked ? this.#place?.accuracy_m : undefined;
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
