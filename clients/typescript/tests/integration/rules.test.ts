// Rule sets, put in force with a real broker.

import { afterAll, beforeAll, expect, test } from "vitest";

import { attr, connect, event, type RuleSet, type Session } from "nearcast";
import { Broker } from "../support/broker.js";
import { within } from "../support/wait.js";

let broker: Broker;
let session: Session;

beforeAll(async () => {
  broker = await Broker.start();
  session = await connect({ url: broker.url, client: "ann" });
});
afterAll(async () => {
  await session.close();
  await broker.stop();
});

const merging: RuleSet = {
  facts: { report: { where: attr("type").eq("accident"), args: ["@id", "@lon", "@lat"], for_s: 300 } },
  program: "report(A, X, Y) \\ report(_, U, V) <=> distance(X, Y, U, V) < 100 | accident(A, X, Y).",
  publish: { accident: { at: [1, 2], properties: { type: "accidents", first: "{0}" } } },
};

test("reports of one accident are merged", async () => {
  const { ruleSet, created } = await session.putRuleSet("merge", merging);
  expect(created).toBe(true);
  expect(ruleSet).toMatchObject({ clock: "arrival", facts: { report: { where: "type = 'accident'" } }, activity: { constraints: 0 } });
  const [listed] = await session.ruleSets();
  expect(listed?.name).toBe("merge");
  if (listed !== undefined) expect((await session.putRuleSet("merge", listed)).created).toBe(false);
  await session.subscribe("accidents", { filters: [{ where: attr("type").eq("accidents") }] });
  for (const [n, latitude] of [45.464, 45.4641, 45.6].entries()) {
    await session.publish(event([9.19, latitude], { type: "accident" }, { id: `r${n}` }));
  }
  const { value } = await within(session[Symbol.asyncIterator]().next(), "the accident");
  expect(value).toMatchObject({ feature: { properties: { type: "accidents", first: "r0" }, derived: { by: "rules/merge", depth: 1 } } });
  await expect(session.putRuleSet("merge", { ...merging, program: "report(" })).rejects.toMatchObject({
    code: "invalid-document",
    errors: [{ pointer: "/program" }],
  });
  await session.deleteRuleSet("merge");
});

test("a rule set is paused, goes on, and ends", async () => {
  const name = "merge/ü";
  await session.putRuleSet(name, merging);
  await session.pauseRuleSet(name);
  expect((await session.ruleSet(name)).activity.paused).toBe(true);
  await session.resumeRuleSet(name);
  expect((await session.ruleSet(name)).activity.paused).toBe(false);
  expect(await session.ruleSetFindings(name)).toEqual([]);
  await session.deleteRuleSet(name);
  expect(await session.ruleSets()).toEqual([]);
  await expect(session.ruleSet(name)).rejects.toMatchObject({ code: "not-found" });
});
