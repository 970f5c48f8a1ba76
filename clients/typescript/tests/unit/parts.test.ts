import { describe, expect, test } from "vitest";

import { attr, ProblemError } from "nearcast";
import { distance_m, Throttle, Recorder, type Fix } from "../../src/follow.js";
import { readFrame } from "../../src/frames.js";
import { expiry, Tokens } from "../../src/tokens.js";
import { FakeClock } from "../support/clock.js";

describe("tokens", () => {
  const token = (claims: object): string => `h.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.s`;

  test.each([
    [token({ exp: 1_772_350_800 }), 1_772_350_800_000],
    [token({ exp: 1_772_350_800, sub: "Zoë ÿ~~??>>" }), 1_772_350_800_000],
    [token({}), undefined],
    [token({ exp: "soon" }), undefined],
    ["no token", undefined],
    ["a.!!!.c", undefined],
    ["", undefined],
  ])("%s ends at %s", (text, end_ms) => {
    expect(expiry(text)).toBe(end_ms);
  });

  test("are asked for again a minute before their end", async () => {
    const clock = new FakeClock();
    let asked = 0;
    const tokens = new Tokens(() => {
      asked += 1;
      return token({ exp: clock.now() / 1000 + 600, asked });
    }, clock);
    const first = await tokens.current();
    expect(tokens.renewal()).toBe(540_000);
    clock.advance(539_999);
    expect(await tokens.current()).toBe(first);
    clock.advance(1);
    expect(await tokens.current()).not.toBe(first);
    expect(asked).toBe(2);
  });

  test("that last for less than that are renewed after half of their time", async () => {
    const clock = new FakeClock();
    const tokens = new Tokens(() => Promise.resolve(token({ exp: clock.now() / 1000 + 40 })), clock);
    await tokens.fresh();
    expect(tokens.renewal()).toBe(20_000);
    clock.advance(41_000);
    expect(tokens.renewal()).toBeUndefined();
  });

  test("that are texts are not renewed", async () => {
    const tokens = new Tokens(token({ exp: 1_772_350_800 }), new FakeClock());
    expect(await tokens.fresh()).toBeDefined();
    expect(tokens.renewable).toBe(false);
    expect(tokens.renewal()).toBeUndefined();
  });
});

describe("distances", () => {
  test.each([
    [[0, 0], [0, 1], 111_195.08],
    [[179.999, 0], [-179.999, 0], 222.39],
    [[0, 90], [123, 90], 0],
    [[9.19, 45.464], [9.19, 45.464], 0],
  ] as const)("from %j to %j", (from, to, metres) => {
    expect(distance_m(from, to, "geodetic")).toBeCloseTo(metres, 1);
  });

  test("in a planar world", () => {
    expect(distance_m([0, 0], [3, 4], "planar")).toBe(5);
  });
});

describe("following", () => {
  const clock = new FakeClock();
  const fix = (x: number): Fix => ({ coordinates: [x, 0] });

  function throttle(): { take: (x: number) => void; sent: number[]; flush: () => void } {
    const sent: number[] = [];
    const made = new Throttle({ world: "planar", minDistance_m: 25, maxInterval_s: 60, minInterval_s: 1 }, clock, ({ coordinates }) => {
      sent.push(coordinates[0]);
    });
    return {
      take: (x) => {
        made.take(fix(x));
      },
      sent,
      flush: () => {
        made.flush();
      },
    };
  }

  test("the first fix is sent, and then those that are far enough", () => {
    const { take, sent } = throttle();
    for (let x = 0; x <= 100; x += 10) {
      take(x);
      clock.advance(2000);
    }
    expect(sent).toEqual([0, 30, 60, 90]);
  });

  test("never more often than the least interval, and then the newest", () => {
    const { take, sent } = throttle();
    for (let x = 0; x <= 1000; x += 100) {
      take(x);
      clock.advance(100);
    }
    expect(sent).toEqual([0, 900]);
    clock.advance(1000);
    expect(sent).toEqual([0, 900, 1000]);
  });

  test("one that stands still is sent after the longest interval, once", () => {
    const { take, sent } = throttle();
    take(0);
    clock.advance(10_000);
    take(1);
    clock.advance(49_999);
    expect(sent).toEqual([0]);
    clock.advance(1);
    expect(sent).toEqual([0, 1]);
    clock.advance(1_000_000);
    expect(sent).toEqual([0, 1]);
  });

  test("what is held back goes out at the end", () => {
    const { take, sent, flush } = throttle();
    take(0);
    take(5);
    flush();
    expect(sent).toEqual([0, 5]);
    expect(clock.waits).toEqual([]);
  });
});

describe("a track", () => {
  test("keeps its bound, both ends, and times that do not descend", () => {
    const track = new Recorder(100);
    for (let i = 0; i < 10_000; i++) track.add([i, 0, i % 7 === 0 ? i - 3 : i]);
    expect(track.length).toBeLessThanOrEqual(100);
    expect(track.length).toBeGreaterThan(40);
    const points = track.take();
    expect(points[0]?.[0]).toBe(0);
    expect(points.at(-1)?.[0]).toBe(9999);
    points.forEach(([, , time_s], i) => {
      expect(time_s).toBeGreaterThanOrEqual(points[i - 1]?.[2] ?? time_s);
    });
    expect(track.length).toBe(0);
  });

  test("takes back what was not told", () => {
    const track = new Recorder(10);
    track.add([1, 0, 1]);
    const points = track.take();
    track.add([2, 0, 2]);
    track.restore(points);
    expect(track.take().map(([x]) => x)).toEqual([1, 2]);
  });
});

describe("conditions", () => {
  test.each([Number.NaN, Number.POSITIVE_INFINITY])("a number that CQL2 does not have is refused: %s", (value) => {
    expect(() => attr("a").eq(value)).toThrow(RangeError);
  });

  test.each([null, undefined, { a: 1 }, ["x"]])("a value that is none is refused: %j", (value) => {
    expect(() => attr("a").eq(value as never)).toThrow(TypeError);
  });
});

test("what is no JSON is no frame", () => {
  expect(() => readFrame("{")).toThrow(SyntaxError);
});

test("a problem says in its message what is wrong where", () => {
  const errors = [
    { pointer: "/on", detail: "must be an array" },
    { pointer: "", detail: "is empty" },
  ];
  const problem = {
    type: "urn:nearcast:problem:invalid-document",
    title: "the document is not valid",
    status: 400,
    detail: "/on: ..",
    errors,
  };
  expect(new ProblemError(problem).message).toBe("the document is not valid; /on: must be an array; the document: is empty");
});
