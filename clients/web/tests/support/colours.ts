// What colour a place of the map has on the screen.

import type { Page } from "playwright-core";

import { onScreen } from "../browser/console-support.js";

/** Red, green and blue of a place of the world, of 255 each. */
export async function colourAt(page: Page, place: readonly [lon: number, lat: number]): Promise<[number, number, number]> {
  const { x, y } = await onScreen(page, place);
  const png = await page.screenshot({ clip: { x: Math.round(x), y: Math.round(y), width: 1, height: 1 } });
  return page.evaluate(
    async (source) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      const canvas = document.createElement("canvas").getContext("2d");
      canvas?.drawImage(image, 0, 0);
      const [red = 0, green = 0, blue = 0] = canvas?.getImageData(0, 0, 1, 1).data ?? [];
      return [red, green, blue];
    },
    `data:image/png;base64,${png.toString("base64")}`,
  );
}
