// The calls for group definitions, as they go over HTTP.

import { expect, test } from "vitest";

import { attr, circle, type GroupDefinition } from "nearcast";
import { scripted } from "../support/situations.js";

const pickup: GroupDefinition = {
  roles: { taxi: { where: attr("type").eq("taxi"), area: circle([9, 45], 100) }, rider: { where: "type = 'rider'" } },
  where: ["DISTANCE(taxi, rider) <= 800"],
  order: "DISTANCE(taxi, rider)",
};

test("a group definition is written as the builders make it, its roles in their order", async () => {
  const { calls, asked, bodies } = scripted(201, { ...pickup, activity: { candidates: { taxi: 0, rider: 0 } } });
  const { groupDefinition, created } = await calls.putGroupDefinition("pickup/ü", pickup);
  expect(asked).toEqual(["PUT /v1/groups/pickup%2F%C3%BC"]);
  const taxi = { where: "type = 'taxi'", area: { center: [9, 45], radius_m: 100 } };
  expect(bodies).toEqual([{ ...pickup, roles: { taxi, rider: { where: "type = 'rider'" } } }]);
  const [body] = bodies as [GroupDefinition];
  expect(Object.keys(body.roles)).toEqual(["taxi", "rider"]);
  expect(created).toBe(true);
  expect(groupDefinition.activity.candidates).toEqual({ taxi: 0, rider: 0 });
  expect((await scripted(200, {}).calls.putGroupDefinition("pickup", pickup)).created).toBe(false);
});

test("group definitions are asked for, paused and ended", async () => {
  const { calls, asked } = scripted(204, undefined);
  await calls.groupDefinitions();
  await calls.groupDefinition("a");
  await calls.pauseGroupDefinition("a");
  await calls.resumeGroupDefinition("a");
  await calls.deleteGroupDefinition("a");
  expect(asked).toEqual([
    "GET /v1/groups",
    "GET /v1/groups/a",
    "POST /v1/groups/a/pause",
    "POST /v1/groups/a/resume",
    "DELETE /v1/groups/a",
  ]);
});

test("an object is asked about by its name", async () => {
  const why = "t/1 is in no group: as taxi, there is no candidate for rider";
  const explained = { object: "t/1", groups: 0, roles: [{ role: "taxi", consistent: false, partners: [] }], why };
  const { calls, asked } = scripted(200, explained);
  expect(await calls.explainObject("a/b", "t/1")).toEqual(explained);
  expect(asked).toEqual(["GET /v1/groups/a%2Fb/objects/t%2F1"]);
});

test("a finding may lack which objects it is about", async () => {
  const place = { type: "Point", coordinates: [9, 45] };
  const properties = { type: "group", group: "a", transition: "enter" };
  const found = {
    type: "Feature",
    id: "f",
    time: "2026-03-01T08:00:00Z",
    geometry: place,
    properties,
    derived: { by: "groups/a", depth: 1 },
  };
  const { calls, asked } = scripted(200, [found]);
  const [finding] = await calls.groupDefinitionFindings("a");
  expect(asked).toEqual(["GET /v1/groups/a/findings"]);
  expect(finding?.properties.transition).toBe("enter");
  expect(finding?.properties.roles).toBeUndefined();
});
