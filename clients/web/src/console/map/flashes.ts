// A flash where an event has reached somebody: a double ring at the event, a line to each client that received it, and the area by which it did, which lights
// up. So that matching is seen.

import type { Feature, Position } from "geojson";

import type { BaseMap } from "../../shared/map/map.js";
import { cleared } from "../../shared/map/pen.js";
import { discOf } from "./areas.js";

/** A place in degrees. */
type LonLat = readonly [number, number];

/** A client that an event has reached. */
export interface Lit {
  /** Where it is by now, as far as that is seen. */
  readonly at: () => LonLat | undefined;
  /** By which it was reached; one that `follows` is a circle around it. */
  readonly areas: readonly Feature[];
}

interface Flash {
  readonly at: LonLat;
  readonly to: readonly Lit[];
  readonly began_ms: number;
}

const LASTS_MS = 3000;
/** The oldest goes for a newer one. */
const MOST = 40;
const LINES = 12;
/** How far the ring goes, how wide lines are, and how large the end of one at a client; from far away, where rings would lie on each other, all are small. */
const CLOSE = { ring_px: 24, line_px: 2, end_px: 4 };
const FAR = { ring_px: 9, line_px: 1.75, end_px: 2.5 };
const CLOSE_ZOOM = 13;
/** Out to the clients in that part of the time; then their areas light up. */
const OUT = 0.2;
const AREA = { fill: 0.3, line: 1, line_px: 2 };
/** A wider area has its outline alone: more would be a flicker of the map. */
const FILLED_PX = 360;
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

  /** Shows that what happened at a place reached clients. */
  add(at: LonLat, to: readonly Lit[]): void {
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
    const css = getComputedStyle(document.documentElement);
    const [colour, areaColour] = [css.getPropertyValue("--map-delivery"), css.getPropertyValue("--map-client")];
    pen.lineCap = "round";
    const { ring_px: widest, line_px, end_px } = map.getZoom() < CLOSE_ZOOM ? FAR : CLOSE;
    let lit = 0;
    for (const { at, to, began_ms } of this.#flashes) {
      const done = (now_ms - began_ms) / LASTS_MS;
      const from = map.project([at[0], at[1]]);
      const reach = calm.matches ? 1 : Math.min(1, done / OUT);
      const strength = calm.matches ? 0.8 : Math.min(1, (1 - done) * 1.5);
      const radius = calm.matches ? widest * 0.6 : widest * (0.25 + 0.75 * Math.sqrt(done));
      const ends = to.map(({ at, areas }) => ({ place: at(), areas }));
      // Areas lie below the lines. They light up once the line is there.
      const light = calm.matches ? 0.8 : Math.max(0, Math.min(1, (done - OUT * 0.6) / 0.1)) * Math.min(1, (1 - done) * 1.4);
      pen.strokeStyle = pen.fillStyle = areaColour;
      for (const { place, areas } of ends) for (const area of areas) lit += Number(this.#light(pen, area, place, light));
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = line_px;
      pen.globalAlpha = strength * 0.25;
      pen.beginPath();
      pen.arc(from.x, from.y, radius, 0, 2 * Math.PI);
      pen.fill();
      pen.globalAlpha = strength;
      for (const { place } of ends) {
        if (place === undefined) continue;
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
    // For programs that drive the page: a canvas says nothing of itself.
    this.#canvas.dataset["areas"] = String(lit);
    this.#next();
  };

  /** Draws an area of a client, which is around where it is by now if it follows; tells whether it is drawn. */
  #light(pen: CanvasRenderingContext2D, area: Feature, place: LonLat | undefined, light: number): boolean {
    const { map } = this.#base;
    const scale = 2 ** map.getZoom();
    const { geometry, properties } = area;
    const across_px = 2 * Number(discOf(area).properties?.["radius"]) * scale;
    pen.beginPath();
    if (properties?.["follows"] === true) {
      if (place === undefined) return false;
      const { x, y } = map.project([place[0], place[1]]);
      pen.arc(x, y, across_px / 2, 0, 2 * Math.PI);
    } else if (geometry.type === "Polygon") for (const ring of geometry.coordinates) this.#trace(pen, ring);
    else if (geometry.type === "LineString") {
      // A corridor is a line that is as wide as it is.
      this.#trace(pen, geometry.coordinates);
      pen.globalAlpha = light * AREA.fill;
      pen.lineWidth = Number(properties?.["width"] ?? 0) * scale;
      pen.stroke();
      return true;
    }
    if (across_px < FILLED_PX) {
      pen.globalAlpha = light * AREA.fill;
      pen.fill("evenodd");
    }
    pen.globalAlpha = light * AREA.line;
    pen.lineWidth = AREA.line_px;
    pen.stroke();
    return true;
  }

  #trace(pen: CanvasRenderingContext2D, line: readonly Position[]): void {
    for (const [index, [lon = 0, lat = 0]] of line.entries()) {
      const { x, y } = this.#base.map.project([lon, lat]);
      if (index === 0) pen.moveTo(x, y);
      else pen.lineTo(x, y);
    }
  }
}
