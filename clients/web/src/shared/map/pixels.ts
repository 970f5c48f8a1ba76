// Points and their trails by the processor, where there is no graphics card: pixels are written one by one, from shapes that were computed once. A
// processor that runs shaders takes some twenty times as long.

import type { Colour } from "./colour.js";
import { FLOATS, LOOKS, NO_HEADING, type Painter, type Scene } from "./scene.js";
import { spriteOf, type Sprite } from "./sprite.js";
import { PIECE, STRENGTH, type Trails } from "./trails.js";

/** Directions that are told apart, and steps of fading. */
const HEADINGS = 32;
const FADES = 8;
/** Around the canvas, so that a shape at its edge needs no care. In device pixels, as wide as the widest shape. */
const MARGIN_PX = 40;
/** What is longer is no way that somebody went. */
const LONGEST_PX = 4000;

export class PixelPainter implements Painter {
  readonly #pen: CanvasRenderingContext2D;
  #image = new ImageData(1, 1);
  #pixels = new Uint32Array(1);
  #sprites = new Map<number, Sprite>();
  /** What the sprites were made for. */
  #made = "";

  constructor(canvas: HTMLCanvasElement) {
    // Otherwise the browser may keep the canvas where the graphics card would be.
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    if (pen === null) throw new Error("this browser draws no maps: it has no canvas");
    this.#pen = pen;
  }

  draw(scene: Scene): void {
    const [width, height] = [scene.size[0] + 2 * MARGIN_PX, scene.size[1] + 2 * MARGIN_PX];
    if (this.#image.width !== width || this.#image.height !== height) {
      this.#image = new ImageData(width, height);
      this.#pixels = new Uint32Array(this.#image.data.buffer);
    } else this.#pixels.fill(0);
    const made = JSON.stringify([width, scene.looks, scene.rim, scene.ratio, scene.headed, scene.colours, scene.ground]);
    if (made !== this.#made) {
      this.#made = made;
      this.#sprites.clear();
    }
    for (let copy = -scene.copies; copy <= scene.copies; copy++) {
      // From the layer's coordinates to pixels of the image.
      const half: readonly [number, number] = [scene.size[0] / 2, scene.size[1] / 2];
      const to = [
        scene.place[0] * half[0],
        -scene.place[1] * half[1],
        (scene.place[2] + copy * scene.place[0] + 1) * half[0] + MARGIN_PX,
        (1 - scene.place[3]) * half[1] + MARGIN_PX,
      ] as const;
      if (scene.trails?.alive(scene.now) === true) this.#drawTrails(scene, scene.trails, to);
      this.#drawPoints(scene, to);
    }
    this.#pen.putImageData(this.#image, -MARGIN_PX, -MARGIN_PX);
  }

  leave(): void {
    this.#sprites.clear();
  }

  #drawPoints(scene: Scene, [scale_x, scale_y, shift_x, shift_y]: readonly [number, number, number, number]): void {
    const { data, count, now } = scene;
    const pixels = this.#pixels;
    const { width, height } = this.#image;
    const [right, bottom] = [width - MARGIN_PX / 2, height - MARGIN_PX / 2];
    for (let at = 0; at < count * FLOATS; at += FLOATS) {
      const since = now - (data[at + 4] ?? 0);
      const done = Math.min(1, Math.max(0, since / Math.max(data[at + 5] ?? 0, 0.001)));
      const [from_x, from_y] = [data[at] ?? 0, data[at + 1] ?? 0];
      const x = Math.round((from_x + ((data[at + 2] ?? 0) - from_x) * done) * scale_x + shift_x);
      const y = Math.round((from_y + ((data[at + 3] ?? 0) - from_y) * done) * scale_y + shift_y);
      if (!(x > MARGIN_PX / 2 && y > MARGIN_PX / 2 && x < right && y < bottom)) continue;
      const heading = data[at + 7] ?? NO_HEADING;
      const direction =
        !scene.headed || heading <= NO_HEADING ? HEADINGS : Math.round((heading / (2 * Math.PI)) * HEADINGS) & (HEADINGS - 1);
      const life = data[at + 9] ?? 0;
      const part = life <= 0 ? 0 : Math.min(1, Math.max(0, (since / life - 0.35) / 0.65));
      const fade = Math.round(part * part * (3 - 2 * part) * (FADES - 1));
      const [look, colour] = [data[at + 6] ?? 0, data[at + 8] ?? -1];
      const key = ((look * 32 + colour + 1) * (HEADINGS + 1) + direction) * FADES + fade;
      let sprite = this.#sprites.get(key);
      if (sprite === undefined) this.#sprites.set(key, (sprite = this.#spriteOf(scene, look, colour, direction, fade)));
      const { offsets, colours, solid } = sprite;
      const middle = y * width + x;
      for (let each = 0; each < solid; each++) pixels[middle + (offsets[each] ?? 0)] = colours[each] ?? 0;
      // A soft edge is for what lies free: on another shape it would be a hole.
      for (let each = solid; each < offsets.length; each++) {
        const pixel = middle + (offsets[each] ?? 0);
        if (pixels[pixel] === 0) pixels[pixel] = colours[each] ?? 0;
      }
    }
  }

  #spriteOf(scene: Scene, look: number, colour: number, direction: number, fade: number): Sprite {
    const { shape, size } = scene.looks[look] ?? { shape: "disc", size: 1 };
    return spriteOf({
      shape,
      across: Math.min(2 * MARGIN_PX - 4, (size + 2 * scene.rim) * scene.ratio),
      ratio: scene.ratio,
      rim: scene.rim,
      colour: scene.colours[colour < 0 ? look : LOOKS + colour] ?? [0, 0, 0, 1],
      ground: scene.ground,
      opacity: 1 - (0.7 * fade) / (FADES - 1),
      heading: direction === HEADINGS ? undefined : (direction / HEADINGS) * 2 * Math.PI,
      width: this.#image.width,
    });
  }

  /** Lines a pixel or two wide: fading counts for more than a smooth edge. */
  #drawTrails(scene: Scene, trails: Trails, [scale_x, scale_y, shift_x, shift_y]: readonly [number, number, number, number]): void {
    const { data, count, life_s } = trails;
    const pixels = this.#pixels;
    const { width, height } = this.#image;
    const colour = packed(scene.colours[0] ?? [0, 0, 0, 1]);
    for (let at = 0; at < count * PIECE; at += PIECE) {
      const since = scene.now - (data[at + 4] ?? 0);
      if (since >= life_s) continue;
      const left = 1 - Math.max(0, since) / life_s;
      const pixel = (colour | (Math.round(left * left * STRENGTH * 255) << 24)) >>> 0;
      const done = Math.min(1, Math.max(0, since / Math.max(data[at + 5] ?? 0, 0.001)));
      const [from_x, from_y] = [(data[at] ?? 0) * scale_x + shift_x, (data[at + 1] ?? 0) * scale_y + shift_y];
      const way_x = ((data[at + 2] ?? 0) * scale_x + shift_x - from_x) * done;
      const way_y = ((data[at + 3] ?? 0) * scale_y + shift_y - from_y) * done;
      const steps = Math.ceil(Math.max(Math.abs(way_x), Math.abs(way_y)));
      if (steps > LONGEST_PX) continue;
      const across = Math.abs(way_x) > Math.abs(way_y) ? width : 1;
      for (let step = 0; step <= steps; step++) {
        const part = steps === 0 ? 0 : step / steps;
        const [x, y] = [Math.round(from_x + way_x * part), Math.round(from_y + way_y * part)];
        if (x < 0 || y < 0 || x >= width - 1 || y >= height - 1) continue;
        const place = y * width + x;
        pixels[place] = pixel;
        pixels[place + across] = pixel;
      }
    }
  }
}

function packed([red, green, blue]: Colour): number {
  return Math.round(red * 255) | (Math.round(green * 255) << 8) | (Math.round(blue * 255) << 16);
}
