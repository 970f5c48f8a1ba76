// The addresses of a cluster's brokers: one away, one a standby, one that carries out what is asked.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { afterAll, beforeAll, expect, test } from "vitest";

import { connect, event, type Session } from "nearcast";
import { Broker } from "../support/broker.js";
import { within } from "../support/wait.js";

const RECOVERING = {
  type: "urn:nearcast:problem:recovering",
  title: "The broker reads what it has stored",
  status: 503,
  phase: "standby",
};

/** What is asked of it. */
let asked = 0;
let standby: Server;
let brokers: readonly Broker[];
/** Nobody listens there. */
const AWAY = "http://127.0.0.1:1";

beforeAll(async () => {
  standby = createServer((_, answer) => {
    asked += 1;
    answer.writeHead(503, { "content-type": "application/problem+json", "retry-after": "60" }).end(JSON.stringify(RECOVERING));
  });
  await new Promise<void>((resolve) => standby.listen(0, "127.0.0.1", resolve));
  brokers = await Promise.all([Broker.start(), Broker.start()]);
});
afterAll(async () => {
  standby.close();
  await Promise.all(brokers.map((broker) => broker.stop()));
});

function addresses(): string[] {
  return [AWAY, `http://127.0.0.1:${(standby.address() as AddressInfo).port}`, ...brokers.map(({ url }) => url)];
}

async function titleOf(session: Session): Promise<unknown> {
  for await (const message of session) if (message.kind === "event") return message.feature.properties["title"];
  return undefined;
}

test("a session finds the broker that carries out requests, and the next one when that is gone, without a wait", async () => {
  const waits: number[] = [];
  const session = await connect({
    url: addresses(),
    client: "ann",
    backoff: { base_s: 0.05, cap_s: 0.05 },
    onConnection: (change) => {
      if (change.state === "lost") waits.push(change.retry_ms);
    },
  });
  expect(waits).toEqual([0, 0]);
  await session.subscribe("all", { filters: [{}] });
  expect(asked).toBeGreaterThan(0);
  const before = asked;
  expect((await session.subscriptions()).map(({ id }) => id)).toEqual(["all"]);
  expect(asked).toBe(before);
  await brokers[0]?.stop();
  // The second broker knows nothing of it: the session makes its subscription again.
  const made = async (): Promise<unknown> => {
    const answer = await fetch(`${brokers[1]?.url}/v1/clients/ann/subscriptions`);
    return answer.json() as Promise<unknown>;
  };
  await expect.poll(made, { timeout: 30_000 }).toHaveLength(1);
  await session.publish(event([9, 45], { title: "found" }));
  expect(await within(titleOf(session), "the event")).toBe("found");
  await session.close();
});

test("where none answers, the wait comes after each of them was tried", async () => {
  const waits: number[] = [];
  const connecting = connect({
    url: [AWAY, "http://127.0.0.1:2"],
    client: "bob",
    connectTimeout_s: 1,
    backoff: { base_s: 0.1, cap_s: 0.1 },
    random: () => 1,
    onConnection: (change) => {
      if (change.state === "lost") waits.push(change.retry_ms);
    },
  });
  await expect(connecting).rejects.toThrow();
  expect(waits.slice(0, 4)).toEqual([0, 100, 0, 100]);
});

test("a list without an address, or with one that is none, is refused", async () => {
  await expect(connect({ url: [], client: "eve" })).rejects.toThrow(TypeError);
  await expect(connect({ url: [AWAY, "example.org"], client: "eve" })).rejects.toThrow(/is http:\/\/example.org meant/);
});
