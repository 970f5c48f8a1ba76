// The packed browser build, as it is installed, in a real browser and against a real broker.

import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join, normalize } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

import { Broker } from "../support/broker.js";

const dist = join(inject("installed"), "node_modules/nearcast/dist/esm");
let server: Server;
let browser: Browser;
let page: Page;
let open: Broker;
let closed: Broker;

beforeAll(async () => {
  server = createServer((request, answer) => {
    const path = normalize(new URL(request.url ?? "/", "http://x").pathname);
    if (path === "/") answer.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>nearcast</title>");
    else if (path.endsWith(".js")) answer.writeHead(200, { "content-type": "text/javascript" }).end(readFileSync(join(dist, path)));
    else answer.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  [open, closed, browser] = await Promise.all([
    Broker.start({ data: true }),
    Broker.start({ tokens: true }),
    chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] }),
  ]);
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`);
});

afterAll(async () => {
  await browser.close();
  server.close();
  await Promise.all([open.stop(), closed.stop()]);
});

/** Runs a function body in the page; `nearcast` is the package there. */
function inPage(body: string, values: Record<string, string>): Promise<unknown> {
  const names = JSON.stringify(values);
  return page.evaluate(`(async () => {
    const nearcast = await import("/browser.js");
    const { ${Object.keys(values).join(", ")} } = ${names};
    ${body}
  })()`);
}

const RECEIVE = `
  const session = await nearcast.connect({ url, client: "page", token: typeof token === "undefined" ? undefined : () => token });
  await session.move([9.1895, 45.4642], { confirm: true });
  await session.subscribe("near", { filters: [{ area: nearcast.around(500), where: nearcast.attr("n").ge(1) }] });
  await session.publish(nearcast.event([9.1901, 45.465], { n: 1 }));
  const { value } = await session[Symbol.asyncIterator]().next();
  const shown = await session.subscriptions();
  await session.close();
  return [value.feature.properties, shown.map(({ id }) => id)];
`;

test("a page receives an event", async () => {
  expect(await inPage(RECEIVE, { url: open.url })).toEqual([{ n: 1 }, ["near"]]);
});

test("a page receives an event with a token", async () => {
  expect(await inPage(RECEIVE, { url: closed.url, token: closed.token("page", "subscribe publish") })).toEqual([{ n: 1 }, ["near"]]);
});

test("a page is told why it is refused, which a browser hides of WebSockets", async () => {
  const body = `
    const error = await nearcast.connect({ url, client: "page", token }).catch((error) => error);
    return [error.name, error.code, error.status];
  `;
  const token = closed.token("somebody else", "subscribe");
  expect(await inPage(body, { url: closed.url, token })).toEqual(["ProblemError", "forbidden", 403]);
  expect(await inPage(body.replace(", token", ""), { url: closed.url })).toEqual(["ProblemError", "unauthenticated", 401]);
});

test("a page that is too slow loses nothing of a durable subscription, although it cannot stop reading", async () => {
  const body = `
    const changes = [];
    const session = await nearcast.connect({ url, client: "slow", inbox: 10, onConnection: ({ state }) => changes.push(state) });
    await session.subscribe("all", { filters: [{}], durable: true });
    const { accepted } = await session.publishMany(Array.from({ length: 1000 }, (_, n) => nearcast.event([9, 45], { n })));
    const got = [];
    for await (const message of session) {
      if (message.kind === "gap") return message;
      got.push(message.feature.properties.n);
      if (got.length === accepted) break;
    }
    await session.forget();
    return [accepted, got.every((n, i) => n === i), changes.includes("lost")];
  `;
  expect(await inPage(body, { url: open.url })).toEqual([1000, true, true]);
});
