// Group definitions, put in force with a real broker.

import { afterAll, beforeAll, expect, test, vi } from "vitest";

import { attr, connect, event, type Feature, type GroupDefinition, type Session } from "nearcast";
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

const pickup: GroupDefinition = {
  roles: { taxi: { where: attr("type").eq("taxi") }, rider: { where: attr("type").eq("rider") } },
  where: ["DISTANCE(taxi, rider) <= 800", "taxi.seats >= rider.party"],
  order: "DISTANCE(taxi, rider)",
};

/** A live object, at a latitude. */
function live(key: string, latitude: number, properties: object): Feature<object> {
  return event([9.19, latitude], properties, { key, id: `${key}@${latitude}` });
}

test("a taxi and a rider who fit together are reported", async () => {
  const { groupDefinition, created } = await session.putGroupDefinition("pickup", pickup);
  expect(created).toBe(true);
  const { where, order } = pickup;
  expect(groupDefinition).toMatchObject({ roles: { taxi: { where: "type = 'taxi'" } }, where, order, limit: 100, activity: { inputs: 0 } });
  const [listed] = await session.groupDefinitions();
  expect(listed?.name).toBe("pickup");
  if (listed !== undefined) {
    expect(Object.keys(listed.roles)).toEqual(["taxi", "rider"]);
    expect((await session.putGroupDefinition("pickup", listed)).created).toBe(false);
  }
  await session.subscribe("groups", { filters: [{ where: attr("type").eq("group") }] });
  const messages = session[Symbol.asyncIterator]();
  await session.publish(live("t1", 45.46, { type: "taxi", seats: 4 }));
  await session.publish(live("r1", 45.461, { type: "rider", party: 2 }));
  const group = { taxi: "t1", rider: "r1" };
  const { value: entered } = await within(messages.next(), "the group");
  expect(entered).toMatchObject({
    feature: {
      // The place of the first role's.
      geometry: { coordinates: [9.19, 45.46] },
      properties: { type: "group", group: "pickup", roles: group, transition: "enter" },
      derived: { by: "groups/pickup", from: ["t1@45.46", "r1@45.461"], depth: 1 },
    },
  });
  await vi.waitFor(async () => {
    expect((await session.groupDefinition("pickup")).groups).toEqual([group]);
  }, 15_000);
  const { activity } = await session.groupDefinition("pickup");
  expect(activity).toMatchObject({ candidates: { taxi: 1, rider: 1 }, consistent: { taxi: 1, rider: 1 } });
  expect(await session.explainObject("pickup", "t1")).toMatchObject({ groups: 1, why: "t1 is in one group" });
  await session.publish(live("t1", 45.6, { type: "taxi", seats: 4 }));
  const { value: left } = await within(messages.next(), "the end of the group");
  expect(left).toMatchObject({ feature: { properties: { roles: group, transition: "exit" } } });
  // They are listed once they are committed, which may be after their delivery.
  await vi.waitFor(async () => {
    const findings = await session.groupDefinitionFindings("pickup");
    expect(findings.map(({ properties }) => properties.transition)).toEqual(["exit", "enter"]);
  }, 15_000);
  const { why, groups, roles } = await session.explainObject("pickup", "t1");
  expect([groups, roles[0]?.consistent, roles[0]?.partners[0]]).toMatchObject([
    0,
    false,
    { role: "rider", candidates: 1, left: [{ where: pickup.where?.[0], candidates: 0 }, { candidates: 1 }], fitting: 0 },
  ]);
  expect(why).toMatch(/^t1 is in no group: as taxi, of 1 of role rider none fits/);
  await expect(session.explainObject("pickup", "nobody")).rejects.toMatchObject({ code: "not-found" });
  await expect(session.putGroupDefinition("pickup", { ...pickup, where: ["DISTANCE(taxi, bus) < 5"] })).rejects.toMatchObject({
    code: "invalid-document",
    errors: [{ pointer: "/where/0" }],
  });
  await session.deleteGroupDefinition("pickup");
});

test("a group definition is paused, goes on, and ends", async () => {
  const name = "pickup/ü";
  await session.putGroupDefinition(name, pickup);
  await session.pauseGroupDefinition(name);
  expect((await session.groupDefinition(name)).activity.paused).toBe(true);
  await session.resumeGroupDefinition(name);
  expect((await session.groupDefinition(name)).activity.paused).toBe(false);
  expect(await session.groupDefinitionFindings(name)).toEqual([]);
  await session.deleteGroupDefinition(name);
  expect(await session.groupDefinitions()).toEqual([]);
  await expect(session.groupDefinition(name)).rejects.toMatchObject({ code: "not-found" });
});
