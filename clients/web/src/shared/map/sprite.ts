// The pixels of one shape, computed as the shader of the points does it.

import type { Colour } from "./colour.js";
import type { PointLook } from "./scene.js";

export interface SpriteOptions {
  readonly shape: PointLook["shape"];
  /** In device pixels, its light edge included. */
  readonly across: number;
  readonly ratio: number;
  /** How wide the light edge is, in CSS pixels. */
  readonly rim: number;
  readonly colour: Colour;
  /** Of the edge that parts it from what lies below. */
  readonly ground: Colour;
  readonly opacity: number;
  /** Clockwise from north, in radians. */
  readonly heading: number | undefined;
  /** Pixels of a row of the image. */
  readonly width: number;
}

/** Pixels as distances from the middle one, and their colours as an image has them in memory; those of full strength come first. */
export interface Sprite {
  readonly offsets: Int32Array;
  readonly colours: Uint32Array;
  readonly solid: number;
}

/** Below this a pixel is not seen. */
const FAINT = 0.04;
const FULL = 0.96;

function smooth(from: number, to: number, value: number): number {
  const part = Math.min(1, Math.max(0, (value - from) / (to - from)));
  return part * part * (3 - 2 * part);
}

export function spriteOf(options: SpriteOptions): Sprite {
  const { across, colour, ground, opacity, heading, shape, width } = options;
  const reach = Math.ceil((across / 2) * (heading !== undefined && shape === "disc" ? 2 : 1));
  const [strong, soft]: [[number, number][], [number, number][]] = [[], []];
  for (let y = -reach; y <= reach; y++) {
    for (let x = -reach; x <= reach; x++) {
      const { inside, body } = coverage(options, x, y);
      if (inside < FAINT) continue;
      const channel = (at: 0 | 1 | 2): number => Math.round(255 * (ground[at] + (colour[at] - ground[at]) * body));
      const pixel = ((Math.round(255 * inside * opacity) << 24) | (channel(2) << 16) | (channel(1) << 8) | channel(0)) >>> 0;
      (inside >= FULL ? strong : soft).push([y * width + x, pixel]);
    }
  }
  const all = [...strong, ...soft];
  return { offsets: Int32Array.from(all, ([at]) => at), colours: Uint32Array.from(all, ([, pixel]) => pixel), solid: strong.length };
}

/** How much of a pixel is the shape, and how much of that its colour. */
function coverage({ across, ratio, rim, shape, heading }: SpriteOptions, x: number, y: number): { inside: number; body: number } {
  const edge = across / 2;
  const fine = ratio / 2;
  const away =
    shape === "diamond"
      ? Math.abs(x) + Math.abs(y)
      : shape === "triangle"
        ? 2 * Math.max(y, 0.866 * Math.abs(x) - 0.5 * y)
        : shape === "square"
          ? Math.max(Math.abs(x), Math.abs(y))
          : Math.hypot(x, y);
  let inside = 1 - smooth(edge - fine, edge + fine * 0.2, away);
  let body = 1 - smooth(edge - ratio * rim - fine, edge - ratio * rim + fine, away);
  if (shape === "ring") body *= smooth(edge - 3 * ratio - fine, edge - 3 * ratio + fine, away);
  if (heading !== undefined && shape === "disc") {
    const [forward_x, forward_y] = [Math.sin(heading), -Math.cos(heading)];
    const along = x * forward_x + y * forward_y;
    const aside = Math.abs(x * -forward_y + y * forward_x);
    const wide = edge * 0.95 * (1 - along / (edge * 1.9));
    if (along >= 0) inside = Math.max(inside, 1 - smooth(-fine, fine, aside - wide));
    if (along >= edge * 0.6) body = Math.max(body, 1 - smooth(-fine, fine, aside - wide + ratio * rim * 1.2));
  }
  // A halo is a ring with nothing in it.
  if (shape === "halo") inside *= smooth(edge - 4 * ratio, edge - 3 * ratio, away);
  return { inside, body };
}
