// Thousands of moving points: one buffer and one draw call a frame. The map library's own layers would cut the points into tiles again for every
// change; here a report costs 28 bytes in a buffer, and the way to the new place is interpolated on the GPU. They have a canvas of their own above
// the map, so that the map is drawn when it moves and not whenever a point does.

import { MercatorCoordinate } from "maplibre-gl";

import type { BaseMap } from "./map.js";
import { TRAIL_SHADERS, Trails, type Frame } from "./trails.js";

/** How a point looks; what it stands for is its owner's business. */
export interface PointLook {
  /** A CSS variable of the theme, `--map-object`. */
  readonly colour: string;
  readonly shape: "disc" | "ring" | "diamond" | "halo" | "both";
  /** Across, in CSS pixels. */
  readonly size: number;
}

/** What else a point may show. */
export interface PointState {
  /** An index into the classes of colours, in place of its look's colour. */
  readonly colour?: number;
  /** Seconds after which it has faded, since it was last put; without them it does not fade. */
  readonly life_s?: number;
  /** It stands there at once. */
  readonly jump?: boolean;
}

/** How a layer of points moves. */
export interface PointsOptions {
  /** A point glides to its new place for as long as its reports are apart, but no longer than this. */
  readonly glide_s?: number;
  /** Points leave trails that are seen for so long; without it they leave none, and show no heading. */
  readonly trail_s?: number;
}

/** Floats of a point: where it comes from, where it goes to, when it set out, how long it takes, its look, heading, colour and life. */
const FLOATS = 10;
const GLIDE_S = 1;
/** Below some metres a way has no direction; in parts of the world's width. */
const HEADED = 1e-7;
const NO_HEADING = -10;
/** Of more points than this none leaves a trail: they would hide the map, and cost what the points need. */
const TRAILED = 2000;
/** Variables of the theme for classes of values: `--map-c0` and so on. */
export const CLASSES = 14;
const LOOKS = 8;
/** From here on there is room to see where a point is headed. */
const HEADED_ZOOM = 11.5;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

const VERTEX = `#version 300 es
uniform vec4 u_place;
uniform float u_now;
uniform float u_ratio;
uniform float u_zoom;
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
  v_size = (u_looks[look].y * u_zoom + 2.0) * u_ratio;
  v_edge = v_size * 0.5;
  v_forward = vec2(0.0);
  if (u_headed > 0.5 && a_state.y > -9.0 && (v_shape < 0.5 || v_shape > 3.5)) {
    v_forward = vec2(sin(a_state.y), -cos(a_state.y));
    v_size *= 2.0;
  }
  gl_PointSize = v_size;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
uniform vec4 u_ground;
uniform float u_ratio;
in vec4 v_colour;
in float v_shape;
in float v_size;
in float v_edge;
in vec2 v_forward;
out vec4 colour;
void main() {
  vec2 at = (gl_PointCoord - 0.5) * v_size;
  float away = v_shape > 1.5 && v_shape < 2.5 ? abs(at.x) + abs(at.y) : length(at);
  float edge = v_edge;
  float fine = u_ratio * 0.5;
  float inside = 1.0 - smoothstep(edge - fine, edge + fine * 0.2, away);
  float body = 1.0 - smoothstep(edge - u_ratio - fine, edge - u_ratio + fine, away);
  if (v_shape > 0.5 && v_shape < 1.5) body *= smoothstep(edge - 3.0 * u_ratio - fine, edge - 3.0 * u_ratio + fine, away);
  // A disc within a ring.
  if (v_shape > 3.5) body *= 1.0 - smoothstep(-fine, fine, 1.3 * u_ratio - abs(away - edge + 3.3 * u_ratio));
  // A nose shows where it goes.
  if (dot(v_forward, v_forward) > 0.5) {
    float along = dot(at, v_forward);
    float aside = abs(dot(at, vec2(-v_forward.y, v_forward.x)));
    float wide = edge * 0.95 * (1.0 - along / (edge * 1.9));
    float nose = step(0.0, along) * (1.0 - smoothstep(-fine, fine, aside - wide));
    inside = max(inside, nose);
    body = max(body, step(edge * 0.6, along) * (1.0 - smoothstep(-fine, fine, aside - wide + u_ratio * 1.2)));
  }
  // A halo is a ring with nothing in it.
  if (v_shape > 2.5 && v_shape < 3.5) inside *= smoothstep(edge - 4.0 * u_ratio, edge - 3.0 * u_ratio, away);
  colour = mix(u_ground * v_colour.a, v_colour, body) * inside;
}`;

interface Drawing {
  readonly gl: WebGL2RenderingContext;
  readonly program: WebGLProgram;
  readonly buffer: WebGLBuffer;
  readonly array: WebGLVertexArrayObject;
  readonly uniforms: Readonly<Record<string, WebGLUniformLocation | null>>;
}

/** A layer of points by their ids. Costs O(1) a change, and O(points) a frame in which one changed. */
export class Points {
  readonly #looks: readonly PointLook[];
  #base: BaseMap | undefined;
  #unlisten = (): void => undefined;
  #drawing: Drawing | undefined;
  #data = new Float32Array(1024 * FLOATS);
  #ids: string[] = [];
  readonly #places = new Map<string, number>();
  /** Mercator coordinates that all others are relative to, so that 32 bits are fine enough for millimetres around it. */
  #origin: readonly [number, number] | undefined;
  readonly #start_ms = performance.now();
  #changed = true;
  #visible = true;
  #frame = 0;
  /** Until when something glides, in seconds of the layer. */
  #busyUntil = 0;

  readonly #glide_s: number;
  /** Lines behind the points; absent where there are none. */
  readonly trails: Trails | undefined;

  /** `looks`: at most eight. */
  constructor(looks: readonly PointLook[], { glide_s = GLIDE_S, trail_s }: PointsOptions = {}) {
    if (looks.length > LOOKS) throw new RangeError("eight looks at most");
    this.#looks = looks;
    this.#glide_s = glide_s;
    if (trail_s !== undefined) this.trails = new Trails(trail_s);
  }

  get size(): number {
    return this.#ids.length;
  }

  /** Puts a point, or moves it there. `look` is an index into the looks. */
  put(id: string, lonLat: readonly [number, number], look: number, { colour = -1, life_s = 0, jump = false }: PointState = {}): void {
    const { x, y } = MercatorCoordinate.fromLngLat([lonLat[0], lonLat[1]]);
    this.#origin ??= [x, y];
    const to_x = x - this.#origin[0];
    const to_y = y - this.#origin[1];
    const now = this.#now();
    let place = this.#places.get(id);
    let [from_x, from_y, glide, heading] = [to_x, to_y, 0, NO_HEADING];
    if (place === undefined) {
      place = this.#ids.length;
      this.#ids.push(id);
      this.#places.set(id, place);
      if (this.#ids.length * FLOATS > this.#data.length) {
        const data = new Float32Array(this.#data.length * 2);
        data.set(this.#data);
        this.#data = data;
      }
    } else {
      [from_x, from_y] = this.#at(place, now);
      heading = this.#data[place * FLOATS + 7] ?? NO_HEADING;
      const far = Math.hypot(to_x - from_x, to_y - from_y);
      if (jump || far > 0.5) [from_x, from_y, heading] = [to_x, to_y, NO_HEADING];
      else if (far > 0) {
        if (!calm.matches) glide = Math.min(this.#glide_s, now - (this.#data[place * FLOATS + 4] ?? now));
        if (far > HEADED) heading = Math.atan2(to_x - from_x, from_y - to_y);
        if (this.#ids.length <= TRAILED) this.trails?.add([from_x, from_y], [to_x, to_y], now, glide);
      }
    }
    this.#data.set([from_x, from_y, to_x, to_y, now, glide, look, heading, colour, life_s], place * FLOATS);
    this.#busyUntil = Math.max(this.#busyUntil, now + glide);
    this.repaint();
  }

  /** Changes how a point looks, if it is there. */
  relook(id: string, look: number): void {
    const place = this.#places.get(id);
    if (place === undefined || this.#data[place * FLOATS + 6] === look) return;
    this.#data[place * FLOATS + 6] = look;
    this.repaint();
  }

  /** Changes the class of a point's colour, if the point is there; -1 is its look's own. */
  recolour(id: string, colour: number): void {
    const place = this.#places.get(id);
    if (place === undefined || this.#data[place * FLOATS + 8] === colour) return;
    this.#data[place * FLOATS + 8] = colour;
    this.repaint();
  }

  /** Where a point is seen now, in degrees. */
  placeOf(id: string): [lon: number, lat: number] | undefined {
    const place = this.#places.get(id);
    if (place === undefined || this.#origin === undefined) return undefined;
    const [x, y] = this.#at(place, this.#now());
    const { lng, lat } = new MercatorCoordinate(x + this.#origin[0], y + this.#origin[1]).toLngLat();
    return [lng, lat];
  }

  /** Calls with where each point is on the screen, in CSS pixels. Costs O(points). */
  eachOnScreen(call: (x: number, y: number) => void): void {
    const map = this.#base?.map;
    if (map === undefined || this.#origin === undefined) return;
    const centre = MercatorCoordinate.fromLngLat(map.getCenter());
    const world_px = 512 * 2 ** map.getZoom();
    const { clientWidth, clientHeight } = map.getCanvas();
    const now = this.#now();
    for (let place = 0; place < this.#ids.length; place++) {
      const [x, y] = this.#at(place, now);
      call((x + this.#origin[0] - centre.x) * world_px + clientWidth / 2, (y + this.#origin[1] - centre.y) * world_px + clientHeight / 2);
    }
  }

  remove(id: string): void {
    const place = this.#places.get(id);
    const last = this.#ids.pop();
    if (place === undefined || last === undefined) {
      if (last !== undefined) this.#ids.push(last);
      return;
    }
    this.#places.delete(id);
    if (last !== id) {
      const from = this.#ids.length * FLOATS;
      this.#data.copyWithin(place * FLOATS, from, from + FLOATS);
      this.#ids[place] = last;
      this.#places.set(last, place);
    }
    this.repaint();
  }

  clear(): void {
    this.#ids = [];
    this.#places.clear();
    this.trails?.clear();
    this.repaint();
  }

  /** The points within so many CSS pixels of a place on the screen, nearest first. Costs O(points). */
  near(screen: { readonly x: number; readonly y: number }, within_px: number): string[] {
    const map = this.#base?.map;
    if (map === undefined || !this.#visible || this.#origin === undefined) return [];
    const { x, y } = MercatorCoordinate.fromLngLat(map.unproject([screen.x, screen.y]));
    const scale = 512 * 2 ** map.getZoom();
    const now = this.#now();
    const found: { id: string; away: number }[] = [];
    for (const [place, id] of this.#ids.entries()) {
      const [at_x, at_y] = this.#at(place, now);
      const away = Math.hypot(at_x + this.#origin[0] - x, at_y + this.#origin[1] - y) * scale;
      if (away <= within_px) found.push({ id, away });
    }
    return found.sort((one, other) => one.away - other.away).map(({ id }) => id);
  }

  /** Puts the layer above all that the map draws. */
  addTo(base: BaseMap): this {
    const { map } = base;
    const canvas = document.createElement("canvas");
    canvas.className = "points";
    map.getCanvasContainer().append(canvas);
    const gl = canvas.getContext("webgl2", { antialias: false, depth: false });
    if (gl === null) throw new Error("this browser draws no maps: it has no WebGL 2");
    this.#base = base;
    const begin = (): void => {
      this.#drawing = drawingOn(gl);
      this.trails?.begin(gl, link(gl, TRAIL_SHADERS));
    };
    begin();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      begin();
      this.repaint();
    });
    map.on("move", this.#draw);
    map.on("resize", this.#draw);
    this.#unlisten = base.onTheme(() => this.repaint());
    return this;
  }

  /** Shows the points, or none of them. */
  set visible(visible: boolean) {
    this.#visible = visible;
    this.repaint();
  }

  /** Takes the layer off its map. */
  leave(): void {
    cancelAnimationFrame(this.#frame);
    this.#unlisten();
    this.#base?.map.off("move", this.#draw);
    this.#base?.map.off("resize", this.#draw);
    const gl = this.#drawing?.gl;
    (gl?.canvas as HTMLCanvasElement | undefined)?.remove();
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
    this.#drawing = undefined;
    this.#base = undefined;
  }

  /** Draws again, in the colours that the theme has by then. */
  repaint(): void {
    this.#changed = true;
    if (this.#frame === 0 && this.#base !== undefined) this.#frame = requestAnimationFrame(this.#draw);
  }

  readonly #draw = (): void => {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#base === undefined || this.#drawing === undefined) return;
    const { map, colour } = this.#base;
    const { gl, program, buffer, array, uniforms } = this.#drawing;
    const { canvas } = gl;
    const { clientWidth, clientHeight } = map.getCanvas();
    const ratio = map.getPixelRatio();
    const [width, height] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    gl.viewport(0, 0, width, height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.#visible || this.#origin === undefined || this.#ids.length === 0) return;
    const now = this.#now();
    // The shift is computed in 64 bits before it is rounded to 32.
    const centre = MercatorCoordinate.fromLngLat(map.getCenter());
    const zoom = map.getZoom();
    const world_px = 512 * 2 ** zoom;
    const [scale_x, scale_y] = [(2 * world_px) / clientWidth, (-2 * world_px) / clientHeight];
    const [shift_x, shift_y] = [(this.#origin[0] - centre.x) * scale_x, (this.#origin[1] - centre.y) * scale_y];
    const frame: Frame = { now, ratio, place: [scale_x, scale_y, shift_x, shift_y], size: [width, height] };
    this.trails?.draw(gl, frame, colour("--map-object"));
    gl.useProgram(program);
    gl.uniform1f(uniforms["u_now"] ?? null, now);
    gl.uniform1f(uniforms["u_zoom"] ?? null, Math.min(1.3, Math.max(0.55, 0.55 + (zoom - 8) * 0.11)));
    gl.uniform1f(uniforms["u_headed"] ?? null, this.trails !== undefined && zoom >= HEADED_ZOOM ? 1 : 0);
    gl.uniform1f(uniforms["u_ratio"] ?? null, ratio);
    gl.uniform4fv(uniforms["u_colours"] ?? null, this.#colours());
    const shapes = ["disc", "ring", "diamond", "halo", "both"];
    gl.uniform2fv(
      uniforms["u_looks"] ?? null,
      this.#looks.flatMap(({ shape, size }) => [shapes.indexOf(shape), size]),
    );
    gl.uniform4fv(uniforms["u_ground"] ?? null, [...colour("--map-ground")]);
    gl.bindVertexArray(array);
    if (this.#changed) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, this.#data.subarray(0, this.#ids.length * FLOATS), gl.DYNAMIC_DRAW);
      this.#changed = false;
    }
    const copies = map.getRenderWorldCopies() ? Math.ceil(clientWidth / world_px / 2) : 0;
    for (let copy = -copies; copy <= copies; copy++) {
      gl.uniform4f(uniforms["u_place"] ?? null, scale_x, scale_y, shift_x + copy * scale_x, shift_y);
      gl.drawArrays(gl.POINTS, 0, this.#ids.length);
    }
    gl.bindVertexArray(null);
    if (now < this.#busyUntil) this.#frame = requestAnimationFrame(this.#draw);
  };

  /** Looks, then classes of values. */
  #colours(): number[] {
    const colour = this.#base?.colour;
    if (colour === undefined) return [];
    const of = (names: string[], length: number): number[] => Array.from({ length }, (_, at) => colour(names[at] ?? "--map-object")).flat();
    const looks = this.#looks.map((look) => look.colour);
    return this.trails === undefined
      ? of(looks, LOOKS + CLASSES)
      : [
          ...of(looks, LOOKS),
          ...of(
            Array.from({ length: CLASSES }, (_, at) => `--map-c${at}`),
            CLASSES,
          ),
        ];
  }

  #now(): number {
    return (performance.now() - this.#start_ms) / 1000;
  }

  /** Where a point is on its way. */
  #at(place: number, now: number): [number, number] {
    const at = place * FLOATS;
    const [from_x = 0, from_y = 0, to_x = 0, to_y = 0, start = 0, glide = 0] = this.#data.subarray(at, at + 6);
    const done = Math.min(1, Math.max(0, (now - start) / Math.max(glide, 0.001)));
    return [from_x + (to_x - from_x) * done, from_y + (to_y - from_y) * done];
  }
}

function drawingOn(gl: WebGL2RenderingContext): Drawing {
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
  const names = ["u_place", "u_now", "u_ratio", "u_zoom", "u_headed", "u_colours", "u_looks", "u_ground"];
  const uniforms = Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(program, name)]));
  return { gl, program, buffer, array, uniforms };
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
