// The console on a narrow screen: a sheet over the map, by finger and by keys.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { connected, expectAccessible, ownErrors } from "./console-support.js";

let browser: Browser;
let broker: Broker;
let pages: { readonly url: string; close(): Promise<void> };
let page: Page;
let errors: string[];

beforeAll(async () => {
  browser = await launch();
  broker = await Broker.start();
  pages = await pagesOf(broker);
});
afterAll(async () => {
  await browser.close();
  await pages.close();
  await broker.stop();
});
beforeEach(async () => {
  ({ page, errors } = await newPage(browser, { viewport: { width: 390, height: 844 } }));
  await page.goto(pages.url);
  await connected(page);
});
afterEach(async () => {
  await page.context().close();
  expect(ownErrors(errors)).toEqual([]);
});

const grip = () => page.getByRole("separator", { name: "Height of the panel" });
const height = async (): Promise<number> => (await page.locator(".panel").boundingBox())?.height ?? 0;

test("what the broker says of all that is shown stands in the bar", async () => {
  await page.route("**/pages.json", async (route) => {
    const settings = (await (await route.fetch()).json()) as object;
    await route.fulfill({ json: { ...settings, notice: "Replay of 26 October 2007" } });
  });
  await page.reload();
  await connected(page);
  await page.getByRole("banner").getByText("Replay of 26 October 2007").waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await expectAccessible(page, "a notice");
});

test("keys move the sheet through its heights, and nothing overflows at any of them", async () => {
  await grip().focus();
  const heights: number[] = [];
  for (const [key, says] of [
    ["Home", "Most of the map"],
    ["ArrowUp", "Half of it"],
    ["ArrowUp", "Most of the panel"],
  ] as const) {
    await page.keyboard.press(key);
    await expect.poll(() => grip().getAttribute("aria-valuetext")).toBe(says);
    heights.push(await height());
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await expectAccessible(page, says);
  }
  const [low = 0, half = 0, full = 0] = heights;
  expect(low).toBeLessThan(half - 100);
  expect(half).toBeLessThan(full - 100);
  // What somebody asks for has room.
  await page.keyboard.press("Home");
  await page.getByRole("tab", { name: "Try" }).click();
  await expect.poll(height).toBe(half);
});

test("a finger drags the sheet, which stays at the height that is nearest, and a press goes to the next", async () => {
  const before = await height();
  const box = await grip().boundingBox();
  if (box === null) throw new Error("there is no grip");
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x, y + 150, { steps: 4 });
  expect(await height()).toBeLessThan(before - 100);
  await page.mouse.move(x, 800, { steps: 4 });
  await page.mouse.up();
  await expect.poll(() => grip().getAttribute("aria-valuenow")).toBe("0");
  expect(await height()).toBeLessThan(120);
  await grip().click();
  await expect.poll(() => grip().getAttribute("aria-valuenow")).toBe("1");
  await expect.poll(height).toBe(before);
});
