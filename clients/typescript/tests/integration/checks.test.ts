// Checks, put in force with a real broker.

import { afterAll, beforeAll, expect, test, vi } from "vitest";

import { attr, circle, connect, event, everywhere, type Formula, type Session } from "nearcast";
import { Broker } from "../support/broker.js";
import { within } from "../support/wait.js";

let broker: Broker;
let session: Session;

beforeAll(async () => {
  // A verdict is waited for on any machine.
  broker = await Broker.start({ settings: { "checks.hold_ms": 60_000 } });
  session = await connect({ url: broker.url, client: "ann" });
});
afterAll(async () => {
  await session.close();
  await broker.stop();
});

function report(n: number, longitude: number) {
  return event([longitude, 22.5], { taxi: "t1" }, { id: `r${n}`, time: `2026-03-01T08:00:${n}0Z` });
}

test("a check tells what does not fit", async () => {
  const { check, created } = await session.putCheck("jump", { preset: "speed", object: "taxi", max_m_per_s: 55, clock: "event" });
  expect(created).toBe(true);
  expect(check).toMatchObject({ clock: "event", on_violation: "tell", activity: { inputs: 0 } });
  const [listed] = await session.checks();
  expect(listed?.name).toBe("jump");
  if (listed !== undefined) expect((await session.putCheck("jump", listed)).created).toBe(false);
  await session.subscribe("jumps", { filters: [{ where: attr("check").eq("jump") }] });
  for (const [n, longitude] of [114, 114.005, 114.305].entries()) await session.publish(report(n, longitude));
  const told: unknown[] = [];
  const messages = session[Symbol.asyncIterator]();
  for (let n = 0; n < 2; n++) {
    const { value } = await within(messages.next(), "the violation");
    expect(value).toMatchObject({ kind: "event", feature: { properties: { type: "violation", bindings: { b: "r2" } } } });
    expect(value).not.toHaveProperty("violates");
    if (value?.kind !== "event") throw new Error("no event");
    expect(value.feature.derived).toMatchObject({ by: "checks/jump", depth: 1 });
    told.unshift(value.feature);
  }
  // They are listed once the check has committed them, which may be after their delivery.
  await vi.waitFor(async () => {
    expect(await session.checkFindings("jump")).toEqual(told);
  }, 15_000);
  const findings = await session.checkFindings("jump");
  expect(findings.map(({ properties }) => properties.bindings?.["a"]).sort()).toEqual(["r0", "r1"]);
  await expect(session.publish({ ...report(9, 1), derived: findings[0]?.derived })).rejects.toThrow("derived");
  await session.deleteCheck("jump");
});

test("an event that breaks a check is marked or refused", async () => {
  const jump = { preset: "speed", object: "taxi", max_m_per_s: 55, clock: "event" } as const;
  const peer = await connect({ url: broker.url, client: "peer" });
  await peer.subscribe("all", { filters: [{}] });
  const messages = peer[Symbol.asyncIterator]();
  await session.putCheck("jump", { ...jump, on_violation: "mark" });
  await session.publish(report(0, 114));
  await session.publish(report(1, 114.3));
  const { value: plain } = await within(messages.next(), "the first event");
  expect(plain).not.toHaveProperty("violates");
  const { value: marked } = await within(messages.next(), "the marked event");
  expect(marked).toMatchObject({ feature: { id: "r1" }, violates: ["jump"] });
  expect((await session.check("jump")).activity).toMatchObject({ marked: 1, passed: 0 });

  await session.putCheck("jump", { ...jump, on_violation: "drop" });
  await session.publish(report(2, 114));
  await expect(session.publish(report(3, 114.3))).rejects.toMatchObject({
    code: "inconsistent",
    status: 422,
    check: "jump",
    links: [{ a: "r2", b: "r3" }],
  });
  const [finding] = await session.checkFindings("jump");
  expect(finding?.properties).toMatchObject({ outcome: "dropped", event: "r3" });
  await session.deleteCheck("jump");
  await peer.close();
});

test("a check is written as the builders make it", async () => {
  const formula: Formula = { forall: "a", in: "here", that: { not: "a.accuracy_m > 50" } };
  const { check } = await session.putCheck("built", {
    contexts: {
      here: { for_s: 9, where: attr("status").ne(0), area: circle([9, 45], 100) },
      all: { for_s: 9, area: everywhere() },
    },
    formula,
  });
  expect(check.contexts).toEqual({
    all: { for_s: 9 },
    here: { for_s: 9, where: "status <> 0", area: { center: [9, 45], radius_m: 100 } },
  });
  expect(check.formula).toEqual(formula);
  await session.deleteCheck("built");
  await expect(session.putCheck("wrong", { preset: "accuracy", property: "x", max_m: -1 })).rejects.toMatchObject({
    code: "invalid-document",
    errors: [{ pointer: "/max_m" }],
  });
});

test("a check is paused, goes on, and ends", async () => {
  const name = "jump/ü";
  expect((await session.putCheck(name, { preset: "frozen", object: "tag", for_s: 10 })).created).toBe(true);
  await session.pauseCheck(name);
  expect((await session.check(name)).activity.paused).toBe(true);
  await session.resumeCheck(name);
  expect((await session.check(name)).activity.paused).toBe(false);
  expect(await session.checkFindings(name)).toEqual([]);
  await session.deleteCheck(name);
  expect(await session.checks()).toEqual([]);
  const calls = [
    () => session.check(name),
    () => session.checkFindings(name),
    () => session.deleteCheck(name),
    () => session.pauseCheck(name),
    () => session.resumeCheck(name),
  ];
  for (const call of calls) await expect(call()).rejects.toMatchObject({ code: "not-found" });
});
