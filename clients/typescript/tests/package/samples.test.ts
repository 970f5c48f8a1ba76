// The samples run as the README says, against a real broker and the package as it is installed, and print what it promises: each of them
// before and after each other one, and after itself.

import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

import { connect } from "nearcast";
import { Broker } from "../support/broker.js";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
/** What the README's table says that each sample prints; `…` stands for a word. */
const promised = [...readme.matchAll(/^\| \[([\w-]+)\]\(samples\/\1\.mjs\) .*\| (`.*`) +\|$/gm)].map(([, name = "", cell = ""]) => {
  const lines = [...cell.matchAll(/`([^`]+)`/g)].map(([, line = ""]) => `${line.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}\n`);
  return { name, printed: new RegExp(`^${lines.join("").replaceAll("…", "\\S+")}$`) };
});

let broker: Broker;
beforeAll(async () => {
  broker = await Broker.start({ data: true });
});
afterAll(() => broker.stop());

/** Runs a sample where the package is installed, its address as an argument or in the environment. */
async function output(name: string, where: "argument" | "environment"): Promise<string> {
  const program = join("node_modules/nearcast/samples", `${name}.mjs`);
  const { stdout } = await promisify(execFile)(process.execPath, where === "argument" ? [program, broker.url] : [program], {
    cwd: inject("installed"),
    env: { ...process.env, NEARCAST_URL: where === "argument" ? "http://127.0.0.1:1" : broker.url },
    timeout: 60_000,
  });
  return stdout;
}

test("the README has a line for each sample, and begins with the first", () => {
  const samples = readdirSync(new URL("../../samples", import.meta.url)).map((file) => file.replace(/\.mjs$/, ""));
  expect(promised.map(({ name }) => name).sort()).toEqual(samples.sort());
  const first = readFileSync(new URL("../../samples/first.mjs", import.meta.url), "utf8");
  expect(readme).toContain(`\`\`\`js\n${first}\`\`\``);
});

test("each sample prints what the README promises, whatever ran before it, and leaves nothing behind", async () => {
  for (const { name, printed } of promised) expect(await output(name, "argument"), name).toMatch(printed);
  for (const { name, printed } of [...promised].reverse()) expect(await output(name, "environment"), name).toMatch(printed);

  expect(await (await fetch(`${broker.url}/v1/clients`)).json()).toEqual({ clients: [] });
  const session = await connect({ url: broker.url, client: "looks" });
  for await (const left of session.events()) expect(left).toBeUndefined();
  await session.close();
});
