// The console's first minutes: an empty broker, the first events, and the questions about them.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { connected, expectAccessible, numberOf, ownErrors } from "./console-support.js";

let browser: Browser;
let broker: Broker;
let pages: { readonly url: string; close(): Promise<void> };
let page: Page;
let errors: string[];

beforeAll(async () => {
  browser = await launch();
  broker = await Broker.start();
  pages = await pagesOf(broker);
});
afterAll(async () => {
  await browser.close();
  await pages.close();
  await broker.stop();
});
beforeEach(async () => {
  ({ page, errors } = await newPage(browser, { viewport: { width: 1440, height: 900 } }));
  await page.goto(pages.url);
  await connected(page);
});
afterEach(async () => {
  await page.context().close();
  expect(ownErrors(errors)).toEqual([]);
});

async function send(method: string, path: string, body: object): Promise<void> {
  const response = await fetch(`${broker.url}${path}`, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(response.ok, await response.text()).toBe(true);
}

const feature = (id: string): object => ({
  type: "Feature",
  id,
  geometry: { type: "Point", coordinates: [9.19, 45.46] },
  properties: { kind: "bus" },
});

test("an empty broker says how to publish, and lists each event of a small batch, the newest included", async () => {
  await page.getByText("No events yet.").waitFor();
  await expect
    .poll(() => page.getByRole("group", { name: "Command that publishes an event" }).textContent())
    .toMatch(/curl http.*\/v1\/events/);
  await expectAccessible(page, "an empty console");
  await send("POST", "/v1/events", { type: "FeatureCollection", features: ["burst-1", "burst-2", "burst-3"].map(feature) });
  await expect.poll(() => page.locator(".feed .row .name").allTextContents()).toEqual(["burst-3", "burst-2", "burst-1"]);
});

test("a client's name can be typed slowly, and one that does not exist is told as such", async () => {
  await send("PUT", "/v1/clients/anna/subscriptions/near", { filters: [{}] });
  await send("PUT", "/v1/clients/anna/position", { coordinates: [9.19, 45.46] });
  await send("POST", "/v1/events", feature("one"));
  // On loopback without tokens everybody may see where clients are.
  await numberOf(page.locator("[data-layer=clients]"), (count) => count === 1, "the client on the map");
  await page.locator(".feed .row").first().hover();
  await page.locator(".feed .row").first().click();
  const field = page.getByRole("combobox", { name: "Client" });
  await field.pressSequentially("an");
  // The list of clients is asked for meanwhile.
  await page.waitForResponse((response) => response.url().includes("/v1/clients?"));
  await page.waitForResponse((response) => response.url().includes("/v1/clients?"));
  await expect.poll(() => field.inputValue()).toBe("an");
  await page.getByText("There is no client an.").waitFor();
  expect(await field.evaluate((input) => input === document.activeElement)).toBe(true);
  await field.pressSequentially("na");
  await expect.poll(() => field.inputValue()).toBe("anna");
  await page.getByRole("button", { name: "Why?" }).click();
  await page.locator('.answer[data-matched="true"]').waitFor();
});

test("an address keeps the view, Back goes back, and the search finds clients and events", async () => {
  await send("PUT", "/v1/clients/carla/subscriptions/near", { filters: [{ area: { radius_m: 500 } }] });
  await send("PUT", "/v1/clients/carla/position", { coordinates: [9.1, 45.4] });
  await send("POST", "/v1/events", { ...feature("e7"), key: "tram-7", properties: { kind: "tram", line: 7 } });
  await page.goto(`${pages.url}?tab=clients&at=9.1,45.4,13&filter=kind=tram`);
  await connected(page);
  const map = page.locator("[data-center]");
  expect((await map.getAttribute("data-center"))?.split(",").map((part) => Number(part).toFixed(3))).toEqual(["9.100", "45.400"]);
  await expect.poll(() => map.getAttribute("data-zoom")).toBe("13");
  const search = page.getByRole("combobox", { name: "Search" });
  await page.keyboard.press("/");
  await search.pressSequentially("carl");
  await page.getByRole("option", { name: /carla/ }).waitFor();
  await expectAccessible(page, "the search");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "carla" }).waitFor();
  expect(page.url()).toContain("client=carla");
  await page.getByRole("button", { name: "Follow", exact: true }).click();
  await expect.poll(() => page.url()).toContain("follow=carla");
  await page.reload();
  await connected(page);
  await page.getByRole("button", { name: "Following" }).waitFor();
  await page.goBack();
  await page.getByRole("button", { name: "carla" }).waitFor();
  await page.getByRole("tab", { name: "Live" }).click();
  // The key of a live event: it comes again, and the filter takes it.
  await expect.poll(() => page.locator(".feed .row .name").allTextContents()).toEqual(["tram-7"]);
  await page.getByRole("searchbox", { name: "Filter events" }).fill("kind=bus");
  await page.getByText("No event like that so far.").waitFor();
  await expect.poll(() => page.locator('[data-layer="events"]').textContent()).toBe("0");
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await expect.poll(() => page.locator('[data-layer="events"]').textContent()).toBe("1");
  await page.getByRole("button", { name: /theme, change/ }).click();
  await page.getByRole("button", { name: /theme, change/ }).click();
  await expect.poll(() => page.locator("html").getAttribute("data-theme")).toBe("dark");
});

test("why is drawn on the map: the area, the event, and the line between them with its metres", async () => {
  await send("PUT", "/v1/clients/dora/subscriptions/near", { filters: [{ area: { radius_m: 500 } }] });
  await send("PUT", "/v1/clients/dora/position", { coordinates: [9.1, 45.4] });
  await send("POST", "/v1/events", { ...feature("far"), geometry: { type: "Point", coordinates: [9.12, 45.4] } });
  await page.locator(".feed .row", { hasText: "far" }).hover();
  await page.locator(".feed .row", { hasText: "far" }).click();
  await page.getByRole("combobox", { name: "Client" }).fill("dora");
  await page.getByRole("button", { name: "Why?" }).click();
  await page.locator('.answer[data-matched="false"]').waitFor();
  await expect.poll(() => page.locator(".why-label.bad").textContent()).toBe("now 1.6 km, 1.1 km outside");
  await page.getByRole("combobox", { name: "Client" }).fill("nobody");
  await page.locator(".why-label").waitFor({ state: "detached" });
});

test("a delivery of an event opens why it reached its client: a scene on the map with an address of its own", async () => {
  const near = { filters: [{ area: { radius_m: 500 }, where: "kind = 'bus' AND seats >= 10" }] };
  await send("PUT", "/v1/clients/emil/subscriptions/near", near);
  await send("PUT", "/v1/clients/emil/position", { coordinates: [9.3, 45.3] });
  await send("POST", "/v1/events", {
    ...feature("full"),
    key: "bus-9",
    ttl_s: 600,
    geometry: { type: "Point", coordinates: [9.3, 45.3027] },
    properties: { kind: "bus", seats: 12 },
  });
  await send("PUT", "/v1/clients/emil/position", { coordinates: [9.4, 45.3] });
  // The newest: a second try of the test has published it before.
  const row = page.locator(".feed .row", { hasText: "bus-9" }).first();
  await row.hover();
  await row.click();
  await page
    .getByRole("button", { name: /emil by subscription near/ })
    .first()
    .click();
  await page.getByRole("heading", { name: "event bus-9 to client emil" }).waitFor();
  // What became of it, by where the client was then: it has gone elsewhere.
  const verdict = page.locator(".verdict");
  await expect
    .poll(() => verdict.locator("bdi").first().textContent())
    .toMatch(
      /^Delivered to client emil at \d\d:\d\d:\d\d: it was 300\sm away, within the 500\sm around the client, and both conditions held\.$/,
    );
  expect(await page.getByRole("region", { name: "Now" }).count()).toBe(0);
  await expect.poll(() => page.locator(".why-pin .card strong").allTextContents()).toEqual(["bus-9", "emil"]);
  await expect.poll(() => page.locator(".why-label.good").textContent()).toBe("300 m");
  expect(new URL(page.url()).searchParams.get("why")).toBe("emil");
  await expectAccessible(page, "why an event reached a client");
  await page.reload();
  await connected(page);
  await page.locator('.answer[data-matched="true"]').waitFor();
  await expect.poll(() => page.locator(".why-pin").count()).toBe(2);
  // Somebody else is asked about from there.
  await page.getByText("Ask about another client or subscription").click();
  // The press comes with the last letter, before the page has looked for the name: it is about dora all the same.
  await page.getByRole("combobox", { name: "Client" }).waitFor();
  await page.evaluate(() => {
    const field = document.querySelector<HTMLInputElement>("#why-client");
    const button = [...document.querySelectorAll("button")].find(({ textContent }) => textContent === "Why?");
    if (field === null || button === undefined) throw new Error("there is no form");
    field.value = "dora";
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    button.click();
  });
  await page.locator('.answer[data-matched="false"]').waitFor();
  expect(await page.locator(".answer").textContent()).toContain("dora");
  await page.getByRole("button", { name: "Back" }).click();
  await page.locator(".why-pin").first().waitFor({ state: "detached" });
});
