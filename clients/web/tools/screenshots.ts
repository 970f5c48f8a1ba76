// The pictures of the pages in docs/images, made of the demo: the charts after five minutes, when they are full, and within one pass of the replay. Dark
// is some seconds after light.
//
//   npm run screenshots                 both pages
//   npm run screenshots -- console-desk phone
//   DEMO=http://127.0.0.1:7070 npm run screenshots  of a demo that runs already
//   PICTURES=/tmp/pictures/ npm run screenshots     elsewhere

import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { Browser, Page } from "playwright-core";

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

/** The console once its list, its map and its charts have filled, where most taxis are. */
async function console_(page: Page, url: string): Promise<void> {
  const isNarrow = (page.viewportSize()?.width ?? 0) < 720;
  await page.goto(`${url}?colour=status`);
  await page.locator(".feed li").first().waitFor();
  // Names come with the map below the marks.
  await page.locator(".place-names span").first().waitFor({ state: "attached" });
  await page.waitForTimeout(10_000);
  // On a narrow screen they are folded.
  if (isNarrow) return;
  await page.waitForFunction(() => document.querySelector(".chart .unmeasured") === null, undefined, { timeout: 400_000 });
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
  // They come from the south-west, so that it is seen where they are headed.
  await page.context().setGeolocation({ longitude: HERE.longitude - 0.0004, latitude: HERE.latitude - 0.0005, accuracy: 30 });
  await page.getByRole("button", { name: "Use my location" }).click();
  await page.locator(".entry").first().waitFor();
  await page.getByText(/Your place was sent/).waitFor();
  await page.context().setGeolocation({ ...HERE, accuracy: 60 });
  await happen(url);
  // The list stands still below the pointer.
  await page.mouse.move(0, 0);
  // The map has come by then, too.
  await page.waitForTimeout(10_000);
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
  await page.locator("[data-violations]").waitFor({ timeout: 400_000 });
  // Within the city, and not ten times too fast. What stands before it in the row is joined to it without a space.
  const near = page.locator(".found .row").filter({ hasText: /[1-6]\.\d km in \S+ s: \d{3} km/ });
  await page.locator(".cards").getByRole("button", { name: "jump" }).click();
  await page.mouse.move(0, 0); // Rows stand still below the pointer.
  await near.first().click({ timeout: 400_000 });
  await page.locator(".why-label").first().waitFor();
  await page.waitForTimeout(4000);
}

/** Opens events of hired taxis that stand, until one of them shows what is wanted. */
async function openEvents(page: Page, url: string, isWanted: (own: string) => Promise<boolean>): Promise<void> {
  await page.goto(`${url}?colour=status&filter=speed_kmh=0`);
  const row = page.locator(".feed .row").filter({ hasText: "hired" });
  for (let tries = 0; tries < 200; tries++) {
    await row.first().hover();
    await row.first().click();
    await page
      .locator(".who")
      .getByText(/deliver|Nobody/)
      .waitFor();
    const own = (await page.locator("#opened").textContent())?.replace("Taxi ", "taxi-") ?? "";
    if (await isWanted(own)) break;
    await page.getByRole("button", { name: "Back" }).click();
  }
  await page.locator(".answer").waitFor();
  await page.waitForTimeout(5000);
}

/** Why an event reached another taxi, which is not so close that both are one mark. */
function why(page: Page, url: string): Promise<void> {
  return openEvents(page, url, async (own) => {
    const others = page.locator(".delivery").filter({ hasText: "slow-traffic" }).filter({ hasNotText: own });
    if ((await others.count()) === 0) return false;
    await others.first().click();
    const away_m = Number(/(\d+)\sm/.exec((await page.locator(".why-label").textContent()) ?? "")?.[1] ?? 0);
    const isTaken = (await page.locator(".answer").getAttribute("data-matched")) === "true";
    if (isTaken && away_m > 200) return true;
    await page.getByRole("button", { name: "Back" }).click();
    return false;
  });
}

/** Why an event did not reach a taxi that is a little too far away. */
function whyNot(page: Page, url: string): Promise<void> {
  return openEvents(page, url, async (own) => {
    const { clients } = (await (await fetch(`${url}v1/clients?limit=1000`)).json()) as {
      clients: readonly { client: string; position?: readonly [number, number] }[];
    };
    const from = clients.find(({ client }) => client === own)?.position;
    const near = clients.find(({ client, position }) => {
      if (from === undefined || position === undefined || !client.startsWith("taxi-")) return false;
      const away_m = Math.hypot((position[0] - from[0]) * 102_900, (position[1] - from[1]) * 110_600);
      return away_m > 560 && away_m < 800;
    });
    if (near === undefined) return false;
    // As a link to the answer does.
    await page.evaluate((client) => {
      history.pushState(null, "", `${location.search}&why=${client}`);
      dispatchEvent(new PopStateEvent("popstate"));
    }, near.client);
    await page.locator('.answer[data-matched="false"]').waitFor();
    return true;
  });
}

const DESK: Size = { width: 1440, height: 900 };
const PHONES = { phone: { width: 412, height: 915 }, small: { width: 360, height: 780 } };
/** Times as fast as life: a pass of the replay lasts longer than the charts show, so that they have no gap between two. */
const SPEED = 3;
/** In this order. */
const PICTURES: readonly {
  readonly name: string;
  /** Another speed than that: what a check permits at the speed of life is a speed that people know. */
  readonly speed?: number;
  readonly show: (page: Page, url: string) => Promise<void>;
  readonly sizes: Readonly<Record<string, Size>>;
}[] = [
  { name: "console", show: console_, sizes: { desk: DESK, phone: { width: 390, height: 844 } } },
  { name: "console-why", show: why, sizes: { desk: DESK } },
  { name: "console-why-not", show: whyNot, sizes: { desk: DESK } },
  { name: "phone", show: phone, sizes: { desk: DESK, ...PHONES } },
  { name: "phone-event", show: event, sizes: PHONES },
  { name: "phone-first", show: first, sizes: PHONES },
  { name: "console-check", speed: 1, show: finding, sizes: { desk: DESK } },
];

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const running = process.env["DEMO"];
  const wanted = process.argv.slice(2);
  const isWanted = (name: string, size: string): boolean =>
    wanted.length === 0 || wanted.includes(name) || wanted.includes(`${name}-${size}`);
  const pictures = PICTURES.filter(({ name, sizes }) => Object.keys(sizes).some((size) => isWanted(name, size)));
  const browser = await launch();
  for (const speed of new Set(pictures.map(({ speed = SPEED }) => speed))) {
    const demo = running === undefined ? await Demo.start(speed) : undefined;
    const pages = await pagesOf(demo ?? { url: running ?? "" });
    for (const { name, show, sizes } of pictures.filter((picture) => (picture.speed ?? SPEED) === speed))
      // Beside each other: some wait for minutes.
      await Promise.all(
        Object.entries(sizes)
          .filter(([size]) => isWanted(name, size))
          .map(([size, viewport]) => take(browser, pages.url, `${name}-${size}`, viewport, show)),
      );
    await pages.close();
    await demo?.stop();
  }
  await browser.close();
}

/** A page in both of its themes. */
async function take(
  browser: Browser,
  url: string,
  name: string,
  viewport: Size,
  show: (page: Page, url: string) => Promise<void>,
): Promise<void> {
  const isPhone = !name.endsWith("desk");
  const { page, errors } = await newPage(browser, {
    viewport,
    colorScheme: "light",
    geolocation: HERE,
    permissions: ["geolocation"],
    hasTouch: isPhone,
    isMobile: isPhone,
  });
  page.setDefaultTimeout(120_000);
  await show(page, url);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    if (colorScheme === "dark") await page.waitForTimeout(7000);
    await page.screenshot({ path: `${FOLDER}${name}-${colorScheme}.png` });
  }
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  console.log(name, `first paint after ${paint?.toFixed(0)} ms`, ...errors);
  await page.context().close();
}

await main();
