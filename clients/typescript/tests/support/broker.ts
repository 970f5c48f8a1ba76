// A started broker: the real program, on a free port of loopback, with a folder of its own.

import { spawn, type ChildProcess } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { within } from "./wait.js";

const program = process.env["NEARCAST"] ?? fileURLToPath(new URL("../../../../target/debug/nearcast", import.meta.url));

export interface BrokerOptions {
  /** What is acknowledged outlives the broker. */
  readonly data?: boolean;
  /** Tokens are wanted; {@link Broker.token} makes them. */
  readonly tokens?: boolean;
  /** Settings by their names in the configuration. */
  readonly settings?: Readonly<Record<string, string | number>>;
}

function base64url(data: string | Buffer): string {
  return Buffer.from(data).toString("base64url");
}

export class Broker {
  readonly #options: BrokerOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), "nearcast-"));
  readonly #secret = randomBytes(48);
  #process: ChildProcess | undefined;
  #log = "";
  #address = "127.0.0.1:0";

  private constructor(options: BrokerOptions) {
    this.#options = options;
    const key = { kty: "oct", kid: "k1", k: base64url(this.#secret) };
    writeFileSync(join(this.#folder, "keys.json"), JSON.stringify({ keys: [key] }), { mode: 0o600 });
  }

  static async start(options: BrokerOptions = {}): Promise<Broker> {
    const broker = new Broker(options);
    await broker.start();
    return broker;
  }

  get url(): string {
    return `http://${this.#address}`;
  }

  /** Starts it, where it was before if it was started before. */
  async start(): Promise<void> {
    const { data, tokens, settings } = this.#options;
    const args = ["serve", "--listen", this.#address];
    if (data === true) args.push("--data", join(this.#folder, "data"));
    if (tokens === true) args.push("--auth", "jwt", "--jwks", join(this.#folder, "keys.json"));
    // A machine that is busy with other tests is not to make the broker refuse events.
    const environment = Object.entries({ "admission.delay_ms": 60_000, ...settings }).map(([name, value]): [string, string] => [
      `BROKER__${name.replaceAll(".", "__").toUpperCase()}`,
      String(value),
    ]);
    const child = spawn(program, args, {
      env: { ...process.env, ...Object.fromEntries<string>(environment) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    const listening = new Promise<string>((resolve, reject) => {
      const read = (chunk: Buffer): void => {
        this.#log = (this.#log + chunk.toString()).slice(-20_000);
        const [, address] = /nearcast listens on http:\/\/(\S+)/.exec(this.#log) ?? [];
        if (address !== undefined) resolve(address);
      };
      this.#log = "";
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.on("error", reject);
      child.on("exit", (code) => {
        reject(new Error(`the broker has ended (${code}): ${this.#log}`));
      });
    });
    this.#address = await within(listening, `the broker to listen: ${program}`, 30_000);
  }

  /** Ends it as a power cut would, as far as the program is concerned. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.#end("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** A token for a client, or with other claims. */
  token(sub: string, scope: string, exp_s: number = Date.now() / 1000 + 3600): string {
    const claims = { sub, scope, exp: Math.floor(exp_s) };
    const text = `${base64url(JSON.stringify({ alg: "HS256", kid: "k1" }))}.${base64url(JSON.stringify(claims))}`;
    return `${text}.${createHmac("sha256", this.#secret).update(text).digest("base64url")}`;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child?.exitCode !== null) return;
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill(signal);
    await within(ended, "the broker to end");
  }
}
