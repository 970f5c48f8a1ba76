// The samples run, against a real broker and the package as it is installed.

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

import { Broker } from "../support/broker.js";
import { output, transpiled } from "../support/programs.js";

let broker: Broker;
beforeAll(async () => {
  broker = await Broker.start({ data: true });
});
afterAll(() => broker.stop());

test.each([
  ["publish", /^published [0-9a-f]{30}\naccepted 2000 rejected 0\n$/],
  ["moving-area", /^accident of severity 3 ahead, because we moved\n$/],
  ["resume", /^before 1\nafter 2\n$/],
  ["transitions", /^enter bus-7 9\.198\nexit bus-7 9\.199\n$/],
])("%s", async (name, written) => {
  const source = readFileSync(new URL(`../../samples/${name}.ts`, import.meta.url), "utf8");
  expect(await output(inject("installed"), `${name}.mjs`, transpiled(source), { NEARCAST_URL: broker.url })).toMatch(written);
});
