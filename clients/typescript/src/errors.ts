// What can go wrong. Every error that the SDK throws is one of these.

import type { PublishReport } from "./batches.js";

/** What all errors of the SDK have in common. */
export class NearcastError extends Error {
  override name = "NearcastError";
}

function caused(cause: unknown): ErrorOptions {
  return cause === undefined ? {} : { cause };
}

/** One fault of a document. */
export interface Fault {
  /** Where, as a JSON pointer (RFC 6901); empty for the document itself. */
  readonly pointer: string;
  /** What is wrong there. */
  readonly detail: string;
}

/** Events that do not fit together: the ids of them, by variable of the check. */
export type Link = Readonly<Record<string, string>>;

/** A problem document (RFC 9457) as the broker writes it. A problem may have further members, such as `line` and `column`. */
export interface Problem {
  /** `urn:nearcast:problem:` and the code. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  readonly errors?: readonly Fault[];
  /** The bound that was passed, and the setting that it is. */
  readonly limit?: number;
  readonly setting?: string;
  /** Of the code `inconsistent`: with which events the refused one does not fit. */
  readonly links?: readonly Link[];
  /** Of the same code: the name of the check that refused it. */
  readonly check?: string;
  readonly [member: string]: unknown;
}

const PREFIX = "urn:nearcast:problem:";

/** The broker has refused a request. Programs decide by `code`. */
export class ProblemError extends NearcastError {
  override name = "ProblemError";
  /** The document as it came, further members included. */
  readonly problem: Problem;
  readonly type: string;
  /** What follows `urn:nearcast:problem:` in the type; the whole type where it does not begin so. */
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly detail: string | undefined;
  /** The faults of a document, each where it is; empty where the problem is of another kind. */
  readonly errors: readonly Fault[];
  readonly limit: number | undefined;
  readonly setting: string | undefined;
  /** With which events the refused one does not fit; empty where the problem is another than `inconsistent`. */
  readonly links: readonly Link[];
  /** The check that refused an event. */
  readonly check: string | undefined;
  /** After how many seconds it is worth trying again, where the broker said so. */
  readonly retry_after_s: number | undefined;
  /** The same request at the broker that carries it out, of the code `elsewhere`. It is followed; what is left is what leads nowhere. */
  readonly location: string | undefined;

  constructor(problem: Problem, retry_after_s?: number, location?: string) {
    const faults = (problem.errors ?? []).map(({ pointer, detail }) => `${pointer || "the document"}: ${detail}`);
    // With faults, `detail` is the first of them.
    super([problem.title, ...(faults.length > 0 ? faults : [problem.detail ?? ""])].filter(Boolean).join("; "));
    this.problem = problem;
    this.type = problem.type;
    this.code = problem.type.startsWith(PREFIX) ? problem.type.slice(PREFIX.length) : problem.type;
    this.status = problem.status;
    this.title = problem.title;
    this.detail = problem.detail;
    this.errors = problem.errors ?? [];
    this.limit = problem.limit;
    this.setting = problem.setting;
    this.links = problem.links ?? [];
    this.check = problem.check;
    this.retry_after_s = retry_after_s;
    this.location = this.code === "elsewhere" ? location : undefined;
  }
}

/** A connection could not be made, or broke. A session tries again by itself; an HTTP call is the caller's to try again. */
export class ConnectionError extends NearcastError {
  override name = "ConnectionError";
  /** The code of the WebSocket's close; absent where there was none. */
  readonly code: number | undefined;
  readonly reason: string;

  constructor(reason: string, options: { code?: number | undefined; cause?: unknown } = {}) {
    super(
      options.code === undefined ? reason : `the connection was closed (${options.code}): ${reason || "no reason given"}`,
      caused(options.cause),
    );
    this.code = options.code;
    this.reason = reason;
  }
}

/** The session is over: the application closed it, or the broker did for good (`code`, `reason`, and the problem as `cause`). */
export class Closed extends NearcastError {
  override name = "Closed";
  readonly code: number | undefined;
  readonly reason: string;

  constructor(reason: string, options: { code?: number | undefined; cause?: unknown } = {}) {
    super(`the session is closed: ${reason || "no reason given"}`, caused(options.cause));
    this.code = options.code;
    this.reason = reason;
  }
}

/** As many requests of its kind as may wait for their answers do. Wait for some of them, or ask for less. */
export class QueueFull extends NearcastError {
  override name = "QueueFull";
  /** How many may wait. */
  readonly limit: number;

  constructor(limit: number) {
    super(`${limit} requests wait for their answers already`);
    this.limit = limit;
  }
}

/** Something has taken longer than it may. */
export class Timeout extends NearcastError {
  override name = "Timeout";
}

/** A batch ended before its end. What was done until then stays done. */
export class BatchError extends NearcastError {
  override name = "BatchError";
  /** What is known of the elements before `index`. */
  readonly report: PublishReport;
  /** The first element of which nothing is known: it may have been carried out, or not. */
  readonly index: number;

  constructor(report: PublishReport, index: number, cause: unknown) {
    super(`the batch ended at element ${index}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.report = report;
    this.index = index;
  }
}
