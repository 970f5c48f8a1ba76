// The console's drafts and test events against a broker whose events are the test's own, so that what has to match is known.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
import { boxOf, inBox } from "../../src/console/try/shape.js";
import { distance_m, type Place } from "../../src/shared/map/plane.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { connected, expectAccessible, numberOf, onScreen, ownErrors, random } from "./console-support.js";

let broker: Broker;
let pages: { readonly url: string; close(): Promise<void> };
let browser: Browser;
let page: Page;
let errors: string[];

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
beforeEach(async () => {
  broker = await Broker.start();
  await open();
});
afterEach(async () => {
  await page.context().close();
  await pages.close();
  await broker.stop();
  expect(ownErrors(errors)).toEqual([]);
});

async function open(): Promise<void> {
  pages = await pagesOf(broker);
  ({ page, errors } = await newPage(browser, { viewport: { width: 1280, height: 800 } }));
  await page.goto(pages.url);
  await connected(page);
}

interface Event {
  readonly type: "Feature";
  readonly key?: string;
  readonly id?: string;
  readonly geometry: { readonly type: "Point"; readonly coordinates: readonly [number, number] };
  readonly properties: { readonly speed: number; readonly kind: string };
}

async function publish(events: readonly object[]): Promise<void> {
  const response = await fetch(`${broker.url}/v1/events`, {
    method: "POST",
    headers: { "content-type": "application/x-ndjson" },
    body: events.map((event) => JSON.stringify(event)).join("\n"),
  });
  expect(await response.json()).toEqual({ accepted: events.length, rejected: [] });
}

const shown = (layer: string) => page.locator(`[data-layer=${layer}]`);

/** Objects around a place, the same ones in each run. */
function objects(count: number, prefix: string, [x, y]: Place, extent: number, seed: number): Event[] {
  const next = random(seed);
  return Array.from({ length: count }, (_, index) => ({
    type: "Feature",
    key: `${prefix}${index}`,
    geometry: { type: "Point", coordinates: [x + (next() - 0.5) * extent, y + (next() - 0.5) * extent] },
    properties: { speed: Math.floor(next() * 100), kind: next() < 0.5 ? "bus" : "tram" },
  }));
}

const CONDITION = "speed < 40 AND kind = 'bus'";
const holds = ({ properties: { speed, kind } }: Event): boolean => speed < 40 && kind === "bus";

async function writeCondition(text: string): Promise<void> {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}

/** Makes a circle by its numbers alone. */
async function circle([x, y]: Place, radius_m: number, names = ["longitude", "latitude"]): Promise<void> {
  await page.getByRole("button", { name: "Circle" }).press("Enter");
  await page.getByRole("button", { name: "Write it instead" }).press("Enter");
  const area = page.getByRole("region", { name: "Area" });
  await area.getByLabel(names[0] ?? "").fill(String(x));
  await area.getByLabel(names[1] ?? "").fill(String(y));
  await area.getByLabel("radius, m").fill(String(radius_m));
}

test("a draft by numbers matches what a brute force finds, of what is there and of what comes", async () => {
  const middle: Place = [9.19, 45.46];
  const first = objects(300, "a", middle, 0.1, 1);
  await publish(first);
  await numberOf(shown("events"), (count) => count === 300, "all objects");
  await page.getByRole("tab", { name: "Try" }).click();
  await circle(middle, 3000);
  await writeCondition(CONDITION);
  const inside = ({ geometry: { coordinates } }: Event): boolean => distance_m("geodetic", middle, coordinates) <= 3000;
  const box = boxOf({ form: "circle", center: middle, radius_m: 3000 }, "geodetic");
  const newest = [...first].reverse().filter(({ geometry }) => inBox(box, geometry.coordinates, "geodetic"));
  expect(newest.length).toBeGreaterThan(100);
  const asked = newest.slice(0, 100);
  await page.getByText(`of ${asked.length} recent events in or near the area`).waitFor();
  const now = asked.filter((event) => inside(event) && holds(event)).length;
  expect(now).toBeGreaterThan(3);
  await numberOf(page.locator("[data-now]"), (count) => count === now, "matches of the newest");
  // An earlier version of the draft may have got as far as this number.
  await page.locator(".trial", { hasText: "checking" }).waitFor({ state: "detached" });
  await numberOf(page.locator("[data-now]"), (count) => count === now, "matches of all that are asked for");
  // Live events come to a new subscription: they are marked, and are no news.
  await numberOf(page.locator("[data-since]"), (count) => count === 0, "nothing new");
  expect(await page.locator(".feed .row").count()).toBe(0);
  const second = objects(400, "b", middle, 0.1, 2);
  await publish(second);
  const since = second.filter((event) => inside(event) && holds(event)).length;
  await numberOf(page.locator("[data-since]"), (count) => count === since, "matches since");
  await expectAccessible(page, "a draft that matches");
});

test("polygons and corridors are drawn by mouse and match by brute force; their dots can be dragged", async () => {
  const middle: Place = [9.19, 45.46];
  await publish(objects(90, "a", middle, 0.1, 3));
  await numberOf(shown("events"), (count) => count === 90, "all objects");
  // The first look, where there is no base map, is taken when there are events to look at.
  await expect
    .poll(async () => Number(await page.locator("[data-zoom]").getAttribute("data-zoom")), { timeout: 30_000 })
    .toBeGreaterThan(9);
  await page.getByRole("tab", { name: "Try" }).click();
  const click = async (place: Place): Promise<void> => {
    const { x, y } = await onScreen(page, place);
    await page.mouse.click(x, y);
  };
  await page.getByRole("button", { name: "Polygon" }).click();
  for (const corner of [
    [9.16, 45.44],
    [9.22, 45.44],
    [9.22, 45.48],
  ] as const) {
    await click(corner);
  }
  await page.getByRole("button", { name: "Done" }).click();
  const longitudes = page.getByRole("region", { name: "Area" }).getByLabel("longitude");
  const latitudes = page.getByRole("region", { name: "Area" }).getByLabel("latitude");
  await expect.poll(() => longitudes.count()).toBe(3);
  const corners: [number, number][] = [];
  for (const index of [0, 1, 2]) {
    corners.push([Number(await longitudes.nth(index).inputValue()), Number(await latitudes.nth(index).inputValue())]);
  }
  const side = ([x, y]: Place, [ax, ay]: Place, [bx, by]: Place): number => Math.sign((bx - ax) * (y - ay) - (by - ay) * (x - ax));
  const within = (place: Place, [a, b, c]: readonly Place[]): boolean => {
    if (a === undefined || b === undefined || c === undefined) return false;
    const sides = new Set([side(place, a, b), side(place, b, c), side(place, c, a)]);
    return !(sides.has(1) && sides.has(-1));
  };
  const expected = objects(90, "a", middle, 0.1, 3).filter(({ geometry }) => within(geometry.coordinates, corners)).length;
  expect(expected).toBeGreaterThan(3);
  await numberOf(page.locator("[data-now]"), (count) => count === expected, "in the polygon");

  const [corner] = corners;
  if (corner === undefined) throw new Error("the polygon has no corner");
  const from = await onScreen(page, corner);
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(from.x - 40, from.y + 10, { steps: 3 });
  await page.mouse.up();
  await expect.poll(async () => Number(await longitudes.first().inputValue())).toBeLessThan(corner[0] - 0.001);
  expect(Number(await longitudes.nth(1).inputValue())).toBe(corners[1]?.[0]);

  await page.getByRole("button", { name: "Corridor" }).click();
  await click([9.16, 45.46]);
  await click([9.22, 45.46]);
  await page.keyboard.press("Enter");
  await page
    .getByRole("button", { name: "Done" })
    .click({ timeout: 2000 })
    .catch(() => undefined);
  await page.getByLabel("metres to each side").fill("800");
  await page.getByText(/of \d+ recent events? in or near the area/).waitFor();
  await numberOf(page.locator("[data-now]"), (count) => count > 0, "in the corridor");
});

test("a wrong condition is underlined where it is wrong, and a right one is not", async () => {
  await page.getByRole("tab", { name: "Try" }).click();
  await writeCondition("speed < 40 AND kind foo 3");
  await page.locator(".cm-lintRange-error", { hasText: /^foo$/ }).waitFor();
  await page.locator(".trial .bad", { hasText: "found the name 'foo'" }).waitFor();
  await expect.poll(() => page.locator(".cm-content").getAttribute("aria-invalid")).toBe("true");
  await expectAccessible(page, "a wrong condition");
  await writeCondition("'𝄞' = kind AND nope(1)");
  await page.locator(".cm-lintRange-error", { hasText: /^nope$/ }).waitFor();
  await writeCondition("kind = 'bus'");
  await page.locator(".cm-lintRange-error").waitFor({ state: "detached" });
  await page.locator('.trial[data-state="running"]').waitFor();
});

test("a condition is completed by keyboard", async () => {
  await publish(objects(20, "a", [9.19, 45.46], 0.1, 4));
  await numberOf(shown("events"), (count) => count === 20, "all objects");
  await page.getByRole("tab", { name: "Try" }).click();
  await page.locator(".cm-content").focus();
  await page.keyboard.type("ki");
  await page.getByRole("option", { name: /^kind/ }).waitFor();
  await expectAccessible(page, "completion");
  await expect.poll(() => page.locator(".cm-tooltip-autocomplete li[aria-selected]").textContent()).toMatch(/^kind/);
  await page.keyboard.press("Enter");
  await expect.poll(() => page.locator(".cm-content").textContent()).toBe("kind");
  await page.keyboard.type(" = ");
  await page.getByRole("option", { name: /^'bus'/ }).waitFor();
  await page.getByRole("option", { name: /^'tram'/ }).waitFor();
});

test("a test event that was published arrives, and says who got it", async () => {
  await page.getByRole("tab", { name: "Try" }).click();
  const form = page.getByRole("region", { name: "Publish a test event" });
  await form.getByLabel("longitude").fill("9.19");
  await form.getByLabel("latitude").fill("45.46");
  await form.getByLabel("Name of property 1").fill("kind");
  await form.getByLabel("Value of property 1").fill("bus");
  await form.getByRole("button", { name: "Add a property" }).click();
  await form.getByLabel("Name of property 2").fill("speed");
  await form.getByLabel("Value of property 2").fill("12");
  await form.getByLabel("Key (optional)").fill("line-4");
  await form.getByLabel("Lives for, seconds").fill("600");
  await form.getByRole("button", { name: "Publish", exact: true }).click();
  await form.getByText("sent", { exact: true }).waitFor();
  await form.getByText("(this console)").waitFor();
  await numberOf(shown("events"), (count) => count === 1, "the event");
  await expectAccessible(page, "a published event");

  // It is clicked on the map, which has gone to where it is.
  await page.getByRole("tab", { name: "Live" }).click();
  await page.locator(".feed .row", { hasText: "line-4" }).waitFor();
  await page.getByRole("button", { name: "Fit to the data" }).click();
  await expect
    .poll(
      async () => {
        const { x, y } = await onScreen(page, [9.19, 45.46]);
        await page.mouse.click(x, y);
        return page.locator(".opened h2").count();
      },
      { timeout: 30_000 },
    )
    .toBe(1);
  await expect.poll(() => page.locator(".opened h2").textContent()).toBe("line-4");
  await expect.poll(() => page.locator(".fields").textContent()).toMatch(/kind.*bus.*speed.*12/);
});

test("a draft is saved as a subscription of a client, with a refusal in words", async () => {
  await page.getByRole("tab", { name: "Try" }).click();
  await circle([9.19, 45.46], 500);
  await writeCondition("kind = 'bus'");
  await page.getByText("Save it, or copy it").click();
  const form = page.locator(".save");
  await form.getByLabel("Client").fill("depot");
  await form.getByLabel("Name").fill("buses");
  await form.getByRole("button", { name: "Save as a subscription" }).click();
  await page.getByText("Saved: depot has it as buses").waitFor();
  const saved: unknown = await (await fetch(`${broker.url}/v1/clients/depot/subscriptions/buses`)).json();
  expect(saved).toMatchObject({ filters: [{ area: { center: [9.19, 45.46], radius_m: 500 }, where: "kind = 'bus'" }] });
  await writeCondition("kind =");
  await form.getByRole("button", { name: "Save as a subscription" }).click();
  await page.getByText("depot has a subscription buses already. Save again to replace it.").waitFor();
  await form.getByRole("button", { name: "Save as a subscription" }).click();
  await page.getByText(/Not saved: .*expected a value/).waitFor();
});

test("texts of events are shown as texts, however long and whatever is in them", async () => {
  const evil = `<img src=x onerror="document.title='hacked'">${"\u202e".repeat(3)}${"x".repeat(3000)}`;
  await publish([
    {
      type: "Feature",
      key: evil.slice(0, 200),
      geometry: { type: "Point", coordinates: [0, 0] },
      properties: { [evil.slice(0, 200)]: evil },
    },
  ]);
  const row = page.locator(".feed .row").first();
  await row.waitFor();
  await row.click();
  await page.locator(".fields dd").first().waitFor();
  expect(await page.locator(".panel img").count()).toBe(0);
  expect(await page.title()).toBe("nearcast console");
  const panel = page.locator(".content");
  expect(await panel.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
});
