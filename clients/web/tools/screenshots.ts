// The pictures of the pages in docs/images, made of the demo.
//
//   npm run screenshots                 both pages
//   npm run screenshots -- console

import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { Page } from "playwright-core";

import { Demo } from "../tests/support/demo.js";
import { launch, newPage, pagesOf } from "../tests/support/pages.js";

const FOLDER = fileURLToPath(new URL("../../../docs/images/", import.meta.url));
/** Between the boulevard and the convention centre, where many taxis are. */
const HERE = { longitude: 114.057, latitude: 22.541 };
const SCREENS = { desk: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

/** The console after a few seconds, so that its lines have a past. */
async function console_(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.locator(".feed li").first().waitFor();
  await page.waitForTimeout(15_000);
}

/** The phone page, where somebody has said where they are. */
async function phone(page: Page, url: string): Promise<void> {
  await page.goto(`${url}phone`);
  await page.getByRole("button", { name: "Use my location" }).click();
  await page.getByRole("listitem").nth(4).waitFor();
  await page.waitForTimeout(3000);
}

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const demo = await Demo.start(10);
  const pages = await pagesOf(demo);
  const browser = await launch();
  const wanted = process.argv.slice(2);
  for (const [name, show] of Object.entries({ console: console_, phone })) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    for (const [size, viewport] of Object.entries(SCREENS)) {
      for (const colorScheme of ["light", "dark"] as const) {
        const file = `${FOLDER}${name}-${size}-${colorScheme}.png`;
        const { page, errors } = await newPage(browser, { viewport, colorScheme, geolocation: HERE, permissions: ["geolocation"] });
        await show(page, pages.url);
        await page.screenshot({ path: file });
        const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
        console.log(file, `first paint after ${paint?.toFixed(0)} ms`, ...errors);
        await page.context().close();
      }
    }
  }
  await browser.close();
  await pages.close();
  await demo.stop();
}

await main();
