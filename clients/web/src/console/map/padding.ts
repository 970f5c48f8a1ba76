// How much of the map lies under what stands on it.

import { LngLat, MercatorCoordinate, type Map as LibraryMap, type PaddingOptions } from "maplibre-gl";

/** The buttons, and the time above the attribution, each with its distance from the edge, in CSS pixels. */
const UNDER = { top: 40, right: 64, bottom: 96 };
/** The switches of the layers in the upper left corner. */
const SWITCHES = { width: 264, height: 296 };
/** On a narrow screen, and while a scene is shown, the switches are one button, which a cluster is to lie below. */
const BUTTON = { top: 76, bottom: 76 };
const NARROW_PX = 720;

/** So much of what is shown may lie under the switches, where all is shown larger or nearer to the middle for it. */
const COVERED = 0.02;

/** Where what is shown lies from the switches of the layers. */
type Switches = "folded" | "beside" | "below";

/**
 * Padding for `fitBounds`, with `around` pixels at least, and `more` for words that stand beside what is shown. A small map keeps two fifths of its width
 * and height for what is shown.
 */
export function paddingOf(map: LibraryMap, around: number, more: number, switches: Switches): PaddingOptions {
  const { clientWidth, clientHeight } = map.getCanvas();
  const isNarrow = clientWidth < NARROW_PX;
  const { top, bottom } = isNarrow ? BUTTON : UNDER;
  const padding = (under: number, length: number): number => Math.min(Math.max(around, under + more), length * 0.3);
  return {
    top: padding(switches === "below" && !isNarrow ? SWITCHES.height : top, clientHeight),
    right: padding(UNDER.right, clientWidth),
    bottom: padding(bottom, clientHeight),
    left: padding(switches === "beside" && !isNarrow ? SWITCHES.width : 0, clientWidth),
  };
}

/**
 * Padding with which bounds are shown beside the switches or below them, whichever shows them larger; around the switches, where hardly one of `places`,
 * in degrees of the map, then lies under them.
 */
export function widestPadding(
  map: LibraryMap,
  bounds: [number, number, number, number],
  around: number,
  places: readonly (readonly [number, number])[] = [],
): PaddingOptions {
  const corner = paddingOf(map, around, 0, "folded");
  if (places.length > 0 && coveredBy(map, bounds, corner, places) <= COVERED * places.length) return corner;
  const [beside, below] = [paddingOf(map, around, 0, "beside"), paddingOf(map, around, 0, "below")];
  const zoom = (padding: PaddingOptions): number => map.cameraForBounds(bounds, { padding })?.zoom ?? 0;
  return zoom(beside) > zoom(below) ? beside : below;
}

/** How many places would lie under the switches. */
function coveredBy(
  map: LibraryMap,
  bounds: [number, number, number, number],
  padding: PaddingOptions,
  places: readonly (readonly [number, number])[],
): number {
  const camera = map.cameraForBounds(bounds, { padding });
  if (camera?.center === undefined || camera.zoom === undefined) return places.length;
  const centre = MercatorCoordinate.fromLngLat(LngLat.convert(camera.center));
  const world_px = 512 * 2 ** camera.zoom;
  const { clientWidth, clientHeight } = map.getCanvas();
  if (clientWidth < NARROW_PX) return 0;
  return places.filter(([lon, lat]) => {
    const { x, y } = MercatorCoordinate.fromLngLat([lon, lat]);
    const [left, top] = [clientWidth / 2 + (x - centre.x) * world_px, clientHeight / 2 + (y - centre.y) * world_px];
    return left >= 0 && top >= 0 && left < SWITCHES.width && top < SWITCHES.height;
  }).length;
}
