// Many marks from far away: their number in a ring that has a part for each colour, or heat. Both are made of counts in cells of the screen, so that their
// cost does not grow with the number of marks between.

import type { BaseMap } from "../../shared/map/map.js";
import type { Points } from "../../shared/map/points.js";
import { cleared } from "../../shared/map/pen.js";

export type Marks = "points" | "clusters" | "heat";

/** Across, in CSS pixels. */
const CLUSTER_PX = 64;
const HEAT_PX = 6;
/** Counts are made anew so often while nothing but the marks moves. */
const EVERY_MS = 500;
/** How far a mark warms, in cells. */
const REACH = 4;

/** What stands on the map: circles lie beside it. */
const OVER = ".layers, .zoom, .time, .ring-key";

export interface Cluster {
  /** Where its circle is drawn. */
  readonly x: number;
  readonly y: number;
  readonly count: number;
  /** How many there are of each colour, which is a variable of the theme. */
  readonly parts: ReadonlyMap<string, number>;
}

/** Across the ring that shows the parts, of the circle's radius. */
const RING = 0.26;

export class Density {
  readonly #base: BaseMap;
  readonly #points: Points;
  readonly #canvas: HTMLCanvasElement;
  readonly #shown: () => Marks;
  #clusters: readonly (Cluster & { readonly from: Spot })[] = [];
  #frame = 0;

  /** `shown`: what is to be drawn now; points are drawn elsewhere. */
  constructor(base: BaseMap, points: Points, shown: () => Marks) {
    this.#base = base;
    this.#points = points;
    this.#shown = shown;
    this.#canvas = document.createElement("canvas");
    this.#canvas.className = "points density";
    base.map.getCanvasContainer().append(this.#canvas);
    base.map.on("move", () => this.draw());
    base.map.on("resize", () => this.draw());
    base.onTheme(() => this.draw());
    setInterval(() => {
      if (!document.hidden && this.#shown() !== "points") this.draw();
    }, EVERY_MS);
  }

  /** Draws in the next frame. */
  draw(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      const { clientWidth, clientHeight } = this.#base.map.getCanvas();
      this.#clusters = [];
      const marks = this.#shown();
      this.#canvas.hidden = marks === "points";
      this.#canvas.dataset["marks"] = marks;
      const pen = this.#canvas.hidden ? null : cleared(this.#canvas, this.#base.map);
      if (pen === null) return;
      if (marks === "clusters") this.#drawClusters(pen, clientWidth, clientHeight);
      else this.#drawHeat(pen, clientWidth, clientHeight);
    });
  }

  /** Those that are drawn, each with where its marks are. */
  get clusters(): readonly (Cluster & { readonly from: Spot })[] {
    return this.#clusters;
  }

  /** The cluster at a place of the screen. */
  at({ x, y }: Spot): (Cluster & { readonly from: Spot }) | undefined {
    return this.#clusters.find((cluster) => Math.hypot(cluster.x - x, cluster.y - y) <= radiusOf(cluster.count));
  }

  #drawClusters(pen: CanvasRenderingContext2D, width: number, height: number): void {
    const cells = new Map<number, { x: number; y: number; count: number; parts: Map<string, number> }>();
    this.#points.eachOnScreen((x, y, _, colour) => {
      if (x < -CLUSTER_PX || y < -CLUSTER_PX || x > width + CLUSTER_PX || y > height + CLUSTER_PX) return;
      const cell = Math.floor(y / CLUSTER_PX) * 10_000 + Math.floor(x / CLUSTER_PX);
      const found = cells.get(cell);
      if (found === undefined) cells.set(cell, { x, y, count: 1, parts: new Map([[colour, 1]]) });
      else {
        found.x += x;
        found.y += y;
        found.count += 1;
        add(found.parts, colour, 1);
      }
    });
    const circles = merged([...cells.values()].map(({ x, y, count, parts }) => ({ x: x / count, y: y / count, count, parts })));
    const over = this.#over();
    this.#clusters = circles.map((circle) => aside(circle, over, width, height));
    const css = getComputedStyle(document.documentElement);
    const [ground, text] = [css.getPropertyValue("--surface"), css.getPropertyValue("--text")];
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const { x, y, count, parts } of this.#clusters) {
      const radius = radiusOf(count);
      // A disc below, so that the ring is seen on marks and names.
      pen.fillStyle = ground;
      disc(pen, x, y, radius + 2);
      this.#drawParts(pen, css, x, y, radius, count, parts);
      if (count === 1) continue;
      pen.fillStyle = ground;
      disc(pen, x, y, radius * (1 - RING));
      pen.fillStyle = text;
      pen.font = `650 ${count < 100 ? 12 : 12.5}px Inter, system-ui, sans-serif`;
      pen.fillText(count < 10_000 ? count.toLocaleString("en") : `${Math.round(count / 1000)}k`, x, y + 0.5);
    }
  }

  /** What stands on the map now. */
  #over(): Box[] {
    const frame = this.#canvas.getBoundingClientRect();
    return [...(this.#canvas.closest(".map")?.querySelectorAll(OVER) ?? [])]
      .map((element) => element.getBoundingClientRect())
      .filter(({ width }) => width > 0)
      .map(({ left, top, right, bottom }) => [left - frame.left, top - frame.top, right - frame.left, bottom - frame.top] as const);
  }

  /** Pieces of a disc, by how many there are of each colour; always in the same order, from above. */
  #drawParts(
    pen: CanvasRenderingContext2D,
    css: CSSStyleDeclaration,
    x: number,
    y: number,
    radius: number,
    count: number,
    parts: ReadonlyMap<string, number>,
  ): void {
    let from = -Math.PI / 2;
    for (const [colour, number] of [...parts].sort(([one], [other]) => (one < other ? -1 : 1))) {
      const to = from + (2 * Math.PI * number) / count;
      pen.fillStyle = css.getPropertyValue(colour);
      pen.beginPath();
      pen.moveTo(x, y);
      pen.arc(x, y, radius, from, to);
      pen.fill();
      from = to;
    }
  }

  #drawHeat(pen: CanvasRenderingContext2D, width: number, height: number): void {
    const [across, down] = [Math.ceil(width / HEAT_PX), Math.ceil(height / HEAT_PX)];
    const counts = new Float32Array(across * down);
    this.#points.eachOnScreen((x, y) => {
      const [column, row] = [Math.floor(x / HEAT_PX), Math.floor(y / HEAT_PX)];
      if (column >= 0 && row >= 0 && column < across && row < down)
        counts[row * across + column] = (counts[row * across + column] ?? 0) + 1;
    });
    const heat = blurred(counts, across, down);
    const image = new ImageData(across, down);
    // What is warm among what is there: nine of ten warm cells stay below full heat.
    const warm = heat.filter((value) => value > 0.02).sort();
    const most = Math.max(0.15, warm[Math.floor(warm.length * 0.97)] ?? 0);
    const ramp = [0, 1, 2, 3, 4, 5].map((at) => this.#base.colour(`--map-c${at}`));
    for (const [cell, value] of heat.entries()) {
      const part = Math.min(1, value / most);
      const colour = ramp[Math.min(ramp.length - 1, Math.floor(part * ramp.length))];
      if (colour === undefined || part < 0.03) continue;
      image.data.set([colour[0] * 255, colour[1] * 255, colour[2] * 255, 210 * Math.min(1, part * 2.2)], cell * 4);
    }
    const small = new OffscreenCanvas(across, down);
    small.getContext("2d")?.putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = true;
    pen.imageSmoothingQuality = "high";
    pen.drawImage(small, 0, 0, across * HEAT_PX, down * HEAT_PX);
  }
}

function disc(pen: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

/** Of a cluster's circle, in CSS pixels. */
export function radiusOf(count: number): number {
  return count === 1 ? 5 : Math.min(30, 12 + 3.2 * Math.log2(count) ** 0.95);
}

/** Circles that would lie on each other become one, the largest first. */
export function merged(clusters: readonly Cluster[]): Cluster[] {
  const kept: { x: number; y: number; count: number; parts: Map<string, number> }[] = [];
  for (const { x, y, count, parts } of [...clusters].sort((one, other) => other.count - one.count)) {
    const near = kept.find((other) => Math.hypot(other.x - x, other.y - y) < radiusOf(other.count) + radiusOf(count));
    if (near === undefined) kept.push({ x, y, count, parts: new Map(parts) });
    else {
      for (const [colour, number] of parts) add(near.parts, colour, number);
      const all = near.count + count;
      [near.x, near.y] = [(near.x * near.count + x * count) / all, (near.y * near.count + y * count) / all];
      near.count = all;
    }
  }
  return kept;
}

/** West, north, east and south on the screen. */
type Box = readonly [left: number, top: number, right: number, bottom: number];

/** A circle beside what stands on the map, by the shortest way that does not leave the map; where it is where nothing lies on it. */
export function aside(cluster: Cluster, over: readonly Box[], width: number, height: number): Cluster & { readonly from: Spot } {
  const radius = radiusOf(cluster.count) + 3;
  let { x, y } = cluster;
  // A way out of one may lead below the next.
  let tries = over.length;
  while (tries-- > 0) {
    const box = over.find(([left, top, right, bottom]) => {
      const [dx, dy] = [x - Math.max(left, Math.min(right, x)), y - Math.max(top, Math.min(bottom, y))];
      return Math.hypot(dx, dy) < radius - 0.01;
    });
    if (box === undefined) break;
    const [left, top, right, bottom] = box;
    const ways: readonly Spot[] = [
      { x: left - radius, y },
      { x: right + radius, y },
      { x, y: top - radius },
      { x, y: bottom + radius },
    ];
    const away = (way: Spot): number => Math.hypot(way.x - cluster.x, way.y - cluster.y);
    const [nearest] = ways
      .filter((way) => way.x >= radius && way.y >= radius && way.x <= width - radius && way.y <= height - radius)
      .sort((one, other) => away(one) - away(other));
    if (nearest === undefined) break;
    ({ x, y } = nearest);
  }
  return { ...cluster, x, y, from: { x: cluster.x, y: cluster.y } };
}

interface Spot {
  readonly x: number;
  readonly y: number;
}

function add(parts: Map<string, number>, colour: string, number: number): void {
  parts.set(colour, (parts.get(colour) ?? 0) + number);
}

/** Three passes of a box over rows and columns look like a bell. */
function blurred(counts: Float32Array, across: number, down: number): Float32Array {
  let [from, to]: [Float32Array, Float32Array] = [counts, new Float32Array(counts.length)];
  for (let pass = 0; pass < 2; pass++) {
    for (let row = 0; row < down; row++) box(from, to, row * across, 1, across);
    [from, to] = [to, from];
    for (let column = 0; column < across; column++) box(from, to, column, across, down);
    [from, to] = [to, from];
  }
  return from;
}

function box(from: Float32Array, to: Float32Array, first: number, step: number, length: number): void {
  let sum = 0;
  const at = (index: number): number => (index < 0 || index >= length ? 0 : (from[first + index * step] ?? 0));
  for (let index = 0; index < REACH; index++) sum += at(index);
  for (let index = 0; index < length; index++) {
    sum += at(index + REACH) - at(index - REACH - 1);
    to[first + index * step] = sum / (2 * REACH + 1);
  }
}
