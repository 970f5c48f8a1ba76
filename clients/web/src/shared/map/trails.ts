// Where moving points have come from: short lines that fade. One ring buffer and one draw call, below the points on their canvas.

import type { Colour } from "./colour.js";

/** What a frame needs to know of the map; the points' layer computes it. */
export interface Frame {
  readonly now: number;
  readonly ratio: number;
  /** Scale and shift from the layer's coordinates to the screen's. */
  readonly place: readonly [number, number, number, number];
  /** Of the canvas in device pixels. */
  readonly size: readonly [number, number];
}

/** Floats of a piece: its ends, when its point set out, how long it took. */
const FLOATS = 6;
/** Pieces that are kept; the oldest go first. */
const PIECES = 16_384;
/** Across, in CSS pixels. */
const WIDTH_PX = 2.5;

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
  colour = u_colour * (v_left * v_left * 0.55);
}`;

export const TRAIL_SHADERS = [VERTEX, FRAGMENT] as const;

export class Trails {
  /** Nothing of it is drawn while this is false, and nothing is kept. */
  on = true;
  readonly #life_s: number;
  readonly #data = new Float32Array(PIECES * FLOATS);
  #next = 0;
  #count = 0;
  #newest = -Infinity;
  #changed: { from: number; to: number } | undefined;
  #drawing: { program: WebGLProgram; buffer: WebGLBuffer; array: WebGLVertexArrayObject } | undefined;

  /** `life_s`: after so long a piece is not seen any more. */
  constructor(life_s: number) {
    this.#life_s = life_s;
  }

  /** A point has set out from one place to another. */
  add(from: readonly [number, number], to: readonly [number, number], now: number, glide: number): void {
    if (!this.on) return;
    this.#data.set([from[0], from[1], to[0], to[1], now, glide], this.#next * FLOATS);
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
    return this.on && this.#count > 0 && now - this.#newest < this.#life_s;
  }

  /** Takes a context, a new one after the former was lost; `program` is made of the shaders above. */
  begin(gl: WebGL2RenderingContext, program: WebGLProgram): void {
    const [array, buffer] = [gl.createVertexArray(), gl.createBuffer()];
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, this.#data, gl.DYNAMIC_DRAW);
    for (const [name, floats, offset] of [
      ["a_ends", 4, 0],
      ["a_time", 2, 4],
    ] as const) {
      const location = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, floats, gl.FLOAT, false, FLOATS * 4, offset * 4);
      gl.vertexAttribDivisor(location, 1);
    }
    gl.bindVertexArray(null);
    this.#drawing = { program, buffer, array };
  }

  draw(gl: WebGL2RenderingContext, frame: Frame, colour: Colour): void {
    if (this.#drawing === undefined || !this.alive(frame.now)) return;
    const { program, buffer, array } = this.#drawing;
    const uniform = (name: string): WebGLUniformLocation | null => gl.getUniformLocation(program, name);
    gl.useProgram(program);
    gl.uniform4f(uniform("u_place"), ...frame.place);
    gl.uniform2f(uniform("u_size"), ...frame.size);
    gl.uniform1f(uniform("u_now"), frame.now);
    gl.uniform1f(uniform("u_width"), WIDTH_PX * frame.ratio);
    gl.uniform1f(uniform("u_life"), this.#life_s);
    gl.uniform4f(uniform("u_colour"), ...colour);
    gl.bindVertexArray(array);
    if (this.#changed !== undefined) {
      const { from, to } = this.#changed;
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferSubData(gl.ARRAY_BUFFER, from * FLOATS * 4, this.#data.subarray(from * FLOATS, (to + 1) * FLOATS));
      this.#changed = undefined;
    }
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, this.#count);
    gl.bindVertexArray(null);
  }
}
