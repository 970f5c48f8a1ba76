// What is live now, and where a client is, asked of a real broker.

import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, expect, test } from "vitest";

import { alongRoute, around, attr, circle, connect, event, type Query, type Session } from "nearcast";
import { Broker } from "../support/broker.js";
import { within } from "../support/wait.js";

const COUNT = 25;

let broker: Broker;
let session: Session;

beforeAll(async () => {
  broker = await Broker.start();
  session = await connect({ url: broker.url, client: "ann/ü" });
  await session.publishMany(Array.from({ length: COUNT }, (_, n) => event([9 + n / 1000, 45], { n }, { ttl_s: 600 })));
});
afterAll(async () => {
  await session.close();
  await broker.stop();
});

async function numbers(query: Query): Promise<number[]> {
  const found: number[] = [];
  for await (const { properties } of session.events<{ n: number }>(query)) found.push(properties.n);
  return found;
}

test("live events come page by page, each once", async () => {
  expect((await numbers({ page: 7 })).sort((a, b) => a - b)).toEqual(Array.from({ length: COUNT }, (_, n) => n));
  expect(await numbers({ near: { center: [9.0101, 45], radius_m: 200 }, page: 1 })).toEqual([10, 11, 9, 12, 8]);
  expect(await numbers({ bbox: [8.9, 44.9, 9.0101, 45.1], where: attr("n").ge(10) })).toEqual([10]);
  expect(await numbers({ client: session.client, where: "n = 3" })).toEqual([]);
  await expect(numbers({ bbox: [45, 109, 46, 110] })).rejects.toThrow("swapped");
});

test("a client has a push subscription", async () => {
  const keys = {
    p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    auth: "BTBZMqHH6r4Tts7J_aSIgg",
  };
  expect(await session.pushKey()).toHaveLength(87);
  await expect(session.push()).rejects.toMatchObject({ code: "not-found" });
  const made = await session.putPush({ endpoint: "https://1.1.1.1/a", expirationTime: null, keys });
  expect(made).toMatchObject({ endpoint_origin: "https://1.1.1.1", last_push: null, failures: 0 });
  expect(await session.push()).toEqual(made);
  await session.deletePush();
  await expect(session.push()).rejects.toMatchObject({ code: "not-found" });
});

test("routes lead along the streets", async () => {
  const streets = fileURLToPath(new URL("../../../../loadgen/data/liechtenstein/highways.osm.pbf", import.meta.url));
  const there = await Broker.start({ settings: { "routes.streets": streets } });
  const asker = await connect({ url: there.url, client: "asker" });
  const [vaduz, schaan] = [
    [9.5209, 47.1415],
    [9.5085, 47.165],
  ] as const;
  const found = await asker.route(vaduz, schaan, { by: "length", deadline_ms: 10_000 });
  expect(found).toMatchObject({ level: 0, score: 6, route: { type: "LineString" } });
  expect(found.length_m).toBeGreaterThan(2_500);
  expect(found.length_m).toBeLessThan(4_000);
  await expect(asker.route(vaduz, [8, 50])).rejects.toMatchObject({ code: "no-route" });
  await asker.subscribe("way", { filters: [{ area: alongRoute(schaan, 100) }] });
  expect(await asker.routes()).toMatchObject([{ subscription: "way", filter: 0, state: "no-position" }]);
  await asker.move(vaduz, { confirm: true });
  const [way] = await asker.routes();
  expect(way).toMatchObject({ state: "found", to: schaan, by: "duration", radius_m: 100, route: { type: "LineString" } });
  expect(way?.left_m).toBeGreaterThan(2_000);
  await asker.close();
  await there.stop();
  await expect(session.routes()).rejects.toMatchObject({ code: "no-streets" });
  await expect(session.route(vaduz, schaan)).rejects.toMatchObject({ code: "no-streets" });
});

test("properties that were published as null, or not at all, are an object", async () => {
  await session.subscribe("bare", { filters: [{ area: circle([1, 1], 100) }] });
  const bare = { type: "Feature", geometry: { type: "Point", coordinates: [1, 1] }, ttl_s: 600 } as const;
  const ids = [await session.publish({ ...bare, properties: null }), await session.publish(bare)];
  const messages = session[Symbol.asyncIterator]();
  for (const id of ids) {
    expect((await within(messages.next(), "the event")).value).toMatchObject({ kind: "event", feature: { id, properties: {} } });
  }
  const live: unknown[] = [];
  for await (const { properties } of session.events({ near: { center: [1, 1], radius_m: 1 } })) live.push(properties);
  expect(live).toEqual([{}, {}]);
  await session.unsubscribe("bare");
  for (const id of ids) await session.revoke(id);
});

test("a position is told, and what is held there", async () => {
  await expect(session.position()).rejects.toMatchObject({ code: "not-found" });
  await session.subscribe("near", { filters: [{ area: around(150) }] });
  await session.move([9.01, 45], { confirm: true });
  expect(await session.position()).toMatchObject({ coordinates: [9.01, 45] });
  expect((await numbers({ client: session.client })).sort((a, b) => a - b)).toEqual([9, 10, 11]);
});
