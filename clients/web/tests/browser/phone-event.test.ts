// An event that is opened: what it says, where it leads, and how it is closed.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { degrees } from "../../src/shared/degrees.js";
import { launch } from "../support/pages.js";
import { feature, openPhone, publish, seen, serve, type PhonePage, type Place, type Served } from "./phone-support.js";

let browser: Browser;
let served: Served;
let here: Place = [10, 45];

beforeAll(async () => {
  [browser, served] = await Promise.all([launch(), serve()]);
});

afterAll(async () => {
  await browser.close();
  await served.close();
});

beforeEach(() => {
  here = [here[0] + 0.5, here[1]];
});

async function withEvents(): Promise<PhonePage> {
  const geolocation = { longitude: here[0], latitude: here[1], accuracy: 12 };
  const phone = await openPhone(browser, served.url, { permissions: ["geolocation", "clipboard-write", "clipboard-read"], geolocation });
  await phone.page.getByRole("button", { name: "Use my location" }).click();
  await seen(phone.page, /Your place was sent/);
  const properties = { type: "road_works", depth_cm: 40, advice: "Use the bridge", more: "https://example.org/works?id=7" };
  await publish(served.broker, [
    feature("Old bridge", here, { id: "b 1" }),
    feature("Road closed", [here[0] + 0.004, here[1]], { id: "r1", ttl_s: 3600 }, properties),
  ]);
  await phone.came("Road closed");
  return phone;
}

test("a line says the name, then where, then the rest; the event says everything, and where it is", async () => {
  const phone = await withEvents();
  const { page } = phone;
  const line = page.getByRole("button", { name: /Road closed/ });
  await expect.poll(() => line.textContent()).toMatch(/^\s*Road closed31\d\sm east · .*Road works.*Depth 40 cm/);
  await line.click();
  await page.getByRole("heading", { name: "Road closed" }).waitFor();
  const pairs = await page
    .locator(".detail dl > div")
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((one) => one.textContent)));
  expect(pairs.slice(0, 4)).toEqual([
    ["Type", "Road works"],
    ["Depth", "40 cm"],
    ["Advice", "Use the bridge"],
    ["More", "https://example.org/works?id=7"],
  ]);
  expect(pairs.map(([label]) => label).slice(4)).toEqual(["Published", "Until", "Place"]);
  await expect.poll(() => page.locator(".detail .whereabouts").textContent()).toMatch(/^31\d\sm east · (just now|\d+\ss ago)$/);
  const [lon, lat] = [here[0] + 0.004, here[1]];
  const way = page.getByRole("link", { name: "Directions" });
  await expect.poll(() => way.getAttribute("href")).toBe(`geo:${lat},${lon}?q=${lat},${lon}(Road%20closed)`);
  await expect.poll(() => page.getByRole("link", { name: "https://example.org/works?id=7" }).getAttribute("rel")).toContain("noopener");
  // To the system's sheet where there is one, which is the browser's own, and to the clipboard where there is none.
  const share = async (given: boolean): Promise<void> => {
    await page.keyboard.press("Escape");
    await page.evaluate((is) => {
      const share = (data: ShareData): Promise<void> => Promise.resolve(void (document.body.dataset["shared"] = data.text ?? ""));
      Object.defineProperty(navigator, "share", { configurable: true, value: is ? share : undefined });
    }, given);
    await line.click();
    await page.getByRole("button", { name: given ? "Share" : "Copy" }).click();
  };
  await share(true);
  await expect.poll(() => page.evaluate(() => document.body.dataset["shared"])).toMatch(/^Road closed\nType: Road works\nDepth: 40 cm\n/);
  await share(false);
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toBe(await page.evaluate(() => document.body.dataset["shared"]));
  // Where the event is, and nothing of where the person is.
  expect(copied).toContain(degrees([lon, lat], "geodetic"));
  expect(copied).not.toMatch(/31\d\sm/);
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("it has the focus, is closed by its button, Escape and Back, and the line has the focus again", async () => {
  const phone = await withEvents();
  const { page } = phone;
  const focused = (): Promise<string | undefined> => page.evaluate(() => document.activeElement?.textContent);
  const heading = page.getByRole("heading", { name: "Road closed" });
  const ways = [
    () => page.getByRole("button", { name: "Close" }).click(),
    () => page.keyboard.press("Escape"),
    () => page.goBack().then(() => undefined),
  ];
  for (const close of ways) {
    await page.getByRole("button", { name: /Road closed/ }).click();
    await heading.waitFor();
    await expect.poll(focused).toMatch(/Road closed$/);
    expect(await page.getByRole("list").isVisible()).toBe(false);
    await close();
    await heading.waitFor({ state: "detached" });
    await expect.poll(focused).toMatch(/Road closed31\d\sm/);
    expect(page.url()).toBe(`${served.url}phone`);
  }
  // Escape in a dialog above closes that alone.
  await page.getByRole("button", { name: /Road closed/ }).click();
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await expect.poll(() => heading.isVisible()).toBe(true);
  // It is open again after the page was loaded anew, as what is before it is.
  await page.reload();
  await heading.waitFor();
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("an address opens an event, also one that comes later", async () => {
  const phone = await withEvents();
  const { page } = phone;
  await page.goto("about:blank");
  await page.goto(`${served.url}phone#event=b%201`);
  await page.getByRole("heading", { name: "Old bridge" }).waitFor();
  expect(page.url()).toBe(`${served.url}phone`);
  await page.goto("about:blank");
  await page.goto(`${served.url}phone#event=late`);
  await phone.came("Road closed");
  await seen(page, /Your place was sent/);
  await publish(served.broker, [feature("Late", here, { id: "late" })]);
  await page.getByRole("heading", { name: "Late" }).waitFor();
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("where nothing came the page says so, and looks farther on a tap", async () => {
  const geolocation = { longitude: here[0], latitude: here[1], accuracy: 12 };
  const phone = await openPhone(browser, served.url, { permissions: ["geolocation"], geolocation });
  const { page } = phone;
  await seen(page, "Your place goes to this service alone");
  await page.getByRole("button", { name: "Use my location" }).click();
  await seen(page, "Nothing near you yet.");
  await publish(served.broker, [feature("Farther", [here[0] + 0.02, here[1]], { ttl_s: 600 })]);
  await page.getByRole("button", { name: "Look within 2.0 km" }).click();
  await phone.came("Farther");
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("an event that a check finds at fault is marked, in the list and where it is opened", async () => {
  const phone = await withEvents();
  const { page } = phone;
  const document = { preset: "speed", object: "bus", max_m_per_s: 55, clock: "arrival" };
  const put = await fetch(`${served.broker.url}/v1/checks/leap`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(document),
  });
  expect(put.status, await put.text()).toBe(201);
  const bus = (id: string, place: Place, time: string): object => feature(`Bus ${id}`, place, { id, time }, { bus: 7 });
  await publish(served.broker, [
    bus("near", [here[0] + 0.001, here[1]], "2026-03-01T08:00:00Z"),
    bus("far", [here[0] + 0.005, here[1]], "2026-03-01T08:00:01Z"),
  ]);
  const line = page.getByRole("button", { name: /Bus far/ });
  await line.getByText("Its place may be wrong: check leap").waitFor();
  await line.click();
  await page.locator(".detail").getByText("Its place may be wrong: check leap").waitFor();
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});
