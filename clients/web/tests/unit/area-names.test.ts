import { expect, test } from "vitest";

import { nearestOf, regionsOf } from "../../src/shared/map/area-names.js";

test("a view belongs to the quarters whose points are nearest, also where these lie outside of it", () => {
  const points = [
    { x: -300, y: 200 },
    { x: 900, y: 200 },
    { x: 5000, y: 200 },
  ];
  const regions = regionsOf(points, 800, 400, 2000);
  // The middle between both lies at 300.
  expect(regions.map(({ of, part }) => [of, part.toFixed(2)])).toEqual([
    [1, "0.64"],
    [0, "0.36"],
  ]);
  for (const { of, spots } of regions) {
    for (const spot of spots) expect(nearestOf(points, spot, 2000)).toBe(of);
    const [first, last] = [spots[0], spots.at(-1)];
    if (first === undefined || last === undefined) throw new Error("a region without a place");
    expect(Math.abs(first.y - 200)).toBeLessThan(Math.abs(last.y - 200));
  }
});

test("what is far from every point has no name", () => {
  expect(regionsOf([{ x: 5000, y: 0 }], 800, 400, 2000)).toEqual([]);
  expect(regionsOf([], 800, 400, 2000)).toEqual([]);
  expect(nearestOf([{ x: 5000, y: 0 }], { x: 0, y: 0 }, 2000)).toBeUndefined();
});
