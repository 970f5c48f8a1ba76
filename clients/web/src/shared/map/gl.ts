// Points and their trails by WebGL: one buffer and one draw call each.

import { TRAIL_SHADERS, TrailLines } from "./trails.js";
import { CLASSES, FLOATS, LOOKS, SHAPES, type Painter, type Scene } from "./scene.js";

const VERTEX = `#version 300 es
uniform vec4 u_place;
uniform float u_now;
uniform float u_ratio;
uniform float u_rim;
uniform float u_headed;
uniform vec4 u_colours[${LOOKS + CLASSES}];
uniform vec2 u_looks[${LOOKS}];
in vec4 a_way;
in vec2 a_time;
in vec4 a_state;
out vec4 v_colour;
out float v_shape;
out float v_size;
out float v_edge;
out vec2 v_forward;
void main() {
  float done = clamp((u_now - a_time.x) / max(a_time.y, 0.001), 0.0, 1.0);
  gl_Position = vec4(mix(a_way.xy, a_way.zw, done) * u_place.xy + u_place.zw, 0.0, 1.0);
  int look = int(a_state.x);
  float left = a_state.w <= 0.0 ? 1.0 : 1.0 - 0.7 * smoothstep(0.35, 1.0, (u_now - a_time.x) / a_state.w);
  v_colour = u_colours[a_state.z < 0.0 ? look : ${LOOKS} + int(a_state.z)] * left;
  v_shape = u_looks[look].x;
  v_size = (u_looks[look].y + 2.0 * u_rim) * u_ratio;
  v_edge = v_size * 0.5;
  v_forward = vec2(0.0);
  if (u_headed > 0.5 && a_state.y > -9.0 && v_shape < 0.5) {
    v_forward = vec2(sin(a_state.y), -cos(a_state.y));
    v_size *= 2.0;
  }
  gl_PointSize = v_size;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
uniform vec4 u_ground;
uniform float u_ratio;
uniform highp float u_rim;
in vec4 v_colour;
in float v_shape;
in float v_size;
in float v_edge;
in vec2 v_forward;
out vec4 colour;
void main() {
  vec2 at = (gl_PointCoord - 0.5) * v_size;
  float away = v_shape > 1.5 && v_shape < 2.5 ? abs(at.x) + abs(at.y) : length(at);
  // How far out a place is in a triangle with its tip up, whose middle is that of its circle.
  if (v_shape > 3.5 && v_shape < 4.5) away = 2.0 * max(at.y, 0.866 * abs(at.x) - 0.5 * at.y);
  if (v_shape > 4.5) away = max(abs(at.x), abs(at.y));
  float edge = v_edge;
  float fine = u_ratio * 0.5;
  float inside = 1.0 - smoothstep(edge - fine, edge + fine * 0.2, away);
  float body = 1.0 - smoothstep(edge - u_ratio * u_rim - fine, edge - u_ratio * u_rim + fine, away);
  if (v_shape > 0.5 && v_shape < 1.5) body *= smoothstep(edge - 3.0 * u_ratio - fine, edge - 3.0 * u_ratio + fine, away);
  // A nose shows where it goes.
  if (dot(v_forward, v_forward) > 0.5) {
    float along = dot(at, v_forward);
    float aside = abs(dot(at, vec2(-v_forward.y, v_forward.x)));
    float wide = edge * 0.95 * (1.0 - along / (edge * 1.9));
    float nose = step(0.0, along) * (1.0 - smoothstep(-fine, fine, aside - wide));
    inside = max(inside, nose);
    body = max(body, step(edge * 0.6, along) * (1.0 - smoothstep(-fine, fine, aside - wide + u_ratio * u_rim * 1.2)));
  }
  // A halo is a ring with nothing in it.
  if (v_shape > 2.5 && v_shape < 3.5) inside *= smoothstep(edge - 4.0 * u_ratio, edge - 3.0 * u_ratio, away);
  colour = mix(u_ground * v_colour.a, v_colour, body) * inside;
}`;

export class GlPainter implements Painter {
  readonly #gl: WebGL2RenderingContext;
  readonly #trails = new TrailLines();
  #program!: WebGLProgram;
  #buffer!: WebGLBuffer;
  #array!: WebGLVertexArrayObject;
  #uniforms: Readonly<Record<string, WebGLUniformLocation | null>> = {};

  /** `restored` is called when a context that was lost is there again. */
  constructor(canvas: HTMLCanvasElement, gl: WebGL2RenderingContext, restored: () => void) {
    this.#gl = gl;
    this.#begin();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.#begin();
      restored();
    });
  }

  draw(scene: Scene): void {
    const gl = this.#gl;
    const { size, place, ratio, now } = scene;
    gl.viewport(0, 0, size[0], size[1]);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (scene.count === 0) return;
    if (scene.trails !== undefined) this.#trails.draw(gl, scene, scene.trails);
    const uniform = (name: string): WebGLUniformLocation | null => this.#uniforms[name] ?? null;
    gl.useProgram(this.#program);
    gl.uniform1f(uniform("u_now"), now);
    gl.uniform1f(uniform("u_rim"), scene.rim);
    gl.uniform1f(uniform("u_headed"), scene.headed ? 1 : 0);
    gl.uniform1f(uniform("u_ratio"), ratio);
    gl.uniform4fv(uniform("u_colours"), scene.colours.flat());
    gl.uniform2fv(
      uniform("u_looks"),
      scene.looks.flatMap(({ shape, size: across }) => [SHAPES.indexOf(shape), across]),
    );
    gl.uniform4fv(uniform("u_ground"), scene.ground);
    gl.bindVertexArray(this.#array);
    if (scene.changed) {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.#buffer);
      gl.bufferData(gl.ARRAY_BUFFER, scene.data.subarray(0, scene.count * FLOATS), gl.DYNAMIC_DRAW);
    }
    for (let copy = -scene.copies; copy <= scene.copies; copy++) {
      gl.uniform4f(uniform("u_place"), place[0], place[1], place[2] + copy * place[0], place[3]);
      gl.drawArrays(gl.POINTS, 0, scene.count);
    }
    gl.bindVertexArray(null);
  }

  leave(): void {
    this.#gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  #begin(): void {
    const gl = this.#gl;
    const program = link(gl, [VERTEX, FRAGMENT]);
    const [array, buffer] = [gl.createVertexArray(), gl.createBuffer()];
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    let offset = 0;
    for (const [name, floats] of [
      ["a_way", 4],
      ["a_time", 2],
      ["a_state", 4],
    ] as const) {
      const location = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, floats, gl.FLOAT, false, FLOATS * 4, offset * 4);
      offset += floats;
    }
    gl.bindVertexArray(null);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const names = ["u_place", "u_now", "u_ratio", "u_rim", "u_headed", "u_colours", "u_looks", "u_ground"];
    this.#uniforms = Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(program, name)]));
    [this.#program, this.#buffer, this.#array] = [program, buffer, array];
    this.#trails.begin(gl, link(gl, TRAIL_SHADERS));
  }
}

function link(gl: WebGL2RenderingContext, [vertex, fragment]: readonly [string, string]): WebGLProgram {
  const program = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, vertex],
    [gl.FRAGMENT_SHADER, fragment],
  ] as const) {
    const shader = gl.createShader(kind);
    if (shader === null) throw new Error("the graphics context is lost");
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    gl.deleteShader(shader);
  }
  gl.linkProgram(program);
  if (gl.getProgramParameter(program, gl.LINK_STATUS) !== true && !gl.isContextLost()) {
    throw new Error(`the points' shaders do not link: ${gl.getProgramInfoLog(program) ?? ""}`);
  }
  return program;
}
