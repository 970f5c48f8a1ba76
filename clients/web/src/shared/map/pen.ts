// A canvas above the map, made ready to be drawn on.

import type { Map as MapLibreMap } from "maplibre-gl";

import { isSoftware } from "./software.js";

/** The pen of a canvas that has the map's size and nothing on it; its unit is the CSS pixel. */
export function cleared(canvas: HTMLCanvasElement, map: MapLibreMap): CanvasRenderingContext2D | null {
  const { clientWidth, clientHeight } = map.getCanvas();
  const ratio = map.getPixelRatio();
  const [width, height] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
  // Another size makes it anew, which costs more than to clear it.
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  // Where a processor stands for the graphics card the browser draws better without it.
  const pen = canvas.getContext("2d", { willReadFrequently: isSoftware() });
  pen?.setTransform(1, 0, 0, 1, 0, 0);
  pen?.clearRect(0, 0, width, height);
  pen?.scale(ratio, ratio);
  return pen;
}
