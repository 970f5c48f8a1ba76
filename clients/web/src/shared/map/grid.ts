// A quiet grid, where there is no base map and between its lines.

import type { Feature } from "geojson";

/** Lines across the longer side of the screen, about. */
const LINES = 12;

/** The least step of 1, 2 or 5 times a power of ten that gives no more than so many lines. */
export function stepOf(extent: number, lines = LINES): number {
  const least = extent / lines;
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) {
    if (power * factor >= least) return power * factor;
  }
  return power * 10;
}

/** Meridians and parallels of a part of the map: west, south, east, north in degrees. */
export function gridLines([west, south, east, north]: readonly [number, number, number, number]): Feature {
  // Coarse steps go into 360, so that the lines of each copy of the world fall together.
  const fine = stepOf(Math.max(east - west, north - south, 1e-6));
  const step = fine < 20 ? fine : fine < 50 ? 30 : 90;
  const lines: [number, number][][] = [];
  // One more on each side, so that there are lines while the map is dragged.
  for (let lon = Math.floor(west / step) - LINES; lon * step <= east + LINES * step; lon++) {
    lines.push([
      [lon * step, Math.max(-85, south - LINES * step)],
      [lon * step, Math.min(85, north + LINES * step)],
    ]);
  }
  for (let lat = Math.floor(south / step) - LINES; lat * step <= north + LINES * step; lat++) {
    if (Math.abs(lat * step) > 85) continue;
    lines.push([
      [west - LINES * step, lat * step],
      [east + LINES * step, lat * step],
    ]);
  }
  return { type: "Feature", properties: {}, geometry: { type: "MultiLineString", coordinates: lines } };
}
