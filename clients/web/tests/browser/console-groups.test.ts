// Groups in the console, against a broker that has them.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { coloursAbout } from "../support/colours.js";
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
  broker = await Broker.start();
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

const PICKUP = {
  roles: { taxi: { where: "type = 'taxi' AND free = TRUE" }, rider: { where: "type = 'rider'" } },
  where: ["DISTANCE(taxi, rider) <= 800", "taxi.seats >= rider.party"],
  order: "DISTANCE(taxi, rider)",
};

async function live(key: string, lat: number, properties: object): Promise<void> {
  const geometry = { type: "Point", coordinates: [9.19, lat] };
  await send("POST", "/v1/events", { type: "Feature", id: `${key}@${lat}`, key, ttl_s: 600, geometry, properties });
}

const taxi = (key: string, lat: number, seats = 4): Promise<void> => live(key, lat, { type: "taxi", free: true, seats });
const rider = (key: string, lat: number, party = 2): Promise<void> => live(key, lat, { type: "rider", party });
const fact = (name: string) => page.locator(`[data-fact="${name}"]`);

test("a definition is made by the form, faults stand at their fields, and it is changed", async () => {
  await open("?tab=groups");
  await page.getByText("No group definitions yet.").waitFor();
  await expectAccessible(page, "no group definitions");
  await page.getByRole("button", { name: "New group definition" }).click();
  await page.getByLabel("Name", { exact: true }).fill("pickup");
  await expectAccessible(page, "the form of riders and taxis");
  const condition = page.getByLabel("Condition 1", { exact: true });
  await condition.fill("DISTANCE(taxi, bus) <= 800");
  await page.getByLabel("Condition of role 2", { exact: true }).fill("type = ");
  await page.getByRole("button", { name: "Put it in force" }).click();
  await expect.poll(() => page.getByLabel("Condition of role 2", { exact: true }).getAttribute("aria-invalid")).toBe("true");
  await page.getByLabel("Condition of role 2", { exact: true }).fill("type = 'rider'");
  await page.getByRole("button", { name: "Put it in force" }).click();
  await expect.poll(() => condition.getAttribute("aria-invalid")).toBe("true");
  await page.locator("#condition-0-faults", { hasText: "bus" }).waitFor();
  await expectAccessible(page, "a form with faults");
  await condition.fill("DISTANCE(taxi, rider) <= 500");
  await page.getByRole("button", { name: "Put it in force" }).click();
  await page.getByRole("heading", { name: "Group definition pickup", exact: true }).waitFor();
  expect(await send("GET", "/v1/groups/pickup")).toMatchObject({
    ...PICKUP,
    where: ["DISTANCE(taxi, rider) <= 500", PICKUP.where[1]],
    limit: 100,
  });
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("button", { name: "Add a role" }).click();
  await page.getByLabel("Role 3", { exact: true }).fill("stand");
  await page.getByLabel("Condition of role 3", { exact: true }).fill("type = 'stand'");
  await page.getByRole("button", { name: "Remove condition 2" }).click();
  await page.getByRole("button", { name: "Document", exact: true }).click();
  const editor = page.getByRole("textbox", { name: "Document" });
  await expect.poll(() => editor.textContent()).toContain("stand");
  await editor.click();
  await page.keyboard.press("Control+a");
  const document = { roles: { ...PICKUP.roles, stand: { where: "type = 'stand'" } }, where: [PICKUP.where[0]], limit: 7 };
  await page.keyboard.insertText(JSON.stringify(document));
  await page.getByRole("button", { name: "Form", exact: true }).click();
  await expect.poll(() => page.getByLabel("Limit", { exact: true }).inputValue()).toBe("7");
  await page.getByRole("button", { name: "Replace it" }).click();
  await page.getByRole("heading", { name: "Group definition pickup", exact: true }).waitFor();
  expect(await send("GET", "/v1/groups/pickup")).toMatchObject(document);
});

test("groups are lines on the map, come and go, and are opened at addresses of their own", async () => {
  await send("PUT", "/v1/groups/pickup", PICKUP);
  await open("?at=9.19,45.4625,15");
  await taxi("taxi-1", 45.46);
  await rider("rider-1", 45.465);
  await expect.poll(() => page.locator("[data-layer=groups]").textContent()).toBe("1");
  await expect.poll(() => page.locator("canvas.lines").getAttribute("data-lines")).toBe("1");
  // Beside the name of the city, which is pinned in the middle.
  const lined = (): Promise<Set<string>> => coloursAbout(page, [9.19, 45.4612], 5);
  const before = await lined();
  expect(before.size).toBeGreaterThan(1);
  await page.getByLabel("Groups").uncheck();
  await expect.poll(async () => (await lined()).size).toBe(1);
  await page.getByLabel("Groups").check();
  const row = page.locator(".feed .row").filter({ hasText: "pickup: taxi-1 · rider-1" });
  await row.filter({ hasText: "enter" }).first().click();
  await page.getByRole("heading", { name: "Group of pickup" }).waitFor();
  await page.getByText("These fit together").waitFor();
  await page.locator(".step", { hasText: "556 m apart" }).waitFor();
  await page.locator(".why-label.group", { hasText: "556 m" }).waitFor();
  await expectAccessible(page, "a group that came");
  const address = new URL(page.url());
  expect(address.searchParams.get("group")).toBe("pickup");
  expect(address.searchParams.get("finding")).not.toBeNull();
  // What tells of a group has no mark of its own.
  await expect.poll(() => page.locator("[data-layer=events]").textContent()).toBe("2");
  await page.getByRole("button", { name: "pickup", exact: true }).click();
  await expect.poll(() => page.locator(".rows.alone .row").allTextContents()).toEqual(["taxi-1 · rider-1556 m"]);
  await page.locator(".rows.alone .row").focus();
  await page.keyboard.press("Enter");
  await page.locator(".why-label.group", { hasText: "556 m" }).waitFor();
  await page.locator('.rows.alone .row[aria-pressed="true"]').waitFor();
  await page.locator("#opened").focus();
  await taxi("taxi-1", 45.5);
  await expect.poll(() => fact("groups").textContent()).toBe("0 groups");
  await expect.poll(() => page.locator("canvas.lines").isHidden()).toBe(true);
  await expect.poll(() => page.locator(".found ol:not(.alone) .summary").allTextContents()).toEqual(["exit", "enter"]);
  // A page that is opened there knows the objects of now alone, and says so.
  await page.goto(address.href);
  await page.getByText("These fit together").waitFor();
  await page.getByText("came before this page was opened").first().waitFor();
});

test("why an object is in no group is asked on the definition's page, and on that of the object", async () => {
  await send("PUT", "/v1/groups/pickup", PICKUP);
  await taxi("taxi-1", 45.46, 2);
  await rider("rider-1", 45.461, 5);
  await open("?group=pickup");
  await expect.poll(() => fact("candidates rider").textContent()).toBe("1");
  const sentence = "rider-1 is in no group: as rider, of 1 of role taxi none fits";
  await page.getByLabel("Object", { exact: true }).fill("rider-1");
  await page.keyboard.press("Enter");
  await page.getByText(sentence).waitFor();
  await page.getByText("Of 1 candidate for taxi, none fits.").waitFor();
  await expect
    .poll(() => page.locator(".answer .filter p").allTextContents())
    .toEqual(["DISTANCE(taxi, rider) <= 800 leaves 1", "taxi.seats >= rider.party leaves 0"]);
  await expectAccessible(page, "why an object is in no group");
  await page.getByLabel("Object", { exact: true }).fill("nobody");
  await page.getByRole("button", { name: "Why?" }).click();
  await page.getByText("nobody is no candidate of groups/pickup").waitFor();
  // By the object itself.
  await page.getByRole("tab", { name: "Live" }).click();
  await page.locator(".feed .row").filter({ hasText: "rider-1" }).click();
  await page.getByText("It is in no group of the definition.").waitFor();
  const part = page.getByRole("region", { name: "Groups" });
  await part.getByRole("button", { name: "Why?" }).click();
  await page.getByText(sentence).waitFor();
  await expectAccessible(page, "an object that is in no group");
  await rider("rider-1", 45.462, 2);
  await part.getByText("It is in 1 group of pickup").waitFor();
  await part.getByRole("button", { name: "Why?" }).click();
  await page.locator('.answer[data-groups="1"]').waitFor();
});

test("what a definition does is shown, and it is paused, resumed and deleted", async () => {
  await send("PUT", "/v1/groups/pickup", PICKUP);
  await open("?tab=groups");
  await taxi("taxi-1", 45.46);
  await taxi("taxi-2", 45.6);
  await rider("rider-1", 45.461);
  const [card] = [page.locator(".cards > li")];
  await expect.poll(() => card.locator('[data-fact="candidates taxi"]').textContent()).toBe("2");
  await expect.poll(() => card.locator('[data-fact="consistent taxi"]').textContent()).toBe("1");
  await expect.poll(() => card.locator('[data-fact="groups"]').textContent()).toBe("1 group");
  await expectAccessible(page, "a list of group definitions");
  await page.getByRole("button", { name: "pickup", exact: true }).click();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.locator(".state.paused").waitFor();
  await page.getByLabel("Object", { exact: true }).fill("taxi-1");
  await page.getByRole("button", { name: "Why?" }).click();
  await page.locator(`.answer[data-groups="1"]`).waitFor();
  await taxi("taxi-2", 45.462);
  await expectAccessible(page, "a group definition that is paused");
  await page.getByRole("button", { name: "Resume" }).click();
  await expect.poll(() => fact("groups").textContent()).toBe("2 groups");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete for good" }).click();
  await page.getByText("No group definitions yet.").waitFor();
});
