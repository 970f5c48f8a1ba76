// Every piece of code in the README runs, against a real broker and the package as it is installed.

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

import { Broker } from "../support/broker.js";
import { output, transpiled } from "../support/programs.js";

const installed = inject("installed");
let broker: Broker;
beforeAll(async () => {
  broker = await Broker.start();
});
afterAll(() => broker.stop());

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const pieces = [...readme.matchAll(/^```(js|ts)\n(.*?)^```$/gms)].map(([, language = "", code = ""], i) => {
  const before = readme.slice(0, readme.indexOf(code));
  const heading = /^##? (.*)$/gm;
  return { language, code, name: `${i + 1}, ${[...before.matchAll(heading)].at(-1)?.[1] ?? ""}` };
});
const first = pieces[0]?.code ?? "";
const prelude = pieces[1]?.code ?? "";
const NAMES = ["around", "attr", "checkpointFile", "circle", "connect", "corridor", "event", "everywhere", "or", "polygon", "ProblemError"];

/** A piece that goes on from `session` as a program of its own. */
function program(code: string): string {
  if (code === prelude) return `${code}await session.close();\n`;
  const beginning = prelude.replace("{ connect }", `{ ${NAMES.join(", ")} }`);
  return `${beginning}${code}await session.close();\n`;
}

test("the README has its pieces", () => {
  expect(pieces.length).toBeGreaterThan(10);
  expect(prelude).toContain("const session = await connect");
});

test("they fit the types of the package, as an ES module and as CommonJS", () => {
  const files = pieces.slice(1).map(({ code }, i) => {
    const file = `piece-${i}.mts`;
    writeFileSync(join(installed, file), program(code));
    return file;
  });
  writeFileSync(
    join(installed, "common.cts"),
    'import nearcast = require("nearcast");\nexport const area: nearcast.Area = nearcast.around(500);\n',
  );
  const options = {
    strict: true,
    noEmit: true,
    target: "es2022",
    module: "nodenext",
    lib: ["es2022", "dom"],
    types: [],
    skipLibCheck: false,
  };
  writeFileSync(join(installed, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: [...files, "common.cts"] }));
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  expect(execFileSync(process.execPath, [tsc, "-p", installed], { encoding: "utf8" })).toBe("");
}, 60_000);

function local(code: string): string {
  return code.replaceAll("http://127.0.0.1:7070", broker.url);
}

test("the first sample runs as an ES module", async () => {
  expect(await output(installed, "first.mjs", local(first))).toBe("event { type: 'accident', severity: 3 }\n");
});

test("the first sample runs with require", async () => {
  const body = first.replace(/import (.*) from "nearcast";/, 'const $1 = require("nearcast");');
  expect(body).not.toBe(first);
  const common = `(async () => {\n${body}})();\n`;
  expect(await output(installed, "first.cjs", local(common))).toBe("event { type: 'accident', severity: 3 }\n");
});

test("without the package ws it takes Node's own WebSocket, or says what is missing", async () => {
  const bare = mkdtempSync(join(tmpdir(), "nearcast-bare-"));
  cpSync(join(installed, "node_modules/nearcast"), join(bare, "node_modules/nearcast"), { recursive: true });
  const run = output(bare, "first.mjs", local(first));
  if ("WebSocket" in globalThis) expect(await run).toContain("event");
  else await expect(run).rejects.toThrow("there is no WebSocket: install the package ws");
  rmSync(bare, { recursive: true });
});

test.each(pieces.slice(1))("$name", async ({ code }) => {
  await output(installed, "piece.mjs", local(transpiled(program(code))));
});
