// What a frame of points is drawn from, by whichever painter.

import type { Colour } from "./colour.js";
import type { Trails } from "./trails.js";

/** How a point looks; what it stands for is its owner's business. */
export interface PointLook {
  /** A CSS variable of the theme, `--map-object`. */
  readonly colour: string;
  readonly shape: (typeof SHAPES)[number];
  /** Across, in CSS pixels. */
  readonly size: number;
}

export const SHAPES = ["disc", "ring", "diamond", "halo", "triangle", "square"] as const;
/** Floats of a point: where it comes from, where it goes to, when it set out, how long it takes, its look, heading, colour and life. */
export const FLOATS = 10;
/** A heading below this is none. */
export const NO_HEADING = -10;
export const LOOKS = 12;
/** Variables of the theme for classes of values: `--map-c0` and so on. */
export const CLASSES = 14;

export interface Scene {
  /** Points, of {@link FLOATS} each. */
  readonly data: Float32Array;
  readonly count: number;
  /** Whether the points are others than at the last frame. */
  readonly changed: boolean;
  /** In seconds of the layer. */
  readonly now: number;
  /** Device pixels of a CSS pixel. */
  readonly ratio: number;
  /** Of the canvas in device pixels. */
  readonly size: readonly [number, number];
  /** Scale and shift from the layer's coordinates to the screen's, which are -1 to 1. */
  readonly place: readonly [number, number, number, number];
  /** The world is shown so many times more on either side. */
  readonly copies: number;
  /** How wide the light edge of a point is, in CSS pixels. */
  readonly rim: number;
  /** Whether points show where they are headed. */
  readonly headed: boolean;
  /** As large as they are at this zoom. */
  readonly looks: readonly PointLook[];
  /** Of the looks, up to {@link LOOKS}, then of the classes. */
  readonly colours: readonly Colour[];
  readonly ground: Colour;
  readonly trails: Trails | undefined;
}

export interface Painter {
  draw(scene: Scene): void;
  /** Gives up what the browser has few of. */
  leave(): void;
}
