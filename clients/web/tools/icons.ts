// The icons of the installed page, drawn by a browser of `public/assets/icon.svg`. The pictures are committed: builds need no browser.
//
//   npm run icons

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { launch } from "../tests/support/pages.js";

const FOLDER = fileURLToPath(new URL("../public/assets/", import.meta.url));
const GROUND = "#0b4f7d";
/** Sides in pixels; of how much of the picture the drawing takes, where the system cuts a shape out of it (maskable) or adds nothing (apple). */
const ICONS = [
  { name: "icon-192", side: 192 },
  { name: "icon-512", side: 512 },
  { name: "icon-maskable-512", side: 512, part: 0.8, ground: GROUND },
  { name: "icon-apple-180", side: 180, part: 0.9, ground: GROUND },
  // Systems take the shape of it alone.
  { name: "badge-96", side: 96, badge: true },
] as const;

const svg = readFileSync(`${FOLDER}icon.svg`, "utf8");
/** White lines on nothing. */
const badge = svg.replace(/<rect[^>]*>/, "").replaceAll(/(fill|stroke)="#[0-9a-f]+"/g, '$1="#fff"');

const browser = await launch();
for (const icon of ICONS) {
  const { name, side } = icon;
  const page = await browser.newPage({ viewport: { width: side, height: side } });
  const drawn = Math.round(side * ("part" in icon ? icon.part : 1));
  const body = `margin:0;height:100vh;display:grid;place-items:center;background:${"ground" in icon ? icon.ground : "transparent"}`;
  const picture = ("badge" in icon ? badge : svg).replace("<svg", `<svg width="${drawn}" height="${drawn}"`);
  await page.setContent(`<body style="${body}">${picture}</body>`);
  await page.screenshot({ path: `${FOLDER}${name}.png`, omitBackground: true });
  await page.close();
}
await browser.close();
