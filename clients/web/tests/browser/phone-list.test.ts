// What the list says of events that came: what left, what one has left, what is over; and that it keeps still under a finger.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { launch } from "../support/pages.js";
import { around, feature, openPhone, publish, seen, serve, type PhonePage, type Place, type Served } from "./phone-support.js";

let browser: Browser;
let served: Served;
/** Each test is somewhere else. */
let here: Place = [20, 45];

beforeAll(async () => {
  [browser, served] = await Promise.all([launch(), serve({ settings: { "console.object": "taxi_id" } })]);
});

afterAll(async () => {
  await browser.close();
  await served.close();
});

beforeEach(() => {
  here = [here[0] + 0.5, here[1]];
});

async function located(): Promise<PhonePage> {
  const geolocation = { longitude: here[0], latitude: here[1], accuracy: 12 };
  const phone = await openPhone(browser, served.url, { permissions: ["geolocation"], geolocation });
  await phone.page.getByRole("button", { name: "Use my location" }).click();
  await seen(phone.page, /Your place was sent/);
  return phone;
}

/** What the line of a title says. */
function line(page: Page, title: string): () => Promise<string> {
  return async () => (await page.locator(".entry", { hasText: title }).first().textContent()) ?? "";
}

const live = (key: string, place: Place): object => feature(key, place, { key, ttl_s: 3600 });

test("what left, what one has left, and what is not asked for any more is said, and taken back", async () => {
  const phone = await located();
  const { page } = phone;
  await publish(served.broker, [live("bus", here), live("van", here), feature("once", here)]);
  await phone.came("once");
  await publish(served.broker, [live("bus", [here[0] + 0.05, here[1]])]);
  await expect.poll(line(page, "bus")).toContain("left your reach");

  await phone.context.setGeolocation({ longitude: here[0] + 0.1, latitude: here[1], accuracy: 12 });
  await expect.poll(line(page, "van")).toContain("out of reach");
  expect(await line(page, "once")()).toContain("out of reach");
  await phone.context.setGeolocation({ longitude: here[0], latitude: here[1], accuracy: 12 });
  await expect.poll(line(page, "van")).not.toContain("out of reach");
  expect(await line(page, "once")()).not.toContain("out of reach");

  await around(page);
  await page.getByRole("button", { name: "Fires" }).click();
  await expect.poll(line(page, "van")).toContain("not asked for any more");
  await page.getByRole("button", { name: "Everything" }).click();
  await expect.poll(line(page, "van")).not.toContain("not asked for any more");

  // It is said of what came before the page was opened again, too.
  await page.goto("about:blank");
  await publish(served.broker, [live("van", [here[0] + 0.05, here[1]])]);
  await page.goto(`${served.url}phone`);
  await expect.poll(line(page, "van")).toContain("left your reach");
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("ages and ends are the event's own: what was over when it came is told as over", async () => {
  const phone = await located();
  const { page } = phone;
  const time = new Date(Date.now() - 20.5 * 60_000).toISOString();
  await publish(served.broker, [feature("long ago", here, { time, ttl_s: 600 }), feature("taken", here, { id: "r1", ttl_s: 600 })]);
  await phone.came("taken");
  expect(await line(page, "long ago")()).toMatch(/20\smin ago · over/);
  expect(await line(page, "taken")()).toMatch(/just now|s ago/);
  await fetch(`${served.broker.url}/v1/events/r1`, { method: "DELETE" });
  await expect.poll(line(page, "taken")).toContain("over");
  await phone.context.close();
});

test("while the focus is on the list what is new waits behind a line, and objects are told apart by the broker's attribute", async () => {
  const phone = await located();
  const { page } = phone;
  const taxi = (id: number, speed: number): object => ({
    type: "Feature",
    geometry: { type: "Point", coordinates: here },
    properties: { taxi_id: id, speed },
  });
  await publish(served.broker, [taxi(5724, 10)]);
  await phone.came("Taxi 5724");
  await page.getByRole("button", { name: /Taxi 5724/ }).focus();
  await publish(served.broker, [taxi(1, 20), taxi(5724, 30), feature("Flood", here, { priority: "alarm" })]);
  await page.getByRole("button", { name: "2 new, ◆ an alarm" }).waitFor();
  // The line that is there tells the newest of its object, at its place.
  await expect.poll(line(page, "Taxi 5724")).toContain("Speed 30");
  expect(await phone.titles()).toEqual(["Taxi 5724"]);
  await page.getByRole("button", { name: "2 new" }).click();
  await expect.poll(() => phone.titles()).toEqual(["Flood", "Taxi 5724", "Taxi 1"]);
  await publish(served.broker, [feature("later", here)]);
  await phone.came("later");
  // The alarm stays on top until somebody opens it.
  expect((await phone.titles())[0]).toBe("Flood");
  await page.getByRole("button", { name: /Flood/ }).click();
  await page.getByRole("button", { name: "Close" }).click();
  // The line has the focus again, once it is painted; what took the focus before that would lose it.
  const flood = page.getByRole("button", { name: /Flood/ });
  await expect.poll(() => flood.evaluate((button) => button === document.activeElement)).toBe(true);
  await page.getByRole("heading", { name: /Events near you/ }).focus();
  await expect.poll(async () => (await phone.titles())[0]).toBe("later");
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("the nearest come first, the newest on a tap, and what is over stands below, each with the mark of its kind", async () => {
  const phone = await located();
  const { page } = phone;
  const at = (title: string, east: number, more: Record<string, unknown> = {}): object => feature(title, [here[0] + east, here[1]], more);
  await publish(served.broker, [at("Fire in a yard", 0.002), at("Bus 7", 0.001), at("Taxi 12", 0.005), at("Zebra crossing", 0.003)]);
  await publish(served.broker, [at("Old news", 0.0005, { ttl_s: 600, time: new Date(Date.now() - 1200_000).toISOString() })]);
  await expect.poll(() => phone.titles()).toEqual(["Bus 7", "Fire in a yard", "Zebra crossing", "Taxi 12", "Old news"]);
  expect(await page.locator(".sections h3").allTextContents()).toEqual(["In reach", "Earlier"]);
  // A kind that the page does not know has its letter.
  expect(await page.locator(".entry", { hasText: "Zebra" }).locator(".kind").textContent()).toBe("Z");
  expect(await page.locator(".entry", { hasText: "Bus 7" }).locator(".kind svg").count()).toBe(1);
  await page.getByRole("button", { name: "Newest" }).click();
  await expect.poll(async () => (await phone.titles())[0]).toBe("Zebra crossing");
  await page.reload();
  await phone.came("Taxi 12");
  expect(await page.getByRole("button", { name: "Newest" }).getAttribute("aria-pressed")).toBe("true");
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("many objects of a sort are one line that opens, where the nearest of them is", async () => {
  const phone = await located();
  const { page } = phone;
  const taxi = (id: number): object => ({
    type: "Feature",
    geometry: { type: "Point", coordinates: [here[0] + id / 1000, here[1]] },
    properties: { taxi_id: id, status: id === 1 ? "free" : "hired" },
  });
  await publish(served.broker, [taxi(2), taxi(1), taxi(3), taxi(4), feature("Market", [here[0] + 0.0025, here[1]])]);
  const group = page.getByRole("button", { name: /4 taxis.*nearest 7\d m east.*Taxi 1.*3 hired.*1 free/ });
  await group.waitFor();
  expect(await phone.titles()).toEqual(["Market"]);
  await group.click();
  expect(await phone.titles()).toEqual(["Taxi 1", "Taxi 2", "Taxi 3", "Taxi 4", "Market"]);
  expect(await group.getAttribute("aria-expanded")).toBe("true");
  await page.getByRole("button", { name: /Taxi 3/ }).click();
  await page.getByRole("heading", { name: "Taxi 3" }).waitFor();
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});
