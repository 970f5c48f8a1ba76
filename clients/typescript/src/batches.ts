// Many elements over HTTP: as lines, in batches with one request under way, no faster than the broker takes them.

import { Backoff, isAway } from "./backoff.js";
import { Pause, type Clock, type Random } from "./clock.js";
import type { Coordinates } from "./areas.js";
import { BatchError, ConnectionError, ProblemError, Timeout } from "./errors.js";
import type { PositionOptions, RequestWarning, TrackPoint } from "./frames.js";
import type { Http } from "./http.js";
import { frameProblem } from "./problems.js";

/** An element that was not accepted. */
export interface Rejection {
  /** Which, counted from 0 over the whole input. */
  readonly index: number;
  readonly problem: ProblemError;
}

/** Something that is probably not meant so, in an element that was accepted: a misspelt member, for one. */
export interface Warning extends RequestWarning {
  /** Which element, counted from 0 over the whole input. */
  readonly index: number;
}

/** What became of many events. */
export interface PublishReport {
  readonly accepted: number;
  /** The first 1,000 of those that were not. */
  readonly rejected: readonly Rejection[];
  /** How many more were rejected than are listed. */
  readonly rejected_unlisted: number;
  /** The first 1,000 warnings of elements that were accepted; absent where there is none. */
  readonly warnings?: readonly Warning[];
  /** How many more there were than are listed; absent where there are none. */
  readonly warnings_unlisted?: number;
}

/** What became of many positions. */
export interface MoveReport extends Omit<PublishReport, "accepted"> {
  readonly moved: number;
}

/** Where some client is. */
export type NamedPosition = { readonly client: string } & PositionOptions &
  ({ readonly coordinates: Coordinates } | { readonly track: readonly TrackPoint[] });

/** How much is sent at a time. */
export interface BatchOptions {
  /** Elements of a request (500). One has no more than a megabyte, or a single element, besides. */
  readonly batch?: number;
  /** For how many seconds it is tried again when nothing at all gets through, since the broker is away or takes no more (60). */
  readonly patience_s?: number;
  /** Ends it between two requests, or within one. */
  readonly signal?: AbortSignal;
}

const BATCH = 500;
const BATCH_CHARS = 1 << 20;
const LISTED = 1000;

function number(member: unknown): number {
  return typeof member === "number" ? member : 0;
}

/** A batch that can be tried again: the broker is overloaded, starts, stops, does not answer, or cannot be reached. */
function passes(error: unknown): boolean {
  if (error instanceof ConnectionError || error instanceof Timeout) return true;
  return error instanceof ProblemError && [429, 502, 503, 504].includes(error.status);
}

/** What became of elements, as an answer tells it, or the problem of a batch that ended midway. */
type Tally = Readonly<Record<string, unknown>>;

/** Sends lines to a call of the broker's. */
export class Batcher {
  readonly #http: Http;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #path: string;
  /** How the call names what it has carried out. */
  readonly #count: "accepted" | "moved";
  readonly #options: BatchOptions;
  #accepted = 0;
  #rejected: Rejection[] = [];
  #unlisted = 0;
  #warnings: Warning[] = [];
  #warningsUnlisted = 0;
  /** Elements whose fate is known. */
  #done = 0;

  constructor(http: Http, clock: Clock, random: Random, path: string, count: "accepted" | "moved", options: BatchOptions) {
    this.#http = http;
    this.#clock = clock;
    this.#random = random;
    this.#path = path;
    this.#count = count;
    this.#options = options;
  }

  /** Sends what the source has; takes from it no further than it sends. */
  async send(lines: AsyncIterable<string>): Promise<PublishReport> {
    const bound = this.#options.batch ?? BATCH;
    let batch: string[] = [];
    let chars = 0;
    for await (const line of lines) {
      if (batch.length > 0 && chars + line.length > BATCH_CHARS) {
        await this.#deliver(batch);
        batch = [];
        chars = 0;
      }
      batch.push(line);
      chars += line.length + 1;
      if (batch.length >= bound) {
        await this.#deliver(batch);
        batch = [];
        chars = 0;
      }
    }
    if (batch.length > 0) await this.#deliver(batch);
    return this.#report();
  }

  /** One request after the other until each element of the batch was taken or refused. */
  async #deliver(batch: readonly string[]): Promise<void> {
    const backoff = new Backoff({}, this.#random);
    const pause = new Pause(this.#clock);
    const patience_ms = (this.#options.patience_s ?? 60) * 1000;
    let since_ms = this.#clock.now();
    let rest = batch;
    while (rest.length > 0) {
      try {
        await this.#request(rest);
        return;
      } catch (error) {
        if (error instanceof ProblemError) {
          const taken = this.#partly(error, rest.length);
          if (taken > 0) {
            since_ms = this.#clock.now();
            backoff.reset();
            rest = rest.slice(taken);
          }
        }
        if (!passes(error) || this.#clock.now() - since_ms >= patience_ms) throw new BatchError(this.#report(), this.#done, error);
        await pause.wait(backoff.next(isAway(error), error instanceof ProblemError ? error.retry_after_s : undefined));
      }
    }
  }

  /** Sends elements and takes down what became of them, of all unless it throws. */
  async #request(batch: readonly string[]): Promise<void> {
    const body = `${batch.join("\n")}\n`;
    const { signal } = this.#options;
    const answer = await this.#http.call("POST", this.#path, { body, contentType: "application/x-ndjson", signal });
    this.#take(answer as Tally);
    this.#done += batch.length;
  }

  /**
   * How many elements a batch that ended midway is through: the first ones. A broker that does not tell which of them were rejected is an older
   * one: where some were, as many come twice. Or it does not know which are on disk (`storage`): all come again.
   */
  #partly({ code, problem }: ProblemError, length: number): number {
    if (typeof problem[this.#count] !== "number" || (code === "storage" && !("rejected" in problem))) return 0;
    const through = Math.min(this.#take(problem), length);
    this.#done += through;
    return through;
  }

  /** Takes down what became of the next elements, and returns how many those are. */
  #take(tally: Tally): number {
    const accepted = number(tally[this.#count]);
    const rejected = Array.isArray(tally["rejected"]) ? (tally["rejected"] as readonly { index: number; problem: unknown }[]) : [];
    const unlisted = number(tally["rejected_unlisted"]);
    for (const { index, problem } of rejected) {
      if (this.#rejected.length < LISTED) this.#rejected.push({ index: this.#done + index, problem: frameProblem(problem) });
      else this.#unlisted += 1;
    }
    this.#warn(tally);
    this.#accepted += accepted;
    this.#unlisted += unlisted;
    return accepted + rejected.length + unlisted;
  }

  #warn(tally: Tally): void {
    const warnings = Array.isArray(tally["warnings"]) ? (tally["warnings"] as readonly Warning[]) : [];
    for (const { index, pointer, detail } of warnings) {
      if (this.#warnings.length < LISTED) this.#warnings.push({ index: this.#done + index, pointer, detail });
      else this.#warningsUnlisted += 1;
    }
    this.#warningsUnlisted += number(tally["warnings_unlisted"]);
  }

  #report(): PublishReport {
    return {
      accepted: this.#accepted,
      rejected: this.#rejected,
      rejected_unlisted: this.#unlisted,
      ...(this.#warnings.length > 0 && { warnings: this.#warnings }),
      ...(this.#warningsUnlisted > 0 && { warnings_unlisted: this.#warningsUnlisted }),
    };
  }
}
