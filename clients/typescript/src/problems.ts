// Reading what the broker refuses with, whatever a proxy on the way made of it.

import { ProblemError, type Fault, type Link, type Problem } from "./errors.js";

/** What an answer says besides its body. */
export interface AnswerHead {
  readonly status: number;
  /** The header of this name, in small letters. */
  header(name: string): string | null | undefined;
}

/** The problem of an answer over HTTP; of one that has no problem document, a page of a proxy for example, one with its status alone. */
export function readProblem(head: AnswerHead, body: string): ProblemError {
  const mediaType = head.header("content-type")?.split(";")[0]?.trim().toLowerCase();
  const retryAfter = head.header("retry-after") ?? "";
  const retry_after_s = /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined;
  const document = mediaType === "application/problem+json" ? parse(body) : undefined;
  return new ProblemError(normalised(document, head.status), retry_after_s, head.header("location") ?? undefined);
}

/** The problem of a redirect that the platform does not show. */
export function hiddenRedirect(): ProblemError {
  return new ProblemError({ type: "urn:nearcast:problem:elsewhere", title: "another broker serves the client", status: 307 });
}

/** The problem of a frame. */
export function frameProblem(document: unknown): ProblemError {
  const status = typeof document === "object" && document !== null && "status" in document ? document.status : undefined;
  return new ProblemError(normalised(document, typeof status === "number" ? status : 500));
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** A problem has its members, each of its type: the broker writes them so, but others on the way write problems as well. */
function normalised(document: unknown, status: number): Problem {
  const members: Record<string, unknown> =
    typeof document === "object" && document !== null && !Array.isArray(document) ? { ...document } : {};
  const { detail, errors, limit, setting, links, check, ...others } = members;
  return {
    ...others,
    type: typeof members["type"] === "string" ? members["type"] : "about:blank",
    title: typeof members["title"] === "string" ? members["title"] : `HTTP ${status}`,
    status,
    ...(typeof detail === "string" && { detail }),
    ...(Array.isArray(errors) && { errors: errors.filter(isFault) }),
    ...(typeof limit === "number" && { limit }),
    ...(typeof setting === "string" && { setting }),
    ...(Array.isArray(links) && { links: links.filter(isLink) }),
    ...(typeof check === "string" && { check }),
  };
}

function isLink(link: unknown): link is Link {
  return typeof link === "object" && link !== null && !Array.isArray(link);
}

function isFault(fault: unknown): fault is Fault {
  return (
    typeof fault === "object" &&
    fault !== null &&
    "pointer" in fault &&
    typeof fault.pointer === "string" &&
    "detail" in fault &&
    typeof fault.detail === "string"
  );
}
