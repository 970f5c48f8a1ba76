// How much of the map lies under what stands on it.

import type { Map as LibraryMap, PaddingOptions } from "maplibre-gl";

/** The switches of the layers, the buttons, and the time above the attribution, each with its distance from the edge, in CSS pixels. */
const UNDER = { top: 40, right: 64, bottom: 96, left: 216 };
/** On a narrow screen, and while a scene is shown, the switches are one button, which a cluster is to lie below. */
const BUTTON = { top: 76, bottom: 76 };
const NARROW_PX = 720;

/**
 * Padding for `fitBounds`, with `around` pixels at least, and `more` for words that stand beside what is shown. A small map keeps two fifths of its width
 * and height for what is shown. `isScene`: the switches are folded.
 */
export function paddingOf(map: LibraryMap, around: number, more = 0, isScene = false): PaddingOptions {
  const { clientWidth, clientHeight } = map.getCanvas();
  const isNarrow = clientWidth < NARROW_PX;
  const { top, bottom } = isNarrow ? BUTTON : UNDER;
  const padding = (under: number, length: number): number => Math.min(Math.max(around, under + more), length * 0.3);
  return {
    top: padding(top, clientHeight),
    right: padding(UNDER.right, clientWidth),
    bottom: padding(bottom, clientHeight),
    left: padding(isScene || isNarrow ? 0 : UNDER.left, clientWidth),
  };
}
