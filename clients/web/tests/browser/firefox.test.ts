// Both pages in Firefox: that they open, show the map or say why not, and hear of an event. `make firefox` installs it.

import { existsSync } from "node:fs";

import { launch, type Browser, type Page } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { areBuilt } from "../support/pages.js";
import { feature, publish, serve, type Place, type Served } from "./phone-support.js";

const program = process.env["FIREFOX"] ?? "/usr/bin/firefox-esr";
const HERE: Place = [9.19, 45.46];

describe.runIf(existsSync(program))("Firefox", () => {
  let browser: Browser;
  let served: Served;

  beforeAll(async () => {
    [browser, served] = await Promise.all([
      launch({
        browser: "firefox",
        executablePath: program,
        extraPrefsFirefox: {
          "geo.prompt.testing": true,
          "geo.prompt.testing.allow": true,
          "geo.provider.network.url": `data:application/json,{"location":{"lat":${HERE[1]},"lng":${HERE[0]}},"accuracy":12}`,
          "geo.provider.use_geoclue": false,
        },
      }),
      serve(),
    ]);
  });

  afterAll(async () => {
    await browser.close();
    await served.close();
  });

  async function open(path: string): Promise<{ page: Page; errors: string[] }> {
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error") errors.push(message.text());
    });
    await page.goto(served.url + path);
    return { page, errors };
  }

  function seen(page: Page, text: string): Promise<unknown> {
    return page.waitForFunction((wanted: string) => document.body.innerText.includes(wanted), { timeout: 30_000 }, text);
  }

  /** The map is drawn, or the page says why it is not. */
  async function mapped(page: Page): Promise<void> {
    await page.waitForFunction(() => document.querySelector(".maplibregl-canvas") !== null || document.body.innerText.includes("WebGL 2"), {
      timeout: 30_000,
    });
  }

  test("the console opens, has a map, and shows an event", async () => {
    const { page, errors } = await open("");
    await mapped(page);
    await expect
      .poll(async () => {
        await publish(served.broker, [feature("Seen in the console", HERE)]);
        return page.evaluate(() => document.querySelector(".feed li")?.textContent);
      })
      .toContain("Seen in the console");
    expect(errors).toEqual([]);
    await page.close();
  });

  test("the phone page takes the place, hears of an event and opens it", async () => {
    const { page, errors } = await open("phone");
    await mapped(page);
    await page.locator("::-p-aria([name='Use my location'][role='button'])").click();
    await seen(page, "Your place was sent");
    await publish(served.broker, [feature("Seen on the phone", HERE, { priority: "alarm" }, { depth_cm: 40 })]);
    await seen(page, "Seen on the phone");
    await page.locator(".line").click();
    await seen(page, "Directions");
    await page.keyboard.press("Escape");
    await seen(page, "Events near you");
    if (areBuilt) await page.waitForFunction(async () => (await navigator.serviceWorker.ready).active?.state === "activated");
    expect(errors).toEqual([]);
    await page.close();
  });
});
