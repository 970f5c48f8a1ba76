// Tokens, and a real broker that wants them.

import { afterAll, beforeAll, expect, test } from "vitest";

import { connect, event, type Connection } from "nearcast";
import { Broker } from "../support/broker.js";
import { until, within } from "../support/wait.js";

let broker: Broker;
beforeAll(async () => {
  broker = await Broker.start({ tokens: true, settings: { "auth.leeway_s": 0 } });
});
afterAll(() => broker.stop());

const now_s = (): number => Date.now() / 1000;

test.concurrent("a session goes on by another token before its own ends", async () => {
  const changes: Connection[] = [];
  let asked = 0;
  const session = await connect({
    url: broker.url,
    client: "ann",
    token: () => {
      asked += 1;
      return broker.token("ann", "subscribe publish", now_s() + 6);
    },
    onConnection: (change) => changes.push(change),
  });
  const end_s = now_s() + 6;
  await until(() => now_s() > end_s + 0.5, "the first token has ended");
  expect(asked).toBeGreaterThan(1);
  await session.subscribe("all", { filters: [{}] });
  await session.publish(event([9, 45], {}));
  await session.publishMany([event([9, 45], {})]);
  expect(changes.map(({ state }) => state)).toEqual(["connecting", "ready"]);
  await session.close();
});

test.concurrent("a session without another token ends with its own", async () => {
  const session = await connect({ url: broker.url, client: "bob", token: broker.token("bob", "subscribe", now_s() + 10) });
  const end = within(session[Symbol.asyncIterator]().next(), "the end");
  await expect(end).rejects.toMatchObject({ name: "Closed", code: 4401, cause: { code: "token-expired" } });
  await expect(session.subscribe("s", { filters: [{}] })).rejects.toMatchObject({ name: "Closed" });
});

test.concurrent("a token that does not permit it is told so", async () => {
  const token = broker.token("cy", "subscribe");
  await expect(connect({ url: broker.url, client: "dora", token })).rejects.toMatchObject({ code: "forbidden", status: 403 });
  await expect(connect({ url: broker.url, client: "dora" })).rejects.toMatchObject({ code: "unauthenticated", status: 401 });
  const session = await connect({ url: broker.url, client: "cy", token });
  await expect(session.publish(event([9, 45], {}))).rejects.toMatchObject({ code: "forbidden" });
  await expect(session.publishMany([event([9, 45], {})])).rejects.toMatchObject({ cause: { code: "forbidden" } });
  await session.close();
});
