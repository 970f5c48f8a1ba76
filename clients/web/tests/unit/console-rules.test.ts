// What the console says of rule sets, by itself.

import type { DeliveredFeature } from "nearcast";
import { expect, test } from "vitest";

import { derivedOf, drawingOf, rulesOf } from "../../src/console/rules/derived.js";
import { EMPTY_PROGRAM, placesInProgram, programLine } from "../../src/console/rules/rules.js";
import { planeOf } from "../../src/shared/map/plane.js";

const report = (id: string, lon: number, time: string): DeliveredFeature => ({
  type: "Feature",
  id,
  time,
  geometry: { type: "Point", coordinates: [lon, 0] },
  properties: { type: "accident" },
});
const ONE = report("r1", 0, "2026-03-01T08:00:00Z");
const OTHER = report("r2", 0.001, "2026-03-01T08:00:20Z");
const find = (id: string): DeliveredFeature | undefined => [ONE, OTHER].find((feature) => feature.id === id);
const made = (from: readonly string[] | undefined, by = "rules/accidents/1"): DeliveredFeature => ({
  ...report("made", 0, "2026-03-01T08:00:20Z"),
  derived: { by, depth: 1, ...(from === undefined ? {} : { from }) },
});

test("an event that rules made names the rule set, and those that it follows from, the older first", () => {
  expect(rulesOf(made([]))).toBe("accidents/1");
  expect([rulesOf(ONE), rulesOf(made([], "checks/jump"))]).toEqual([undefined, undefined]);
  expect(derivedOf(made(["r2", "r1"]), find)?.origins.map(({ id }) => id)).toEqual(["r1", "r2"]);
  expect(derivedOf(made(["gone", "r1"]), find)?.origins).toEqual([{ id: "gone" }, { id: "r1", feature: ONE }]);
  // A reader that is confined otherwise does not see them.
  expect(derivedOf(made(undefined), find)?.origins).toEqual([]);
});

test("it is drawn with a line from each event that it follows from, where that is elsewhere", () => {
  const derived = derivedOf(made(["r1", "r2", "gone"]), find);
  if (derived === undefined) throw new Error("rules made it");
  const { features, labels } = drawingOf(planeOf("geodetic"), derived);
  expect(features.map(({ geometry }) => geometry.type)).toEqual(["Point", "Point", "Point", "LineString"]);
  expect(features.every(({ properties }) => properties?.["as"] === "derived")).toBe(true);
  expect(labels.map(({ text }) => text)).toEqual(["111 m"]);
});

test("a program is a line without its comments", () => {
  expect(programLine(EMPTY_PROGRAM)).toBe("report(A, X, Y) \\ report(_, U, V) <=> distance(X, Y, U, V) < 100 | accident(A, X, Y).");
});

test("faults of a program stand at their lines", () => {
  const text = "% 🚕 taxis\nseen('🚕', A) <=> tru | true.\nseen(A) ==> B < 1 | fail.";
  const at = (detail: string): string[] =>
    placesInProgram(text, [{ pointer: "/program", detail }]).flatMap(({ pointer, detail: what, from, to }) => [
      pointer,
      what,
      text.slice(from, to),
    ]);
  expect(at("line 2, column 18: there is no tru/0")).toEqual(["line 2", "there is no tru/0", "tru"]);
  expect(at("line 3, column 9: `==>` stands there")).toEqual(["line 3", "`==>` stands there", "==>"]);
  expect(at("line 3, column 99: it ends too early")).toEqual(["line 3", "it ends too early", ""]);
  expect(at("it is longer than 64 KiB")).toEqual(["/program", "it is longer than 64 KiB", text]);
});
