// What the SDK costs: events that one Node process receives and publishes in a second, with the CPU time that it takes for them.
//
//   node bench/bench.mjs [seconds]     NEARCAST_URL=http://127.0.0.1:7070, or it starts the program $NEARCAST itself
//
// The broker runs on the same machine; where that has few cores it is the broker that is measured. The share of a core that this process takes says which.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { connect, event } from "nearcast";

const seconds = Number(process.argv[2] ?? 5);
const UNDER_WAY = 500;
const PROPERTIES = { type: "accident", severity: 3, road: { name: "A4" }, lanes: [1, 2] };

const { url, stop } = await broker();
console.log(`node ${process.version}, ${seconds} s each`);
try {
  await publishing("publish over the socket, 500 under way", async (session, until_ms) => {
    let count = 0;
    const publisher = async () => {
      for (; Date.now() < until_ms; count++) await session.publish(event([9.19, 45.46], PROPERTIES));
    };
    await Promise.all(Array.from({ length: UNDER_WAY }, publisher));
    return count;
  });
  await publishing("publishMany, 500 a request", async (session, until_ms) => {
    function* events() {
      while (Date.now() < until_ms) yield event([9.19, 45.46], PROPERTIES);
    }
    return (await session.publishMany(events())).accepted;
  });
  await receiving("receive");
  await receiving("receive, durable", { durable: true });
} finally {
  stop();
}

/** Measures a function that publishes until a time and returns how many it has. */
async function publishing(name, publish) {
  const session = await connect({ url, client: "bench-publisher" });
  await measured(name, () => publish(session, Date.now() + seconds * 1000));
  await session.close();
}

/** Measures how fast deliveries are taken: another process publishes as fast as it can. */
async function receiving(name, options = {}) {
  const session = await connect({ url, client: "bench-reader" });
  await session.subscribe("all", { filters: [{ where: "type = 'accident'" }], ...options });
  const child = spawn(process.execPath, [fileURLToPath(new URL("publisher.mjs", import.meta.url)), url], { stdio: "inherit" });
  const lost = { count: 0 };
  await measured(name, async () => {
    let count = 0;
    let end_ms;
    for await (const message of session) {
      if (message.kind === "gap") {
        lost.count += message.count;
        continue;
      }
      end_ms ??= Date.now() + seconds * 1000; // It begins with the first.
      count += 1;
      if (Date.now() >= end_ms) break;
    }
    return count;
  });
  child.kill();
  if (lost.count > 0) console.log(`  ${lost.count} were lost on the way, told by gaps`);
  await session.forget();
}

async function measured(name, run) {
  const began_ms = performance.now();
  const before = process.cpuUsage();
  const count = await run();
  const { user, system } = process.cpuUsage(before);
  const wall_s = (performance.now() - began_ms) / 1000;
  const cpu_s = (user + system) / 1e6;
  const rate = Math.round(count / wall_s).toLocaleString("en");
  console.log(
    `${name}: ${rate} events/s, ${((cpu_s / count) * 1e6).toFixed(1)} µs of CPU each, ${Math.round((cpu_s / wall_s) * 100)} % of a core`,
  );
}

async function broker() {
  if (process.env["NEARCAST_URL"] !== undefined) return { url: process.env["NEARCAST_URL"], stop: () => undefined };
  const program = process.env["NEARCAST"] ?? fileURLToPath(new URL("../../../target/release/nearcast", import.meta.url));
  const child = spawn(program, ["serve", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const chunk of child.stdout) {
    const [, address] = /nearcast listens on (\S+)/.exec(chunk) ?? [];
    if (address !== undefined) return { url: address, stop: () => child.kill() };
  }
  throw new Error(`${program} has not started`);
}
