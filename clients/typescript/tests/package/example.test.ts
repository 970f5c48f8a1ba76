// The application in examples/near-me, as its README says to open it, in a real browser and against a real broker.

import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join, normalize } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium, type Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { connect, event, type Session } from "nearcast";
import { Broker } from "../support/broker.js";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
let server: Server;
let browser: Browser;
let broker: Broker;
let city: Session;

beforeAll(async () => {
  server = createServer((request, answer) => {
    const path = join(root, normalize(new URL(request.url ?? "/", "http://x").pathname));
    const file = path.endsWith("/") ? `${path}index.html` : path;
    const type = file.endsWith(".js") ? "text/javascript" : "text/html";
    if (existsSync(file)) answer.writeHead(200, { "content-type": type }).end(readFileSync(file));
    else answer.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  [broker, browser] = await Promise.all([
    Broker.start(),
    chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] }),
  ]);
  city = await connect({ url: broker.url, client: "city" });
});

afterAll(async () => {
  await city.close();
  await browser.close();
  server.close();
  await broker.stop();
});

const port = (): string => String((server.address() as AddressInfo).port);

test("shows what is near, and what comes and goes as one walks", async () => {
  const fire = event([9.1901, 45.465], { type: "fire" }, { key: "fire", ttl_s: 600 });
  await city.publish(fire);
  await city.publish(event([9.2065, 45.4642], { type: "bus" }, { key: "bus", ttl_s: 600 })); // 1.3 km away
  const page = await browser.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(`http://127.0.0.1:${port()}/examples/near-me/?broker=${encodeURIComponent(broker.url)}`);
  const near = async (...types: string[]): Promise<void> => {
    const shown = async (): Promise<string[]> => {
      const texts = await page.locator("#list li").allTextContents();
      return texts.map((text) => text.split(",")[0] ?? "").sort();
    };
    await expect.poll(shown, { timeout: 30_000 }).toEqual(types.sort());
  };
  await near("fire");
  // What anybody may publish does not end it.
  await city.publish({ ...event([9.1901, 45.4651], {}, { key: "bare", ttl_s: 600 }), properties: null });
  await near("event", "fire");
  await city.revoke(await city.publish(event([9.19, 45.465], {}, { key: "bare", ttl_s: 600 })));
  await near("fire");
  await page.getByRole("button", { name: "report something here" }).click();
  await near("fire", "report");
  const picture = process.env["SCREENSHOT"];
  if (picture !== undefined) await page.screenshot({ path: picture, fullPage: true });

  // East, to where the bus is and the others are not.
  const box = await page.locator("#map").boundingBox();
  if (box === null) throw new Error("there is no map");
  await page.mouse.click(box.x + box.width * 0.77, box.y + box.height / 2);
  await near("bus");
  await city.publish(event([9.3, 45.4642], { type: "bus" }, { key: "bus", ttl_s: 600 }));
  await near();
  expect(faults).toEqual([]);
});

test("says that there is no broker, and goes on as soon as there is one", async () => {
  const late = await Broker.start();
  await late.kill();
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${port()}/examples/near-me/?broker=${encodeURIComponent(late.url)}`);
  const state = page.locator("#state");
  await expect.poll(() => state.textContent(), { timeout: 30_000 }).toContain(`(is there a broker at ${late.url}?)`);
  await late.start();
  await expect.poll(() => state.textContent(), { timeout: 60_000 }).toBe("ready");
  await page.close();
  await late.stop();
});

test("opened as a file it says that it has to be served", async () => {
  const page = await browser.newPage();
  await page.goto(pathToFileURL(join(root, "examples/near-me/index.html")).href);
  await expect.poll(() => page.locator("#state").textContent()).toContain("opened as a file");
  await page.close();
});
