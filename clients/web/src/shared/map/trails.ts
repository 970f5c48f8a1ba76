// Where moving points have come from: short lines that fade. One ring buffer and one draw call, below the points on their canvas.

import type { Scene } from "./scene.js";

/** Floats of a piece: its ends, when its point set out, how long it took. */
export const PIECE = 6;
/** Pieces that are kept; the oldest go first. */
const PIECES = 16_384;
/** Across, in CSS pixels. */
const WIDTH_PX = 2.5;
/** How much of its colour the newest piece has. */
export const STRENGTH = 0.55;

const VERTEX = `#version 300 es
uniform vec4 u_place;
uniform vec2 u_size;
uniform float u_now;
uniform float u_width;
uniform float u_life;
in vec4 a_ends;
in vec2 a_time;
out float v_left;
void main() {
  // It grows with its point.
  vec2 end = mix(a_ends.xy, a_ends.zw, clamp((u_now - a_time.x) / max(a_time.y, 0.001), 0.0, 1.0));
  vec2 one = a_ends.xy * u_place.xy + u_place.zw;
  vec2 other = end * u_place.xy + u_place.zw;
  vec2 way = (other - one) * u_size;
  vec2 across = length(way) < 0.001 ? vec2(0.0) : normalize(vec2(-way.y, way.x));
  float side = float(gl_VertexID & 1) * 2.0 - 1.0;
  vec2 at = gl_VertexID < 2 ? one : other;
  gl_Position = vec4(at + across * side * u_width / u_size, 0.0, 1.0);
  v_left = 1.0 - clamp((u_now - a_time.x) / u_life, 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
uniform vec4 u_colour;
in float v_left;
out vec4 colour;
void main() {
  colour = u_colour * (v_left * v_left * ${STRENGTH});
}`;

export const TRAIL_SHADERS = [VERTEX, FRAGMENT] as const;

export class Trails {
  /** Nothing of it is drawn while this is false, and nothing is kept. */
  on = true;
  /** After so many seconds a piece is not seen any more. */
  readonly life_s: number;
  readonly data = new Float32Array(PIECES * PIECE);
  #next = 0;
  #count = 0;
  #newest = -Infinity;
  #changed: { from: number; to: number } | undefined;

  constructor(life_s: number) {
    this.life_s = life_s;
  }

  /** Pieces that are there. */
  get count(): number {
    return this.#count;
  }

  /** A point has set out from one place to another. */
  add(from: readonly [number, number], to: readonly [number, number], now: number, glide: number): void {
    if (!this.on) return;
    this.data.set([from[0], from[1], to[0], to[1], now, glide], this.#next * PIECE);
    const { from: first, to: last } = this.#changed ?? { from: this.#next, to: this.#next };
    this.#changed = { from: Math.min(first, this.#next), to: Math.max(last, this.#next) };
    this.#next = (this.#next + 1) % PIECES;
    this.#count = Math.min(PIECES, this.#count + 1);
    this.#newest = now;
  }

  clear(): void {
    this.#next = 0;
    this.#count = 0;
    this.#changed = undefined;
  }

  /** Whether some piece is still to be seen. */
  alive(now: number): boolean {
    return this.on && this.#count > 0 && now - this.#newest < this.life_s;
  }

  /** The pieces that have changed since the last call. */
  takeChanged(): { readonly from: number; readonly to: number } | undefined {
    const changed = this.#changed;
    this.#changed = undefined;
    return changed;
  }
}

/** Draws trails by WebGL. */
export class TrailLines {
  #drawing: { program: WebGLProgram; buffer: WebGLBuffer; array: WebGLVertexArrayObject } | undefined;
  /** A new buffer has none of what was changed before. */
  #fresh = true;

  /** Takes a context, a new one after the former was lost; `program` is made of the shaders above. */
  begin(gl: WebGL2RenderingContext, program: WebGLProgram): void {
    const [array, buffer] = [gl.createVertexArray(), gl.createBuffer()];
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    for (const [name, floats, offset] of [
      ["a_ends", 4, 0],
      ["a_time", 2, 4],
    ] as const) {
      const location = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, floats, gl.FLOAT, false, PIECE * 4, offset * 4);
      gl.vertexAttribDivisor(location, 1);
    }
    gl.bindVertexArray(null);
    this.#drawing = { program, buffer, array };
    this.#fresh = true;
  }

  draw(gl: WebGL2RenderingContext, { now, ratio, place, size, colours: [colour = [0, 0, 0, 1]] }: Scene, trails: Trails): void {
    if (this.#drawing === undefined || !trails.alive(now)) return;
    const { program, buffer, array } = this.#drawing;
    const uniform = (name: string): WebGLUniformLocation | null => gl.getUniformLocation(program, name);
    gl.useProgram(program);
    gl.uniform4f(uniform("u_place"), ...place);
    gl.uniform2f(uniform("u_size"), ...size);
    gl.uniform1f(uniform("u_now"), now);
    gl.uniform1f(uniform("u_width"), WIDTH_PX * ratio);
    gl.uniform1f(uniform("u_life"), trails.life_s);
    gl.uniform4f(uniform("u_colour"), ...colour);
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    const changed = trails.takeChanged();
    if (this.#fresh) gl.bufferData(gl.ARRAY_BUFFER, trails.data, gl.DYNAMIC_DRAW);
    else if (changed !== undefined)
      gl.bufferSubData(gl.ARRAY_BUFFER, changed.from * PIECE * 4, trails.data.subarray(changed.from * PIECE, (changed.to + 1) * PIECE));
    this.#fresh = false;
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, trails.count);
    gl.bindVertexArray(null);
  }
}
