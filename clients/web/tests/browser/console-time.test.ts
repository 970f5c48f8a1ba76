// The console and time: charts from before the page was opened, the map as it was, and its marks by keyboard.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { connected, expectAccessible, numberOf, onScreen, ownErrors } from "./console-support.js";

let broker: Broker;
let pages: { readonly url: string; close(): Promise<void> };
let browser: Browser;
let page: Page;
let errors: string[];

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
beforeEach(async () => {
  ({ page, errors } = await newPage(browser, { viewport: { width: 1280, height: 800 } }));
});
afterEach(async () => {
  await page.context().close();
  expect(ownErrors(errors)).toEqual([]);
});

type LonLat = readonly [lon: number, lat: number];

/** Tells where objects are now. */
async function tell(...objects: readonly (readonly [key: string, at: LonLat])[]): Promise<void> {
  const lines = objects.map(([key, coordinates]) =>
    JSON.stringify({ type: "Feature", key, ttl_s: 300, geometry: { type: "Point", coordinates }, properties: { load: 7 } }),
  );
  const headers = { "content-type": "application/x-ndjson" };
  const answer = await fetch(`${broker.url}/v1/events`, { method: "POST", headers, body: lines.join("\n") });
  expect(((await answer.json()) as { accepted: number }).accepted).toBe(objects.length);
}

/** The map from above Milan. */
async function open(): Promise<void> {
  await page.goto(`${pages.url}?at=9.19,45.46,12`);
  await connected(page);
}

/** How far the ring of the keyboard's mark is from a place, in pixels. */
async function ringFrom(place: LonLat): Promise<number> {
  const { x, y } = await onScreen(page, place);
  const ring = page.locator(".walker-ring");
  const box = (await ring.count()) === 0 ? null : await ring.boundingBox();
  return box === null ? Infinity : Math.hypot(box.x + box.width / 2 - x, box.y + box.height / 2 - y);
}

test("charts show what the broker has kept from before the page was opened, over a time that is chosen", async () => {
  const kept = async (): Promise<number> => {
    await tell(["far", [9.3, 45.4]]);
    return ((await (await fetch(`${broker.url}/v1/stats/history`)).json()) as { time_unix_ms: number[] }).time_unix_ms.length;
  };
  // The chart ends at the newest whole bucket of ten seconds.
  await expect.poll(kept, { timeout: 60_000, interval: 500 }).toBeGreaterThan(3);
  await open();
  const rates = page.getByRole("img", { name: "Rates, events and deliveries, per second, of the last 5 minutes" });
  await rates.waitFor();
  // In seconds: the oldest point's age, and the page's.
  const oldest = (): Promise<readonly [number, number]> =>
    rates.evaluate((chart) => {
      const ages = [...chart.querySelectorAll("path")].map((path) => {
        const first = Number(/^M([\d.]+),/.exec(path.getAttribute("d") ?? "")?.[1] ?? NaN);
        return ((380 - 10 - first) / (380 - 46 - 10)) * 300;
      });
      return [Math.max(...ages.filter((age) => !Number.isNaN(age))), performance.now() / 1000] as const;
    });
  await expect.poll(async () => (await oldest())[0] > (await oldest())[1] + 5).toBe(true);
  await page.locator(".figures summary").click();
  // One line to read by goes through all charts, also by keyboard.
  const read = page.locator(".chart text.read");
  expect(await read.count()).toBe(0);
  const reader = page.getByRole("slider", { name: "Rates: time to read" });
  await reader.focus();
  await reader.press("ArrowLeft");
  await expect.poll(() => read.count()).toBe(2);
  const told = (await reader.getAttribute("aria-valuetext")) ?? "";
  expect(told).toMatch(/^\d\d:\d\d:\d\d: events [\d.,]+, deliveries /);
  expect(new Set(await read.allTextContents())).toEqual(new Set([told.slice(0, 8)]));
  await expectAccessible(page, "charts");
  await reader.blur();
  await expect.poll(() => read.count()).toBe(0);
  await page.getByRole("button", { name: "1 h" }).click();
  await page.getByRole("img", { name: "Rates, events and deliveries, per second, of the last 60 minutes" }).waitFor();
});

test("the map shows how things were, clearly marked, and comes back to now", async () => {
  const [before, after]: [LonLat, LonLat] = [
    [9.16, 45.47],
    [9.22, 45.45],
  ];
  await open();
  await tell(["van", before]);
  await numberOf(page.locator("[data-layer=events]"), (count) => count > 0, "objects on the map");
  const slider = page.getByRole("slider", { name: "Time that the map shows" });
  // Whole seconds pass in which it is there: there is something to go back to.
  const newest_s = async (): Promise<number> => Number(await slider.getAttribute("max"));
  const from_s = await newest_s();
  await expect.poll(newest_s).toBeGreaterThan(from_s + 4);
  await tell(["van", after]);
  const walker = page.getByRole("application", { name: "Marks on the map" });
  await walker.focus();
  await expect.poll(() => ringFrom(after), { timeout: 30_000 }).toBeLessThan(12);
  await expect.poll(() => slider.getAttribute("aria-valuetext")).toBe("now");

  await slider.focus();
  await slider.press("Home");
  await page.getByText("Not live: the map shows the past").waitFor();
  await expect.poll(() => slider.getAttribute("aria-valuetext")).toMatch(/^\d\d:\d\d:\d\d, \d+ s ago$/);
  // Other things may have been there before it: second by second to where it was, and anew from the first when that is passed by.
  await expect
    .poll(async () => {
      await slider.press((await slider.getAttribute("aria-valuetext")) === "now" ? "Home" : "ArrowRight");
      await walker.focus();
      return ringFrom(before);
    })
    .toBeLessThan(12);
  await expectAccessible(page, "the past");

  // It plays on to where things are now, and is live again by itself.
  await page.getByLabel("Speed").selectOption("16");
  await page.getByRole("button", { name: "Go on from here" }).click();
  await page.getByText("Not live: the map shows the past").waitFor({ state: "detached" });
  await walker.focus();
  await expect.poll(() => ringFrom(after), { timeout: 30_000 }).toBeLessThan(12);

  await page.getByRole("button", { name: "Stop the map" }).click();
  await page.getByText("Not live: the map shows the past").waitFor();
  await page.locator(".time").getByRole("button", { name: "Live" }).click();
  await page.getByText("Not live: the map shows the past").waitFor({ state: "detached" });
});

test("marks are gone through by arrow keys, said aloud, and opened by Enter", async () => {
  await open();
  await tell(["west", [9.17, 45.46]], ["middle", [9.191, 45.461]], ["east", [9.21, 45.46]], ["van", [9.3, 45.5]]);
  await expect.poll(() => page.locator(".feed .row").filter({ hasText: "middle" }).count()).toBeGreaterThan(0);
  const now = page.locator("#walker-now");
  await page.getByRole("application", { name: "Marks on the map" }).focus();
  await expect.poll(() => now.textContent(), { timeout: 30_000 }).toBe("middle, load 7");
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => now.textContent()).toBe("east, load 7");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await expect.poll(() => now.textContent()).toBe("west, load 7");
  await page.keyboard.press("ArrowLeft");
  await expect.poll(() => now.textContent()).toBe("There is no mark further on in this direction.");
  await expectAccessible(page, "a mark by keyboard");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "west" }).waitFor();
  await page.keyboard.press("Escape");
  await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Marks on the map");
});
