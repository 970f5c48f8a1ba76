import { describe, expect, test } from "vitest";

import { ConnectionError, ProblemError, Timeout } from "nearcast";
import { Backoff, isAway } from "../../src/backoff.js";

/** When it is tried within an outage, in seconds, where each wait is as long as it may be. */
function tries(outage_s: number, away: boolean): number[] {
  const backoff = new Backoff({}, () => 1);
  const tried: number[] = [];
  for (let now_s = backoff.next(away) / 1000; now_s <= outage_s; now_s += backoff.next(away) / 1000) tried.push(now_s);
  return tried;
}

/** Random numbers that are the same each time (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe("a broker that is away", () => {
  test("is tried every three seconds at the latest for a minute, and then less often", () => {
    expect(tries(20, true)).toEqual([1, 3, 6, 9, 12, 15, 18]);
    const minute = [1, ...Array.from({ length: 20 }, (_, index) => 3 + 3 * index)];
    expect(tries(300, true)).toEqual([...minute, 63, 69, 81, 105, 135, 165, 195, 225, 255, 285]);
  });

  test("has 10,000 clients back within seconds of a takeover, and they do not come at once", () => {
    const random = seeded(1);
    const back_s: number[] = [];
    const attempts: number[] = [];
    for (let client = 0; client < 10_000; client++) {
      const backoff = new Backoff({}, random);
      let now_s = 0;
      do {
        now_s += backoff.next(true) / 1000;
        attempts[Math.floor(now_s)] = (attempts[Math.floor(now_s)] ?? 0) + 1;
      } while (now_s < 9); // The standby is ready then.
      back_s.push(now_s);
    }
    back_s.sort((a, b) => a - b);
    expect(back_s[5000]).toBeLessThan(10);
    expect(back_s[9900]).toBeLessThan(11.8);
    expect(back_s[9999]).toBeLessThan(12);
    expect(Math.max(...attempts)).toBeLessThan(13_000);
    expect(Math.max(...attempts.slice(9))).toBeLessThan(6000);
  });
});

test("a broker that has too much to do is tried less and less often", () => {
  expect(tries(20, false)).toEqual([1, 3, 7, 15]);
  expect(tries(300, false)).toEqual([1, 3, 7, 15, 31, 61, 91, 121, 151, 181, 211, 241, 271]);
});

test("each wait is random, up to its bound", () => {
  const random = seeded(2);
  const shortest = Array.from({ length: 4 }, () => Infinity);
  const longest = [0, 0, 0, 0];
  for (let client = 0; client < 2000; client++) {
    const backoff = new Backoff({}, random);
    for (let wait = 0; wait < 4; wait++) {
      const wait_ms = backoff.next(true);
      shortest[wait] = Math.min(shortest[wait] ?? 0, wait_ms);
      longest[wait] = Math.max(longest[wait] ?? 0, wait_ms);
    }
  }
  for (const [wait, bound_ms] of [1000, 2000, 3000, 3000].entries()) {
    expect(shortest[wait]).toBeLessThan(bound_ms * 0.02);
    expect(longest[wait]).toBeGreaterThan(bound_ms * 0.98);
    expect(longest[wait]).toBeLessThan(bound_ms);
  }
});

test("no wait is shorter than the broker asked for, and the application sets the bounds", () => {
  const backoff = new Backoff({ base_s: 1, cap_s: 4 }, () => 0.9);
  expect(backoff.next(true, 5)).toBe(5000);
  expect(backoff.next(true)).toBe(1800);
  expect(backoff.next(false, 1)).toBe(2700);
  backoff.reset();
  expect(backoff.next(true)).toBe(900);
  const slow = new Backoff({ base_s: 60, cap_s: 60 }, () => 1);
  expect([slow.next(true), slow.next(true)]).toEqual([60_000, 60_000]);
  const quick = new Backoff({ base_s: 0.1, cap_s: 0.2 }, () => 1);
  expect([quick.next(true), quick.next(true), quick.next(true)]).toEqual([100, 200, 200]);
});

test("a broker that was too busy, and then is away, is tried soon", () => {
  const backoff = new Backoff({}, () => 1);
  expect([false, false, false, false, true, true, false].map((away) => backoff.next(away))).toEqual([
    1000, 2000, 4000, 8000, 3000, 3000, 3000,
  ]);
});

describe("away is", () => {
  const problem = (status: number, code: string): ProblemError =>
    new ProblemError({ type: `urn:nearcast:problem:${code}`, title: "not now", status });

  test.each<[Error, boolean]>([
    [new ConnectionError("ECONNREFUSED"), true],
    [new ConnectionError("the broker is stopping", { code: 1001 }), true],
    [new ConnectionError("overflow", { code: 1013 }), false],
    [new ConnectionError("the token has ended", { code: 4401 }), false],
    [new Timeout("no answer"), true],
    [problem(503, "recovering"), true],
    [problem(503, "stopping"), true],
    [problem(503, "storage"), true],
    [problem(307, "elsewhere"), true],
    [problem(502, "about:blank"), true],
    [problem(503, "limit-reached"), false],
    [problem(429, "overloaded"), false],
    [problem(429, "too-many-events"), false],
    [problem(500, "internal"), false],
    [new Error("something else"), false],
  ])("%s: %s", (error, away) => {
    expect(isAway(error)).toBe(away);
  });
});
