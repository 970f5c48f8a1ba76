// What the tests of the console share.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import type { AxeResults } from "axe-core";
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Nothing that an accessibility checker finds, by the rules of WCAG 2.2 AA and its own best practices. */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  await page.evaluate(axeSource);
  // A colour on its way from light to dark is neither.
  await page.evaluate(async () => {
    const transitions = document.getAnimations().filter((animation) => animation instanceof CSSTransition);
    await Promise.allSettled(transitions.map((transition) => transition.finished));
  });
  const { violations } = await page.evaluate(async () => (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run());
  const found = violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`);
  expect(found, what).toEqual([]);
}

/** Errors of the page itself: what the broker refuses the browser tells as well. */
export function ownErrors(errors: readonly string[]): string[] {
  return errors.filter((error) => !/Failed to load resource|WebSocket connection to/.test(error));
}

/** Waits until the map is there and events may come. */
export async function connected(page: Page): Promise<void> {
  await page.locator("[data-center]").waitFor({ timeout: 60_000 });
  await page.locator('[role=status][data-state="ready"]').waitFor({ timeout: 60_000 });
}

/** Waits until a number on the page is as it is to be. */
export async function numberOf(locator: Locator, holds: (number: number) => boolean, what: string): Promise<number> {
  const read = async (): Promise<number> => Number((await locator.textContent())?.replaceAll(",", "") ?? NaN);
  await expect.poll(async () => holds(await read()), { timeout: 60_000, message: what }).toBe(true);
  return read();
}

/** Where a place of the world is on the screen; the map says what it shows. */
export async function onScreen(page: Page, [lon, lat]: readonly [number, number]): Promise<{ x: number; y: number }> {
  const map = page.locator("[data-center]");
  const [centerLon = 0, centerLat = 0] = ((await map.getAttribute("data-center")) ?? "").split(",").map(Number);
  const scale = (512 * 2 ** Number(await map.getAttribute("data-zoom"))) / 360;
  const box = await map.boundingBox();
  if (box === null) throw new Error("the map is not on the screen");
  const ordinate = (at: number): number => (180 / Math.PI) * Math.log(Math.tan(Math.PI / 4 + (at * Math.PI) / 360));
  return {
    x: box.x + box.width / 2 + (lon - centerLon) * scale,
    y: box.y + box.height / 2 - (ordinate(lat) - ordinate(centerLat)) * scale,
  };
}

/** Pseudo-random numbers that are the same in each run. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
