// Nothing acknowledged is lost: the broker is killed and started again below a session, and sessions end and go on.

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";

import { attr, connect, event, type Connection, type Session } from "nearcast";
import { Broker } from "../support/broker.js";
import { until, within } from "../support/wait.js";

let broker: Broker;
afterEach(() => broker.stop());

const KILLS = 4;
/** How far publishers run ahead of the reader: what is kept for it while it is away is bounded (`sessions.kept_frames`). */
const AHEAD = 2_000;
const quick = { base_s: 0.02, cap_s: 0.2 };

test("what was acknowledged to a publisher arrives, once, however often the broker is killed", async () => {
  broker = await Broker.start({ data: true });
  const changes: Connection[] = [];
  const reader = await connect<{ n: number }>({
    url: broker.url,
    client: "reader",
    backoff: quick,
    onConnection: (change) => {
      changes.push(change);
    },
  });
  await reader.subscribe("numbers", { filters: [{ where: attr("n").ge(0) }], durable: true });
  const publisher = await connect({ url: broker.url, client: "publisher", backoff: quick });

  const got: { n: number; place: string }[] = [];
  const gaps: unknown[] = [];
  const reading = reader.each((message) => {
    if (message.kind === "gap") gaps.push(message);
    else got.push({ n: message.feature.properties.n, place: `${message.epoch}:${message.offset}` });
  });

  let next = 0;
  let stop = false;
  const acknowledged = new Set<number>();
  const publishing = Promise.all(
    Array.from({ length: 20 }, async () => {
      while (!stop) {
        if (next > got.length + AHEAD) {
          await sleep(5);
          continue;
        }
        const n = next++;
        await publisher.publish(event([9, 45], { n }));
        acknowledged.add(n);
      }
    }),
  );
  for (let kill = 1; kill <= KILLS; kill++) {
    const before = acknowledged.size;
    await until(() => acknowledged.size > before + 200, "events are published");
    await broker.kill();
    await broker.start();
    await until(() => changes.filter(({ state }) => state === "ready").length > kill, "the reader is back");
  }
  stop = true;
  await within(publishing, "the publisher to end");
  await until(() => new Set(got.map(({ n }) => n)).size >= acknowledged.size, "all events to arrive");

  expect([...acknowledged].filter((n) => !got.some((event) => event.n === n))).toEqual([]);
  expect(gaps).toEqual([]);
  // No delivery comes twice. An event may: one that is not live and was sent again, since its answer was not seen, is published twice.
  expect(new Set(got.map(({ place }) => place)).size).toBe(got.length);
  const twice = got.length - new Set(got.map(({ n }) => n)).size;
  expect(twice).toBeLessThanOrEqual(20 * KILLS);
  expect(changes.filter((change) => change.state === "ready").map(({ resumed }) => resumed)).toEqual([
    false,
    ...Array<boolean>(KILLS).fill(true),
  ]);
  await publisher.close();
  await reader.close();
  await reading;
}, 240_000);

async function numbers(session: Session<{ n: number }>, count: number): Promise<number[]> {
  const got: number[] = [];
  for await (const message of session) {
    if (message.kind === "event") got.push(message.feature.properties.n);
    if (got.length === count) break;
  }
  return got;
}

test("the next process goes on where the last one was, by its checkpoint or by what it acknowledged", async () => {
  broker = await Broker.start({ data: true });
  const first = await connect<{ n: number }>({ url: broker.url, client: "ann" });
  await first.subscribe("numbers", { filters: [{}], durable: true });
  for (let n = 1; n <= 6; n++) await first.publish(event([9, 45], { n }));
  expect(await numbers(first, 3)).toEqual([1, 2, 3]);
  const { checkpoint } = first;
  await first.close(); // 3 was handed out and nothing asked for after it: only 1 and 2 count as processed.

  const second = await connect<{ n: number }>({ url: broker.url, client: "ann", resume: checkpoint, ack: "manual" });
  expect(await numbers(second, 3)).toEqual([4, 5, 6]);
  await second.close();

  const third = await connect<{ n: number }>({ url: broker.url, client: "ann" });
  expect(await numbers(third, 4)).toEqual([3, 4, 5, 6]);
  third.ack(third.checkpoint.offset);
  await third.publish(event([9, 45], { n: 7 })); // Its answer comes after the acknowledgement was read.
  await third.close();

  const fourth = await connect<{ n: number }>({ url: broker.url, client: "ann" });
  expect(await numbers(fourth, 1)).toEqual([7]);
  await fourth.close();
});

test("the message that a loop was left at comes again, unless it is said to be processed", async () => {
  broker = await Broker.start({ data: true });
  const ann = (): Promise<Session<{ n: number }>> => connect({ url: broker.url, client: "ann" });
  const first = await ann();
  await first.subscribe("numbers", { filters: [{}], durable: true });
  for (let n = 1; n <= 3; n++) await first.publish(event([9, 45], { n }));
  const failing = async (): Promise<void> => {
    try {
      for await (const message of first) throw new Error(`cannot store ${message.kind}`);
    } finally {
      await first.close(); // as an application tidies up, whatever happened
    }
  };
  await expect(failing()).rejects.toThrow("cannot store event");

  const second = await ann();
  expect(await numbers(second, 2)).toEqual([1, 2]);
  await second.close({ processed: true });

  const third = await ann();
  expect(await numbers(third, 1)).toEqual([3]);
  await third.forget();
});

test("a broker that has forgotten everything is told the durable subscriptions again as well", async () => {
  broker = await Broker.start();
  const session = await connect<{ n: number }>({ url: broker.url, client: "ann", backoff: quick });
  await session.subscribe("numbers", { filters: [{}], durable: true });
  await session.subscribe("others", { filters: [{ where: "n = 0" }] });
  await session.publish(event([9, 45], { n: 1 }));
  expect(await numbers(session, 1)).toEqual([1]);
  await broker.kill();
  await broker.start();
  await until(async () => (await session.subscriptions().catch(() => [])).length === 2, "the subscriptions are there again");
  await session.publish(event([9, 45], { n: 2 }));
  const messages = session[Symbol.asyncIterator]();
  expect((await within(messages.next(), "the gap")).value).toMatchObject({ kind: "gap", reason: "epoch", count: 0 });
  expect((await within(messages.next(), "the event")).value).toMatchObject({ feature: { properties: { n: 2 } } });
  await session.close();
});
