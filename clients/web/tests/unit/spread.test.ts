// Marks of the phone's map that would lie on each other.

import { expect, test } from "vitest";

import { spread, type Spot } from "../../src/phone/spread.js";

const least = (spots: readonly Spot[]): number =>
  Math.min(...spots.flatMap((one, at) => spots.slice(at + 1).map((other) => Math.hypot(one.x - other.x, one.y - other.y))));

test("marks that are far enough apart stay where they are", () => {
  const spots = [
    { x: 0, y: 0 },
    { x: 24, y: 0 },
  ];
  expect(spread(spots, 24)).toEqual(spots);
});

test("marks that lie on each other go apart, also where they are at one place, and about their middle", () => {
  const pair = spread(
    [
      { x: 0, y: 0 },
      { x: 10, y: 0 },
    ],
    24,
  );
  expect(pair).toEqual([
    { x: -7, y: 0 },
    { x: 17, y: 0 },
  ]);
  const stand = spread(
    Array.from({ length: 6 }, () => ({ x: 100, y: 100 })),
    24,
  );
  expect(least(stand)).toBeGreaterThan(20);
  expect(Math.max(...stand.map(({ x, y }) => Math.hypot(x - 100, y - 100)))).toBeLessThan(48);
});

test("what is fixed is not moved: the other one makes room", () => {
  expect(
    spread(
      [
        { x: 0, y: 0, fixed: true },
        { x: 0, y: 10 },
      ],
      24,
    ),
  ).toEqual([
    { x: 0, y: 0 },
    { x: 0, y: 24 },
  ]);
});

test("no mark leaves the circle, nor stands outside of it, and yet they go apart", () => {
  const edge = Array.from({ length: 5 }, (_, at) => ({ x: 98, y: at * 4, fixed: at === 0 }));
  const stand = spread(edge, 24, { x: 0, y: 0, radius: 85 });
  expect(Math.max(...stand.map(({ x, y }) => Math.hypot(x, y)))).toBeLessThanOrEqual(85 + 1e-9);
  expect(least(stand)).toBeGreaterThan(15);
});
