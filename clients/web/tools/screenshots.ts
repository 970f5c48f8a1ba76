// The pictures of the pages in docs/images, made of the demo.
//
//   npm run screenshots                 both pages
//   npm run screenshots -- console
//   DEMO=http://127.0.0.1:7070 npm run screenshots  of a demo that runs already: after ten minutes its lines have a past
//   PICTURES=/tmp/pictures/ npm run screenshots     elsewhere

import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { Page } from "playwright-core";

import { Demo } from "../tests/support/demo.js";
import { launch, newPage, pagesOf } from "../tests/support/pages.js";

const FOLDER = process.env["PICTURES"] ?? fileURLToPath(new URL("../../../docs/images/", import.meta.url));
/** Between the boulevard and the convention centre, where many taxis are. */
const HERE = { longitude: 114.057, latitude: 22.541 };

type Size = Readonly<Record<"width" | "height", number>>;

/** What is seen besides taxis: published to the demo's broker as anybody would. */
const HAPPENING = [
  {
    east: 0.003,
    north: 0.002,
    properties: { title: "Road closed", street: "Shennan Boulevard", reason: "burst water pipe", lanes_closed: 2 },
  },
  { east: -0.005, north: 0.001, properties: { title: "Night market", stalls: 60, open_until: "23:00", category: "food" } },
  { east: 0.0012, north: -0.0025, properties: { title: "Flooded underpass", depth_cm: 40, advice: "Do not drive in" }, priority: "alarm" },
  { east: -0.002, north: -0.004, properties: { title: "Free parking", spaces: 14, price_per_h: "10 CNY" } },
] as const;

async function happen(url: string): Promise<void> {
  const features = HAPPENING.map(({ east, north, ...event }, i) => ({
    type: "Feature",
    geometry: { type: "Point", coordinates: [HERE.longitude + east, HERE.latitude + north] },
    key: `happening-${i}`,
    ttl_s: 3600,
    ...event,
  }));
  await fetch(`${url}v1/events`, {
    method: "POST",
    headers: { "content-type": "application/geo+json" },
    body: JSON.stringify({ type: "FeatureCollection", features }),
  });
}

/** The console after a few seconds, so that its lines have a past. */
async function console_(page: Page, url: string): Promise<void> {
  await page.goto(`${url}?colour=status`);
  await page.locator(".feed li").first().waitFor();
  await page.waitForTimeout(15_000);
}

/** The phone page as somebody finds it who opens it for the first time. */
async function first(page: Page, url: string): Promise<void> {
  await page.goto(`${url}phone`);
  await page.getByRole("button", { name: "Put me here" }).waitFor();
  await page.waitForTimeout(5000);
}

/** The phone page, where somebody has said where they are. */
async function phone(page: Page, url: string): Promise<void> {
  await page.goto(`${url}phone`);
  await page.getByRole("button", { name: "Use my location" }).click();
  await page.getByRole("listitem").nth(4).waitFor();
  await page.getByText(/Your place was sent/).waitFor();
  await happen(url);
  // The map has come by then, too.
  await page.waitForTimeout(6000);
}

/** An event that is open. */
async function event(page: Page, url: string): Promise<void> {
  await phone(page, url);
  await page.getByRole("button", { name: /Flooded/ }).click();
  await page.waitForTimeout(1000);
}

/** A finding of the demo's check that came while the page was open, so that it says where its events were. */
async function finding(page: Page, url: string): Promise<void> {
  await page.goto(`${url}?tab=checks&colour=status`);
  await page.locator("[data-violations]").waitFor();
  const near = page.locator(".found .row").filter({ hasText: /[3-6]\.\d km in/ }); // Within the city.
  await page.locator(".cards").getByRole("button", { name: "jump" }).click();
  await near.first().click({ timeout: 150_000 });
  await page.locator(".why-label").first().waitFor();
  await page.waitForTimeout(4000);
}

/** Why an event of a taxi that stands reached another one, which is not so close that both are one mark. */
async function why(page: Page, url: string): Promise<void> {
  await page.goto(`${url}?colour=status&filter=speed_kmh=0`);
  const row = page.locator(".feed .row").filter({ hasText: "hired" });
  const back = page.getByRole("button", { name: "Back" });
  for (let tries = 0; tries < 200; tries++) {
    await row.first().hover();
    await row.first().click();
    await page
      .locator(".who")
      .getByText(/deliver|Nobody/)
      .waitFor();
    const own = (await page.locator("#opened").textContent())?.replace("Taxi ", "taxi-") ?? "";
    const others = page.locator(".delivery").filter({ hasText: "slow-traffic" }).filter({ hasNotText: own });
    if ((await others.count()) > 0) {
      await others.first().click();
      const away_m = Number(/^(\d+) m/.exec((await page.locator(".why-label").textContent()) ?? "")?.[1] ?? 0);
      if (away_m > 200) break;
      await back.click();
    }
    await back.click();
  }
  await page.locator(".answer").waitFor();
  await page.waitForTimeout(5000);
}

const DESK: Size = { width: 1440, height: 900 };
const PHONES = { phone: { width: 412, height: 915 }, small: { width: 360, height: 780 } };
const PICTURES: Readonly<Record<string, { show: (page: Page, url: string) => Promise<void>; sizes: Readonly<Record<string, Size>> }>> = {
  console: { show: console_, sizes: { desk: DESK, phone: { width: 390, height: 844 } } },
  "console-why": { show: why, sizes: { desk: DESK } },
  "console-check": { show: finding, sizes: { desk: DESK } },
  phone: { show: phone, sizes: { desk: DESK, ...PHONES } },
  "phone-event": { show: event, sizes: PHONES },
  "phone-first": { show: first, sizes: PHONES },
};

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const running = process.env["DEMO"];
  const demo = running === undefined ? await Demo.start(10) : undefined;
  const pages = await pagesOf(demo ?? { url: running ?? "" });
  const browser = await launch();
  const wanted = process.argv.slice(2);
  for (const [name, { show, sizes }] of Object.entries(PICTURES)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    for (const [size, viewport] of Object.entries(sizes)) {
      for (const colorScheme of ["light", "dark"] as const) {
        const file = `${FOLDER}${name}-${size}-${colorScheme}.png`;
        const isPhone = name.startsWith("phone") && size !== "desk";
        const { page, errors } = await newPage(browser, {
          viewport,
          colorScheme,
          geolocation: HERE,
          permissions: ["geolocation"],
          hasTouch: isPhone,
          isMobile: isPhone,
        });
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
  await demo?.stop();
}

await main();
