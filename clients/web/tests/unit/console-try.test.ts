import type { Explanation } from "nearcast";
import { expect, test } from "vitest";

import { literal, nameText, propose, tokens } from "../../src/console/try/completion.js";
import { faultWords, rangeOf } from "../../src/console/try/faults.js";
import { guess, propertiesOf } from "../../src/console/try/properties.js";
import { areaOf, boxOf, inBox, missing, type Shape } from "../../src/console/try/shape.js";
import { areaWords, discOf, greatCircles, shapesOf } from "../../src/console/map/areas.js";
import { faultOf } from "../../src/console/token/fault.js";
import { filterWords, notes } from "../../src/console/why/words.js";
import { metres } from "../../src/console/words.js";
import { circleRing, destination, distance_m, planeOf, type Place } from "../../src/shared/map/plane.js";

const SEEN = [
  { name: "in", kinds: ["number"], values: [3, 20, 1] },
  { name: "road.name", kinds: ["text"], values: ["A4", "it's"] },
] as const;

const after = (condition: string): string[] => propose(condition, SEEN).proposals.map(({ label }) => label);

test("what may come next in a condition is proposed", () => {
  expect(after("")).toEqual(['"in"', "road.name", "NOT", "CASEI("]);
  expect(after("a = 1 AND ")).toEqual(after(""));
  expect(after("NOT ")).toEqual(['"in"', "road.name", "CASEI("]);
  expect(after("(")).toEqual(after(""));
  expect(after("road.name ")).toContain("LIKE");
  expect(after("road.name = ")).toEqual(["'A4'", "'it''s'"]);
  expect(after("road.name NOT ")).toEqual(["BETWEEN", "IN", "LIKE"]);
  expect(after("road.name IS ")).toEqual(["NULL", "NOT NULL"]);
  expect(after("road.name IS NOT ")).toEqual(["NULL"]);
  expect(after("road.name IN ")).toEqual(["("]);
  expect(after('"in" IN (1, ')).toEqual(["1", "3", "20"]);
  expect(after('"in" BETWEEN 1 AND ')).toEqual(["1", "3", "20"]);
  expect(after('"in" BETWEEN 1 AND 2 AND ')).toEqual(after(""));
  expect(after("a = 1 ")).toEqual(["AND", "OR"]);
  expect(after("a IN (1) ")).toEqual(["AND", "OR"]);
  expect(after("CASEI(")).toEqual(['"in"', "road.name"]);
  expect(after("CASEI(road.name) ")).toContain("LIKE");
});

test("a word that was begun is replaced, and so is an open text", () => {
  expect(propose("a = 1 AND ro", SEEN).from).toBe(10);
  expect(propose("road.name = 'A", SEEN)).toMatchObject({ from: 12, proposals: [{ label: "'A4'" }, { label: "'it''s'" }] });
  expect(propose("road.name = 'A4'", SEEN).from).toBe(16);
});

test("names and values are written so that the broker reads them", () => {
  expect([nameText("a.b"), nameText("not"), nameText('a "b"')]).toEqual(["a.b", '"not"', '"a ""b"""']);
  expect([literal("it's"), literal(1.5), literal(true)]).toEqual(["'it''s'", "1.5", "TRUE"]);
  expect(tokens("a<>'x' OR \"b").map(({ kind, open }) => [kind, open])).toEqual([
    ["name", false],
    ["operator", false],
    ["text", false],
    ["keyword", false],
    ["name", true],
  ]);
});

test("a column of the broker's is a range of the text", () => {
  const at = (text: string, detail: string): string => {
    const { from, to } = rangeOf(text, detail);
    return `${text.slice(0, from)}[${text.slice(from, to)}]${text.slice(to)}`;
  };
  expect(at("a = 1 AND foo 3", "found the name 'foo', at column 11")).toBe("a = 1 AND [foo] 3");
  expect(at("a & 3", "found the character '&', at column 3")).toBe("a [&] 3");
  expect(at("a <", "found end of text, at column 4")).toBe("a [<]");
  // The quotation of the text has a column of its own.
  expect(at("x = 'at column 1", "for the text that begins at column 5, found end of text, at column 17; a ' is doubled")).toBe(
    "x = 'at column [1]",
  );
  // Columns count characters, not the two units of one beyond 16 bits; line ends as well.
  expect(at("'𝄞' = b\n AND foo", "found, at column 14")).toBe("'𝄞' = b\n AND [foo]");
  expect(at("a = 1", "more than 64 conjunctions")).toBe("[a = 1]");
  expect(rangeOf("", "expected a condition, found end of text, at column 1")).toEqual({ from: 0, to: 0 });
  expect(faultWords("expected a value, found end of text, at column 4; a ' is doubled")).toBe(
    "Expected a value, found end of text; a ' is doubled.",
  );
});

test("kinds of values are guessed", () => {
  expect(["12", "1e3", "true", "null", '"12"', "abc", "[1, 2]", "1e999", ""].map((text) => guess(text).kind)).toEqual([
    "number",
    "number",
    "truth value",
    "absent",
    "text",
    "text",
    "JSON",
    "text",
    "text",
  ]);
  const rows = [
    { name: "a", value: "1" },
    { name: " ", value: "2" },
    { name: "__proto__", value: "x" },
    { name: "a ", value: "3" },
  ];
  const { properties, twice } = propertiesOf(rows);
  expect(JSON.stringify(properties)).toBe('{"a":3,"__proto__":"x"}');
  expect(twice).toBe("a");
});

const CORNERS: Place[] = [
  [9, 45],
  [9.2, 45],
  [9.1, 45.2],
];

test("a shape is an area of the protocol when it is whole", () => {
  expect(areaOf({ form: "polygon", corners: CORNERS })?.toJSON()).toEqual({
    polygon: { type: "Polygon", coordinates: [[...CORNERS, CORNERS[0]]] },
  });
  expect(areaOf({ form: "everywhere" })).toBeUndefined();
  expect(missing({ form: "polygon", corners: CORNERS.slice(1) })).toMatch("three");
  expect(missing({ form: "corridor", corners: CORNERS.slice(2), radius_m: 5 })).toMatch("two");
  expect(missing({ form: "circle", center: [0, 0], radius_m: 0 })).toBeUndefined();
});

test("a box holds all of its shape, across the antimeridian and around poles too", () => {
  for (const center of [
    [9, 45],
    [179.99, -16],
    [-70, 84],
    [20, 89.99],
  ] as Place[]) {
    const box = boxOf({ form: "circle", center, radius_m: 5000 }, "geodetic");
    for (const [lon, lat] of circleRing(planeOf("geodetic"), center, 4999)) {
      const place = planeOf("geodetic").toWorld([lon, lat]);
      expect(inBox(box, place, "geodetic"), `${center.join()} ${place.join()}`).toBe(true);
    }
  }
  const circle: Shape = { form: "circle", center: [100, 50], radius_m: 10 };
  const box = boxOf(circle, "planar");
  expect(box).toEqual([90, 40, 110, 60]);
  expect([inBox(box, [110, 60], "planar"), inBox(box, [111, 60], "planar")]).toEqual([true, false]);
  const corridor = boxOf({ form: "corridor", corners: CORNERS, radius_m: 1000 }, "geodetic");
  expect(inBox(corridor, destination([9, 45], 999, Math.PI), "geodetic")).toBe(true);
  expect(inBox(corridor, [10, 45], "geodetic")).toBe(false);
});

test("areas become shapes of the map", () => {
  const plane = planeOf("geodetic");
  expect(shapesOf(plane, undefined, undefined)).toEqual([]);
  expect(shapesOf(plane, { radius_m: 5 }, undefined)).toEqual([]);
  expect(shapesOf(plane, { radius_m: 5 }, [9, 45])[0]?.geometry.type).toBe("Polygon");
  expect(shapesOf(plane, { center: [9, 45], radius_m: 5 }, undefined)).toHaveLength(1);
  const circle = shapesOf(plane, { radius_m: 500 }, [114, 22.5])[0];
  if (circle === undefined) throw new Error("a circle has no shape");
  const { geometry, properties } = discOf(circle);
  expect(geometry.type === "Point" && geometry.coordinates.map((degrees) => Math.round(degrees * 1e4) / 1e4)).toEqual([114, 22.5]);
  // At zoom 10 a pixel is 70.6 m there.
  expect(Number(properties?.["radius"]) * 2 ** 10).toBeCloseTo(500 / 70.6, 1);
  expect(shapesOf(plane, { polygon: { type: "MultiPolygon", coordinates: [[CORNERS], [CORNERS]] } }, undefined)).toHaveLength(2);
  const [corridor] = shapesOf(plane, { corridor: { coordinates: CORNERS }, radius_m: 1000 }, undefined);
  expect(corridor?.geometry.type).toBe("LineString");
  const line = greatCircles([
    [170, 50],
    [-170, 50],
  ]);
  expect(line.at(-1)).toEqual([190, 50]);
  expect(Math.max(...line.map(([, lat]) => lat))).toBeGreaterThan(50.3);
  expect(areaWords({ nearest: 3 }, metres)).toBe("everywhere, the 3 nearest");
  expect(areaWords({ radius_m: 500 }, metres)).toBe("within 500 m of the client");
  expect(distance_m("geodetic", CORNERS[0] ?? [0, 0], CORNERS[1] ?? [0, 0])).toBeGreaterThan(15_000);
});

test("an explanation is told in words and figures", () => {
  const filter = (
    area: object,
    constraints: Explanation["filters"][number]["condition"]["constraints"] = [],
  ): Explanation["filters"][number] => ({
    matched: false,
    area: { form: "circle", holds: false, metres_outside: 30.2, ...area },
    condition: { truth: "false", constraints },
  });
  const words = filterWords(
    filter({ form: "following", distance_m: 130.2, radius_m: 100 }, [
      { constraint: "severity >= 3", attribute: "severity", value: 2, truth: "false", reason: "severity is 2, which is not >= 3" },
      { constraint: "a = 1", attribute: "a", value: null, truth: "unknown", reason: "a is absent" },
    ]),
  );
  expect(words.area).toEqual({
    mark: "no",
    text: "130 m from the client, 30 m too far.",
    distance: { distance_m: 130.2, radius_m: 100 },
  });
  expect(words.constraints.map(({ mark, value }) => [mark, value])).toEqual([
    ["no", "2"],
    ["unknown", "absent"],
  ]);
  expect(filterWords(filter({ form: "following", metres_outside: null })).area.text).toMatch("told no position");
  expect(filterWords(filter({ form: "polygon", holds: true, metres_outside: 0, distance_m: 0 })).area.text).toBe("Inside of the polygon.");
  expect(filterWords(filter({ form: "everywhere", holds: true, metres_outside: 0 })).area.mark).toBe("yes");
  expect(filterWords(filter({ nearest: { k: 3, rank: 5, holds: false } })).nearest).toEqual({
    mark: "no",
    text: "It is number 5; the nearest 3 count.",
  });
  const explanation = { matched: false, inside: false, why: "", filters: [] };
  expect(notes({ ...explanation, reach: { holds: false, reach_m: 50, distance_m: 80, metres_outside: 30 } })).toEqual({
    reach: "The event reaches 50 m, which is not far enough. The client is 80 m away.",
  });
  expect(notes({ ...explanation, position_withheld: true }).position).toContain("unknown");
  expect(notes({ ...explanation, position: { coordinates: [0, 0], age_s: 2.5, accuracy_m: 12 } })).toEqual({
    position: "3 s old, good to 12 m",
  });
  expect(notes({ ...explanation, position: { coordinates: [0, 0], age_s: 181, accuracy_m: null } })).toEqual({
    position: "3 min old",
    isOld: true,
  });
});

test("what is wrong with a token is said without asking anybody", () => {
  const token = (claims: object): string => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
  expect(faultOf("", 0)).toMatch("Paste");
  expect(faultOf("abc", 0)).toMatch("three parts");
  expect(faultOf("a.b.c", 0)).toMatch("cannot be read");
  expect(faultOf(token({ exp: 100 }), 160)).toBe("This token ended 60 s ago. Get a new one.");
  expect(faultOf(token({ exp: 100 }), 99)).toBeUndefined();
});
