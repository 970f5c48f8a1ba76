// Corridors on a canvas between the map and the marks. The map's own wide lines that are translucent show where their pieces overlap, which short pieces of
// streets do at every turn; a stroke of a canvas covers each place once.

import type { Feature, Position } from "geojson";

import type { BaseMap } from "./map.js";
import { cleared } from "./pen.js";

/** How a corridor is drawn: a variable of the theme, and its opacity. */
export type CorridorLook = (properties: Readonly<Record<string, unknown>>) => readonly [variable: string, opacity: number];

interface Drawn {
  readonly line: readonly Position[];
  /** In pixels at zoom 0. */
  readonly width: number;
  readonly look: readonly [variable: string, opacity: number];
}

export class CorridorLayer {
  readonly #base: BaseMap;
  readonly #look: CorridorLook;
  readonly #canvas: HTMLCanvasElement;
  #corridors: readonly Drawn[] = [];
  #visible = true;

  /** `name`: a class of its canvas, for what treats it differently from marks. */
  constructor(base: BaseMap, look: CorridorLook, name = "corridor") {
    this.#base = base;
    this.#look = look;
    this.#canvas = document.createElement("canvas");
    this.#canvas.className = `points ${name}`;
    this.#canvas.hidden = true;
    base.map.getCanvas().after(this.#canvas);
    for (const when of ["move", "resize"] as const) base.map.on(when, () => this.#draw());
    base.onTheme(() => this.#draw());
  }

  /** Draws the lines among these that have a `width`, in pixels at zoom 0, and no others. */
  show(features: readonly Feature[]): void {
    this.#corridors = features.flatMap(({ geometry, properties }) => {
      const width: unknown = properties?.["width"];
      if (geometry.type !== "LineString" || typeof width !== "number" || width <= 0) return [];
      return [{ line: geometry.coordinates, width, look: this.#look(properties ?? {}) }];
    });
    this.#draw();
  }

  set visible(visible: boolean) {
    this.#visible = visible;
    this.#draw();
  }

  #draw(): void {
    // An empty canvas costs what a full one does when the page is put together.
    this.#canvas.hidden = !this.#visible || this.#corridors.length === 0;
    const { map } = this.#base;
    const pen = this.#canvas.hidden ? null : cleared(this.#canvas, map);
    if (pen === null) return;
    const css = getComputedStyle(document.documentElement);
    const middle = map.getCenter().lng;
    pen.lineCap = "round";
    pen.lineJoin = "round";
    for (const { line, width, look } of this.#corridors) {
      // The copy of the world that is in sight.
      const east = 360 * Math.round((middle - (line[0]?.[0] ?? 0)) / 360);
      pen.beginPath();
      for (const [lon = 0, lat = 0] of line) {
        const { x, y } = map.project([lon + east, lat]);
        pen.lineTo(x, y);
      }
      pen.strokeStyle = css.getPropertyValue(look[0]);
      pen.globalAlpha = look[1];
      pen.lineWidth = width * 2 ** map.getZoom();
      pen.stroke();
    }
  }
}
