// Checks in the console, against a broker that has them.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
import { formulaText, type Formula } from "../../src/console/checks/formula.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { connected, expectAccessible, ownErrors } from "./console-support.js";

let browser: Browser;
let broker: Broker;
let pages: { readonly url: string; close(): Promise<void> };
let page: Page;
let errors: string[];

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
beforeEach(async () => {
  broker = await Broker.start({ settings: { "console.object": "taxi", "checks.hold_ms": 60_000 } });
  pages = await pagesOf(broker);
  ({ page, errors } = await newPage(browser, { viewport: { width: 1280, height: 800 } }));
});
afterEach(async () => {
  await page.context().close();
  await pages.close();
  await broker.stop();
  expect(ownErrors(errors)).toEqual([]);
});

async function open(query = ""): Promise<void> {
  await page.goto(`${pages.url}${query}`);
  await connected(page);
}

async function send(method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${broker.url}${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  expect(response.ok, text).toBe(true);
  return text === "" ? undefined : JSON.parse(text);
}

const report = (id: string, taxi: string, lon: number, time: string): object => ({
  type: "Feature",
  id,
  time,
  geometry: { type: "Point", coordinates: [lon, 45.46] },
  properties: { taxi },
});

/** The preset `speed` for taxis alone: what the check finds is of now, and would move the clock of its set there. */
const JUMP = {
  contexts: { recent: { where: "taxi IS NOT NULL", for_s: 60 } },
  formula: {
    forall: "a",
    in: "recent",
    that: { forall: "b", in: "recent", that: { implies: ["a.taxi = b.taxi AND ELAPSED(a, b) > 0", "SPEED(a, b) <= 55"] } },
  },
  clock: "event",
};

/** A taxi that jumps by 7.8 km in 20 s. */
async function jump(taxi = "t1", minute = "00"): Promise<void> {
  await send("POST", "/v1/events", report(`${taxi}-a`, taxi, 9.1, `2026-03-01T08:${minute}:00Z`));
  await send("POST", "/v1/events", report(`${taxi}-b`, taxi, 9.2, `2026-03-01T08:${minute}:20Z`));
}

test("each preset of the form becomes the formula that the form has shown", async () => {
  await open("?tab=checks");
  await page.getByText("No checks yet.").waitFor();
  await expectAccessible(page, "no checks");
  const fill = (label: string, text: string): Promise<void> => page.getByLabel(label, { exact: true }).fill(text);
  const presets: readonly (readonly [string, () => Promise<void>])[] = [
    ["Speed", async () => (await fill("Attribute that names the object", "taxi"), fill("At most, m/s", "55"))],
    ["Accuracy", async () => (await fill("Attribute with the metres", "accuracy_m"), fill("At most, m", "100"))],
    ["Frozen", async () => (await fill("Attribute that names the object", "the taxi"), fill("For, seconds", "600"))],
    [
      "Duplicate",
      async () => {
        await fill("Attribute that names the object", "taxi.id");
        await fill("Within, m", "5");
        await fill("and seconds", "2");
      },
    ],
    [
      "Outside",
      async () => {
        await page.getByRole("button", { name: "Type its corners" }).click();
        for (const [index, corner] of [
          ["9", "45"],
          ["10", "45"],
          ["9", "46"],
        ].entries()) {
          if (index > 0) await page.getByRole("button", { name: "Add a place" }).click();
          await page
            .getByLabel("longitude", { exact: true })
            .nth(index)
            .fill(corner[0] ?? "");
          await page
            .getByLabel("latitude", { exact: true })
            .nth(index)
            .fill(corner[1] ?? "");
        }
      },
    ],
  ];
  for (const [title, write] of presets) {
    await page.getByRole("button", { name: "New check" }).click();
    await page.getByLabel("Name", { exact: true }).fill(title.toLowerCase());
    await page.getByRole("button", { name: title, exact: true }).click();
    await write();
    const shown = await page.getByRole("group", { name: "The formula that it becomes" }).textContent();
    await expectAccessible(page, `the form of ${title}`);
    await page.getByRole("button", { name: "Put it in force" }).click();
    await page.getByRole("heading", { name: `Check ${title.toLowerCase()}`, exact: true }).waitFor();
    const { formula } = (await send("GET", `/v1/checks/${title.toLowerCase()}`)) as { formula: Formula };
    expect(shown).toBe(formulaText(formula));
    await page.getByRole("button", { name: "Back" }).click();
  }
  await expect.poll(() => page.locator(".cards h3").allTextContents()).toEqual(["accuracy", "duplicate", "frozen", "outside", "speed"]);
});

test("a polygon is drawn on the map", async () => {
  await open("?tab=checks&edit=&at=9.19,45.46,12");
  await page.getByRole("button", { name: "Outside", exact: true }).click();
  await page.getByRole("button", { name: "Draw it on the map" }).click();
  const map = await page.locator("[data-center]").boundingBox();
  if (map === null) throw new Error("the map is not on the screen");
  const [x, y] = [map.x + map.width / 2, map.y + map.height / 2];
  for (const [dx, dy] of [
    [0, 0],
    [120, 0],
    [60, 100],
  ] as const)
    await page.mouse.click(x + dx, y + dy);
  await page.getByRole("button", { name: "Done" }).click();
  await expect.poll(() => page.getByLabel("longitude", { exact: true }).count()).toBe(3);
  await page.getByLabel("Name", { exact: true }).fill("city");
  await page.getByRole("button", { name: "Put it in force" }).click();
  await page.getByRole("heading", { name: "Check city" }).waitFor();
  expect(JSON.stringify(await send("GET", "/v1/checks/city"))).toContain("S_WITHIN(a, POLYGON((9.19 45.46, ");
});

test("a violation is in the list with its two events, on the map as a mark and a line, and at addresses of its own", async () => {
  await send("PUT", "/v1/checks/jump", JUMP);
  await open();
  await jump();
  const row = page.locator(".feed .row").filter({ hasText: "Too fast: taxi t1" });
  await row.getByText("7.8 km in 20 s: 1,400 km/h, limit 198 km/h").waitFor();
  await page.locator('[data-violations="1"]').waitFor();
  // What is wrong stands on top and at its tab.
  await page.locator('[data-lately="1"]').waitFor();
  await page.getByRole("region", { name: "Attention" }).getByRole("button", { name: "1 violation in the last minute" }).waitFor();
  // By keyboard, too.
  const walker = page.getByRole("application", { name: "Marks on the map" });
  await page.getByRole("button", { name: "Fit to the data" }).click();
  await expect
    .poll(async () => {
      await walker.focus();
      const said = await page.locator("#walker-now").textContent();
      await walker.blur();
      return said;
    })
    .toContain("its place may be wrong: check jump");
  await row.click();
  await page.getByRole("heading", { name: "Too fast" }).waitFor();
  await page.getByText("These events do not fit together").waitFor();
  await page.locator(".why-label", { hasText: "7.8 km in 20 s" }).waitFor();
  await expectAccessible(page, "a finding");
  const address = new URL(page.url());
  expect(address.searchParams.get("check")).toBe("jump");
  expect(address.searchParams.get("finding")).not.toBeNull();
  // An event says what it does not fit together with.
  await page.locator(".bound li").nth(1).getByRole("button", { name: "taxi t1" }).click();
  await page.getByText("Its place may be wrong").waitFor();
  await page.getByText("says that these do not fit together").waitFor();
  await expectAccessible(page, "an event that violates a check");
  // A page that is opened there knows the events no more, and says so.
  await page.goto(address.href);
  await page.getByText("came before this page was opened").first().waitFor();
  await page.getByRole("button", { name: "jump", exact: true }).click();
  await expect.poll(() => page.locator(".found .row").count()).toBe(1);
  // From one finding to the next, newest first.
  await jump("t2");
  await page.mouse.move(0, 0);
  await expect.poll(() => page.locator(".found .row").count()).toBeGreaterThan(1);
  await page.locator(".found .row").first().click();
  const steps = page.getByRole("navigation", { name: "Violations" });
  await steps.getByText(/^1 of \d+ violations$/).waitFor();
  await steps.getByRole("button", { name: "Older" }).click();
  await steps.getByText(/^2 of \d+ violations$/).waitFor();
  expect(await steps.getByRole("button", { name: "Older" }).evaluate((button) => button === document.activeElement)).toBe(true);
  await steps.getByRole("button", { name: "Newer" }).click();
  await steps.getByText(/^1 of \d+ violations$/).waitFor();
});

test("what a check does is shown, and it is paused, resumed, replaced and deleted", async () => {
  await send("PUT", "/v1/checks/jump", JUMP);
  await open("?tab=checks&check=jump");
  await jump();
  const fact = (name: string) => page.locator(`[data-fact="${name}"]`);
  await expect.poll(() => fact("inputs").textContent()).toBe("2");
  await expect.poll(() => fact("published").textContent()).toBe("1");
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.locator(".state.paused").waitFor();
  await jump("t2", "10");
  await expectAccessible(page, "a check that is paused");
  await page.getByRole("button", { name: "Resume" }).click();
  await expect.poll(() => fact("published").textContent()).toBe("2");
  await expect.poll(() => page.locator(".found .row .name").allTextContents()).toEqual(["Taxi t2", "Taxi t1"]);
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Document" }).waitFor();
  await page.getByRole("button", { name: "Replace it" }).click();
  await expect.poll(() => fact("inputs").textContent()).toBe("0");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete for good" }).click();
  await page.getByText("No checks yet.").waitFor();
});

test("faults of a document stand at their places", async () => {
  await open("?tab=checks&edit=");
  await page.getByLabel("Name", { exact: true }).fill("odd");
  await page.getByRole("button", { name: "Document", exact: true }).click();
  const editor = page.getByRole("textbox", { name: "Document" });
  const write = async (text: string): Promise<void> => {
    await editor.click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(text);
    await page.getByRole("button", { name: "Put it in force" }).click();
  };
  await write('{"contexts": }');
  await page.getByText("this is no JSON: value expected").waitFor();
  await write('{"contexts": {"recent": {"for_s": -1}}, "formula": {"forall": "a", "in": "recent", "that": "a.speed > 1"}}');
  await page.getByRole("button", { name: "/contexts/recent/for_s" }).waitFor();
  await expect.poll(() => page.locator(".cm-lintRange-error").allTextContents()).toEqual(["-1"]);
  await write('{"contexts": {"recent": {"for_s": 1}}, "formula": {"forall": "a", "in": "recent", "that": "a.speed > 1 AND"}}');
  await page.getByRole("button", { name: "/formula/that" }).waitFor();
  await expectAccessible(page, "a document with faults");
  await write('{"contexts": {"recent": {"for_s": 1}}, "formula": {"forall": "a", "in": "recent", "that": "a.speed > 1"}}');
  await page.getByRole("heading", { name: "Check odd" }).waitFor();
});

test("an event that a check refuses says why", async () => {
  const near = { implies: ["a.taxi = b.taxi AND ELAPSED(a, b) > 0", "DISTANCE(a, b) < 100"] };
  const formula = { forall: "a", in: "all", that: { forall: "b", in: "all", that: near } };
  await send("PUT", "/v1/checks/still", { contexts: { all: { for_s: 3600 } }, formula, on_violation: "drop" });
  await open("?tab=try&at=9.19,45.46,12");
  await send("POST", "/v1/events", report("t1-a", "t1", 9.1, "2026-03-01T08:00:00Z"));
  await expect.poll(() => page.locator("[data-layer=events]").textContent()).toBe("1");
  // The place is the middle of the map, also where the page was opened here.
  await expect.poll(() => page.locator(".publish").getByLabel("longitude").inputValue()).toBe("9.19");
  await page.getByLabel("Name of property 1").fill("taxi");
  await page.getByLabel("Value of property 1").fill("t1");
  await page.getByRole("button", { name: "Publish" }).click();
  await page.getByText("Not published: the event does not fit with those before it, by the check still").waitFor();
  await page.getByText("Held back by check still").waitFor();
  await page.locator(".refused .step").waitFor();
  await expectAccessible(page, "a refused event");
  await page.goto(`${pages.url}?tab=checks&check=still`);
  await expect.poll(() => page.locator("[data-fact=dropped]").textContent()).toBe("1");
  await expect.poll(() => page.locator("[data-fact=passed]").textContent()).toBe("0");
});
