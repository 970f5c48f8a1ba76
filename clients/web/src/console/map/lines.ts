// Lines between marks, which go along with them.

import type { BaseMap } from "../../shared/map/map.js";
import type { Points } from "../../shared/map/points.js";
import { cleared } from "../../shared/map/pen.js";

const WIDTH_PX = 2.5;

export class Lines {
  readonly #base: BaseMap;
  readonly #points: Points;
  readonly #canvas: HTMLCanvasElement;
  /** Pairs of points; each has the ids that it may have, of which the first that is there counts. */
  #lines: readonly (readonly [one: readonly string[], other: readonly string[]])[] = [];
  #visible = true;

  /** `points`: the layer of the marks; the lines lie below it, and are drawn when it is. */
  constructor(base: BaseMap, points: Points) {
    this.#base = base;
    this.#points = points;
    this.#canvas = document.createElement("canvas");
    this.#canvas.className = "points lines";
    this.#canvas.hidden = true;
    base.map.getCanvas().after(this.#canvas);
    points.onDrawn = () => this.#draw();
  }

  set lines(lines: readonly (readonly [one: readonly string[], other: readonly string[]])[]) {
    this.#lines = lines;
    this.#draw();
  }

  set visible(visible: boolean) {
    if (visible === this.#visible) return;
    this.#visible = visible;
    this.#draw();
  }

  #draw(): void {
    // An empty canvas costs what a full one does when the page is put together.
    this.#canvas.hidden = !this.#visible || this.#lines.length === 0;
    const pen = this.#canvas.hidden ? null : cleared(this.#canvas, this.#base.map);
    if (pen === null) return;
    const screen = this.#points.screen();
    const placeOf = (ids: readonly string[]): readonly [number, number] | undefined => {
      for (const id of ids) {
        const place = screen(id);
        if (place !== undefined) return place;
      }
      return undefined;
    };
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--map-group");
    pen.lineWidth = WIDTH_PX;
    pen.beginPath();
    let drawn = 0;
    for (const [one, other] of this.#lines) {
      const [from, to] = [placeOf(one), placeOf(other)];
      if (from === undefined || to === undefined) continue;
      pen.moveTo(from[0], from[1]);
      pen.lineTo(to[0], to[1]);
      drawn += 1;
    }
    pen.stroke();
    // For programs that drive the page: a canvas says nothing of itself.
    this.#canvas.dataset["lines"] = String(drawn);
  }
}
