// Rule sets in the console, against a broker that has them.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
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

const MERGING = {
  facts: { report: { where: "type = 'report'", args: ["@id", "@lon", "@lat"], for_s: 300 } },
  program: "report(A, X, Y) \\ report(_, U, V) <=> distance(X, Y, U, V) < 200 | accident(A, X, Y).",
  publish: { accident: { at: [1, 2], properties: { type: "accident", first: "{0}" }, key: "accident-{0}", ttl_s: 300 } },
};

/** A report of an accident. */
async function report(id: string, lat: number): Promise<void> {
  const geometry = { type: "Point", coordinates: [9.19, lat] };
  await send("POST", "/v1/events", { type: "Feature", id, geometry, properties: { type: "report" } });
}

test("a rule set is written as a document and a program, and faults stand at their places", async () => {
  await open("?tab=rules");
  await page.getByText("No rule sets yet.").waitFor();
  await expectAccessible(page, "no rule sets");
  await page.getByRole("button", { name: "New rule set" }).click();
  await page.getByLabel("Name", { exact: true }).fill("merge");
  const write = async (name: string, text: string): Promise<void> => {
    await page.getByRole("textbox", { name }).click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(text);
    await page.getByRole("button", { name: "Put it in force" }).click();
  };
  await write("Document", '{"facts": }');
  await page.getByText("this is no JSON: value expected").waitFor();
  const { program, ...document } = MERGING;
  await write("Document", JSON.stringify(document, null, 2).replace("300", "-1"));
  await page.getByRole("button", { name: "/facts/report/for_s" }).waitFor();
  await write("Program", "% Reports of one accident.\nreport(A, X, Y) \\ report(_, U, V <=> true.");
  await page.getByRole("button", { name: "line 2" }).waitFor();
  await expect.poll(() => page.locator(".cm-lintRange-error").allTextContents()).toEqual(["-1", "."]);
  await expectAccessible(page, "a program with a fault");
  await write("Document", JSON.stringify(document, null, 2));
  await expect.poll(() => page.getByRole("button", { name: "/facts/report/for_s" }).count()).toBe(0);
  await page.getByRole("button", { name: "line 2" }).waitFor();
  await write("Program", program);
  await page.getByRole("heading", { name: "Rule set merge" }).waitFor();
  expect(await send("GET", "/v1/rules/merge")).toMatchObject({ program, publish: MERGING.publish });
  await page.getByRole("button", { name: "Back" }).click();
  await expect.poll(() => page.locator(".cards h3").allTextContents()).toEqual(["merge"]);
});

test("what rules make is on the map, with lines from what it follows from, and at an address of its own", async () => {
  await send("PUT", "/v1/rules/merge", MERGING);
  await open();
  await report("r1", 45.46);
  await report("r2", 45.461);
  const row = page.locator(".feed .row").filter({ hasText: "accident-r1" });
  await row.waitFor();
  await row.click();
  await page.getByRole("heading", { name: "Made by rules merge" }).waitFor();
  await page.getByText("It follows from").waitFor();
  // Of the two reports it is at the place of the first.
  await page.locator(".why-label.derived", { hasText: "111 m" }).waitFor();
  await expect.poll(() => page.locator(".origins li").count()).toBe(2);
  await expectAccessible(page, "an event that rules made");
  const address = new URL(page.url());
  expect(address.searchParams.get("rules")).toBe("merge");
  expect(address.searchParams.get("finding")).not.toBeNull();
  await page.locator(".origins").getByRole("button", { name: "r2", exact: true }).click();
  await page.getByRole("heading", { name: "Who received it" }).waitFor();
  // A page that is opened there knows the reports no more, and says so.
  await page.goto(address.href);
  await page.getByText("came before this page was opened").first().waitFor();
  await page.getByRole("button", { name: "merge", exact: true }).click();
  await expect.poll(() => page.locator(".found .row .name").allTextContents()).toEqual(["accident-r1"]);
});

test("what a rule set does is shown, and it is paused, resumed, replaced and deleted", async () => {
  await send("PUT", "/v1/rules/merge", MERGING);
  await open("?tab=rules&rules=merge");
  await report("r1", 45.46);
  await report("r2", 45.4601);
  const fact = (name: string) => page.locator(`[data-fact="${name}"]`);
  await expect.poll(() => fact("facts").textContent()).toBe("2");
  await expect.poll(() => fact("published").textContent()).toBe("1");
  await expect.poll(() => fact("in the store").textContent()).toBe("1");
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.locator(".state.paused").waitFor();
  await report("r3", 45.4602);
  await expectAccessible(page, "a rule set that is paused");
  await page.getByRole("button", { name: "Resume" }).click();
  await expect.poll(() => fact("published").textContent()).toBe("2");
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Program" }).waitFor();
  await page.getByRole("button", { name: "Replace it" }).click();
  await expect.poll(() => fact("facts").textContent()).toBe("0");
  await expect.poll(() => fact("in the store").textContent()).toBe("0");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete for good" }).click();
  await page.getByText("No rule sets yet.").waitFor();
});
