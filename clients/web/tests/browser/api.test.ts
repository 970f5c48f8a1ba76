// The page of the API, under the policy that the broker sends with it.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
import { launch, newPage } from "../support/pages.js";

let browser: Browser;
let broker: Broker;

beforeAll(async () => {
  browser = await launch();
  broker = await Broker.start({});
});
afterAll(async () => {
  await browser.close();
  await broker.stop();
});

test("the page of the API shows its calls and tries one out", async () => {
  const { page, errors } = await newPage(browser, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${broker.url}/docs/`);
  const call = page.locator("#operations-operation-get_stats");
  await call.getByRole("button").first().click();
  await call.getByRole("button", { name: "Try it out" }).click();
  await call.getByRole("button", { name: "Execute" }).click();
  await call.locator(".live-responses-table").getByText('"uptime_s"').first().waitFor();
  expect(errors).toEqual([]);
  await page.context().close();
});

test("no other page can frame it", async () => {
  const { page } = await newPage(browser, {});
  await page.route("http://elsewhere.example/", (route) =>
    route.fulfill({ contentType: "text/html", body: `<iframe src="${broker.url}/docs/"></iframe>` }),
  );
  await page.goto("http://elsewhere.example/");
  const frame = page.frames().find((one) => one !== page.mainFrame());
  await expect.poll(() => frame?.url()).toMatch(/^chrome-error:/);
  await page.context().close();
});
