// What the console says of checks, by itself.

import type { DeliveredFeature } from "nearcast";
import { expect, test } from "vitest";

import { drawingOf } from "../../src/console/checks/drawing.js";
import { formulaText, speedLimitOf } from "../../src/console/checks/formula.js";
import { placesOf, readDocument } from "../../src/console/situations/pointers.js";
import { presetDocument, presetFormula, PRESETS } from "../../src/console/checks/presets.js";
import { linksOf, stepWords, violationOf, violationWords } from "../../src/console/checks/violation.js";
import { LATELY_MS, Violations } from "../../src/console/live/violations.js";
import { planeOf } from "../../src/shared/map/plane.js";

const report = (id: string, lon: number, time: string): DeliveredFeature => ({
  type: "Feature",
  id,
  time,
  geometry: { type: "Point", coordinates: [lon, 0] },
  properties: { taxi: 7 },
});
const ONE = report("e1", 0, "2026-03-01T08:00:00Z");
const OTHER = report("e2", 0.1, "2026-03-01T08:00:20Z");
const told = (bindings: object, by = "checks/jump"): DeliveredFeature => ({
  ...report("found", 0.1, "2026-03-01T08:00:21Z"),
  properties: { type: "violation", check: "jump", bindings },
  derived: { by, from: ["e1", "e2"], depth: 1 },
});
const find = (id: string): DeliveredFeature | undefined => [ONE, OTHER].find((feature) => feature.id === id);

test("a finding says how far, in which time and how fast, the older event first", () => {
  const violation = violationOf(told({ a: "e2", b: "e1" }), find);
  expect(violation?.bound.map(({ id }) => id)).toEqual(["e1", "e2"]);
  expect(violationWords(violation ?? { bound: [] }, "geodetic")).toBe("11.1 km in 20 s: 2,000 km/h");
});

test("what the page has not seen is named, and an event that only looks like a finding is none", () => {
  const violation = violationOf(told({ a: "e1", b: "gone" }), find);
  expect(violationWords(violation ?? { bound: [] }, "geodetic")).toBe("gone and e1");
  expect(violationOf(told({ a: "e1" }, "rules/jump"), find)).toBeUndefined();
  const plain: { derived?: unknown } = told({ a: "e1" });
  delete plain.derived;
  expect(violationOf(plain as DeliveredFeature, find)).toBeUndefined();
});

test("a finding is drawn as its events with a line between them", () => {
  const violation = violationOf(told({ a: "e1", b: "e2" }), find);
  if (violation === undefined) throw new Error("it is a finding");
  const { features, labels } = drawingOf(planeOf("geodetic"), violation);
  expect(features.map(({ geometry }) => geometry.type)).toEqual(["Point", "Point", "LineString"]);
  expect(labels.map(({ text }) => text)).toEqual(["11.1 km in 20 s", "a", "b"]);
});

test("links of a refusal bind events by variable", () => {
  expect(linksOf([{ a: "e1", b: "e3" }, { b: "e2" }], find)).toEqual([
    [
      { variable: "b", id: "e3" },
      { variable: "a", id: "e1", feature: ONE },
    ],
    [{ variable: "b", id: "e2", feature: OTHER }],
  ]);
});

test("the mark of the newest event of a finding is marked for a while", () => {
  const violations = new Violations();
  violations.learn(ONE, "a7", [], 0);
  violations.learn(OTHER, "a7", [], 0);
  expect(violations.take(ONE, 0)).toBeUndefined();
  expect(violations.take(told({ a: "e1", b: "e2" }), 10)?.point).toBe("a7");
  expect(violations.checksOf("a7")).toEqual(["jump"]);
  expect(violations.of("e1").map(({ id }) => id)).toEqual(["found"]);
  expect(violations.marked.value).toBe(1);
  expect(violations.sweep(LATELY_MS)).toEqual([]);
  expect(violations.sweep(LATELY_MS + 10)).toEqual(["a7"]);
  expect([violations.checksOf("a7"), violations.marked.value]).toEqual([[], 0]);
});

test("an event whose frame says that it violates checks marks its object at once", () => {
  const violations = new Violations();
  violations.learn(ONE, "a7", ["jump", "zone"], 0);
  expect([violations.checksOf("a7"), violations.violatedBy("e1")]).toEqual([
    ["jump", "zone"],
    ["jump", "zone"],
  ]);
});

test("a violation says the limit that its check states, and none where it is not one number", () => {
  const speed = PRESETS.find(({ name }) => name === "speed");
  expect(speed && speedLimitOf(presetFormula(speed, { object: "taxi_id", max_m_per_s: "55" }, []))).toBe(55);
  expect(speedLimitOf({ not: "SPEED(a, b) > 1e2" })).toBe(100);
  expect(speedLimitOf({ implies: ["SPEED(a, b) < 3", "a.x = 1"] })).toBeUndefined();
  expect(speedLimitOf({ or: ["SPEED(a, b) <= 3", "speed(a,b) < 4.5"] })).toBeUndefined();
  const step = { metres: 1000, seconds: 20 };
  expect(stepWords(step, 100 / 3.6)).toBe("1.0 km in 20 s: 180 km/h, limit 100 km/h");
  expect(stepWords(step)).toBe("1.0 km in 20 s: 180 km/h");
  expect(stepWords({ metres: 5, seconds: 0 }, 1)).toBe("5 m apart at the same time");
  expect(stepWords({ metres: 206.93, seconds: 0.197 }, 1000)).toBe("207 m in 0.197 s: 3,780 km/h, limit 3,600 km/h");
  // A little above the limit, and the way by the time is the speed again.
  expect(stepWords({ metres: 3603, seconds: 3.6 }, 1000)).toBe("3.6 km in 3.6 s: 3,603 km/h, limit 3,600 km/h");
  expect(stepWords({ metres: 90_000, seconds: 7200 })).toBe("90.0 km in 2 h: 45 km/h");
});

test("a formula is a text with a part on each line", () => {
  expect(
    formulaText({
      forall: "a",
      in: "recent",
      that: { or: [{ not: "a.x > 1" }, { exists: "b", in: "old", that: { implies: ["p", "q"] } }] },
    }),
  ).toBe(
    [
      "for every a in recent:",
      "  one of these:",
      "    not:",
      "      a.x > 1",
      "    there is b in old so that:",
      "      if",
      "        p",
      "      then",
      "        q",
    ].join("\n"),
  );
});

test("a condition of more than a line is broken before AND and OR, and nowhere else", () => {
  expect(formulaText("a.taxi_id = b.taxi_id AND ELAPSED(a, b) > 0", "  ")).toBe("  a.taxi_id = b.taxi_id\n  AND ELAPSED(a, b) > 0");
  expect(formulaText("a.x = 1 OR a.y = 2")).toBe("a.x = 1 OR a.y = 2");
  const whole = "a.name = 'rock AND roll, it''s all' or a.seats BETWEEN 2 AND 8";
  expect(formulaText(whole)).toBe("a.name = 'rock AND roll, it''s all'\nor a.seats BETWEEN 2 AND 8");
});

test("a preset has its members as the broker reads them, and odd names in quotes", () => {
  const [speed, , , outside] = PRESETS;
  if (speed === undefined || outside === undefined) throw new Error("there are five");
  expect(presetDocument(speed, { object: "taxi", max_m_per_s: "55" }, [])).toEqual({ preset: "speed", object: "taxi", max_m_per_s: 55 });
  expect(presetDocument(speed, { object: " ", max_m_per_s: "fast" }, [])).toEqual({ preset: "speed" });
  expect(JSON.stringify(presetFormula(speed, { object: "taxi no", max_m_per_s: "55" }, []))).toContain('a.\\"taxi no\\" = b.\\"taxi no\\"');
  expect(
    presetDocument(outside, {}, [
      [0, 0],
      [1, 0],
      [0, 1],
    ])["polygon"],
  ).toEqual({
    type: "Polygon",
    coordinates: [
      [
        [0, 0],
        [1, 0],
        [0, 1],
        [0, 0],
      ],
    ],
  });
});

test("faults stand at the values that their pointers name, or at what is around a value that is missing", () => {
  const text = '{"contexts": {"a/b": {"for_s": -1}}, "formula": {"and": ["x = 1", "SPED(a) > 2"]}}';
  const at = (pointer: string, detail = "wrong"): string[] =>
    placesOf(text, [{ pointer, detail }]).map(({ from, to }) => text.slice(from, to));
  expect(at("/contexts/a~1b/for_s")).toEqual(["-1"]);
  expect(at("/formula/and/1")).toEqual(["SPED(a) > 2"]);
  expect(at("/formula/and/1", "unknown function SPED, at column 1")).toEqual(["SPED"]);
  expect(at("/contexts/a~1b/area/center")).toEqual(['{"for_s": -1}']);
  expect(at("")).toEqual([text]);
});

test("what is no JSON is told with its place", () => {
  expect(readDocument('{"a": 1}')).toEqual({ document: { a: 1 } });
  const read = readDocument('{"a" 1}');
  expect("fault" in read && [read.fault.detail, read.fault.from]).toEqual(["this is no JSON: colon expected", 5]);
});
