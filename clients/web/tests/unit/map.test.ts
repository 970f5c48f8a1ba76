import { expect, test } from "vitest";

import { middleOf } from "../../src/shared/map/bounds.js";
import { parts } from "../../src/shared/map/colour.js";
import { gridLines, stepOf } from "../../src/shared/map/grid.js";
import { circleRing, destination, distance_m, planeOf, type Place } from "../../src/shared/map/plane.js";

test("a circle's ring is as far from its middle as its radius, wherever that is", () => {
  for (const place of [
    [9.19, 45.46],
    [179.999, -16],
    [-70, 79],
    [0, 0],
  ] as Place[]) {
    for (const [lon, lat] of circleRing(planeOf("geodetic"), place, 1500)) {
      expect(distance_m("geodetic", place, [lon, lat])).toBeCloseTo(1500, 3);
    }
  }
  const plane = planeOf("planar");
  for (const corner of circleRing(plane, [4000, -90_000], 250)) {
    expect(distance_m("planar", [4000, -90_000], plane.toWorld(corner))).toBeCloseTo(250, 3);
  }
});

test("places go onto the map and back", () => {
  for (const world of ["geodetic", "planar"] as const) {
    const plane = planeOf(world);
    for (const place of [
      [113.5, 22.5],
      [-70.25, -30],
    ] as Place[]) {
      const [x, y] = plane.toWorld(plane.toMap(place));
      expect([x, y]).toEqual([expect.closeTo(place[0], 6), expect.closeTo(place[1], 6)]);
    }
  }
  expect(planeOf("geodetic").toWorld([190, 95])).toEqual([-170, 90]);
});

test("a point goes where its bearing says", () => {
  const [lon, lat] = destination([10, 50], 1000, 0);
  expect([lon, lat]).toEqual([expect.closeTo(10, 9), expect.closeTo(50.0089932, 6)]);
});

test("a grid has a dozen lines at most of a round step", () => {
  expect([stepOf(360), stepOf(1), stepOf(0.5), stepOf(0.011)]).toEqual([50, 0.1, 0.05, 0.001]);
  const { geometry } = gridLines([113, 22, 114, 23]);
  expect(geometry.type).toBe("MultiLineString");
});

test("bounds leave out what lies far out, and nothing of a few places", () => {
  const places = Array.from({ length: 200 }, (_, index): Place => [index / 100, 50 - index / 100]);
  expect(middleOf([...places, [170, -80]])).toEqual([0.02, 48.02, 1.98, 49.98]);
  expect(middleOf([[9, 45]])).toEqual([9, 45, 9, 45]);
  expect(
    middleOf([
      [9, 46],
      [8, 47],
    ]),
  ).toEqual([8, 46, 9, 47]);
});

test("colours are read as they are written and as a build shortens them", () => {
  expect(parts("#ff8000")).toEqual([1, expect.closeTo(0.502, 3), 0, 1]);
  expect(parts("#f80")).toEqual(parts("#ff8800"));
});
