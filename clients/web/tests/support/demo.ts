// `nearcast demo`: the broker with its real taxis.

import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

const program = process.env["NEARCAST"] ?? fileURLToPath(new URL("../../../../target/debug/nearcast", import.meta.url));

export class Demo {
  private constructor(
    readonly url: string,
    readonly process: ChildProcess,
  ) {}

  /** Starts it and waits until it replays. */
  static start(speed = 30): Promise<Demo> {
    const child = spawn(program, ["demo", "--speed", String(speed)], { stdio: ["ignore", "pipe", "pipe"] });
    let log = "";
    return new Promise((resolve, reject) => {
      const read = (chunk: Buffer): void => {
        log = (log + chunk.toString()).slice(-20_000);
        const [, address] = /nearcast listens on (\S+);/.exec(log) ?? [];
        // The links are printed once all have connected.
        if (address !== undefined && log.includes("/docs")) resolve(new Demo(`http://${address}`, child));
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.on("error", reject);
      child.on("exit", (code) => reject(new Error(`the demo has ended (${code}): ${log}`)));
    });
  }

  async stop(): Promise<void> {
    if (this.process.exitCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    await ended;
  }
}
