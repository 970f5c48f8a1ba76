// The console against the demo: real taxis, their areas, and what a person does with them.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { Demo } from "../support/demo.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { connected, expectAccessible, numberOf, ownErrors } from "./console-support.js";

let demo: Demo;
let pages: { readonly url: string; close(): Promise<void> };
let browser: Browser;
let page: Page;
let errors: string[];

beforeAll(async () => {
  demo = await Demo.start();
  pages = await pagesOf(demo);
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  await pages.close();
  await demo.stop();
});
beforeEach(async () => {
  ({ page, errors } = await newPage(browser, { viewport: { width: 1280, height: 800 } }));
  await page.goto(pages.url);
  await connected(page);
});
afterEach(async () => {
  await page.context().close();
  expect(ownErrors(errors)).toEqual([]);
});

const tab = (name: string): Promise<void> => page.getByRole("tab", { name }).click();

test("events come onto the map and into the feed, areas are there, and figures move", async () => {
  await numberOf(page.locator("[data-layer=events]"), (count) => count > 300, "objects on the map");
  // Those that are too small for rings, too.
  await numberOf(page.locator("[data-layer=areas]"), (count) => count > 100, "areas on the map");
  await numberOf(page.locator("[data-layer=clients]"), (count) => count > 300, "clients on the map");
  // A row comes each quarter of a second.
  await expect.poll(() => page.locator(".feed .row").count()).toBeGreaterThan(2);
  await expect.poll(() => page.locator(".feed .row").first().textContent()).toMatch(/Taxi \d+.*\d+ km\/h/);
  for (const rate of ["events", "matches", "deliveries", "moves"]) {
    await numberOf(page.locator(`[data-rate=${rate}]`), (number) => number > 10, rate);
  }
  await expect.poll(() => page.locator('[data-rate="write p50"]').textContent(), { timeout: 30_000 }).toMatch(/\d (µs|ms|s)$/);
  await page.getByText("Latency and broker").click();
  await page.locator(".broker").getByText("cells").waitFor();
  await page.getByText("Latency and broker").click();

  const newest = page.locator(".feed .row .name").first();
  await page.getByRole("button", { name: "Pause" }).click();
  const before = await newest.textContent();
  const passed = page.locator("[data-rate=events]");
  const rate = await passed.textContent();
  await expect.poll(() => passed.textContent(), { timeout: 30_000 }).not.toBe(rate);
  expect(await newest.textContent()).toBe(before);

  await page.getByRole("checkbox", { name: /Events/ }).uncheck();
  await page.getByText("Display", { exact: true }).click();
  await page.getByLabel("One mark per").selectOption("");
  await numberOf(page.locator("[data-layer=events]"), (count) => count > 0, "events of their own");
  await expect.poll(() => page.locator(".feed .row").count()).toBeGreaterThan(2);
});

test("each tab is in order for an accessibility checker, light and dark", async () => {
  await numberOf(page.locator("[data-layer=events]"), (count) => count > 50, "objects on the map");
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const name of ["Live", "Clients", "Checks", "Try"]) {
      await tab(name);
      if (name === "Clients") await page.getByRole("button", { name: "operator" }).waitFor();
      // The demo has a check of its own, which finds taxis that jump.
      if (name === "Checks") {
        await page.locator(".cards").getByRole("button", { name: "jump" }).waitFor();
        await page.locator("[data-violations]").waitFor();
      }
      if (name === "Try") await page.locator(".cm-content").waitFor();
      await expectAccessible(page, `${name}, ${colorScheme}`);
    }
  }
});

test("an event is told in full, and why a client gets it or not", async () => {
  const row = page.locator(".feed .row").first();
  await row.waitFor();
  await row.hover();
  await row.click();
  const speed = Number(await page.locator(".fields > div", { hasText: "speed_kmh" }).locator("dd").textContent());
  expect(speed).toBeGreaterThanOrEqual(0);
  await page.getByLabel("Client", { exact: true }).fill("operator");
  await page.getByLabel("Client", { exact: true }).press("Tab");
  await page.getByLabel("Subscription").selectOption("fast");
  await page.getByRole("button", { name: "Why?" }).click();
  const answer = page.locator(".answer");
  await answer.waitFor();
  await expect.poll(() => answer.getAttribute("data-matched")).toBe(String(speed >= 80));
  await expect.poll(() => answer.textContent()).toContain(`speed_kmh is ${speed}`);
  await page.getByLabel("Subscription").selectOption("everything");
  await page.getByRole("button", { name: "Why?" }).click();
  await page.locator('.answer[data-matched="true"]').waitFor();
  await expectAccessible(page, "an event");
  await page.keyboard.press("Escape");
  await page.locator(".feed .row").first().waitFor();
});

test("a client shows its state and its subscriptions, and answers for the newest events", async () => {
  // Those that are there when its page opens can be asked for.
  await numberOf(page.locator("[data-layer=events]"), (count) => count > 0, "objects on the map");
  await tab("Clients");
  await page.getByLabel("Find a client by its name").fill("AIRP");
  await page.getByRole("button", { name: "airport", exact: true }).click();
  await page.getByRole("heading", { name: "at-the-airport" }).waitFor();
  await page.getByText("in a polygon", { exact: true }).waitFor();
  await page.locator("#why-event option").first().waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Why?" }).click();
  const verdict = page.locator(".answer");
  await verdict.waitFor();
  const matched = (await verdict.getAttribute("data-matched")) === "true";
  await expect.poll(() => verdict.textContent()).toMatch(matched ? /Inside of the polygon/ : /\d\s(m|km) outside of the polygon/);
  await expectAccessible(page, "a client");
  await page.getByRole("button", { name: "Back" }).click();
  await page.getByLabel("Find a client by its name").waitFor();
});

test("what was drawn by mouse matches at once and from then on", async () => {
  await numberOf(page.locator("[data-layer=events]"), (count) => count > 300, "objects on the map");
  await tab("Try");
  await page.getByRole("button", { name: "Circle" }).click();
  const map = await page.locator("[data-center]").boundingBox();
  if (map === null) throw new Error("there is no map");
  await page.mouse.click(map.x + map.width / 2, map.y + map.height / 2);
  await page.mouse.move(map.x + map.width / 2 + 100, map.y + map.height / 2, { steps: 4 });
  await page.mouse.click(map.x + map.width / 2 + 300, map.y + map.height / 2);
  expect(Number(await page.getByLabel("radius, m").inputValue())).toBeGreaterThan(5000);
  await page.locator(".cm-content").click();
  await page.keyboard.type("speed_kmh >= 0");
  await numberOf(page.locator("[data-now]"), (count) => count > 0, "of the newest");
  await numberOf(page.locator("[data-since]"), (count) => count > 20, "since then");
  await tab("Live");
  await page.getByText("Matches of the draft").waitFor({ state: "detached" });
});
