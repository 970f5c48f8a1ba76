// What an answer to Why draws.

import type { Feature } from "geojson";
import type { Explanation } from "nearcast";
import { expect, test } from "vitest";

import { nearest, whyDrawing } from "../../src/console/why/drawing.js";
import { nowSentence, sentence, verdict } from "../../src/console/why/words.js";
import { planeOf, type Place } from "../../src/shared/map/plane.js";

const plane = planeOf("geodetic");
const explained = (area: object, matched = false) =>
  ({ matched, why: "", filters: [{ matched, area, condition: { constraints: [] } }] }) as unknown as Explanation;

const event = (place: Place) => ({ place, name: "bus 7" });
const ann = (place?: Place) => ({ place, name: "ann" });
/** All but what lies around the area. */
const drawn = (features: readonly Feature[]) => features.filter(({ properties }) => properties?.["around"] !== true);

test("a circle around a client is joined with the event, in metres, and says what fails", () => {
  const area = { form: "following", holds: false, distance_m: 1561, radius_m: 500, metres_outside: 1061 };
  const { features, labels } = whyDrawing(plane, explained(area), [{ radius_m: 500 }], event([9.12, 45.4]), ann([9.1, 45.4]));
  expect(drawn(features).map(({ geometry }) => geometry.type)).toEqual(["Point", "Polygon", "LineString", "LineString", "Point"]);
  expect(drawn(features).map(({ properties }) => properties?.["way"] as string | undefined)).toEqual([
    undefined,
    undefined,
    "whole",
    "gap",
    undefined,
  ]);
  // Whole from the client to the rim, broken from there to the event.
  const rim = 9.1 + (0.02 * 500) / 1561;
  const [whole, gap] = drawn(features).filter(({ geometry }) => geometry.type === "LineString");
  const ends = (line?: Feature) => (line?.geometry.type === "LineString" ? line.geometry.coordinates.map(([lon]) => lon) : []);
  expect([ends(whole), ends(gap)]).toEqual([
    [9.1, expect.closeTo(rim, 9)],
    [9.12, expect.closeTo(rim, 9)],
  ]);
  const [label] = labels;
  expect(label).toMatchObject({ text: "1.6 km, 1.1 km outside", holds: false, anchor: "top-left" });
  // From the rim on.
  expect(label?.at[0]).toBeCloseTo(rim, 9);
  // Where the client is not shown there is nothing to draw to.
  expect(whyDrawing(plane, explained(area), [{ radius_m: 500 }], event([9.12, 45.4]), ann()).labels).toEqual([]);
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
  const { features, labels } = whyDrawing(plane, explained(outside), [{ polygon }], event([3, 1]), ann());
  expect(features.at(-1)?.geometry).toEqual({
    type: "LineString",
    coordinates: [
      [3, 1],
      [2, 1],
    ],
  });
  expect(labels[0]?.text).toBe("111 km outside");
  const inside = { form: "polygon", holds: true, distance_m: 0, metres_outside: 0 };
  expect(whyDrawing(plane, explained(inside, true), [{ polygon }], event([1, 1]), ann()).labels).toEqual([]);
  expect(nearest([], [0, 0])).toBeUndefined();
});

test("the event and the client have pins whose words stand away from each other", () => {
  const area = { form: "following", holds: true, distance_m: 320, radius_m: 500, metres_outside: null };
  const constraints = [
    { constraint: "speed_kmh < 10", attribute: "speed_kmh", value: 3, truth: "true", reason: "" },
    { constraint: "status = 'hired'", attribute: "status", value: "free", truth: "false", reason: "" },
  ];
  const explanation = {
    matched: false,
    why: "",
    filters: [{ matched: false, area, condition: { truth: "false", constraints } }],
  } as unknown as Explanation;
  const { pins } = whyDrawing(plane, explanation, [{ radius_m: 500 }], event([9.1, 45.39]), ann([9.1, 45.4]));
  expect(pins?.map(({ kind, name, side }) => [kind, name, side])).toEqual([
    ["event", "bus 7", "below"],
    ["client", "ann", "above"],
  ]);
});

const speed = (value: unknown, truth: string) => ({ constraint: "speed_kmh >= 80", attribute: "speed_kmh", value, truth, reason: "" });
const following = (distance_m: number) => ({
  form: "following",
  holds: distance_m <= 500,
  distance_m,
  radius_m: 500,
  metres_outside: Math.max(0, distance_m - 500),
});
test.each([
  [
    true,
    following(320),
    "true",
    [speed(96, "true")],
    "Client ann would receive it: it is 320 m away, within the 500 m around the client, and speed_kmh >= 80 holds.",
  ],
  [
    false,
    following(1561),
    "true",
    [],
    "Client ann would not receive it: it is 1.6 km away, 1.1 km too far for the 500 m around the client.",
  ],
  [
    false,
    following(320),
    "false",
    [speed(16, "false")],
    "Client ann would not receive it: it is 320 m away, within the 500 m around the client, but its speed is 16 km/h, and speed_kmh >= 80 is asked for.",
  ],
  [
    false,
    { form: "everywhere", holds: true, metres_outside: 0 },
    "unknown",
    [speed(null, "unknown")],
    "Client ann would not receive it: any place will do, but it has no speed_kmh, and speed_kmh >= 80 is asked for.",
  ],
  [
    true,
    { form: "everywhere", holds: true, metres_outside: 0 },
    "true",
    [],
    "Client ann would receive it: any place and any content will do.",
  ],
  [
    true,
    { form: "polygon", holds: true, metres_outside: 0 },
    "true",
    [],
    "Client ann would receive it: it is inside the polygon, and any content will do.",
  ],
] as const)("an answer is one sentence: %s %j", (matched, area, truth, constraints, said) => {
  const explanation = { matched, why: "", filters: [{ matched, area, condition: { truth, constraints } }] } as unknown as Explanation;
  expect(sentence(explanation, "ann")).toBe(said);
});

test("an answer says what became of the event, apart from what holds now", () => {
  const at = new Date().toISOString();
  const clock = new Date(at).toLocaleTimeString("en-GB");
  expect([verdict("ann", { delivered: true }), verdict("ann", { delivered: true, at }), verdict("ann", { delivered: false })]).toEqual([
    "Delivered to client ann.",
    `Delivered to client ann at ${clock}.`,
    "Not delivered to client ann.",
  ]);
  const held = [{ matched: true, area: following(320), condition: { truth: "true", constraints: [speed(90, "true")] } }];
  const then = { matched: true, why: "", filters: held } as unknown as Explanation;
  expect(verdict("ann", { delivered: true, at }, then)).toBe(
    `Delivered to client ann at ${clock}: it was 320 m away, within the 500 m around the client, and speed_kmh >= 80 held.`,
  );
  const now = (matched: boolean, delivered: boolean): string => {
    const constraints = matched ? [] : [speed(16, "false")];
    const filters = [{ matched, area: following(320), condition: { truth: String(matched), constraints } }];
    return nowSentence({ matched, why: "", filters } as unknown as Explanation, { delivered });
  };
  expect(now(true, true)).toBe("It is 320 m away, within the 500 m around the client, and any content will do.");
  expect(now(false, false)).toMatch(/^It is 320 m away, within the 500 m around the client, but its speed is 16 km.h/);
  expect(now(false, true)).toMatch(/^It would not receive it now: it is 320 m away/);
  expect(now(true, false)).toMatch(/^It would receive it now: it is 320 m away/);
});

test("the distance on the map says that it is of now where the answer is of the past", () => {
  const area = { form: "following", holds: true, distance_m: 320, radius_m: 500, metres_outside: null };
  const texts = (saysNow: boolean): (string | undefined)[] =>
    whyDrawing(plane, explained(area, true), [{ radius_m: 500 }], event([9.1, 45.39]), ann([9.1, 45.4]), saysNow).labels.map(
      ({ text }) => text,
    );
  expect([texts(false), texts(true)]).toEqual([["320 m"], ["now 320 m"]]);
});

test("the broker's words say why an event is kept away that the filters take", () => {
  const filters = [{ matched: true, area: { form: "everywhere", holds: true }, condition: { truth: "true", constraints: [] } }];
  const explanation = { matched: false, why: "the event reaches 100 m", filters } as unknown as Explanation;
  expect(sentence(explanation, "ann")).toBe("Client ann would not receive it: the event reaches 100 m.");
});
