// How a person begins, is lost, and is forgotten; and texts that are twice as large.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { launch } from "../support/pages.js";
import { around, feature, openPhone, placed, publish, seen, serve, type PhonePage, type Place, type Served } from "./phone-support.js";

let browser: Browser;
let served: Served;
let here: Place = [20, 45];

beforeAll(async () => {
  [browser, served] = await Promise.all([launch(), serve({ settings: { "console.base_map": "" } })]);
});

afterAll(async () => {
  await browser.close();
  await served.close();
});

beforeEach(() => {
  here = [here[0] + 0.5, here[1]];
});

function open(): Promise<PhonePage> {
  const geolocation = { longitude: here[0], latitude: here[1], accuracy: 12 };
  return openPhone(browser, served.url, { permissions: ["geolocation"], geolocation });
}

async function known(client: string): Promise<boolean> {
  return (await (await fetch(`${served.broker.url}/v1/clients?limit=1000`)).text()).includes(client);
}

test("the broker knows nobody before they have said where they are, by typing it too", async () => {
  const phone = await open();
  const { page } = phone;
  await seen(page, "Where are you?");
  // That there is no connection yet is nobody's concern.
  expect(await page.locator(".connection").textContent()).toBe("");
  const client = await phone.client();
  expect(await known(client)).toBe(false);
  await page.getByText("Type your place").click();
  const field = page.getByLabel("Latitude, longitude");
  await field.fill("95, 200");
  await field.press("Enter");
  await seen(page, "Latitude is within ±90, longitude within ±180.");
  expect(await known(client)).toBe(false);
  await field.fill(`${here[1]}, ${here[0]}`);
  await page.getByRole("button", { name: "Put me there" }).click();
  await seen(page, /Your place was sent/);
  await placed(served.broker, client, here);
  // A phone that has been here before is connected at once.
  await page.reload();
  await seen(page, "Connected");
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("a place that the browser does not tell any more is not one set by hand: the page says so, and asks again", async () => {
  const phone = await open();
  const { page } = phone;
  const button = page.getByRole("button", { name: "Use my location" });
  await button.click();
  await seen(page, /Your place was sent/);
  await phone.context.clearPermissions();
  await page.reload();
  await seen(page, /This page does not follow you any more/);
  await around(page);
  await expect.poll(() => button.getAttribute("aria-pressed")).toBe("false");
  await phone.context.grantPermissions(["geolocation"]);
  await page.reload();
  await seen(page, /Your place was sent/);
  await around(page);
  await expect.poll(() => button.getAttribute("aria-pressed")).toBe("true");
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("forget me takes two taps in two places, and every tab begins anew", async () => {
  const phone = await open();
  const { page } = phone;
  await page.getByRole("button", { name: "Use my location" }).click();
  await seen(page, /Your place was sent/);
  const other = await phone.context.newPage();
  await other.goto(`${served.url}phone`);
  await seen(page, "This page goes on in another tab");
  await seen(other, "Connected");
  await other.getByRole("button", { name: "Settings" }).click();
  const ask = other.getByRole("button", { name: "Forget me…" });
  const before = await ask.boundingBox();
  await ask.click();
  const sure = other.getByRole("button", { name: "Yes, forget me" });
  const after = await sure.boundingBox();
  if (before === null || after === null) throw new Error("the buttons are not in sight");
  expect(after.y).toBeGreaterThanOrEqual(before.y + before.height);
  await sure.click();
  for (const tab of [other, page]) {
    await seen(tab, "You are forgotten");
    expect(await tab.getByRole("slider").count()).toBe(0);
    expect(await tab.getByRole("button", { name: "Settings" }).isDisabled()).toBe(true);
  }
  await page.getByRole("button", { name: "Begin anew" }).click();
  await seen(page, "Where are you?");
  await phone.context.close();
});

test.each([320, 390])("texts of twice the size are not cut off on a screen of %i pixels", async (width) => {
  const phone = await open();
  const { page } = phone;
  await page.setViewportSize({ width, height: 844 });
  await page.addStyleTag({ content: ":root { font-size: 200% }" });
  await page.getByRole("button", { name: "Use my location" }).click();
  await seen(page, /Your place was sent/);
  await publish(served.broker, [
    feature("A rather long title of something that has happened near you", here, {}, { severity: 3, road: { name: "Circonvallazione" } }),
    feature("Flood", here, { priority: "alarm", ttl_s: 600 }, { depth_m: 2 }),
  ]);
  await phone.came("Flood");
  await around(page);
  await page.getByRole("button", { name: "Own condition" }).click();
  const cut = (): Promise<string[]> =>
    page.evaluate(() => {
      const faults = document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : [];
      for (const element of document.querySelectorAll<HTMLElement>(".page *:not(.map *, .visually-hidden, input, textarea)")) {
        const { overflowX, display } = getComputedStyle(element);
        const { left, right } = element.getBoundingClientRect();
        const clips = overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1;
        const text = `${element.tagName}.${element.className}: ${element.textContent.slice(0, 40)}`;
        if (element.closest(".visually-hidden") !== null || display === "none") continue;
        if (clips) faults.push(`cut: ${text}`);
        if (left < -1 || right > innerWidth + 1) faults.push(`outside: ${text}`);
      }
      return faults;
    });
  expect(await cut()).toEqual([]);
  await page.getByRole("button", { name: /rather long/ }).click();
  await page.getByRole("heading", { name: /rather long/ }).waitFor();
  expect(await cut()).toEqual([]);
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("button", { name: "Forget me…" }).click();
  expect(await cut()).toEqual([]);
  if (process.env["PICTURES"] !== undefined) await page.screenshot({ path: `${process.env["PICTURES"]}/large-${width}.png` });
  await phone.context.close();
});
