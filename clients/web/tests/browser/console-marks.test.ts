// The console's marks, drawn by a graphics card and by the processor, and how deliveries come to many tabs.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
import { coloursAbout } from "../support/colours.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { connected, numberOf, ownErrors } from "./console-support.js";

// Out at sea, where no name stands above the mark.
const PLACE = [8.5, 43.6] as const;
/** `--map-object` of the light theme. */
const OBJECT = "0,97,155";

let broker: Broker;
let pages: { readonly url: string; close(): Promise<void> };
let browser: Browser;

beforeAll(async () => {
  broker = await Broker.start();
  pages = await pagesOf(broker);
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  await pages.close();
  await broker.stop();
});

async function tell(): Promise<void> {
  const event = { type: "Feature", key: "van", ttl_s: 300, geometry: { type: "Point", coordinates: PLACE }, properties: {} };
  const answer = await fetch(`${broker.url}/v1/events`, {
    method: "POST",
    headers: { "content-type": "application/geo+json" },
    body: JSON.stringify(event),
  });
  expect(answer.ok).toBe(true);
}

test.each([
  ["by the processor", false],
  ["by WebGL", true],
])("marks are drawn %s", async (_, card) => {
  const { page, errors } = await newPage(browser, { viewport: { width: 1280, height: 800 } });
  if (card)
    // A browser that does not tell what draws is taken for one with a graphics card.
    await page.addInitScript(() => {
      const prototype = WebGL2RenderingContext.prototype;
      const get: unknown = Reflect.get(prototype, "getExtension");
      const hidden = function (this: unknown, name: string): unknown {
        return name === "WEBGL_debug_renderer_info" ? null : (get as (name: string) => unknown).call(this, name);
      };
      Reflect.set(prototype, "getExtension", hidden);
    });
  await page.goto(`${pages.url}?at=${PLACE.join(",")},14`);
  await connected(page);
  await tell();
  await numberOf(page.locator("[data-layer=events]"), (count) => count > 0, "objects on the map");
  await expect.poll(async () => (await coloursAbout(page, PLACE, 5)).has(OBJECT)).toBe(true);
  await page.getByRole("checkbox", { name: /Events/ }).uncheck();
  await expect.poll(async () => (await coloursAbout(page, PLACE, 5)).has(OBJECT)).toBe(false);
  expect(ownErrors(errors)).toEqual([]);
  await page.context().close();
});

test("an event lights up the area by which it reached a client", async () => {
  await fetch(`${broker.url}/v1/clients/ann/subscriptions/bay`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ filters: [{ area: { center: PLACE, radius_m: 900 } }] }),
  });
  const { page, errors } = await newPage(browser, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${pages.url}?at=${PLACE.join(",")},13`);
  await connected(page);
  await numberOf(page.locator("[data-layer=areas]"), (count) => count > 0, "areas on the map");
  const lit = async (): Promise<number> => {
    await tell();
    return Number(await page.locator("canvas.flashes").getAttribute("data-areas"));
  };
  await expect.poll(lit, { timeout: 30_000 }).toBeGreaterThan(0);
  // The light goes out again.
  await expect.poll(() => page.locator("canvas.flashes").isHidden(), { timeout: 30_000 }).toBe(true);
  await page.getByRole("checkbox", { name: /Deliveries/ }).uncheck();
  await tell();
  await numberOf(page.locator("[data-layer=events]"), (count) => count > 0, "objects on the map");
  expect(await page.locator("canvas.flashes").isHidden()).toBe(true);
  await fetch(`${broker.url}/v1/clients/ann/subscriptions/bay`, { method: "DELETE" });
  expect(ownErrors(errors)).toEqual([]);
  await page.context().close();
});

test("two tabs of a browser have event streams, and others a WebSocket", async () => {
  const { page } = await newPage(browser, {});
  const context = page.context();
  const tabs = [page, await context.newPage(), await context.newPage()];
  const sockets = [0, 0, 0];
  for (const [at, tab] of tabs.entries()) {
    tab.on("websocket", (socket) => (sockets[at] = (sockets[at] ?? 0) + Number(socket.url().includes("/v1/clients/"))));
    await tab.goto(pages.url);
    await connected(tab);
    await tell();
    await numberOf(tab.locator("[data-layer=events]"), (count) => count > 0, "objects on the map");
  }
  expect(sockets).toEqual([0, 0, 1]);
  await context.close();
});

test("a page that is left ends its client, and what another left behind", async () => {
  const { page } = await newPage(browser, {});
  const clients = async (): Promise<string[]> => {
    const answer = await fetch(`${broker.url}/v1/clients`);
    return ((await answer.json()) as { clients: { client: string }[] }).clients.map(({ client }) => client);
  };
  await fetch(`${broker.url}/v1/clients/console-killed/subscriptions/all`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ filters: [{}] }),
  });
  const before = await clients();
  await page.addInitScript(() => {
    if (location.protocol === "about:" || sessionStorage.length > 0) return;
    sessionStorage.setItem("once", "");
    localStorage.setItem("nearcast-streams", JSON.stringify({ [new URL("v1/clients/console-killed", location.href).href]: 1 }));
  });
  await page.goto(pages.url);
  await connected(page);
  await expect.poll(clients).not.toContain("console-killed");
  // A context that is closed with its pages, as in the tests above, is a browser that is killed.
  const own = async (): Promise<string[]> => (await clients()).filter((client) => !before.includes(client));
  await expect.poll(async () => (await own()).length).toBe(1);
  await page.goto("about:blank");
  await expect.poll(own).toEqual([]);
  await page.context().close();
});
