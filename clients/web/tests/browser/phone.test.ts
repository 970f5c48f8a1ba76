// What a person does on the phone page, in a browser against a broker.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import type { Broker } from "../../../typescript/tests/support/broker.js";
import { launch, newPage } from "../support/pages.js";
import {
  around,
  feature,
  haversine_m,
  openPhone,
  phonePage,
  placed,
  publish,
  seen,
  serve,
  type PhonePage,
  type Place,
  type Served,
  numbersIn,
} from "./phone-support.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser: Browser;
/** Where the person of a test is. Each is somewhere else, so that they get nothing of each other's. */
let here: Place = [113, 22.54];

beforeEach(() => {
  here = [here[0] + 0.5, here[1]];
});

beforeAll(async () => {
  browser = await launch();
});

afterAll(() => browser.close());

function allowed(): NonNullable<Parameters<typeof openPhone>[2]> {
  return { permissions: ["geolocation"], geolocation: { longitude: here[0], latitude: here[1], accuracy: 12 } };
}

/** The page of somebody who is here, and whom the broker knows to be. */
async function located(url: string, options: Parameters<typeof openPhone>[2] = {}): Promise<PhonePage> {
  const phone = await openPhone(browser, url, { ...allowed(), ...options });
  await phone.page.getByRole("button", { name: "Use my location" }).click();
  await seen(phone.page, /Your place was sent/);
  return phone;
}

/** The filters of the page's subscription, as the broker has them. */
async function subscription(broker: Broker, client: string): Promise<unknown> {
  const response = await fetch(`${broker.url}/v1/clients/${client}/subscriptions/around-me`);
  const { filters } = (await response.json()) as { filters?: unknown };
  return filters;
}

describe("with one broker", () => {
  let served: Served;
  beforeAll(async () => {
    served = await serve();
  });
  afterAll(() => served.close());

  test("the slider says its radius, follows the keyboard, and the broker has it", async () => {
    const phone = await located(served.url);
    const { page } = phone;
    const client = await phone.client();
    await around(page);
    const slider = page.getByRole("slider", { name: "Within" });
    await expect.poll(() => slider.getAttribute("aria-valuetext")).toBe("1.0 kilometres");
    await expect.poll(() => subscription(served.broker, client)).toEqual([{ area: { radius_m: 1000 } }]);
    await slider.press("Home");
    await expect.poll(() => slider.getAttribute("aria-valuetext")).toBe("50 metres");
    await expect.poll(() => subscription(served.broker, client)).toEqual([{ area: { radius_m: 50 } }]);
    await slider.press("End");
    await expect.poll(() => page.locator("output[for=radius]").textContent()).toBe("20 km");
    await expect.poll(() => subscription(served.broker, client)).toEqual([{ area: { radius_m: 20_000 } }]);
    await slider.press("ArrowLeft");
    await expect.poll(() => page.locator("output[for=radius]").textContent()).toBe("19 km");
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });

  test("the marker goes where the arrow keys, a finger and the middle of the map say, and the broker has it", async () => {
    const phone = await openPhone(browser, served.url);
    const { page } = phone;
    await page.getByRole("button", { name: "Put me here" }).click();
    await seen(page, /Your place was sent/);
    const me = page.getByRole("button", { name: /^You\./ });
    const shown = async (): Promise<Place> => {
      const [lat = 0, lon = 0] = numbersIn(await page.locator(".place strong").textContent());
      return [lon, lat];
    };
    const before = await shown();
    await me.press("ArrowUp");
    await expect.poll(async () => (await shown())[1]).toBeGreaterThan(before[1]);
    expect(haversine_m(before, await shown())).toBeCloseTo(25, -1);
    await me.press("Shift+ArrowRight");
    await expect.poll(async () => haversine_m(before, await shown())).toBeGreaterThan(240);
    // The map glides after it, and is to stand still when it is taken hold of.
    await me.hover();
    const box = await me.boundingBox();
    if (box === null) throw new Error("the marker is not in sight");
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const keyed = await shown();
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + 40, y + 30, { steps: 4 });
    await page.mouse.up();
    await expect.poll(async () => haversine_m(keyed, await shown())).toBeGreaterThan(100);
    const end = await shown();
    await publish(served.broker, [feature("beside the marker", end)]);
    await phone.came("beside the marker");
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });

  test("who does not allow the browser to tell where they are reads what to do", async () => {
    const phone = await openPhone(browser, served.url);
    await phone.page.getByRole("button", { name: "Use my location" }).click();
    await seen(phone.page, /You have not allowed this page to see where you are/);
    await check(phone.page, "without permission");
    await expect.poll(() => phone.page.getByRole("button", { name: "Use my location" }).getAttribute("aria-pressed")).toBe("false");
    await phone.context.close();
  });

  test("interests are filters: several at once, and a condition of one's own", async () => {
    const phone = await located(served.url);
    const { page } = phone;
    const client = await phone.client();
    await around(page);
    await page.getByRole("button", { name: "Slow traffic" }).click();
    await page.getByRole("button", { name: "Fires" }).click();
    await page.getByRole("button", { name: "Own condition" }).click();
    await page.getByLabel("Condition", { exact: true }).fill("severity >= 3");
    await page.getByRole("button", { name: "Use it" }).click();
    const area = { radius_m: 1000 };
    await expect
      .poll(() => subscription(served.broker, client))
      .toEqual([
        { area, where: "speed_kmh < 10" },
        { area, where: "type = 'fire'" },
        { area, where: "severity >= 3" },
      ]);
    await publish(served.broker, [
      feature("fast", here, {}, { speed_kmh: 60 }),
      feature("slow", here, {}, { speed_kmh: 6 }),
      feature("burning", here, {}, { type: "fire" }),
      feature("harmless", here, {}, { severity: 2 }),
      feature("severe", here, {}, { severity: 3 }),
    ]);
    await phone.came("severe");
    expect(await phone.titles()).toEqual(["severe", "burning", "slow"]);
    await page.getByRole("button", { name: "Everything" }).click();
    await expect.poll(() => subscription(served.broker, client)).toEqual([{ area }]);
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });

  test("a wrong condition is told in words, with its place, and what was chosen before stays", async () => {
    const phone = await located(served.url);
    const { page } = phone;
    const client = await phone.client();
    await around(page);
    await page.getByRole("button", { name: "Own condition" }).click();
    const field = page.getByLabel("Condition", { exact: true });
    await field.fill("speed_kmh << 10");
    await field.press("Enter");
    await seen(page, "This condition cannot be used: expected a value after '<', found '<', at column 12");
    await expect.poll(() => page.locator("#refused mark").textContent()).toBe("<");
    await expect.poll(() => page.locator("#refused .mono").textContent()).toBe("speed_kmh << 10");
    await expect.poll(() => field.getAttribute("aria-invalid")).toBe("true");
    expect(await subscription(served.broker, client)).toEqual([{ area: { radius_m: 1000 } }]);
    // The radius goes out with what is in force, folded or not it is said, and an interest beside it counts.
    await page.getByRole("slider", { name: "Within" }).press("Home");
    await expect.poll(() => subscription(served.broker, client)).toEqual([{ area: { radius_m: 50 } }]);
    await around(page);
    await expect.poll(() => page.locator(".around > summary").textContent()).toMatch(/Own condition has a fault\. In force: Everything/);
    await around(page);
    await page.getByRole("button", { name: "Fires" }).click();
    await expect.poll(() => subscription(served.broker, client)).toEqual([{ area: { radius_m: 50 }, where: "type = 'fire'" }]);
    await expect.poll(() => field.inputValue()).toBe("speed_kmh << 10");
    // The broker takes two subscriptions, and the page keeps what is in force then.
    await expect.poll(() => page.locator(".around > summary").textContent()).toMatch(/In force: Fires/);
    await page.reload();
    await seen(page, /Your place was sent/);
    await expect.poll(() => page.locator(".around > summary").textContent()).toMatch(/^Within 50 mFiresYour place was sent/);
    expect(await subscription(served.broker, client)).toEqual([{ area: { radius_m: 50 }, where: "type = 'fire'" }]);
    await around(page);
    // Two taps before the page is drawn anew: both count.
    await page.evaluate(() => {
      for (const button of document.querySelectorAll("button"))
        if (["Fires", "Own condition"].includes(button.textContent.trim())) button.click();
    });
    await field.fill("speed_kmh < 10");
    await field.press("Enter");
    await expect.poll(() => page.locator("#refused").textContent()).toBe("");
    await expect.poll(() => subscription(served.broker, client)).toEqual([{ area: { radius_m: 50 }, where: "speed_kmh < 10" }]);
    await phone.context.close();
  });

  test("events are texts, whatever is in them; an object has one line; the tapped one opens", async () => {
    const phone = await located(served.url);
    const { page } = phone;
    const bus = (offset: number, line: number): object => feature("Bus", [here[0] + offset, here[1]], { key: "bus-7" }, { line });
    await publish(served.broker, [
      feature("<img src=x onerror=alert(1)>", here, {}, { "<b>": "<script>alert(1)</script>", back: "\u202eevil\u0007" }),
      bus(0.001, 93),
      bus(0.002, 94),
    ]);
    await expect.poll(() => phone.titles()).toEqual(["<img src=x onerror=alert(1)>", "Bus"]);
    // What comes one after the other is shown a second later.
    await expect.poll(() => page.locator(".entry").last().textContent()).toMatch(/20\d\sm east.*Line 94/);
    await page.getByRole("button", { name: "Centre on me" }).waitFor();
    // The bus is 205 m east; the map shows the circle of a kilometre with 24 pixels around it, 12 of them above and 36 below.
    const map = await page.locator(".map").boundingBox();
    if (map === null) throw new Error("the map is not in sight");
    const pixels_km = (Math.min(map.width, map.height) - 48) / 2;
    await page.touchscreen.tap(map.x + map.width / 2 + 0.205 * pixels_km, map.y + map.height / 2 - 12);
    await page.getByRole("heading", { name: "Bus" }).waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: /img src/ }).click();
    const values = await page.locator(".detail dd").allTextContents();
    expect(values.slice(0, 2)).toEqual(["<script>alert(1)</script>", "\u202eevil"]);
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });

  test("marks have the icons of their kinds, and the own one says where one is headed once one has gone a way", async () => {
    const phone = await located(served.url);
    const { page } = phone;
    await publish(served.broker, [
      feature("Flooded cellar", [here[0] + 0.002, here[1]], { key: "icon-1", ttl_s: 600 }),
      feature("Xylophone", [here[0], here[1] + 0.002], { key: "icon-2", ttl_s: 600 }),
    ]);
    await phone.came("Xylophone");
    const icons = page.locator(".kinds > span:not([hidden])");
    await expect.poll(() => icons.count()).toBe(2);
    await expect.poll(() => icons.filter({ has: page.locator("svg") }).count()).toBe(1);
    expect(await icons.filter({ hasText: "X" }).count()).toBe(1);
    const me = page.getByRole("button", { name: /^You/ });
    expect(await me.getAttribute("data-headed")).toBeNull();
    await phone.context.setGeolocation({ longitude: here[0] + 0.001, latitude: here[1], accuracy: 12 });
    await expect.poll(() => me.evaluate((element) => element.style.getPropertyValue("--heading"))).toBe("90deg");
    // A step that may be an error of the fix turns nobody.
    await phone.context.setGeolocation({ longitude: here[0] + 0.001, latitude: here[1] + 0.00003, accuracy: 12 });
    await seen(page, /accurate to 12\sm/);
    expect(await me.evaluate((element) => element.style.getPropertyValue("--heading"))).toBe("90deg");
  });

  test("alarms stand out in words, shake the phone if the person wants, and the count says what was not looked at", async () => {
    const phone = await openPhone(browser, served.url, allowed());
    const { page } = phone;
    await page.evaluate(() => {
      navigator.vibrate = () => {
        document.body.dataset["shaken"] = "yes";
        return true;
      };
    });
    await page.getByRole("button", { name: "Use my location" }).click();
    await seen(page, /Your place was sent/);
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("Vibrate for alarms").check();
    await page.getByRole("button", { name: "Close" }).click();
    // The list is below what is seen then, which the page notices behind the next frame.
    await around(page);
    await page.setViewportSize({ width: 390, height: 420 });
    await page.evaluate(() => new Promise((frame) => requestAnimationFrame(() => requestAnimationFrame(frame))));
    await publish(served.broker, [feature("Flood", here, { priority: "alarm", ttl_s: 60 })]);
    await phone.came("Flood");
    await expect.poll(() => page.locator(".pressing h3").textContent()).toBe("Alarm");
    await expect.poll(() => page.locator("[aria-live=assertive]").textContent()).toBe("Alarm: Flood, here");
    expect(await page.evaluate(() => document.body.dataset["shaken"])).toBe("yes");
    // The page tells its title behind the frame that shows the alarm.
    await expect.poll(() => page.title()).toBe("(1) nearcast around you");
    await page.getByRole("button", { name: "1 new" }).click();
    await expect.poll(() => page.title()).toBe("nearcast around you");
    await phone.context.close();
  });

  test("a second tab takes over, the first one says so and can take back", async () => {
    const first = await located(served.url);
    await publish(served.broker, [feature("in the first", here)]);
    await first.came("in the first");
    const other = await first.context.newPage();
    await other.goto(`${served.url}phone`);
    const second = phonePage(other, []);
    await second.came("in the first");
    await seen(first.page, "This page goes on in another tab");
    await check(first.page, "in another tab");
    await seen(other, "Connected");
    await publish(served.broker, [feature("in the second", here)]);
    await second.came("in the second");
    expect(await first.titles()).toEqual(["in the first"]);
    await first.page.getByRole("button", { name: "Go on here" }).click();
    await first.came("in the second");
    await seen(other, "This page goes on in another tab");
    await publish(served.broker, [feature("in the first again", here)]);
    await first.came("in the first again");
    expect(await first.titles()).toEqual(["in the first again", "in the second", "in the first"]);
    expect(first.errors()).toEqual([]);
    await first.context.close();
  });

  test("forget me ends the client and leaves nothing on the phone", async () => {
    const phone = await located(served.url);
    const { page } = phone;
    const client = await phone.client();
    await publish(served.broker, [feature("soon forgotten", here)]);
    await phone.came("soon forgotten");
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("button", { name: "Forget me…" }).click();
    await page.getByRole("button", { name: "Yes, forget me" }).click();
    await seen(page, "You are forgotten");
    await check(page, "forgotten");
    const clients = await (await fetch(`${served.broker.url}/v1/clients?limit=1000`)).text();
    expect(clients).not.toContain(client);
    const left = await page.evaluate(async () => [await indexedDB.databases(), Object.keys(localStorage), Object.keys(sessionStorage)]);
    expect(left).toEqual([[], [], []]);
    await page.getByRole("button", { name: "Begin anew" }).click();
    await seen(page, "Where are you?");
    expect(await phone.client()).not.toBe(client);
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });

  test("a browser that keeps nothing is told of, and what comes stays at the broker", async () => {
    const { page, errors } = await newPage(browser, allowed());
    await page.addInitScript(() => {
      Object.defineProperty(window, "indexedDB", {
        value: {
          open: () => {
            throw new DOMException("no", "SecurityError");
          },
        },
      });
    });
    await page.goto(`${served.url}phone`);
    const phone = phonePage(page, errors);
    await page.getByRole("button", { name: "Use my location" }).click();
    await seen(page, /Your place was sent/);
    await publish(served.broker, [feature("not stored", here)]);
    await phone.came("not stored");
    await seen(page, "This browser keeps nothing for this page");
    await check(page, "without a store");
    await page.reload();
    await phone.came("not stored");
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });

  test.each(["light", "dark"] as const)("a checker of accessibility finds nothing, %s", async (colorScheme) => {
    const phone = await openPhone(browser, served.url, { ...allowed(), colorScheme });
    const { page } = phone;
    await page.getByRole("button", { name: "Put me here" }).waitFor();
    await check(page, "at the beginning");
    await page.getByRole("button", { name: "Use my location" }).click();
    await seen(page, /Your place was sent/);
    await publish(served.broker, [
      feature("Accident", here, {}, { severity: 3, road: { name: "A4" } }),
      feature("Flood", [here[0] + 0.002, here[1]], { priority: "alarm", ttl_s: 60 }, { depth_m: 2 }),
    ]);
    await phone.came("Flood");
    await check(page, "with events");
    await page.getByRole("button", { name: /Flood/ }).click();
    await page.getByRole("heading", { name: /Flood/ }).waitFor();
    for (const size of [
      { width: 320, height: 640 },
      { width: 844, height: 390 },
      { width: 390, height: 844 },
    ]) {
      await page.setViewportSize(size);
      await check(page, `with an event open at ${size.width}`);
    }
    await page.keyboard.press("Escape");
    await around(page);
    await page.getByRole("button", { name: "Own condition" }).click();
    await page.getByLabel("Condition", { exact: true }).fill("a = ");
    await page.getByRole("button", { name: "Use it" }).click();
    await seen(page, "This condition cannot be used");
    await check(page, "with a wrong condition");
    for (const size of [
      { width: 320, height: 640 },
      { width: 844, height: 390 },
      { width: 1280, height: 800 },
    ]) {
      await page.setViewportSize(size);
      await check(page, `at ${size.width}`);
    }
    await page.setViewportSize({ width: 320, height: 640 });
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("button", { name: "Forget me…" }).click();
    await check(page, "in the settings");
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });
});

/** What the checker finds, what sticks out at the sides, and what a thumb would miss. */
async function check(page: Page, when: string): Promise<void> {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { axe: checker } = window as unknown as {
      axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const { violations } = await checker.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
    const faults = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
    if (document.documentElement.scrollWidth > innerWidth) faults.push("the page scrolls sideways");
    for (const scroll of document.querySelectorAll(".scroll")) {
      if (scroll.scrollWidth > scroll.clientWidth) faults.push("the sheet scrolls sideways");
    }
    for (const button of document.querySelectorAll<HTMLElement>(
      ".page button:not(.grip):not([class*=maplibre]), .page summary:not([class*=maplibre]), .page .button",
    )) {
      const { width, height } = button.getBoundingClientRect();
      if (width > 0 && (width < 44 || height < 43.9)) faults.push(`${button.textContent} is ${width} by ${height}`);
    }
    return faults;
  });
  expect(found, when).toEqual([]);
}

test("a planar world has no geolocation: one puts oneself there", async () => {
  const served = await serve({ settings: { "server.world": "planar", "console.base_map": "" } });
  const phone = await openPhone(browser, served.url);
  const { page } = phone;
  await page.getByRole("button", { name: "Put me here" }).click();
  await seen(page, /Your place was sent/);
  expect(await page.getByRole("button", { name: "Use my location" }).count()).toBe(0);
  const [x = 0, y = 0] = numbersIn(await page.locator(".place strong").textContent());
  await publish(served.broker, [feature("near", [x + 600, y + 790]), feature("far", [x + 800, y + 610]), feature("last", [x, y])]);
  await phone.came("last");
  expect(await phone.titles()).toEqual(["last", "near"]);
  await expect.poll(() => page.locator(".entry", { hasText: "near" }).textContent()).toMatch(/99\d\sm north-east/);
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
  await served.close();
});

test("a broker that takes few moves gets the last one", async () => {
  const served = await serve({ settings: { "limits.moves_per_second": 1 } });
  const phone = await openPhone(browser, served.url);
  const { page } = phone;
  await page.getByRole("button", { name: "Put me here" }).click();
  await seen(page, /Your place was sent/);
  for (let i = 0; i < 6; i++) await page.getByRole("button", { name: /^You\./ }).press("ArrowUp");
  const [lat = 0, lon = 0] = numbersIn(await page.locator(".place strong").textContent());
  await seen(page, /Your place was sent/);
  const question = { client: await phone.client(), subscription: "around-me", event: feature("?", [lon, lat]) };
  const distance = async (): Promise<number | undefined> => {
    const request = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(question) };
    const answer = (await (await fetch(`${served.broker.url}/v1/explain`, request)).json()) as {
      filters?: [{ area: { distance_m: number } }];
    };
    return answer.filters?.[0].area.distance_m;
  };
  await expect.poll(distance, { timeout: 20_000 }).toBeLessThan(2);
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
  await served.close();
});

test("a broker that has forgotten everything is told of, and gets place and subscription again", async () => {
  const served = await serve();
  const phone = await located(served.url);
  const client = await phone.client();
  await served.broker.kill();
  await seen(phone.page, /^Offline since/);
  await check(phone.page, "offline");
  await served.broker.start();
  await seen(phone.page, /The broker began anew/);
  await check(phone.page, "with a gap");
  await placed(served.broker, client, here);
  await publish(served.broker, [feature("after it", here)]);
  await phone.came("after it");
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
  await served.close();
});

describe("where tokens are wanted", () => {
  let served: Served;
  beforeAll(async () => {
    served = await serve({ tokens: true, settings: { "auth.leeway_s": 0 } });
  });
  afterAll(() => served.close());

  test("the page asks for one, says what is wrong with it, and is who it says", async () => {
    const { broker } = served;
    const phone = await openPhone(browser, served.url, allowed());
    const { page } = phone;
    const dialog = page.getByRole("dialog", { name: "Who are you?" });
    const give = async (token: string): Promise<void> => {
      await dialog.getByLabel("Token").fill(token);
      await dialog.getByRole("button", { name: "Go on" }).click();
    };
    await dialog.waitFor();
    await check(page, "asking for a token");
    await give("something else");
    await seen(page, /This is no JSON Web Token/);
    await give(broker.token("ann", "subscribe", Date.now() / 1000 - 3600));
    await seen(page, /This token has ended/);
    await give(`${broker.token("ann", "subscribe").slice(0, -6)}AAAAAA`);
    await expect.poll(() => dialog.locator(".bad").textContent()).toMatch(/signature|token/i);
    const narrow = broker.token("ann", "publish");
    await give(narrow);
    await expect.poll(() => dialog.locator(".bad").textContent()).toMatch(/scope|permit/i);
    await expect.poll(() => dialog.getByLabel("Token").inputValue()).toBe(narrow);
    await give(broker.token("ann", "subscribe"));
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Use my location" }).click();
    await seen(page, /Your place was sent/);
    expect(await phone.client()).toBe("ann");
    await publish(broker, [feature("for ann", here)], broker.token("p", "publish"));
    await phone.came("for ann");

    // It stays in this tab over a reload.
    await page.reload();
    await phone.came("for ann");
    await seen(page, "Connected");
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });

  test("a token that ends is asked for again, and nothing is lost", async () => {
    const { broker } = served;
    const phone = await openPhone(browser, served.url, allowed());
    const { page } = phone;
    const dialog = page.getByRole("dialog", { name: "Who are you?" });
    await dialog.waitFor();
    await dialog.getByLabel("Token").fill(broker.token("bob", "subscribe", Date.now() / 1000 + 20));
    await dialog.getByRole("button", { name: "Go on" }).click();
    await page.getByRole("button", { name: "Use my location" }).click();
    await seen(page, /Your place was sent/);
    await dialog.waitFor({ timeout: 60_000 });
    await publish(broker, [feature("meanwhile", here)], broker.token("p", "publish"));
    await dialog.getByLabel("Token").fill(broker.token("bob", "subscribe"));
    await dialog.getByRole("button", { name: "Go on" }).click();
    await phone.came("meanwhile");
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });
});
