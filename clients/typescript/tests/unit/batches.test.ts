// Batches, and calls over HTTP, with a broker that is scripted.

import { describe, expect, test } from "vitest";

import { BatchError, ProblemError, Timeout, type PublishReport } from "nearcast";
import { Batcher } from "../../src/batches.js";
import { Addresses } from "../../src/addresses.js";
import { Http } from "../../src/http.js";
import { Tokens, type TokenSource } from "../../src/tokens.js";
import { FakeClock } from "../support/clock.js";

type Answer = { readonly status: number; readonly body: object; readonly headers?: Record<string, string> } | "unreachable" | "silent";

/** Answers requests in turn, and takes down what came. */
class Scripted {
  readonly bodies: string[][] = [];
  readonly tokens: (string | null)[] = [];
  readonly #answers: Answer[];

  constructor(answers: readonly Answer[]) {
    this.#answers = [...answers];
  }

  readonly fetch = (_url: unknown, request: RequestInit = {}): Promise<Response> => {
    this.bodies.push(typeof request.body === "string" ? request.body.trimEnd().split("\n") : []);
    this.tokens.push(new Headers(request.headers).get("authorization"));
    const answer = this.#answers.shift() ?? { status: 500, body: {} };
    if (answer === "unreachable") return Promise.reject(new TypeError("fetch failed"));
    if (answer === "silent") {
      return new Promise((_, reject) => {
        request.signal?.addEventListener("abort", () => {
          reject(new Error("aborted"));
        });
      });
    }
    const { status, body, headers } = answer;
    const type = status < 400 ? "application/json" : "application/problem+json";
    return Promise.resolve(new Response(JSON.stringify(body), { status, headers: { "content-type": type, ...headers } }));
  };
}

function http(scripted: Scripted, clock: FakeClock, token?: TokenSource): Http {
  return new Http(new Addresses("ws://broker.example/base/"), new Tokens(token, clock), { fetch: scripted.fetch, clock, timeout_s: 30 });
}

/** Moves the clock on until a promise is done. */
async function done<T>(promise: Promise<T>, clock: FakeClock): Promise<T> {
  const state = { over: false };
  const end = promise.finally(() => {
    state.over = true;
  });
  end.catch(() => undefined);
  while (!state.over) {
    await new Promise(setImmediate);
    if (clock.waits[0] !== undefined) clock.advance(clock.waits[0]);
  }
  return end;
}

async function* each(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

function send(
  answers: readonly Answer[],
  lines: readonly string[],
  batch = 3,
): { report: Promise<PublishReport>; scripted: Scripted; clock: FakeClock } {
  const clock = new FakeClock();
  const scripted = new Scripted(answers);
  const batcher = new Batcher(http(scripted, clock), clock, () => 0.5, "/v1/events", "accepted", { batch });
  return { report: done(batcher.send(each(lines)), clock), scripted, clock };
}

const taken = (accepted: number, rejected: object[] = []): Answer => ({ status: 202, body: { accepted, rejected } });
const overloaded = (accepted?: number): Answer => ({
  status: 429,
  headers: { "retry-after": "2" },
  body: { type: "urn:nearcast:problem:overloaded", title: "overloaded", status: 429, ...(accepted !== undefined && { accepted }) },
});

describe("a batch", () => {
  test("reports warnings of the whole input", async () => {
    const warning = { pointer: "/ttl", detail: "did you mean ttl_s?" };
    const warned: Answer = { status: 202, body: { accepted: 1, rejected: [], warnings: [{ index: 0, ...warning }], warnings_unlisted: 2 } };
    const { report } = send([taken(3), warned], ["0", "1", "2", "3"]);
    expect(await report).toEqual({
      accepted: 4,
      rejected: [],
      rejected_unlisted: 0,
      warnings: [{ index: 3, ...warning }],
      warnings_unlisted: 2,
    });
  });

  test("goes so many at a time", async () => {
    const { report, scripted } = send([taken(3), taken(3), taken(1)], ["0", "1", "2", "3", "4", "5", "6"]);
    expect(await report).toEqual({ accepted: 7, rejected: [], rejected_unlisted: 0 });
    expect(scripted.bodies).toEqual([["0", "1", "2"], ["3", "4", "5"], ["6"]]);
  });

  test("has no more than a megabyte a request, or one element", async () => {
    const long = "x".repeat(700_000);
    const { report, scripted } = send([taken(1), taken(1), taken(2)], [long, long, "y", "z"]);
    await report;
    expect(scripted.bodies.map((lines) => lines.length)).toEqual([1, 3]);
  });

  test("counts what is refused over the whole input", async () => {
    const problem = { type: "urn:nearcast:problem:invalid-document", title: "no", status: 400 };
    const { report } = send([taken(2, [{ index: 1, problem }]), taken(0, [{ index: 0, problem }])], ["0", "1", "2", "3"]);
    const { accepted, rejected } = await report;
    expect(accepted).toBe(2);
    expect(rejected.map(({ index, problem: { code } }) => [index, code])).toEqual([
      [1, "invalid-document"],
      [3, "invalid-document"],
    ]);
  });

  test("waits as long as an overloaded broker says, and goes on behind what was taken", async () => {
    const { report, scripted, clock } = send([overloaded(), overloaded(2), taken(1)], ["0", "1", "2"]);
    const before_ms = clock.now();
    expect((await report).accepted).toBe(3);
    expect(scripted.bodies).toEqual([["0", "1", "2"], ["0", "1", "2"], ["2"]]);
    expect(clock.now() - before_ms).toBeGreaterThanOrEqual(4000);
  });

  test("goes on behind what was rejected before it ended", async () => {
    const problem = { type: "urn:nearcast:problem:invalid-document", title: "no", status: 400 };
    const ended = (code: string, tally: object): Answer => ({
      status: 503,
      body: { type: `urn:nearcast:problem:${code}`, title: code, status: 503, ...tally },
    });
    const answers = [
      ended("overloaded", { accepted: 2, rejected: [{ index: 1, problem }] }),
      ended("stopping", { accepted: 0, rejected: [{ index: 0, problem }], rejected_unlisted: 1 }),
      ended("storage", { accepted: 1, rejected: [] }),
      taken(1, [{ index: 0, problem }]),
    ];
    const { report, scripted } = send(answers, ["0", "1", "2", "3", "4", "5", "6", "7"], 8);
    const { accepted, rejected, rejected_unlisted } = await report;
    expect(scripted.bodies.map((lines) => lines.join(""))).toEqual(["01234567", "34567", "567", "67"]);
    expect([accepted, rejected.map(({ index }) => index), rejected_unlisted]).toEqual([4, [1, 3, 6], 1]);
  });

  test("goes again as a whole when it is not known what is on disk", async () => {
    const storage: Answer = { status: 503, body: { type: "urn:nearcast:problem:storage", title: "no", status: 503, accepted: 2 } };
    const { report, scripted } = send([storage, "unreachable", taken(3)], ["0", "1", "2"]);
    expect((await report).accepted).toBe(3);
    expect(scripted.bodies).toEqual([
      ["0", "1", "2"],
      ["0", "1", "2"],
      ["0", "1", "2"],
    ]);
  });

  test("gives up after a minute without progress, and says how far it came", async () => {
    const { report } = send([taken(3), ...Array.from({ length: 100 }, (): Answer => "unreachable")], ["0", "1", "2", "3"]);
    const error: unknown = await report.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BatchError);
    expect(error).toMatchObject({ index: 3, report: { accepted: 3 }, cause: { name: "ConnectionError" } });
  });

  test("gives up at once when it is refused as a whole", async () => {
    const forbidden: Answer = { status: 403, body: { type: "urn:nearcast:problem:forbidden", title: "no", status: 403 } };
    const { report, scripted } = send([forbidden], ["0"]);
    await expect(report).rejects.toMatchObject({ index: 0, cause: { code: "forbidden" } });
    expect(scripted.bodies.length).toBe(1);
  });

  test("takes no more from its source than it sends", async () => {
    let made = 0;
    const source = async function* (): AsyncGenerator<string> {
      for (; made < 100; made++) yield String(made);
    };
    const clock = new FakeClock();
    const scripted = new Scripted([taken(3), { status: 403, body: {} }]);
    const batcher = new Batcher(http(scripted, clock), clock, () => 0, "/v1/events", "accepted", { batch: 3 });
    await expect(batcher.send(source())).rejects.toBeInstanceOf(BatchError);
    expect(made).toBe(5);
  });

  test("lists no more than a thousand refusals", async () => {
    const problem = { type: "urn:nearcast:problem:invalid-document", title: "no", status: 400 };
    const rejected = Array.from({ length: 600 }, (_, index) => ({ index, problem }));
    const lines = Array.from({ length: 1200 }, String);
    const { report } = send([taken(0, rejected), taken(0, rejected)], lines, 600);
    expect(await report).toMatchObject({ accepted: 0, rejected_unlisted: 200 });
    expect((await report).rejected.length).toBe(1000);
  });
});

describe("a call", () => {
  test("asks for another token when the one it had has ended, once", async () => {
    const expired: Answer = { status: 401, body: { type: "urn:nearcast:problem:token-expired", title: "over", status: 401 } };
    const scripted = new Scripted([expired, taken(1), expired, expired]);
    let asked = 0;
    const calls = http(scripted, new FakeClock(), () => `t${++asked}`);
    expect(await calls.call("GET", "/x")).toMatchObject({ accepted: 1 });
    expect(scripted.tokens).toEqual(["Bearer t1", "Bearer t2"]);
    await expect(calls.call("GET", "/x")).rejects.toBeInstanceOf(ProblemError);
  });

  test("gives up on a broker that does not answer", async () => {
    const clock = new FakeClock();
    await expect(done(http(new Scripted(["silent"]), clock).call("GET", "/x"), clock)).rejects.toBeInstanceOf(Timeout);
  });

  test("can be given up by the caller", async () => {
    const stop = new AbortController();
    const call = http(new Scripted(["silent"]), new FakeClock()).call("GET", "/x", { signal: stop.signal });
    await new Promise(setImmediate);
    stop.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
  });
});

test("addresses keep the path that a proxy has put the broker at", () => {
  const calls = http(new Scripted([]), new FakeClock());
  const address = calls.addresses.of("ann");
  expect(calls.socketUrl(address, "a/ü", undefined)).toBe("ws://broker.example/base/v1/clients/a%2F%C3%BC/ws");
  expect(calls.socketUrl(address, "ann", { epoch: "e 1", offset: 17 })).toBe(
    "ws://broker.example/base/v1/clients/ann/ws?resume=e%201%3A17",
  );
});
