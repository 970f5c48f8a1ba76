// How the console's marks are coloured, counted and put together.

import type { DeliveredFeature } from "nearcast";
import { expect, test } from "vitest";

import { Same } from "../../src/console/live/same.js";
import { Scale } from "../../src/console/live/scale.js";
import { Objects } from "../../src/console/live/objects.js";
import { aside, merged, radiusOf } from "../../src/console/map/density.js";

function taxi(id: number, key?: string): DeliveredFeature {
  const geometry = { type: "Point", coordinates: [9, 45] } as const;
  return {
    type: "Feature",
    id: `e${id}`,
    time: "2026-01-01T00:00:00Z",
    geometry,
    properties: { taxi_id: id },
    ...(key === undefined ? {} : { key }),
  };
}

test("numbers have ascending classes with round ends, few values are kinds, and what has none is other", () => {
  const speeds = Array.from({ length: 100 }, (_, speed) => ({ speed }));
  const scale = new Scale("speed", speeds);
  expect(scale.legend.map(({ text }) => text)).toEqual(["below 20", "20 to 40", "40 to 60", "60 to 80", "80 and more"]);
  const classes = [0, 20, 40, 60, 80].map((speed) => scale.of({ speed }));
  expect(classes).toEqual(scale.legend.map(({ colour }) => colour));
  expect(new Set(classes).size).toBe(5);
  expect(scale.of({ speed: "fast" })).toBe(13);

  const kinds = new Scale("kind", [{ kind: "bus" }, { kind: "tram" }, { kind: "bus" }, {}]);
  expect(kinds.legend.map(({ text }) => text)).toEqual(["bus", "tram", "other, or none"]);
  expect([kinds.of({ kind: "bus" }), kinds.of({ kind: "tram" }), kinds.of({})]).toEqual([6, 7, 13]);
  expect(new Scale("none", []).legend).toEqual([]);
});

test("an object and the client of its name are one thing, as long as there is such a client", () => {
  const objects = new Objects("taxi_id");
  const same = new Same();
  const put = (feature: DeliveredFeature) => same.put(objects.put(feature, false, 0).seen, objects.attribute);
  expect(put(taxi(12))).toBeUndefined();
  same.learn(["taxi-12", "bus 7", "operator"]);
  expect(put(taxi(12))).toBe("taxi-12");
  expect(put(taxi(13))).toBeUndefined();
  expect(put(taxi(14, "bus 7"))).toBe("bus 7");
  expect(same.pointOf("taxi-12")).toBe("a12");
  same.learn(["operator"]);
  expect(same.pointOf("taxi-12")).toBeUndefined();
  expect(same.clientOf("a12")).toBeUndefined();
});

test("circles that would lie on each other become one, and none is lost", () => {
  const many = Array.from({ length: 50 }, (_, at) => ({
    x: (at % 10) * 9,
    y: Math.floor(at / 10) * 9,
    count: 3,
    parts: new Map([
      ["--map-c6", 2],
      ["--map-c7", 1],
    ]),
  }));
  const circles = merged([...many, { x: 500, y: 500, count: 1, parts: new Map([["--map-c7", 1]]) }]);
  const all = (colour: string): number => circles.reduce((sum, { parts }) => sum + (parts.get(colour) ?? 0), 0);
  expect([all("--map-c6"), all("--map-c7")]).toEqual([100, 51]);
  expect(circles.reduce((sum, { count }) => sum + count, 0)).toBe(151);
  expect(circles.length).toBeLessThan(10);
  expect(radiusOf(1)).toBeLessThan(radiusOf(2));
  expect(radiusOf(20_000)).toBe(30);
});

test("a circle lies beside what stands on the map, and remembers where its marks are", () => {
  const over = [
    [12, 12, 100, 48],
    [340, 12, 378, 120],
  ] as const;
  const circle = (x: number, y: number) => aside({ x, y, count: 38, parts: new Map() }, over, 390, 290);
  const radius = radiusOf(38);
  expect(circle(200, 150)).toMatchObject({ x: 200, y: 150 });
  // Below the button, for above it and to its left the map ends.
  expect(circle(40, 45).y).toBeGreaterThanOrEqual(48 + radius);
  expect(circle(40, 45)).toMatchObject({ x: 40, from: { x: 40, y: 45 } });
  // To the left, for to the right there is no room.
  expect(circle(330, 90).x).toBeLessThanOrEqual(340 - radius);
  expect(circle(330, 90)).toMatchObject({ y: 90, from: { x: 330, y: 90 } });
});
