// What colours a place of the map has on the screen.

import type { Page } from "playwright-core";

import { onScreen } from "../browser/console-support.js";

/** Red, green and blue of a place of the world, of 255 each. */
export async function colourAt(page: Page, place: readonly [lon: number, lat: number]): Promise<number[]> {
  const [colour = []] = await pixels(page, place, 1);
  return colour;
}

/** The colours in a square of so many pixels around a place. */
export async function coloursAbout(page: Page, place: readonly [lon: number, lat: number], side: number): Promise<Set<string>> {
  return new Set((await pixels(page, place, side)).map((colour) => colour.join()));
}

async function pixels(page: Page, place: readonly [lon: number, lat: number], side: number): Promise<number[][]> {
  const [x, y] = Object.values(await onScreen(page, place)).map((middle) => Math.round(middle - side / 2));
  const png = await page.screenshot({ clip: { x: x ?? 0, y: y ?? 0, width: side, height: side } });
  return page.evaluate(
    async ([source, size]) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [size, size];
      const context = canvas.getContext("2d");
      context?.drawImage(image, 0, 0);
      const data = [...(context?.getImageData(0, 0, size, size).data ?? [])];
      return Array.from({ length: size * size }, (_, index) => data.slice(4 * index, 4 * index + 3));
    },
    [`data:image/png;base64,${png.toString("base64")}`, side] as const,
  );
}
