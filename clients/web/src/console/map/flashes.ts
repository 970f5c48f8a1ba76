// A flash where an event has reached somebody: a double ring at the event, and a line to who received it. So that matching is seen.

import type { BaseMap } from "../../shared/map/map.js";
import { cleared } from "../../shared/map/pen.js";

/** A place in degrees. */
type LonLat = readonly [number, number];

interface Flash {
  readonly at: LonLat;
  readonly to: readonly LonLat[];
  readonly began_ms: number;
}

const LASTS_MS = 2400;
/** The oldest goes for a newer one. */
const MOST = 40;
const LINES = 12;
/** How far the ring goes, how wide lines are, and how large the end of one at a client; from far away, where rings would lie on each other, all are small. */
const CLOSE = { ring_px: 24, line_px: 2, end_px: 4 };
const FAR = { ring_px: 8, line_px: 1.25, end_px: 2 };
const CLOSE_ZOOM = 13;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Flashes {
  readonly #base: BaseMap;
  readonly #canvas: HTMLCanvasElement;
  #flashes: Flash[] = [];
  #frame = 0;

  constructor(base: BaseMap) {
    this.#base = base;
    this.#canvas = document.createElement("canvas");
    this.#canvas.className = "points flashes";
    this.#canvas.hidden = true;
    base.map.getCanvasContainer().append(this.#canvas);
    base.map.on("move", () => this.#next());
  }

  /** Shows that what happened at a place reached those at other places. */
  add(at: LonLat, to: readonly LonLat[]): void {
    this.#flashes.push({ at, to: to.slice(0, LINES), began_ms: performance.now() });
    if (this.#flashes.length > MOST) this.#flashes.shift();
    this.#next();
  }

  clear(): void {
    this.#flashes = [];
    this.#canvas.hidden = true;
  }

  #next(): void {
    if (this.#frame === 0 && this.#flashes.length > 0) this.#frame = requestAnimationFrame(this.#draw);
  }

  readonly #draw = (): void => {
    this.#frame = 0;
    const { map } = this.#base;
    const now_ms = performance.now();
    this.#flashes = this.#flashes.filter(({ began_ms }) => now_ms - began_ms < LASTS_MS);
    // An empty canvas costs what a full one does when the page is put together.
    this.#canvas.hidden = this.#flashes.length === 0;
    const pen = this.#canvas.hidden ? null : cleared(this.#canvas, map);
    if (pen === null) return;
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--map-delivery");
    pen.strokeStyle = colour;
    pen.fillStyle = colour;
    pen.lineCap = "round";
    const { ring_px: widest, line_px, end_px } = map.getZoom() < CLOSE_ZOOM ? FAR : CLOSE;
    pen.lineWidth = line_px;
    for (const { at, to, began_ms } of this.#flashes) {
      const done = (now_ms - began_ms) / LASTS_MS;
      const from = map.project([at[0], at[1]]);
      // Out to who received it in the first third; then it fades.
      const reach = calm.matches ? 1 : Math.min(1, done * 3);
      const strength = calm.matches ? 0.8 : Math.min(1, (1 - done) * 1.5);
      const radius = calm.matches ? widest * 0.6 : widest * (0.25 + 0.75 * Math.sqrt(done));
      pen.globalAlpha = strength * 0.25;
      pen.beginPath();
      pen.arc(from.x, from.y, radius, 0, 2 * Math.PI);
      pen.fill();
      pen.globalAlpha = strength;
      for (const place of to) {
        const end = map.project([place[0], place[1]]);
        const [x, y] = [from.x + (end.x - from.x) * reach, from.y + (end.y - from.y) * reach];
        pen.beginPath();
        pen.moveTo(from.x, from.y);
        pen.lineTo(x, y);
        pen.stroke();
        pen.beginPath();
        pen.arc(x, y, end_px, 0, 2 * Math.PI);
        pen.fill();
      }
      // Two rings: one alone is the sign of a client.
      for (const part of [0.55, 1]) {
        pen.beginPath();
        pen.arc(from.x, from.y, radius * part, 0, 2 * Math.PI);
        pen.stroke();
      }
    }
    this.#next();
  };
}
