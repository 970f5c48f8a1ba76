// How much of the map lies under what stands on it.

import type { Map as LibraryMap, PaddingOptions } from "maplibre-gl";

/** The buttons, and the time above the attribution, each with its distance from the edge, in CSS pixels. */
const UNDER = { top: 40, right: 64, bottom: 96 };
/** The switches of the layers in the upper left corner. */
const SWITCHES = { width: 300, height: 192 };
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
  const isFolded = isScene || isNarrow;
  // What is shown stands beside the switches or below them, where that leaves more of the map.
  const isBeside = SWITCHES.width * clientHeight < (SWITCHES.height - UNDER.top) * clientWidth;
  const padding = (under: number, length: number): number => Math.min(Math.max(around, under + more), length * 0.3);
  return {
    top: padding(isFolded || isBeside ? top : SWITCHES.height, clientHeight),
    right: padding(UNDER.right, clientWidth),
    bottom: padding(bottom, clientHeight),
    left: padding(isFolded || !isBeside ? 0 : SWITCHES.width, clientWidth),
  };
}
