// The console's search.

import { expect, test } from "vitest";

import { fitOf, pairOf } from "../../src/console/search.js";

test("a whole word fits best, then its beginning, then any part", () => {
  expect(fitOf("taxi-12", "12")).toBe(0);
  expect(fitOf("Taxi_id 12", "taxi")).toBe(0);
  expect(fitOf("taxi-12001", "12")).toBe(1);
  expect(fitOf("console-c612", "12")).toBe(2);
  // The best of several places counts.
  expect(fitOf("5412-12", "12")).toBe(0);
  expect(fitOf("taxi-5", "12")).toBeUndefined();
});

test("a pair of coordinates is one with or without brackets", () => {
  expect(pairOf("9.19, 45.46")).toEqual([9.19, 45.46]);
  expect(pairOf("[9.19,45.46]")).toEqual([9.19, 45.46]);
  expect(pairOf("taxi 12")).toBeUndefined();
});
