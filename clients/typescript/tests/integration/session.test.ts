// A session and a real broker.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import {
  around,
  attr,
  circle,
  connect,
  event,
  everywhere,
  ProblemError,
  type Delivery,
  type Feature,
  type Message,
  type Session,
} from "nearcast";
import { Broker } from "../support/broker.js";
import { within } from "../support/wait.js";

interface Incident {
  readonly type: string;
  readonly severity: number;
}

let broker: Broker;
let clients = 0;

beforeAll(async () => {
  broker = await Broker.start({ settings: { "limits.events_per_second": 100_000 } });
});
afterAll(() => broker.stop());

/** A session of a client of its own, and its messages. */
async function someone(): Promise<{
  session: Session<Incident>;
  next: () => Promise<Message<Incident>>;
  delivery: () => Promise<Delivery<Incident>>;
}> {
  clients += 1;
  const session = await connect<Incident>({ url: broker.url, client: `client ${clients}/ü` });
  const messages = session[Symbol.asyncIterator]();
  const next = async (): Promise<Message<Incident>> => {
    const { value } = await within(messages.next(), "a message");
    if (value === undefined) throw new Error("there are no more");
    return value;
  };
  const delivery = async (): Promise<Delivery<Incident>> => {
    const message = await next();
    if (message.kind !== "event") throw new Error(`a gap: ${JSON.stringify(message)}`);
    return message;
  };
  return { session, next, delivery };
}

const here = [9.1895, 45.4642] as const;
const near = [9.1901, 45.465] as const;
const far = [9.25, 45.46] as const;

describe("a session", () => {
  test("gets what lies near and matches, and nothing else", async () => {
    const { session, delivery } = await someone();
    await session.move(here, { confirm: true });
    await session.subscribe("accidents", {
      filters: [{ area: around(500), where: attr("type").eq("accident").and(attr("severity").ge(2)) }],
    });
    await session.publish(event(far, { type: "accident", severity: 3 }));
    await session.publish(event(near, { type: "accident", severity: 1 }));
    const id = await session.publish(event(near, { type: "accident", severity: 3 }, { reach_m: 1000 }));
    const { feature, subscriptions, cause, offset, ahead } = await delivery();
    expect(feature.id).toBe(id);
    expect(feature.properties.severity).toBe(3);
    expect({ subscriptions, cause, offset, ahead }).toEqual({ subscriptions: ["accidents"], cause: "published", offset: 1, ahead: false });
    await session.unsubscribe("accidents");
    await expect(session.unsubscribe("accidents")).rejects.toMatchObject({ code: "not-found", status: 404 });
    await session.close();
    await expect(session.publish(event(here, {}))).rejects.toThrow("the session is closed");
  });

  test("is told of objects that come and go, whichever of the two moves", async () => {
    const { session, delivery } = await someone();
    await session.move(far, { confirm: true });
    await session.subscribe("buses", { filters: [{ area: around(300), where: "type = 'transitions bus'" }], on: ["enter", "exit"] });
    const bus = (at: readonly [number, number]): Feature => event(at, { type: "transitions bus" }, { key: "bus-7", ttl_s: 600 });
    await session.publish(bus(here));
    await session.move(here);
    expect(await delivery()).toMatchObject({ transition: "enter", cause: "moved" });
    await session.publish(bus(far));
    expect(await delivery()).toMatchObject({ transition: "exit", cause: "published", feature: { key: "bus-7" } });
    await session.publish(bus(near));
    expect(await delivery()).toMatchObject({ transition: "enter" });
    const { feature } = await session.publish(bus(here)).then(async (id) => {
      await session.revoke(id);
      return delivery();
    });
    expect(feature.geometry.coordinates).toEqual([...here]);
    await session.close();
  });

  test("finds what it passed while it was away, by a track", async () => {
    const { session, delivery } = await someone();
    await session.move([10, 45], { confirm: true });
    await session.subscribe("way", { filters: [{ area: around(200), where: "type = 'on the way'" }] });
    await session.publish(event([10.05, 45], { type: "on the way" }, { ttl_s: 60 }));
    await session.track([
      [10.01, 45, 1772350200],
      [10.1, 45, 1772350260],
    ]);
    expect(await delivery()).toMatchObject({ cause: "moved", feature: { properties: { type: "on the way" } } });
    await session.close();
  });

  test("hands on a trace", async () => {
    const { session, delivery } = await someone();
    await session.subscribe("traced", { filters: [{ area: everywhere(), where: attr("type").eq("traced") }] });
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    await session.publish(event(here, { type: "traced" }), { traceparent, tracestate: "vendor=1" });
    expect((await delivery()).trace).toEqual({ traceparent, tracestate: "vendor=1" });
    await session.close();
  });

  test("is told what is wrong, and where", async () => {
    const { session } = await someone();
    const failed: unknown = await session
      .subscribe("bad", { filters: [{ area: circle(here, -1), where: "severity >=" }], dwell_s: 5 })
      .catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(ProblemError);
    const { code, status, errors } = failed as ProblemError;
    expect({ code, status }).toEqual({ code: "invalid-document", status: 400 });
    expect(errors.map(({ pointer }) => pointer)).toContain("/filters/0/where");
    expect(errors.map(({ pointer }) => pointer)).toContain("/filters/0/area/radius_m");
    await expect(session.publish(event([200, 0], {}))).rejects.toMatchObject({ errors: [{ pointer: "/event/geometry/coordinates" }] });
    await expect(session.move([0, 91], { confirm: true })).rejects.toBeInstanceOf(ProblemError);
    await session.close();
  });

  test("is told of a move that was refused, where it listens for that", async () => {
    const problems: ProblemError[] = [];
    let told: () => void = () => undefined;
    const come = new Promise<void>((resolve) => (told = resolve));
    const session = await connect({
      url: broker.url,
      client: "lost",
      onProblem: (problem) => {
        problems.push(problem);
        told();
      },
    });
    await session.move([0, 91]);
    await within(come, "the problem");
    expect(problems[0]?.status).toBe(400);
    await session.close();
  });
});

describe("over HTTP", () => {
  test("many events are published, and those that are refused are told by their place in the input", async () => {
    const { session, delivery } = await someone();
    await session.subscribe("many", { filters: [{ where: "type = 'many'" }] });
    const events = async function* (): AsyncGenerator<Feature> {
      for (let i = 0; i < 25; i++) yield event(i % 10 === 3 ? [200, 0] : here, { type: "many", i });
    };
    const report = await session.publishMany(events(), { batch: 4 });
    expect(report.accepted).toBe(22);
    expect(report.rejected.map(({ index }) => index)).toEqual([3, 13, 23]);
    expect(report.rejected[1]?.problem.code).toBe("invalid-document");
    for (let i = 0; i < 25; i++) if (i % 10 !== 3) expect((await delivery()).feature.properties).toMatchObject({ i });
    expect(await session.publishMany([])).toEqual({ accepted: 0, rejected: [], rejected_unlisted: 0 });
    await session.close();
  });

  test("a batch that the broker ends is gone on with behind what it has decided", async () => {
    const slow = await Broker.start({ settings: { "limits.events_per_second": 100 } });
    const session = await connect({ url: slow.url, client: "ann" });
    await session.subscribe("all", { filters: [{ area: everywhere() }] });
    const numbers = Array.from({ length: 250 }, (_, i) => i);
    const report = await session.publishMany(
      numbers.map((i) => event(i % 7 === 1 ? [200, 0] : here, { i })),
      { batch: 80 },
    );
    const [wrong, right] = [numbers.filter((i) => i % 7 === 1), numbers.filter((i) => i % 7 !== 1)];
    expect(report.rejected.map(({ index }) => index)).toEqual(wrong);
    expect(report.accepted).toBe(right.length);
    await session.publish(event(here, { i: 250 }));
    const messages = session[Symbol.asyncIterator]();
    for (const i of [...right, 250]) {
      const { value } = await within(messages.next(), "a delivery");
      expect(value).toMatchObject({ feature: { properties: { i } } });
    }
    await session.close();
    await slow.stop();
  });

  test("many positions are told", async () => {
    const { session, delivery } = await someone();
    await session.subscribe("around", { filters: [{ area: around(100), where: "type = 'moved'" }] });
    const report = await session.moveMany([
      { client: session.client, coordinates: here },
      { client: "x", coordinates: [0, 100] },
      { client: "y", track: [[9, 45, 1]], accuracy_m: 5 },
    ]);
    expect(report).toMatchObject({ moved: 2, rejected: [{ index: 1 }] });
    await session.publish(event(here, { type: "moved" }));
    await delivery();
    await session.close();
  });

  test("subscriptions, explanations and deliveries can be asked for", async () => {
    const { session, delivery } = await someone();
    await session.subscribe("s1", { filters: [{ where: attr("severity").ge(2).not() }], overflow: "keep-latest" });
    const [shown] = await session.subscriptions();
    expect(shown).toMatchObject({ id: "s1", filters: [{ where: "NOT severity >= 2" }], on: ["event"], durable: false });
    const explanation = await session.explain({ subscription: "s1", event: event(here, { severity: 3 }) });
    expect(explanation.matched).toBe(false);
    expect(explanation.filters[0]?.condition.constraints[0]).toMatchObject({ attribute: "severity", value: 3 });
    const id = await session.publish(event(here, { severity: 1 }, { ttl_s: 60 }));
    await delivery();
    expect((await session.deliveries(id)).deliveries).toContainEqual(
      expect.objectContaining({ client: session.client, offset: 1, cause: "published" }),
    );
    await session.revoke(id);
    await expect(session.revoke(id)).rejects.toMatchObject({ code: "not-found" });
    await session.forget();
    const again = await connect({ url: broker.url, client: session.client });
    expect(await again.subscriptions()).toEqual([]);
    await again.close();
  });

  test("a broker that is not there is told so", async () => {
    const { session } = await someone();
    const none = await connect({ url: broker.url, client: "none", fetch: () => Promise.reject(new TypeError("fetch failed")) });
    await expect(none.subscriptions()).rejects.toMatchObject({ name: "ConnectionError", cause: { message: "fetch failed" } });
    await none.close();
    await session.close();
  });
});

test("a url that is none is refused, and so are a client without a name and a checkpoint that is none", async () => {
  await expect(connect({ url: "ftp://x", client: "a" })).rejects.toThrow("the url of a broker");
  await expect(connect({ url: broker.url, client: "" })).rejects.toThrow("a client has a name");
  await expect(connect({ url: broker.url, client: "a", resume: { epoch: "e", offset: -1 } })).rejects.toThrow("resume");
});
