// What lies below the marks: the outline of the world, and the base maps of the settings.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { Broker, type BrokerOptions } from "../../../typescript/tests/support/broker.js";
import { DARK, LIGHT, type Palette } from "../../src/shared/map/base/palette.js";
import { parts } from "../../src/shared/map/colour.js";
import { colourAt } from "../support/colours.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { connected, ownErrors } from "./console-support.js";

let browser: Browser;
const ends: (() => Promise<void>)[] = [];

beforeAll(async () => {
  browser = await launch();
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
afterAll(() => browser.close());

interface Shown {
  readonly colorScheme?: "light" | "dark";
  readonly viewport?: { readonly width: number; readonly height: number };
}

async function open(options: BrokerOptions, { colorScheme = "light", viewport = { width: 1280, height: 800 } }: Shown = {}): Promise<Page> {
  const broker = await Broker.start(options);
  ends.push(() => broker.stop());
  const pages = await pagesOf(broker);
  ends.push(() => pages.close());
  const { page, errors } = await newPage(browser, { colorScheme, viewport });
  ends.push(async () => {
    await page.context().close();
    expect(ownErrors(errors)).toEqual([]);
  });
  await page.goto(pages.url);
  await connected(page);
  return page;
}

const rgb = (colour: string): number[] =>
  parts(colour)
    .slice(0, 3)
    .map((part) => Math.round(part * 255));

async function expectColour(page: Page, place: readonly [number, number], colour: string): Promise<void> {
  await expect.poll(() => colourAt(page, place), { message: place.join(), timeout: 30_000 }).toEqual(rgb(colour));
}

test.each([
  ["light", LIGHT],
  ["dark", DARK],
] as const)("the map has land and water without a base map, %s", async (colorScheme, palette: Palette) => {
  const page = await open({}, { colorScheme });
  await expectColour(page, [20, 27], palette.land); // Libya
  await expectColour(page, [-30, 40], palette.water); // the Atlantic
  await expectColour(page, [125, 67], palette.land); // Siberia, which crosses the antimeridian
  await expectColour(page, [20, 76], palette.water); // and what is north of Norway
  const other = colorScheme === "light" ? "dark" : "light";
  await page.emulateMedia({ colorScheme: other });
  await expectColour(page, [20, 27], other === "dark" ? DARK.land : LIGHT.land);
});

test("where the data is from is told beside the scale, and behind a button on a phone", async () => {
  const page = await open({});
  await page.getByText("Natural Earth, GeoNames").waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.reload();
  await connected(page);
  await expectColour(page, [20, 27], LIGHT.land);
  await expect.poll(() => page.getByText("Natural Earth, GeoNames").isVisible()).toBe(false);
  const button = page.locator(".maplibregl-ctrl-attrib-button");
  await button.click();
  const [text, scale] = await Promise.all([
    page.locator(".maplibregl-ctrl-attrib").boundingBox(),
    page.locator(".maplibregl-ctrl-scale").boundingBox(),
  ]);
  if (text === null || scale === null) throw new Error("one of them is not on the screen");
  expect(text.x).toBeGreaterThan(scale.x + scale.width);
});

test("a planar world has its grid and no earth below it", async () => {
  const page = await open({ settings: { "server.world": "planar" } });
  expect(await page.getByText("Natural Earth").count()).toBe(0);
  expect(await page.evaluate(() => performance.getEntriesByType("resource").some(({ name }) => /virtual.world/.test(name)))).toBe(false);
});
