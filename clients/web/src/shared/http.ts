// Calls that the client's session does not have: about all clients, and before there is a session.

import type { Fault } from "nearcast";

import { brokerUrl } from "./pages.js";

/** A problem document (RFC 9457), or what stands for one where the answer was none. */
export class HttpProblem extends Error {
  override readonly name = "HttpProblem";
  constructor(
    readonly status: number,
    message: string,
    readonly faults: readonly Fault[] = [],
    /** Of an event that a check refuses: what it does not fit together with, as the broker says it. */
    readonly links: readonly unknown[] = [],
    /** The name of that check. */
    readonly check?: string,
  ) {
    super(message);
  }
}

/**
 * Calls the broker, and parses what it answers; `undefined` where it answers nothing.
 *
 * @throws {HttpProblem} what it refuses. @throws {TypeError} where it cannot be reached.
 */
export async function call(
  path: string,
  token: string | undefined,
  request: { method?: string; body?: unknown; signal?: AbortSignal } = {},
): Promise<unknown> {
  const { method = "GET", body, signal } = request;
  const headers: Record<string, string> = {};
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(new URL(path, brokerUrl), {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.text();
  if (response.ok) {
    if (text === "") return undefined;
    return response.headers.get("content-type")?.startsWith("application/json") === true ? (JSON.parse(text) as unknown) : text;
  }
  let problem: { title?: string; detail?: string; errors?: Fault[]; links?: unknown; check?: string } = {};
  try {
    problem = JSON.parse(text) as typeof problem;
  } catch {
    // A proxy's page, not the broker's answer.
  }
  const words = problem.detail ?? problem.title ?? `${response.status} ${response.statusText}`;
  throw new HttpProblem(response.status, words, problem.errors, Array.isArray(problem.links) ? problem.links : [], problem.check);
}
