import { expect, test } from "vitest";

import { spriteOf, type SpriteOptions } from "../../src/shared/map/sprite.js";

const DISC: SpriteOptions = {
  shape: "disc",
  across: 9,
  ratio: 1,
  rim: 1,
  colour: [0, 0.5, 1, 1],
  ground: [1, 1, 1, 1],
  opacity: 1,
  heading: undefined,
  width: 100,
};
const opacity = (pixel: number): number => pixel >>> 24;

/** The pixel at a distance from the middle; 0 where there is none. */
function at(options: SpriteOptions, x: number, y: number): number {
  const { offsets, colours } = spriteOf(options);
  return colours[offsets.indexOf(y * options.width + x)] ?? 0;
}

test("a disc has its colour within a light edge, and nothing around it", () => {
  expect(at(DISC, 0, 0)).toBe(0xffff8000);
  expect(at(DISC, 4, 0) & 0xff).toBeGreaterThan(0x80);
  expect(at(DISC, 6, 0)).toBe(0);
  expect(at({ ...DISC, rim: 0 }, 4, 0) & 0xff).toBeLessThan(0x10);
  const { offsets, colours, solid } = spriteOf(DISC);
  expect(offsets).toHaveLength(colours.length);
  expect([...colours.subarray(0, solid)].every((pixel) => opacity(pixel) > 240)).toBe(true);
  expect([...colours.subarray(solid)].every((pixel) => opacity(pixel) <= 245)).toBe(true);
});

test("a ring has a middle of the ground's colour, a halo none, and a nose points where it goes", () => {
  expect(at({ ...DISC, shape: "ring", across: 13 }, 0, 0)).toBe(0xffffffff);
  expect(at({ ...DISC, shape: "halo", across: 26 }, 0, 0)).toBe(0);
  expect(opacity(at({ ...DISC, shape: "halo", across: 26 }, 11, 0))).toBeGreaterThan(200);
  const east = { ...DISC, heading: Math.PI / 2 };
  expect(opacity(at(east, 6, 0))).toBeGreaterThan(100);
  expect(at(east, -6, 0)).toBe(0);
});

test("what fades is less opaque all over", () => {
  expect(opacity(at({ ...DISC, opacity: 0.3 }, 0, 0))).toBe(77);
});

test("a triangle has its tip up", () => {
  const triangle = { ...DISC, shape: "triangle", across: 20 } as const;
  expect(at(triangle, 0, 0)).toBe(0xffff8000);
  expect(at(triangle, 0, -7)).not.toBe(0);
  expect(at(triangle, 0, 7)).toBe(0);
  expect(at(triangle, 6, -6)).toBe(0);
  expect(at(triangle, 6, 3)).not.toBe(0);
});

test("a square has corners", () => {
  const square = { ...DISC, shape: "square", across: 12 } as const;
  expect(at(square, 0, 0)).toBe(0xffff8000);
  expect(at(square, 5, 5)).not.toBe(0);
  expect(at({ ...square, shape: "disc" }, 5, 5)).toBe(0);
});
