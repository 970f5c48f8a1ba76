// A session and a scripted broker: what the contract's vectors do not have.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import {
  connect,
  event,
  type Connection,
  type ConnectOptions,
  type Fix,
  type ProblemError,
  type RequestWarning,
  type Session,
} from "nearcast";
import { FakeClock } from "../support/clock.js";
import { ScriptedServer, type Peer } from "../support/scripted.js";
import { Inbox, until, within } from "../support/wait.js";

let server: ScriptedServer;
let sessions: Session[] = [];
beforeEach(async () => {
  server = await ScriptedServer.start();
});
afterEach(async () => {
  await Promise.all(sessions.map((session) => session.close({ timeout_s: 0.01 })));
  sessions = [];
  await server.stop();
});

function open(options: Partial<ConnectOptions> = {}): Promise<Session> {
  const connecting = connect({ url: server.url, client: "ann", backoff: { base_s: 0, cap_s: 0 }, ...options });
  connecting.then(
    (session) => sessions.push(session),
    () => undefined,
  );
  return connecting;
}

async function opened(options: Partial<ConnectOptions> = {}): Promise<{ session: Session; peer: Peer }> {
  const connecting = open(options);
  const peer = await server.accept();
  return { session: await connecting, peer };
}

const limit = { type: "urn:nearcast:problem:limit-reached", title: "a limit is reached", status: 409 };

test("what nobody waits for is warned of, once for each kind, and without places", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const { session, peer } = await opened();
  const errors = [{ pointer: "/coordinates", detail: "latitude -118.24 is outside of -90 to 90" }];
  const problem = { type: "urn:nearcast:problem:invalid-document", title: "not valid", status: 400, errors };
  for (let i = 0; i < 2; i++) {
    await session.move([34.05, -118.24]);
    await peer.receive();
    peer.send({ op: "problem", problem });
  }
  await until(() => warn.mock.calls.length > 0, "a warning");
  peer.send({ op: "problem", problem: limit });
  await until(() => warn.mock.calls.length > 1, "the other warning");
  expect(warn.mock.calls.map(([text]) => String(text).split(";")[0])).toEqual([
    "nearcast: the broker refused what nobody waits for: invalid-document at /coordinates",
    "nearcast: the broker refused what nobody waits for: limit-reached",
  ]);
  warn.mockRestore();
});

describe("connecting", () => {
  test.each([
    ["localhost:7070", "(is http://localhost:7070 meant?)"],
    ["broker.example/events", "(is http://broker.example/events meant?)"],
  ])("to %s names the address that is meant", async (url, hint) => {
    await expect(open({ url })).rejects.toThrow(hint);
  });

  test.each(["ftp://localhost:7070", "http://", "localhost:7070?a=b", ""])("to %j does not guess", async (url) => {
    await expect(open({ url })).rejects.toThrow(/has no query: [^ ]*$/);
  });

  test("is given up after its time, and says why the last try failed", async () => {
    const clock = new FakeClock();
    const connecting = open({ clock, connectTimeout_s: 20, url: "http://127.0.0.1:9" });
    const failed = connecting.catch((error: unknown) => error);
    await until(() => {
      clock.advance(500);
      return clock.waits.length === 0;
    }, "it gives up");
    expect(await failed).toMatchObject({ name: "Timeout", cause: { name: "ConnectionError" } });
  });

  test("is given up when a signal says so", async () => {
    const stop = new AbortController();
    const connecting = open({ signal: stop.signal });
    await server.upgrade();
    stop.abort(new Error("enough"));
    await expect(connecting).rejects.toThrow("enough");
    await expect(open({ signal: stop.signal })).rejects.toThrow("enough");
  });

  test("tries another connection when one is not ready in time", async () => {
    const clock = new FakeClock();
    const connecting = open({ clock });
    await (await server.upgrade()).accept();
    await until(() => clock.waits.includes(10_000), "the handshake is waited for");
    clock.advance(10_000);
    const peer = await server.accept();
    await within(connecting, "the session");
    expect(peer.waiting).toBe(0);
  });

  test("is tried again when a broker that stops said so", async () => {
    const clock = new FakeClock();
    const changes: Connection[] = [];
    const { peer } = await opened({ clock, backoff: { base_s: 1000, cap_s: 1000 }, onConnection: (change) => changes.push(change) });
    peer.send({ op: "retry", retry_ms: 730 });
    peer.close(1001, "the broker is stopping");
    await until(() => changes.at(-1)?.state === "lost", "it is lost");
    expect(changes.at(-1)).toMatchObject({ retry_ms: 730 });
    await until(() => clock.waits.includes(730), "it waits");
    clock.advance(730);
    await server.accept();
  });

  test.each([
    ["a broker that cannot be reached", undefined, "", {}, [1000, 2000, 3000, 3000]],
    ["a standby", 503, "recovering", { "retry-after": "1" }, [1000, 2000, 3000, 3000]],
    ["one that is too busy", 429, "overloaded", { "retry-after": "1" }, [1000, 2000, 4000, 8000]],
    ["one that is full", 503, "limit-reached", { "retry-after": "5" }, [5000, 5000, 5000, 8000]],
  ])("waits for %s", async (_, status, code, headers, expected) => {
    const clock = new FakeClock();
    const waits: number[] = [];
    const connecting = open({
      clock,
      connectTimeout_s: 3600,
      backoff: {},
      random: () => 1,
      onConnection: (change) => {
        if (change.state === "lost") waits.push(change.retry_ms);
      },
    });
    const body = JSON.stringify({ type: `urn:nearcast:problem:${code}`, title: "not now", status });
    for (const wait_ms of expected) {
      const upgrade = await server.upgrade();
      const before = waits.length;
      if (status === undefined) (await upgrade.accept()).reset();
      else upgrade.refuse(status, { "content-type": "application/problem+json", ...headers }, body);
      await until(() => waits.length > before && clock.waits.includes(wait_ms), "it waits");
      clock.advance(wait_ms);
    }
    await server.accept();
    await within(connecting, "the session");
    expect(waits).toEqual(expected);
  });

  test("waits for a provider of tokens that has none yet", async () => {
    const changes: Connection[] = [];
    let asked = 0;
    const connecting = open({
      token: () => {
        asked += 1;
        if (asked < 3) throw new Error("not now");
        return "t3";
      },
      onConnection: (change) => changes.push(change),
    });
    const upgrade = await server.upgrade();
    expect(upgrade.token).toBe("t3");
    (await upgrade.accept()).ready();
    await connecting;
    expect(changes.map(({ state }) => state)).toEqual(["connecting", "lost", "connecting", "lost", "connecting", "ready"]);
  });

  test("waits longer and longer for such a provider, and tries no other address at once", async () => {
    const clock = new FakeClock();
    const waits: number[] = [];
    let asked = 0;
    const connecting = open({
      // Nobody listens at the first.
      url: ["http://127.0.0.1:1", server.url],
      clock,
      connectTimeout_s: 3600,
      backoff: {},
      random: () => 1,
      token: () => {
        asked += 1;
        if (asked > 1 && asked < 6) throw new Error("not now");
        return `t${asked}`;
      },
      onConnection: (change) => {
        if (change.state === "lost") waits.push(change.retry_ms);
      },
    });
    const expected = [0, 1000, 2000, 4000, 8000];
    for (const [index, wait_ms] of expected.entries()) {
      await until(() => waits.length > index && (wait_ms === 0 || clock.waits.includes(wait_ms)), "it waits");
      clock.advance(wait_ms);
    }
    const upgrade = await server.upgrade();
    expect(upgrade.token).toBe("t6");
    (await upgrade.accept()).ready();
    await within(connecting, "the session");
    expect(waits).toEqual(expected);
  });
});

describe("what the broker warns of", () => {
  const ttl = { pointer: "/event/ttl", detail: "did you mean ttl_s?" };
  const nowhere = { pointer: "/filters/0/area", detail: "it is nowhere" };

  async function warn(session: Session, peer: Peer, warnings: readonly object[]): Promise<void> {
    const publishing = session.publish(event([9, 45], {}));
    const { ref } = await peer.receive();
    peer.send({ op: "ok", ref, warnings });
    await publishing;
  }

  test("goes to the option", async () => {
    const told: RequestWarning[] = [];
    const { session, peer } = await opened({ onWarning: (warning) => told.push(warning) });
    await warn(session, peer, [ttl, nowhere]);
    await warn(session, peer, [ttl]);
    expect(told).toEqual([ttl, nowhere, ttl]);
  });

  test("goes to the console without it, of events and once", async () => {
    const console_ = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    try {
      const { session, peer } = await opened();
      await warn(session, peer, [ttl, nowhere]);
      await warn(session, peer, [ttl]);
      expect(console_.mock.calls).toEqual([[expect.stringContaining("/event/ttl: did you mean ttl_s?")]]);
    } finally {
      console_.mockRestore();
    }
  });
});

describe("a connection that is there no more although nobody said so", () => {
  test("is given up, and made again", async () => {
    const clock = new FakeClock();
    const { session } = await opened({ clock, silence_s: 45 });
    // Nobody answers: of the scripted broker's answers none is seen while time stands still.
    clock.advance(45_000);
    await until(() => session.connection.state !== "ready", "it is given up");
    await server.accept();
    await until(() => session.connection.state === "ready", "it is there again");
  });

  test("is not given up when the other side answers", async () => {
    const clock = new FakeClock();
    const { session, peer } = await opened({ clock, silence_s: 45, ack: "manual" });
    for (let offset = 1; offset <= 6; offset++) {
      clock.advance(15_000);
      peer.event(offset);
      await session[Symbol.asyncIterator]().next();
    }
    expect(session.connection.state).toBe("ready");
  });

  test("has five seconds to answer after a wake", async () => {
    const clock = new FakeClock();
    const { session, peer } = await opened({ clock, silence_s: 45, ack: "manual" });
    clock.advance(1000);
    session.wake();
    peer.event(1);
    await session[Symbol.asyncIterator]().next();
    clock.advance(5000);
    expect(session.connection.state).toBe("ready");
    clock.advance(1000);
    session.wake();
    clock.advance(5000);
    await until(() => session.connection.state !== "ready", "it is given up");
    await server.accept();
    await until(() => session.connection.state === "ready", "it is there again");
  });
});

describe("a delivery", () => {
  test("says which checks its event violates, and nothing where there are none", async () => {
    const { session, peer } = await opened({ ack: "manual" });
    const messages = session[Symbol.asyncIterator]();
    peer.event(1, { violates: ["jump"] });
    peer.event(2);
    expect((await messages.next()).value).toMatchObject({ offset: 1, violates: ["jump"] });
    expect((await messages.next()).value).not.toHaveProperty("violates");
  });
});

describe("an application that does not keep up", () => {
  test("is not sent more: the connection is not read until it has taken half", async () => {
    const { session, peer } = await opened({ inbox: 10, ack: "manual" });
    const messages = session[Symbol.asyncIterator]();
    for (let offset = 1; offset <= 10; offset++) peer.event(offset);
    // The session has them all when it knows of the last one; what comes afterwards stays with the broker.
    await messages.next();
    await until(() => peer.stalled || flood(peer), "the broker's buffers are full", 20_000);
    expect(peer.stalled).toBe(true);
    let last = 1;
    while (last < peer.offset) {
      const { value } = await within(messages.next(), `a message after ${last}`);
      expect(value).toMatchObject({ kind: "event", offset: last + 1 });
      last += 1;
    }
    expect(session.connection.state).toBe("ready");
  });

  test("gets answers all the same", async () => {
    const { session, peer } = await opened({ inbox: 10, ack: "manual" });
    for (let offset = 1; offset <= 50; offset++) peer.event(offset);
    const got: unknown[] = [];
    const reading = (async () => {
      for await (const message of session) {
        got.push(message);
        await session.publish(event([9, 45], {})); // Its answer stands behind deliveries.
        if (got.length === 50) break;
      }
    })();
    for (let i = 0; i < 50; i++) {
      const { ref } = await peer.receive();
      if (i < 20) peer.event(51 + i);
      peer.send({ op: "ok", ref });
    }
    await within(reading, "the loop");
  });

  test("that waits for answers while far too much comes gets them, and is sent the rest again", async () => {
    const { session, peer } = await opened({ inbox: 10, ack: "manual" });
    const published = session.publish(event([9, 45], {}));
    const { ref } = await peer.receive();
    for (let offset = 1; offset <= 150; offset++) peer.event(offset);
    peer.send({ op: "ok", ref });
    await within(published, "the answer");
    const messages = session[Symbol.asyncIterator]();
    let last = 0;
    while (last < 100) {
      const { value } = await within(messages.next(), "a message");
      if (value?.kind === "event") last = value.offset;
    }
    const upgrade = await server.upgrade();
    expect(upgrade.url.searchParams.get("resume")).toBe("e1:100");
    const next = await upgrade.accept();
    next.ready({ offset: 100 });
    next.event(101);
    expect((await within(messages.next(), "what comes again")).value).toMatchObject({ offset: 101 });
  });
});

/** Sends a good deal more; `false`, so that it can stand in a condition. */
function flood(peer: Peer): boolean {
  for (let i = 0; i < 200; i++) peer.event(peer.offset + 1, { filler: "x".repeat(10_000) });
  return false;
}

describe("acknowledgements by themselves", () => {
  test("come every hundred deliveries, before the second is over", async () => {
    const clock = new FakeClock();
    const { session, peer } = await opened({ clock });
    for (let offset = 1; offset <= 250; offset++) peer.event(offset);
    const messages = session[Symbol.asyncIterator]();
    for (let i = 0; i < 250; i++) await messages.next();
    expect(await peer.receive()).toEqual({ op: "ack", offset: 100 });
    expect(await peer.receive()).toEqual({ op: "ack", offset: 200 });
    clock.advance(1000);
    expect(await peer.receive()).toEqual({ op: "ack", offset: 249 });
  });

  test("count what a handler has returned from, and go out at the close", async () => {
    const { session, peer } = await opened();
    let handled = 0;
    const reading = session.each(async () => {
      await new Promise(setImmediate);
      handled += 1;
    });
    peer.event(1);
    peer.event(2);
    await until(() => handled === 2, "both are handled");
    await session.close();
    await reading;
    expect(await peer.receive()).toEqual({ op: "ack", offset: 2 });
  });
});

describe("subscriptions that are made again", () => {
  async function refused(problem: object, options: Partial<ConnectOptions> = {}): Promise<{ session: Session; peer: Peer }> {
    const { session, peer } = await opened(options);
    const made = session.subscribe("s1", { filters: [{}] });
    peer.send({ op: "ok", ref: (await peer.receive())["ref"] });
    await made;
    peer.reset();
    const next = await server.accept();
    next.send({ op: "problem", ref: (await next.receive())["ref"], problem });
    return { session, peer: next };
  }

  test("and refused end the session, for nobody would notice", async () => {
    const { session } = await refused(limit);
    await expect(session[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "limit-reached" });
    expect(session.connection).toMatchObject({ state: "closed", error: { code: "limit-reached" } });
  });

  test("and refused are told to who listens, and not made again", async () => {
    const problems = new Inbox<ProblemError>();
    const { session, peer } = await refused(limit, {
      onProblem: (problem) => {
        problems.put(problem);
      },
    });
    expect((await problems.take("the problem")).code).toBe("limit-reached");
    peer.reset();
    const next = await server.accept();
    session.ack(0);
    expect(await next.receive()).toMatchObject({ op: "ack" });
  });

  test("are tried again where the broker has no time", async () => {
    const clock = new FakeClock();
    const { session, peer } = await refused({ type: "urn:nearcast:problem:overloaded", title: "overloaded", status: 429 }, { clock });
    await until(() => {
      clock.advance(100);
      return peer.waiting > 0;
    }, "it is tried again");
    const frame = await peer.receive();
    expect(frame).toMatchObject({ op: "subscribe", id: "s1" });
    peer.send({ op: "ok", ref: frame["ref"] });
    expect(session.connection.state).toBe("ready");
  });

  test("are what was meant when they were made", async () => {
    const { session, peer } = await opened();
    const filters = [{ where: "a = 1" }];
    const made = session.subscribe("s1", { filters });
    filters.push({ where: "b = 2" });
    peer.send({ op: "ok", ref: (await peer.receive())["ref"] });
    await made;
    peer.reset();
    expect(await (await server.accept()).receive()).toMatchObject({ filters: [{ where: "a = 1" }] });
  });
});

test("a frame that is too long for the broker fails, and is not sent again and again", async () => {
  const { session, peer } = await opened();
  const short = session.publish(event([9, 45], { text: "x" }, { id: "short" }));
  const long = session.publish(event([9, 45], { text: "x".repeat(1000) }, { id: "long" }));
  await peer.receive();
  await peer.receive();
  peer.close(1009, "too long");
  await expect(long).rejects.toMatchObject({ name: "ConnectionError", code: 1009 });
  const next = await server.accept();
  const frame = await next.receive();
  expect(frame).toMatchObject({ event: { id: "short" } });
  next.send({ op: "ok", ref: frame["ref"] });
  expect(await short).toBe("short");
});

describe("places", () => {
  test("that are to be confirmed are so by a newer one on the next connection", async () => {
    const { session, peer } = await opened();
    const first = session.move([1, 1], { confirm: true });
    expect(await peer.receive()).toMatchObject({ op: "move", coordinates: [1, 1] });
    peer.reset();
    await until(() => session.connection.state !== "ready", "it is lost");
    await session.move([2, 2]);
    const next = await server.accept();
    const frame = await next.receive();
    expect(frame).toMatchObject({ op: "move", coordinates: [2, 2] });
    next.send({ op: "ok", ref: frame["ref"] });
    await within(first, "the confirmation");
  });

  test("that a follower passes while there is no connection are told as a track", async () => {
    const clock = new FakeClock();
    const { session, peer } = await opened({ clock });
    const fixes = new Inbox<Fix | undefined>();
    const following = session.follow(
      (async function* () {
        for (let fix = await fixes.take("a fix"); fix !== undefined; fix = await fixes.take("a fix")) yield fix;
      })(),
      { world: "planar", minDistance_m: 10 },
    );
    const go = async (x: number): Promise<void> => {
      fixes.put({ coordinates: [x, 0], accuracy_m: x, unix_s: 1000 + x });
      await new Promise(setImmediate);
      clock.advance(2000);
    };
    await go(0);
    expect(await peer.receive()).toEqual({ op: "move", coordinates: [0, 0], accuracy_m: 0 });
    await go(5);
    await go(10);
    expect(await peer.receive()).toEqual({ op: "move", coordinates: [10, 0], accuracy_m: 10 });
    peer.reset();
    await until(() => session.connection.state !== "ready", "it is lost");
    const upgrade = await server.upgrade();
    for (const x of [15, 20, 25, 30]) await go(x);
    const next = await upgrade.accept();
    next.ready();
    const track = await next.receive();
    expect(track).toMatchObject({
      op: "move",
      accuracy_m: 30,
      track: [
        [10, 0, 1010],
        [20, 0, 1020],
        [30, 0, 1030],
      ],
    });
    // It was not answered: the next connection is told all of it again, and what came since.
    next.reset();
    await until(() => session.connection.state !== "ready", "it is lost again");
    const third = await server.upgrade();
    await go(40);
    const last = await third.accept();
    last.ready();
    const again = await last.receive();
    expect((again["track"] as unknown[]).length).toBe(4);
    last.send({ op: "problem", ref: again["ref"], problem: limit });
    // What is refused as a track is told as a place.
    expect(await last.receive()).toEqual({ op: "move", coordinates: [40, 0], accuracy_m: 40 });
    fixes.put(undefined);
    await within(following, "the end of the source");
  });

  test("are followed until a signal says so, or the session is closed", async () => {
    const { session } = await opened();
    const never = (): AsyncIterable<Fix> => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }) });
    const stop = new AbortController();
    const first = session.follow(never(), { signal: stop.signal });
    stop.abort();
    await within(first, "the signal");
    const second = session.follow(never());
    await session.close();
    await within(second, "the close");
  });
});

test("a token is renewed before it ends", async () => {
  const clock = new FakeClock();
  let asked = 0;
  const { session, peer } = await opened({
    clock,
    silence_s: 10_000,
    token: () => `h.${Buffer.from(JSON.stringify({ exp: clock.now() / 1000 + 600, n: ++asked })).toString("base64url")}.s`,
  });
  clock.advance(540_000 - 1);
  await new Promise(setImmediate);
  expect(asked).toBe(1);
  clock.advance(1);
  const frame = await peer.receive();
  expect(frame).toMatchObject({ op: "auth" });
  peer.send({ op: "ok", ref: frame["ref"] });
  await until(() => clock.waits.includes(540_000), "the next renewal");
  expect(asked).toBe(2);
  expect(session.connection.state).toBe("ready");
});

test("messages that are no frames break the connection off, and the next one goes on", async () => {
  const { session, peer } = await opened();
  peer.sendText("{");
  const next = await server.accept();
  next.event(1);
  expect((await within(session[Symbol.asyncIterator]().next(), "an event")).value).toMatchObject({ offset: 1 });
});

test("requests that wait for a connection are bounded, those of each kind", async () => {
  const { session, peer } = await opened({ queue: 2 });
  const requests = [
    () => session.subscribe("s", { filters: [{}] }),
    () => session.track([[9, 45, 1]]),
    () => session.move([9, 45], { confirm: true }),
    () => session.publish(event([9, 45], {})),
  ];
  for (const request of requests) {
    const outcomes = Array.from({ length: 5 }, () => request().catch((error: unknown) => error));
    for (let i = 0; i < 2; i++) peer.send({ op: "ok", ref: (await peer.receive())["ref"] });
    const failed = (await Promise.all(outcomes)).filter((outcome) => outcome instanceof Error);
    expect(failed.map(({ name }) => name)).toEqual(["QueueFull", "QueueFull", "QueueFull"]);
  }
});

test("closing ends iterations, also those that wait", async () => {
  const { session } = await opened();
  const waiting = session[Symbol.asyncIterator]().next();
  await session.close();
  expect(await waiting).toEqual({ done: true, value: undefined });
  await session.close();
});
