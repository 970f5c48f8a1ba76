// Where to: the phone page finds the way, brings what lies on it, and finds it again.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { coloursAbout } from "../support/colours.js";
import { launch } from "../support/pages.js";
import { liechtenstein, TOWN, writeTown } from "../support/streets.js";
import { expectAccessible, onScreen } from "./console-support.js";
import { feature, openPhone, placed, publish, seen, serve, type PhonePage, type Place, type Served } from "./phone-support.js";

const { WEST, MIDDLE, EAST, SOUTH, NORTH } = TOWN;
/** `--map-group` of the light theme. */
const LINE = "74,63,192";

let browser: Browser;
let town: ReturnType<typeof writeTown>;
let served: Served;

beforeAll(async () => {
  town = writeTown();
  const slow = {
    "routes.slow.where": "type = 'jam'",
    "routes.slow.factor": 4,
    "routes.slow.radius_m": 100,
    "routes.slow.derived": "false",
  };
  [browser, served] = await Promise.all([launch(), serve({ settings: { "routes.streets": town.folder, ...slow } })]);
});

afterAll(async () => {
  await browser.close();
  await served.close();
  town.remove();
});

interface Travelling extends PhonePage {
  readonly client: () => Promise<string>;
  /** Questions for a route so far, but for the one that asks whether there are streets. */
  readonly asked: () => number;
}

/** The page of somebody who is somewhere, on a map that shows some kilometres. */
async function at([longitude, latitude]: Place, url = served.url, before?: (page: Page) => Promise<void>): Promise<Travelling> {
  let asked = 0;
  const phone = await openPhone(browser, "about:blank?", {
    colorScheme: "light",
    permissions: ["geolocation"],
    geolocation: { longitude, latitude, accuracy: 10 },
  });
  const { page } = phone;
  await before?.(page);
  page.on("request", (request) => {
    if (request.url().endsWith("/v1/routes") && !(request.postData() ?? "").includes('"from":[0,0]')) asked += 1;
  });
  await page.goto(`${url}phone`);
  await page.getByRole("button", { name: "Use my location" }).click();
  await seen(page, /Your place was sent/);
  return { ...phone, asked: () => asked };
}

async function moved(phone: Travelling, client: string, [longitude, latitude]: Place): Promise<void> {
  await phone.context.setGeolocation({ longitude, latitude, accuracy: 10 });
  await placed(served.broker, client, [longitude, latitude]);
}

/** Taps a place of the world on the map, which comes to rest before. */
async function tap(page: Page, place: Place): Promise<void> {
  const map = page.locator("[data-center]");
  await map.locator("canvas").first().focus();
  await page.keyboard.press("-");
  await expect
    .poll(async () => {
      const [{ x, y }, box] = [await onScreen(page, place), await map.boundingBox()];
      return box !== null && x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
    })
    .toBe(true);
  const { x, y } = await onScreen(page, place);
  await page.touchscreen.tap(x, y);
}

async function filters(client: string): Promise<readonly { area: { route?: { to: Place }; radius_m: number } }[]> {
  const response = await fetch(`${served.broker.url}/v1/clients/${client}/subscriptions/around-me`);
  return ((await response.json()) as { filters: [] }).filters;
}

const going = (page: Page): ReturnType<Page["getByRole"]> => page.getByRole("region", { name: "Where to" });

test("a tap finds the way; what lies on it comes, moves on it ask nothing, one off it asks once, and the end takes it away", async () => {
  const phone = await at([WEST, SOUTH]);
  const { page } = phone;
  const client = await phone.client();
  await page.getByRole("button", { name: "Where to?" }).click();
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe("Where to?");
  await expectAccessible(page, "where to");
  await tap(page, [EAST, SOUTH]);
  await seen(page, "To the place on the map");
  await going(page).getByText("1.5 km, about 2 min").waitFor();
  await expectAccessible(page, "going");
  expect(phone.asked()).toBe(1);
  const to = [expect.closeTo(EAST, 3), expect.closeTo(SOUTH, 3)];
  await expect.poll(() => filters(client)).toEqual([{ area: { radius_m: 1000 } }, { area: { route: { to }, radius_m: 200 } }]);
  await expect.poll(() => coloursAbout(page, [MIDDLE + 0.005, SOUTH], 5)).toContain(LINE);

  await publish(served.broker, [
    feature("beside", [EAST - 0.001, NORTH]),
    feature("ahead", [EAST - 0.001, SOUTH + 0.0001]),
    feature("here", [WEST, SOUTH]),
  ]);
  await phone.came("here");
  expect(await phone.titles()).toEqual(["here", "ahead"]);
  await expect.poll(() => page.locator(".entry", { hasText: "ahead" }).locator(".whereabouts").textContent()).toMatch(/on your way/);
  expect(await page.locator(".entry.gone").count()).toBe(0);

  for (const lon of [WEST + 0.004, MIDDLE]) await moved(phone, client, [lon, SOUTH]);
  await going(page).getByText("756 m, about 1 min").waitFor();
  expect(phone.asked()).toBe(1);
  // From there the way leads back by the middle street across.
  await moved(phone, client, [MIDDLE, NORTH]);
  await going(page).getByText("1.3 km, about 2 min").waitFor();
  expect(phone.asked()).toBe(2);
  await expect.poll(() => coloursAbout(page, [MIDDLE, (NORTH + SOUTH) / 2], 5)).toContain(LINE);

  const slider = page.getByRole("slider", { name: "Beside the way" });
  await slider.press("Home");
  await expect.poll(async () => (await filters(client))[1]?.area.radius_m).toBe(50);

  await page.getByRole("button", { name: "End" }).click();
  await expect.poll(() => filters(client)).toEqual([{ area: { radius_m: 1000 } }]);
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe("Where to?");
  await expect.poll(() => coloursAbout(page, [MIDDLE, (NORTH + SOUTH) / 2], 5)).not.toContain(LINE);
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("the middle of the map will do without a finger, and the way goes on when the page is opened again", async () => {
  const phone = await at([WEST, NORTH]);
  const { page } = phone;
  const client = await phone.client();
  await page.getByRole("button", { name: "Where to?" }).press("Enter");
  await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe("H2");
  await page.locator("[data-center] canvas").first().focus();
  // A key moves the map by a hundred pixels.
  for (let step = 0; step < 3; step++) {
    const before = await page.locator("[data-center]").getAttribute("data-center");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => page.locator("[data-center]").getAttribute("data-center")).not.toBe(before);
  }
  await page.getByRole("button", { name: "Go to the middle" }).press("Enter");
  await seen(page, "To the place on the map");
  await expect.poll(async () => (await filters(client)).length).toBe(2);
  const before = await filters(client);
  await page.reload();
  await seen(page, "To the place on the map");
  await seen(page, /Your place was sent/);
  await going(page)
    .getByText(/km, about/)
    .waitFor();
  expect(await filters(client)).toEqual(before);
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("where no way leads the page says so, and says which end lies off the streets", async () => {
  const phone = await at([WEST, SOUTH]);
  const { page } = phone;
  await page.getByRole("button", { name: "Where to?" }).click();
  await page.getByRole("searchbox", { name: "Or by its name" }).fill("Zürich");
  await page.getByRole("button", { name: /^Zürich/ }).click();
  await seen(page, "There is no street within 1.0 km of that place. Choose another one.");
  await phone.context.setGeolocation({ longitude: 8, latitude: 47, accuracy: 10 });
  await page.getByRole("button", { name: "Where to?" }).click();
  await page.getByRole("searchbox", { name: "Or by its name" }).fill("Vaduz");
  await page.getByRole("button", { name: /^Vaduz/ }).click();
  await seen(page, "There is no street within 1.0 km of you.");
  await page.getByRole("button", { name: "Where to?" }).click();
  await page.getByRole("searchbox", { name: "Or by its name" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Where to?" }).waitFor();
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("a jam ahead leads the line around it, as it does the broker's corridor", async () => {
  const phone = await at([WEST, SOUTH], served.url, (page) => page.clock.install());
  const { page } = phone;
  await page.getByRole("button", { name: "Where to?" }).click();
  await tap(page, [EAST, SOUTH]);
  await going(page).getByText("1.5 km, about 2 min").waitFor();
  const client = await phone.client();
  const detour = feature("?", [MIDDLE + 0.005, NORTH]);
  const question = JSON.stringify({ client, subscription: "around-me", event: detour });
  const reaches = async (): Promise<boolean> => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${served.broker.url}/v1/explain`, { method: "POST", headers, body: question });
    return ((await answer.json()) as { matched: boolean }).matched;
  };
  expect(await reaches()).toBe(false);
  await publish(served.broker, [feature("jam", [MIDDLE + 0.005, SOUTH], { key: "jam", ttl_s: 600 }, { type: "jam" })]);
  await expect.poll(reaches).toBe(true);
  await page.clock.fastForward(61_000);
  await going(page).getByText("2.6 km, about 4 min").waitFor();
  await expect.poll(() => coloursAbout(page, [MIDDLE + 0.005, NORTH], 5)).toContain(LINE);
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("a broker without streets is not asked where to", async () => {
  const plain = await serve();
  const asked: string[] = [];
  const phone = await at([WEST, SOUTH], plain.url, (page) => {
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    return Promise.resolve();
  });
  await seen(phone.page, "Nothing near you yet.");
  expect(await phone.page.getByRole("button", { name: "Where to?" }).count()).toBe(0);
  expect(asked).toContain("/pages.json");
  expect(asked).not.toContain("/v1/routes");
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
  await plain.close();
});

const real = liechtenstein();
test.skipIf(real === undefined)("in real streets a name is found, and the way to it", async () => {
  const country = await serve({ settings: { "routes.streets": real ?? "" } });
  const phone = await at([9.5085, 47.165], country.url);
  const { page } = phone;
  await page.getByRole("button", { name: "Where to?" }).click();
  await page.getByRole("searchbox", { name: "Or by its name" }).fill("vad");
  await page.getByRole("button", { name: /^Vaduz/ }).click();
  await seen(page, "To Vaduz");
  await going(page)
    .getByText(/^3\.\d km, about \d min$/)
    .waitFor();
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
  await country.close();
});
