// The console and its broker: tokens, a broker that goes away, and a planar world.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { Broker, type BrokerOptions } from "../../../typescript/tests/support/broker.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { connected, expectAccessible, numberOf, ownErrors } from "./console-support.js";

let browser: Browser;
let broker: Broker;
let pages: { readonly url: string; close(): Promise<void> };
let page: Page;
let errors: string[];

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
afterEach(async () => {
  await page.context().close();
  await pages.close();
  await broker.stop();
  expect(ownErrors(errors)).toEqual([]);
});

async function open(options: BrokerOptions = {}, viewport = { width: 1280, height: 800 }): Promise<void> {
  broker = await Broker.start(options);
  pages = await pagesOf(broker);
  ({ page, errors } = await newPage(browser, { viewport }));
  await page.goto(pages.url);
}

async function publish(event: object, token?: string): Promise<void> {
  const headers = { "content-type": "application/json", ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  const response = await fetch(`${broker.url}/v1/events`, { method: "POST", headers, body: JSON.stringify(event) });
  expect(response.status).toBe(202);
}

const place = (key: string, coordinates: [number, number], properties: object = {}): object => ({
  type: "Feature",
  key,
  geometry: { type: "Point", coordinates },
  properties,
});

const dialog = () => page.getByRole("dialog");

async function give(token: string): Promise<void> {
  await dialog().getByLabel("Token").fill(token);
  await dialog().getByRole("button", { name: "Use it" }).click();
}

test("a broker that wants tokens is asked nothing without one, and a bad one is refused in words", async () => {
  await open({ tokens: true });
  await dialog().waitFor();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await expectAccessible(page, `the dialog, ${colorScheme}`);
  }
  await give("hello");
  await dialog().getByText("three parts with dots").waitFor();
  await give(broker.token("me", "admin", Date.now() / 1000 - 7200));
  await dialog().getByText("ended 2 h ago").waitFor();
  const good = broker.token("me", "subscribe publish admin");
  await give(`${good.slice(0, -8)}AAAAAAAA`);
  await dialog().getByText("The broker does not take it").waitFor();
  await give(good);
  await dialog()
    .waitFor({ state: "detached" })
    .catch(() => dialog().waitFor({ state: "hidden" }));
  await connected(page);
  await publish(place("a", [9, 45]), good);
  await numberOf(page.locator("[data-layer=events]"), (count) => count === 1, "the event");
  await page.locator("[data-rate=events]").waitFor();
  await expect.poll(() => page.locator(".bar").textContent()).toContain("me");

  // It is kept for this tab, and can be forgotten.
  await page.reload();
  await connected(page);
  await page.getByRole("button", { name: /^Token/ }).click();
  await dialog().getByText("Now in use: me").waitFor();
  await dialog().getByRole("button", { name: "Forget" }).click();
  await page.locator('[data-state="refused"]').waitFor();
  expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
});

test("a token that permits less shows less, and says so", async () => {
  await open({ tokens: true });
  const token = broker.token("me", "subscribe");
  const publisher = broker.token("publisher", "publish");
  await give(token);
  await connected(page);
  await page.getByText("whose other connections would get all events").waitFor();
  await page.getByRole("button", { name: "Show events anyway" }).click();
  await page.getByRole("button", { name: "Show events anyway" }).waitFor({ state: "detached" });
  await publish(place("a", [9, 45], { kind: "bus" }), publisher);
  await numberOf(page.locator("[data-layer=events]"), (count) => count === 1, "the event");
  await page.getByText("does not permit to see the broker’s figures").waitFor();
  await page.locator(".feed .row").first().hover();
  await page.locator(".feed .row").first().click();
  await page.getByText("it takes the scope admin").waitFor();
  await page.getByRole("tab", { name: "Clients" }).click();
  await page.getByText("does not permit to list clients").waitFor();
  await page.getByRole("button", { name: "Open me" }).click();
  await page.getByRole("heading", { name: /^console-/ }).waitFor();
  await page.getByRole("tab", { name: "Try" }).click();
  await page.locator(".cm-content").click();
  await page.keyboard.insertText("kind = 'bus'");
  await numberOf(page.locator("[data-now]"), (count) => count === 1, "the draft matches");
  await page.getByRole("button", { name: "Publish", exact: true }).click();
  await page.getByText("does not permit to publish").waitFor();
  await expectAccessible(page, "with a token of few scopes");
});

test("a token that ends is asked for again, and what is on the page stays", async () => {
  await open({ tokens: true, settings: { "auth.leeway_s": 0 } });
  const publisher = broker.token("publisher", "publish");
  await give(broker.token("me", "subscribe", Date.now() / 1000 + 30));
  await connected(page);
  await page.getByRole("button", { name: "Show events anyway" }).click();
  await publish(place("a", [9, 45]), publisher);
  await numberOf(page.locator("[data-layer=events]"), (count) => count === 1, "the event");
  await dialog().waitFor({ timeout: 90_000 });
  await give(broker.token("me", "subscribe"));
  await connected(page);
  await publish(place("b", [9.01, 45]), publisher);
  await numberOf(page.locator("[data-layer=events]"), (count) => count === 2, "both events");
});

test("a broker that goes away is told, and all goes on when it is back", async () => {
  await open();
  await connected(page);
  await publish(place("a", [9, 45], { kind: "bus" }));
  await numberOf(page.locator("[data-layer=events]"), (count) => count === 1, "the event");
  await page.getByRole("tab", { name: "Try" }).click();
  await page.locator(".cm-content").click();
  await page.keyboard.insertText("kind = 'bus'");
  await numberOf(page.locator("[data-now]"), (count) => count === 1, "the draft matches");
  await broker.kill();
  await page.locator('[role=status][data-state="lost"]').waitFor({ timeout: 60_000 });
  await broker.start();
  await connected(page);
  await publish(place("b", [9.01, 45], { kind: "bus" }));
  // It kept nothing: what was there before is not there any more.
  await numberOf(page.locator("[data-layer=events]"), (count) => count === 1, "the event that it has");
  await expect
    .poll(
      async () => {
        // Until the draft is in force again its events are no news to it.
        await publish(place("c", [9.02, 45], { kind: "bus" }));
        return Number(
          await page
            .locator("[data-since]")
            .textContent({ timeout: 1000 })
            .catch(() => 0),
        );
      },
      { timeout: 30_000 },
    )
    .toBeGreaterThan(0);
  await page.getByRole("tab", { name: "Live" }).click();
  await page.locator("[data-rate=events]").waitFor();
  await page.locator(".figures .warn").waitFor({ state: "detached" });
});

test("a planar world works too, on a small screen", async () => {
  await open({ settings: { "server.world": "planar" } }, { width: 390, height: 844 });
  await connected(page);
  await publish(place("in", [1030, 2040], { kind: "bus" }));
  await publish(place("edge", [1030, 2000], { kind: "bus" }));
  await publish(place("out", [1040, 2060], { kind: "bus" }));
  await numberOf(page.locator("[data-layer=events]"), (count) => count === 3, "the events");
  await page.getByRole("tab", { name: "Try" }).click();
  await page.getByRole("button", { name: "Circle" }).click();
  await page.getByRole("button", { name: "Write it instead" }).click();
  const area = page.getByRole("region", { name: "Area" });
  await area.getByLabel("x, m").fill("1000");
  await area.getByLabel("y, m").fill("2000");
  await area.getByLabel("radius, m").fill("50");
  await numberOf(page.locator("[data-now]"), (count) => count === 2, "one at 30 m and one at 50 m, on the edge");
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await expectAccessible(page, `a small screen, ${colorScheme}`);
  }
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
});
