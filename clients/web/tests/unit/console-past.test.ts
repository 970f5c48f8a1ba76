// What the page keeps of the past, and the way from mark to mark.

import { expect, test } from "vitest";

import { Past, type Report } from "../../src/console/live/past.js";
import { nearestOf, nextOf, type Spot } from "../../src/console/map/walk.js";

function report(id: string, at_s: number, x = at_s, members: Partial<Report> = {}): Report {
  return { id, place: [x, 0], at_ms: at_s * 1000, colour: -1, ends_ms: at_s * 1000 + 600_000, ...members };
}

const shown = (reports: Iterable<Report>): string => [...reports].map(({ id, place: [x] }) => `${id}@${x}`).join(" ");

test("the past has the newest report of each object up to a time, and what has ended is not there", () => {
  const past = new Past({ span_ms: 60_000, reports: 100 });
  expect([past.from_ms, past.at(1000)]).toEqual([undefined, []]);
  past.put(report("a", 1));
  past.put(report("b", 2, 20, { ends_ms: 4000 }));
  past.put(report("a", 3));
  expect(shown(past.at(500))).toBe("");
  expect(shown(past.at(2500))).toBe("a@1 b@20");
  expect(shown(past.at(3500))).toBe("b@20 a@3");
  expect(shown(past.at(4500))).toBe("a@3");
  expect(shown(past.between(1000, 3000))).toBe("b@20 a@3");
  expect(shown(past.between(3000, 9000))).toBe("");
});

test("the oldest goes at either bound", () => {
  const past = new Past({ span_ms: 10_000, reports: 4 });
  for (const second of [1, 2, 3, 4, 5, 6]) past.put(report("a", 3 * second));
  expect(past.from_ms).toBe(9000);
  past.put(report("a", 40));
  expect([past.from_ms, shown(past.at(50_000))]).toEqual([40_000, "a@40"]);
});

test("of many objects reports further apart are kept, so that the whole span is", () => {
  const past = new Past({ span_ms: 100_000, reports: 500 });
  for (let second = 0; second < 400; second++) for (let object = 0; object < 50; object++) past.put(report(`o${object}`, second));
  // 50 objects in 500 places: each of them ten times in 100 s.
  expect(past.apart_ms).toBe(10_000);
  expect(past.from_ms).toBeLessThanOrEqual(310_000);
  const now = past.at(399_000);
  expect(now).toHaveLength(50);
  expect(Math.min(...now.map(({ at_ms }) => at_ms))).toBeGreaterThanOrEqual(389_000);
});

test("colours of before mean nothing after the scale has changed", () => {
  const past = new Past({ span_ms: 10_000, reports: 10 });
  past.put(report("a", 1, 1, { colour: 4 }));
  expect(past.at(2000)[0]?.colour).toBe(4);
  past.forgetColours();
  expect(past.at(2000)[0]?.colour).toBe(-1);
});

const SPOTS: readonly Spot[] = [
  { id: "here", kind: "event", x: 100, y: 100 },
  { id: "right", kind: "event", x: 140, y: 104 },
  { id: "aside", kind: "client", x: 130, y: 140 },
  { id: "up", kind: "event", x: 90, y: 20 },
  { id: "same", kind: "client", x: 101, y: 100 },
];

test("an arrow key goes to the mark that is next in its direction, and to none where there is none", () => {
  const from = { x: 100, y: 100 };
  expect(["ArrowRight", "ArrowUp", "ArrowDown", "ArrowLeft"].map((key) => nextOf(SPOTS, from, key)?.id)).toEqual([
    "right",
    "up",
    "aside",
    undefined,
  ]);
  expect(nearestOf(SPOTS, { x: 95, y: 30 })?.id).toBe("up");
  expect(nearestOf([], from)).toBeUndefined();
});
