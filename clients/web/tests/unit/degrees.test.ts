import { expect, test } from "vitest";

import { degrees } from "../../src/shared/degrees.js";

test("a place says which number is which", () => {
  expect(degrees([113.92497, 22.53165], "geodetic")).toBe("22.53165° N, 113.92497° E");
  expect(degrees([-0.5, -33], "geodetic")).toBe("33.00000° S, 0.50000° W");
  expect(degrees([1030, 2040.256], "planar")).toBe("x 1030 m, y 2040.26 m");
});
