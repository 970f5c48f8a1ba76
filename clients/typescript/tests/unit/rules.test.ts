// The calls for rule sets, as they go over HTTP.

import { expect, test } from "vitest";

import { attr, circle, type RuleSet } from "nearcast";
import { scripted } from "../support/situations.js";

const merging: RuleSet = {
  facts: { report: { where: attr("type").eq("accident"), area: circle([9, 45], 100), args: ["@id", "@lon", "@lat"], for_s: 300 } },
  program: "report(A, X, Y) \\ report(_, U, V) <=> distance(X, Y, U, V) < 100 | accident(A, X, Y).",
  publish: { accident: { at: [1, 2], properties: { type: "accidents", first: "{0}" } } },
};

test("a rule set is written as the builders make it", async () => {
  const { calls, asked, bodies } = scripted(201, { ...merging, activity: { constraints: 0 } });
  const { ruleSet, created } = await calls.putRuleSet("merge/ü", merging);
  expect(asked).toEqual(["PUT /v1/rules/merge%2F%C3%BC"]);
  expect(bodies[0]).toMatchObject({
    facts: { report: { where: "type = 'accident'", area: { center: [9, 45], radius_m: 100 }, for_s: 300 } },
    program: merging.program,
  });
  expect(created).toBe(true);
  expect(ruleSet.activity.constraints).toBe(0);
  expect((await scripted(200, {}).calls.putRuleSet("merge", merging)).created).toBe(false);
});

test("rule sets are asked for, paused and ended", async () => {
  const { calls, asked } = scripted(204, undefined);
  await calls.ruleSets();
  await calls.ruleSet("a");
  await calls.pauseRuleSet("a");
  await calls.resumeRuleSet("a");
  await calls.deleteRuleSet("a");
  expect(asked).toEqual(["GET /v1/rules", "GET /v1/rules/a", "POST /v1/rules/a/pause", "POST /v1/rules/a/resume", "DELETE /v1/rules/a"]);
});

test("a finding may lack what it follows from", async () => {
  const place = { type: "Point", coordinates: [9, 45] };
  const found = { type: "Feature", id: "f", time: "2026-03-01T08:00:00Z", geometry: place, derived: { by: "rules/a", depth: 1 } };
  const { calls, asked } = scripted(200, [found]);
  const [finding] = await calls.ruleSetFindings("a");
  expect(asked).toEqual(["GET /v1/rules/a/findings"]);
  expect(finding).toEqual({ ...found, properties: {} });
  expect(finding?.derived?.from).toBeUndefined();
});
