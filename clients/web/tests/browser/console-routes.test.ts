// Routes on the console: the way of an area that follows a client, and the way between two places.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
import { coloursAbout } from "../support/colours.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { TOWN, writeTown } from "../support/streets.js";
import { connected, expectAccessible, onScreen, ownErrors } from "./console-support.js";

const { WEST, MIDDLE, EAST, SOUTH, NORTH } = TOWN;
/** `--map-group` of the light theme. */
const LINE = "74,63,192";

let browser: Browser;
let town: ReturnType<typeof writeTown>;
let broker: Broker;
let pages: Awaited<ReturnType<typeof pagesOf>>;
let page: Page;
let errors: string[];

beforeAll(async () => {
  town = writeTown();
  // Where clients are is shown to the metre.
  const settings = { "routes.streets": town.folder, "privacy.round_m": 1 };
  [browser, broker] = await Promise.all([launch(), Broker.start({ settings })]);
  pages = await pagesOf(broker);
});

afterAll(async () => {
  await browser.close();
  await pages.close();
  await broker.stop();
  town.remove();
});

beforeEach(async () => {
  ({ page, errors } = await newPage(browser, { viewport: { width: 1280, height: 800 }, colorScheme: "light" }));
});

afterEach(async () => {
  await page.context().close();
  for (const client of ["ann", "cat"]) await fetch(`${broker.url}/v1/clients/${client}/subscriptions/way`, { method: "DELETE" });
  expect(ownErrors(errors)).toEqual([]);
});

async function open(query: string): Promise<void> {
  await page.goto(`${pages.url}${query}at=${(WEST + EAST) / 2},${(SOUTH + NORTH) / 2},14`);
  await connected(page);
}

async function put(path: string, body: object): Promise<void> {
  const response = await fetch(`${broker.url}/v1/clients/${path}`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(response.ok).toBe(true);
}

/** Whether something is drawn that was not: the map has no base here, so that all of its ground has one colour. */
async function isDrawn(place: readonly [number, number]): Promise<boolean> {
  const here = await coloursAbout(page, place, 3);
  const elsewhere = await coloursAbout(page, [EAST + 0.004, NORTH], 3);
  return ![...elsewhere].some((colour) => here.has(colour));
}

test("the corridor along a client's way is drawn, its length told, and it follows the client", async () => {
  await put("ann/position", { coordinates: [WEST, SOUTH] });
  await put("ann/subscriptions/way", { filters: [{ area: { route: { to: [EAST, SOUTH] }, radius_m: 150 } }] });
  await open("?client=ann&");
  const part = page.getByRole("region", { name: "Subscriptions" });
  await part.getByText("within 150 m of the client’s way to a place").waitFor();
  await part.getByText(/^1\.5 km, 2 min/).waitFor();
  await expect.poll(() => isDrawn([MIDDLE + 0.005, SOUTH + 0.0008])).toBe(true);
  await expect.poll(() => isDrawn([MIDDLE + 0.005, NORTH])).toBe(false);
  await expectAccessible(page, "a client with a way");
  // It leaves its way. From there the best one is along the other street, and by the middle one across.
  await put("ann/position", { coordinates: [WEST, NORTH] });
  await expect.poll(() => isDrawn([WEST + 0.005, NORTH])).toBe(true);
  await part.getByRole("button", { name: "Show area" }).click();
});

test("a click on the map is for what asked for it last", async () => {
  await open("?tab=try&");
  const pressed = page.locator('[aria-pressed="true"]').filter({ hasText: /click/ });
  const area = page.getByRole("group", { name: "Area" }).getByRole("button", { name: "Circle" });
  await page.getByRole("button", { name: "Pick the place on the map" }).click();
  expect(await pressed.allTextContents()).toEqual(["Now click on the map"]);
  await page.getByRole("button", { name: "Pick both on the map" }).click();
  expect(await pressed.allTextContents()).toEqual(["Now click where it begins"]);
  await area.click();
  expect(await pressed.count()).toBe(0);
  await page.getByText("Drag from the middle to the edge").waitFor();
  await page.getByRole("button", { name: "Pick the place on the map" }).click();
  expect(await page.getByText("Drag from the middle to the edge").count()).toBe(0);
  const { x, y } = await onScreen(page, [MIDDLE, SOUTH]);
  await page.mouse.click(x, y);
  await page.getByRole("button", { name: "Pick the place on the map" }).waitFor();
  const longitude = page.getByRole("region", { name: "Publish a test event" }).getByRole("textbox", { name: "longitude" });
  expect(Number(await longitude.inputValue())).toBeCloseTo(MIDDLE, 3);
});

test("a subscription whose client is off the streets says why its way is not drawn", async () => {
  await put("cat/subscriptions/way", { filters: [{ area: { route: { to: [EAST, SOUTH] }, radius_m: 150 } }] });
  await put("cat/position", { coordinates: [8, 46] });
  await open("?client=cat&");
  await page.getByText("Its way cannot be drawn: there is no street within 1000 m of where the client is.").waitFor();
});

test("the way between two places is found by a click on each, or by numbers, and drawn", async () => {
  await open("?tab=try&");
  const part = page.getByRole("region", { name: "Find a route" });
  // A page that was opened here begins where its map is, too.
  const from = part.getByRole("group", { name: "From" }).getByRole("textbox", { name: "longitude" });
  await expect.poll(async () => Number(await from.inputValue())).toBeCloseTo(MIDDLE, 1);
  await part.getByRole("button", { name: "Pick both on the map" }).click();
  for (const place of [
    [WEST, SOUTH],
    [EAST, SOUTH],
  ] as const) {
    const { x, y } = await onScreen(page, place);
    await page.mouse.click(x, y);
  }
  await part.getByRole("button", { name: "Pick both on the map" }).waitFor();
  await part.getByRole("button", { name: "Find", exact: true }).click();
  await part.getByText("1.5 km, 2 min, the best one (level 0)").waitFor();
  await expect.poll(() => coloursAbout(page, [MIDDLE + 0.005, SOUTH], 3)).toContain(LINE);
  await expectAccessible(page, "a route");
  // By length the way from the north is another than by time.
  const to = part.getByRole("group", { name: "To" });
  await to.getByRole("textbox", { name: "latitude" }).fill(String(NORTH));
  await expect.poll(() => coloursAbout(page, [MIDDLE + 0.005, SOUTH], 3)).not.toContain(LINE);
  await part.getByRole("combobox", { name: "Least" }).selectOption("length");
  await part.getByRole("button", { name: "Find", exact: true }).click();
  await part.getByText(/^2\.1 km, /).waitFor();
  await to.getByRole("textbox", { name: "latitude" }).fill("46");
  await part.getByRole("button", { name: "Find", exact: true }).click();
  await part.getByText("No route: there is no street within 1000 m of to.").waitFor();
  // Elsewhere it is not in the way.
  await page.getByRole("tab", { name: "Live" }).click();
  await expect.poll(() => coloursAbout(page, [WEST, SOUTH], 16)).not.toContain(LINE);
});
