// What an answer to Why draws.

import type { Explanation } from "nearcast";
import { expect, test } from "vitest";

import { nearest, whyDrawing } from "../../src/console/why/drawing.js";
import { planeOf } from "../../src/shared/map/plane.js";

const plane = planeOf("geodetic");
const explained = (area: object, matched = false) =>
  ({ matched, why: "", filters: [{ matched, area, condition: { constraints: [] } }] }) as unknown as Explanation;

test("a circle around a client is joined with the event, in metres, and says what fails", () => {
  const area = { form: "following", holds: false, distance_m: 1561, radius_m: 500, metres_outside: 1061 };
  const { features, labels } = whyDrawing(plane, explained(area), [{ radius_m: 500 }], [9.12, 45.4], [9.1, 45.4]);
  expect(features.map(({ geometry }) => geometry.type)).toEqual(["Point", "Polygon", "LineString"]);
  expect(features.map(({ properties }) => properties?.["holds"] as boolean)).toEqual([false, false, false]);
  expect(labels).toEqual([{ at: [9.11, 45.4], text: "1.6 km, 1.1 km outside", holds: false }]);
  // Where the client is not shown there is nothing to draw to.
  expect(whyDrawing(plane, explained(area), [{ radius_m: 500 }], [9.12, 45.4], undefined).labels).toEqual([]);
});

test("a polygon is joined at its nearest edge, and one that holds the event is not", () => {
  const polygon = {
    type: "Polygon",
    coordinates: [
      [
        [0, 0],
        [2, 0],
        [2, 2],
        [0, 2],
        [0, 0],
      ],
    ],
  };
  const outside = { form: "polygon", holds: false, distance_m: 111_000, metres_outside: 111_000 };
  const { features, labels } = whyDrawing(plane, explained(outside), [{ polygon }], [3, 1], undefined);
  expect(features.at(-1)?.geometry).toEqual({
    type: "LineString",
    coordinates: [
      [3, 1],
      [2, 1],
    ],
  });
  expect(labels[0]?.text).toBe("111 km outside");
  const inside = { form: "polygon", holds: true, distance_m: 0, metres_outside: 0 };
  expect(whyDrawing(plane, explained(inside, true), [{ polygon }], [1, 1], undefined).labels).toEqual([]);
  expect(nearest([], [0, 0])).toBeUndefined();
});
