// What the console says of groups, by itself.

import type { DeliveredFeature } from "nearcast";
import { expect, test } from "vitest";

import { BLANK, documentOf, draftFaults, draftOf, faultsOf, RIDERS_AND_TAXIS } from "../../src/console/groups/draft.js";
import { drawingOf } from "../../src/console/groups/drawing.js";
import { changeOf, definitionLine, linksOf, objectsOf } from "../../src/console/groups/groups.js";
import { linesOf } from "../../src/console/groups/lines.js";
import { Objects } from "../../src/console/live/objects.js";
import { planeOf } from "../../src/shared/map/plane.js";

const change = (properties: DeliveredFeature["properties"], by = "groups/pickup"): DeliveredFeature => ({
  type: "Feature",
  id: "f1",
  time: "2026-03-01T08:00:00Z",
  geometry: { type: "Point", coordinates: [9, 45] },
  properties,
  derived: { by, depth: 1, from: ["t1", "r1"] },
});

test("an event tells of a group if the broker says so", () => {
  const properties = { type: "group", group: "pickup", transition: "enter", roles: { rider: "rider-1", taxi: "taxi-1" } };
  expect(changeOf(change(properties))).toMatchObject({ definition: "pickup", transition: "enter", group: properties.roles });
  // A reader that is confined otherwise does not see the objects.
  expect(changeOf(change({ ...properties, roles: undefined }))?.group).toBeUndefined();
  expect(changeOf(change(properties, "groups/other"))).toBeUndefined();
  expect(changeOf(change(properties, "checks/pickup"))).toBeUndefined();
  expect(changeOf(change({ ...properties, transition: "on" }))).toBeUndefined();
  expect(changeOf(change({}))).toBeUndefined();
});

test("objects stand in the order of the roles", () => {
  const group = { rider: "r", stand: "s", taxi: "t" };
  expect(objectsOf(group, ["taxi", "rider", "stand"])).toEqual(["t", "r", "s"]);
  expect(objectsOf(group, ["taxi"])).toEqual(["t", "r", "s"]);
  expect(objectsOf({ constructor: "c" }, ["taxi", "constructor"])).toEqual(["c"]);
});

test("lines are between roles that share a condition, and the first for one that shares none", () => {
  const roles = ["taxi", "rider", "stand"];
  expect(linksOf(roles, ["DISTANCE(taxi, rider) <= 800", "rider.party <= taxi.seats", "DISTANCE(stand, rider) < 9"])).toEqual([
    ["taxi", "rider"],
    ["rider", "stand"],
  ]);
  expect(linksOf(roles, ["taxi.name = 'rider'", "stand.x > 1"])).toEqual([
    ["taxi", "rider"],
    ["taxi", "stand"],
  ]);
  expect(linksOf(["a b", "c"], ['"a b".x = c.x'])).toEqual([["a b", "c"]]);
  expect(linksOf([...roles, "bus"], ["DISTANCE(stand, bus) < 9"])).toEqual([
    ["stand", "bus"],
    ["taxi", "rider"],
    ["taxi", "stand"],
  ]);
  expect([linksOf(["taxi"]), linksOf([])]).toEqual([[], []]);
});

test("lines of many groups are there once each, and no more than are drawn", () => {
  const roles = { taxi: {}, rider: {}, stand: {} };
  const where = ["DISTANCE(taxi, rider) < 1", "DISTANCE(rider, stand) < 1"];
  const groups = [
    { taxi: "t1", rider: "r1", stand: "s1" },
    { taxi: "t1", rider: "r1", stand: "s2" },
  ];
  expect(linesOf([{ roles, where, groups }])).toEqual([
    ["t1", "r1"],
    ["r1", "s1"],
    ["r1", "s2"],
  ]);
  expect(linesOf([{ roles, where, groups }], 2)).toHaveLength(2);
  expect(linesOf([{ roles, where }])).toEqual([]);
});

test("a group is drawn with the distance of those whose places are known", () => {
  const places: Readonly<Record<string, readonly [number, number]>> = { t: [0, 0], r: [0.001, 0] };
  const group = { taxi: "t", rider: "r", stand: "s" };
  const links = [
    ["taxi", "rider"],
    ["rider", "stand"],
  ] as const;
  const { features, labels } = drawingOf(planeOf("geodetic"), group, links, (object) => places[object]);
  expect(features.map(({ geometry }) => geometry.type)).toEqual(["Point", "Point", "LineString"]);
  expect(features.every(({ properties }) => properties?.["as"] === "group")).toBe(true);
  expect(labels).toMatchObject([{ text: "111 m", as: "group" }]);
});

test("a definition is on one line", () => {
  expect(definitionLine({ roles: { taxi: {}, rider: {} }, where: ["DISTANCE(taxi, rider) < 9"] })).toBe(
    "taxi, rider; DISTANCE(taxi, rider) < 9",
  );
});

test("a form is a document, and the document is the form again", () => {
  const document = documentOf(RIDERS_AND_TAXIS);
  expect(Object.keys(document["roles"] as object)).toEqual(["taxi", "rider"]);
  expect(document).toMatchObject({ limit: 100, order: "DISTANCE(taxi, rider)" });
  expect(draftOf(document)).toEqual(RIDERS_AND_TAXIS);
  const area = { center: [9, 45], radius_m: 100 };
  const withArea = { roles: { a: { area } }, where: [] };
  expect(draftOf(withArea)).toEqual({ roles: [{ name: "a", where: "", area }], where: [""], limit: "", order: "" });
  expect(documentOf({ ...BLANK, roles: [{ name: " a ", where: " ", area }], limit: "" })).toEqual(withArea);
  expect(documentOf({ ...BLANK, limit: "many" })["limit"]).toBe("many");
  for (const other of [
    null,
    [],
    {},
    { roles: [] },
    { roles: { a: { where: { op: "=" } } } },
    { roles: {}, limit: "x" },
    { roles: {}, more: 1 },
  ])
    expect(draftOf(other), JSON.stringify(other)).toBeUndefined();
});

test("faults stand at their fields", () => {
  const draft = { ...RIDERS_AND_TAXIS, roles: [{ name: "a/b", where: "x" }, ...RIDERS_AND_TAXIS.roles], where: ["", "one", " ", "two"] };
  const fault = (pointer: string): { pointer: string; detail: string } => ({ pointer, detail: pointer });
  const pointers = ["/roles/a~1b/where", "/roles/taxi", "/where/0", "/where/1", "/limit", "/order", "/roles"];
  const { roles, where, limit, order, others } = faultsOf(draft, pointers.map(fault));
  expect(roles).toEqual([
    { name: [], where: ["/roles/a~1b/where"] },
    { name: ["/roles/taxi"], where: [] },
    { name: [], where: [] },
  ]);
  expect([where, limit, order]).toEqual([[[], ["/where/0"], [], ["/where/1"]], ["/limit"], ["/order"]]);
  expect(others).toEqual([fault("/roles")]);
  expect(draftFaults(BLANK)).toEqual([{ pointer: "/roles", detail: "two roles are called nothing" }]);
  expect(draftFaults(RIDERS_AND_TAXIS)).toEqual([]);
});

test("an object is found by its name: its key, else the id of its event", () => {
  const objects = new Objects(undefined);
  const event = (id: string, more: object): DeliveredFeature => ({ ...change({}), id, ...more });
  objects.put(event("e1", { key: "taxi-1" }), false, 0);
  objects.put(event("e2", { ttl_s: 60 }), false, 0);
  objects.put(event("e3", {}), false, 0);
  expect(["taxi-1", "e2", "e1", "e3"].map((name) => objects.named(name)?.feature.id)).toEqual(["e1", "e2", undefined, undefined]);
  expect(objects.names(5)).toEqual(["e2", "taxi-1"]);
});
