// The contract's vectors of connections that break; clients/contract/README.md says what each step is.

import { expect, test } from "vitest";

import { connect, ProblemError, QueueFull, type Checkpoint, type ConnectOptions, type Feature, type Message, type Session } from "nearcast";
import { ScriptedServer, type Json, type Peer } from "../support/scripted.js";
import { until, within } from "../support/wait.js";
import { vectors } from "./read.js";

interface Vector {
  readonly name: string;
  readonly options: Json;
  readonly steps: readonly Json[];
}

class Runner {
  readonly #server: ScriptedServer;
  readonly #vector: Vector;
  #session: Promise<Session>;
  #connected: Session | undefined;
  #messages: AsyncIterator<Message> | undefined;
  #readies = 0;
  #taken = 0;
  #peer: Peer | undefined;
  readonly #calls = new Map<string, Promise<unknown>>();
  readonly #refs = new Map<string, unknown>();
  readonly #ids = new Map<string, unknown>();

  constructor(server: ScriptedServer, vector: Vector) {
    this.#server = server;
    this.#vector = vector;
    this.#session = this.#begin(vector.options);
  }

  async run(): Promise<void> {
    for (const [i, step] of this.#vector.steps.entries()) {
      try {
        await this.#step(step, this.#vector.steps[i + 1] ?? {});
      } catch (error) {
        throw new Error(`step ${i}, ${JSON.stringify(step)}: ${String(error)}`, { cause: error });
      }
    }
    await this.#connected?.close({ timeout_s: 0.1 });
  }

  #begin(options: Json): Promise<Session> {
    const { client, ack, token, tokens, queue, resume } = options;
    const provided = tokens === undefined ? [] : [...(tokens as string[])];
    const asked: ConnectOptions = {
      url: this.#server.url,
      client: client as string,
      ack: ack as "auto" | "manual",
      backoff: { base_s: 0, cap_s: 0 },
      random: Math.random,
      ...(token !== undefined && { token: token as string }),
      ...(tokens !== undefined && { token: () => provided.shift() ?? "none left" }),
      ...(queue !== undefined && { queue: queue as number }),
      ...(resume !== undefined && { resume: resume as Checkpoint }),
      onConnection: ({ state }) => {
        if (state === "ready") this.#readies += 1;
      },
    };
    const session = connect(asked);
    session.then(
      (connected) => {
        this.#connected = connected;
        this.#messages = connected[Symbol.asyncIterator]();
      },
      () => undefined,
    );
    return session;
  }

  async #step(step: Json, next: Json): Promise<void> {
    const [[verb, value] = ["", undefined]] = Object.entries(step);
    switch (verb) {
      case "accept": {
        const { query, token } = value as { query: { resume?: string }; token?: string };
        const upgrade = await this.#server.upgrade();
        expect(upgrade.url.searchParams.get("resume") ?? undefined).toBe(query.resume);
        if (token !== undefined) expect(upgrade.token).toBe(token);
        this.#peer = await upgrade.accept();
        break;
      }
      case "refuse": {
        const { query, status, headers, body } = value as {
          query: { resume?: string };
          status: number;
          headers: Record<string, string>;
          body: string;
        };
        const upgrade = await this.#server.upgrade();
        expect(upgrade.url.searchParams.get("resume") ?? undefined).toBe(query.resume);
        upgrade.refuse(status, headers, body);
        break;
      }
      case "send": {
        const { $ref, ...frame } = value as Json;
        this.#at().send($ref === undefined ? frame : { ...frame, ref: this.#refs.get($ref as string) });
        if (frame["op"] !== "ready") break;
        this.#taken += 1;
        if ("drop" in next) break;
        await within(this.#session, "connect");
        await until(() => this.#readies >= this.#taken, "the client is ready");
        break;
      }
      case "receive":
        this.#compare(await this.#at().receive(), value as Json);
        break;
      case "receive_until": {
        const { offset } = value as { offset: number };
        let said = -1;
        while (said !== offset) {
          const frame = await this.#at().receive();
          expect(frame["op"]).toBe("ack");
          expect(frame["offset"]).toBeGreaterThan(said);
          expect(frame["offset"]).toBeLessThanOrEqual(offset);
          said = frame["offset"] as number;
        }
        break;
      }
      case "app": {
        const call = this.#call(value as Json);
        call.catch(() => undefined);
        if (step["call"] !== undefined) this.#calls.set(step["call"] as string, call);
        break;
      }
      case "done":
        await within(this.#calls.get(value as string) ?? Promise.reject(new Error("no such call")), "a call to be done");
        break;
      case "fails":
        await this.#fails(value as Json);
        break;
      case "deliver": {
        const { value: message }: { value?: unknown } = await within(
          this.#messages?.next() ?? Promise.reject(new Error("not connected")),
          "a message",
        );
        const { event, ...members } = value as Json;
        expect(message).toMatchObject(members);
        if (event !== undefined) expect((message as { feature: Json }).feature).toMatchObject(event as Json);
        break;
      }
      case "drop":
        if (value === "reset") this.#at().reset();
        else this.#at().close((value as { close: number }).close, (value as { reason?: string }).reason);
        break;
      case "lost":
        await within(this.#session, "connect");
        await until(() => this.#connected?.connection.state !== "ready", "the connection is lost");
        break;
      case "checkpoint":
        await until(
          () => JSON.stringify(this.#connected?.checkpoint) === JSON.stringify(value),
          `the checkpoint is ${JSON.stringify(value)}`,
        );
        break;
      case "closed":
        expect(await within(this.#at().closed, "the close")).toBe((value as { code: number }).code);
        break;
      case "new":
        await this.#connected?.close();
        this.#taken = 0;
        this.#readies = 0;
        this.#session = this.#begin({ ...this.#vector.options, ...(value as Json) });
        break;
      case "world":
      case "settled":
        break;
      default:
        throw new Error(`a step that the contract does not have: ${verb}`);
    }
  }

  #at(): Peer {
    if (this.#peer === undefined) throw new Error("nobody is connected");
    return this.#peer;
  }

  async #call({ verb, ...members }: Json): Promise<unknown> {
    const session = this.#connected;
    if (session === undefined) throw new Error("not connected");
    const { id, coordinates, event, offset, ...rest } = members;
    switch (verb) {
      case "subscribe":
        return session.subscribe(id as string, rest as never);
      case "unsubscribe":
        return session.unsubscribe(id as string);
      case "move":
        return session.move(coordinates as [number, number], rest);
      case "publish":
        return session.publish(event as Feature);
      case "ack":
        session.ack(offset as number);
        return undefined;
      case "close":
        return session.close();
      default:
        throw new Error(`a verb that the contract does not have: ${String(verb)}`);
    }
  }

  /** A frame is the expected one, but for what the client chooses. */
  #compare(frame: Json, expected: Json): void {
    const { $ref, event, ...members } = expected;
    if ($ref !== undefined) {
      expect(["number", "string"]).toContain(typeof frame["ref"]);
      this.#refs.set($ref as string, frame["ref"]);
      members["ref"] = frame["ref"];
    }
    if (event !== undefined) {
      const { $id, ...feature } = event as Json;
      if ($id !== undefined) {
        const id = (frame["event"] as Json)["id"];
        expect(id).toEqual(this.#ids.get($id as string) ?? expect.anything());
        this.#ids.set($id as string, id);
        feature["id"] = id;
      }
      members["event"] = feature;
    }
    expect(frame).toEqual(members);
  }

  async #fails({ call, code, status, kind }: Json): Promise<void> {
    const failing = call === undefined ? this.#session.then(() => this.#messages?.next()) : this.#calls.get(call as string);
    const error: unknown = await within(
      Promise.resolve(failing).then(
        () => undefined,
        (reason: unknown) => reason,
      ),
      "a failure",
    );
    if (kind === "queue-full") expect(error).toBeInstanceOf(QueueFull);
    else expect(error).toMatchObject({ code });
    if (status !== undefined) {
      expect(error).toBeInstanceOf(ProblemError);
      expect(error).toMatchObject({ status });
    }
    if (call === undefined) expect(this.#server.upgradesWaiting).toBe(0);
  }
}

test.concurrent.each(vectors("resume.json") as Vector[])("$name", async (vector) => {
  const server = await ScriptedServer.start();
  try {
    await new Runner(server, vector).run();
  } finally {
    await server.stop();
  }
});
