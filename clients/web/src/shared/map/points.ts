// Thousands of moving points: one buffer and one draw call a frame. The map library's own layers would cut the points into tiles again for every
// change; here a report costs 28 bytes in a buffer, and the way to the new place is interpolated on the GPU. They have a canvas of their own above
// the map, so that the map is drawn when it moves and not whenever a point does.

import { MercatorCoordinate } from "maplibre-gl";

import type { Colour } from "./colour.js";
import type { BaseMap } from "./map.js";
import { GlPainter } from "./gl.js";
import { PixelPainter } from "./pixels.js";
import { CLASSES, FLOATS, LOOKS, NO_HEADING, type Painter, type PointLook } from "./scene.js";
import { isSoftware } from "./software.js";
import { Trails } from "./trails.js";

export type { PointLook } from "./scene.js";

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
  /** How wide the edge in the land's colour is around each point; without it as its size and number have it. */
  readonly rim_px?: number;
  /** Points leave trails that are seen for so long; without it they leave none, and show no heading. */
  readonly trail_s?: number;
}

const GLIDE_S = 1;
/** What would go faster has not gone there: a replay has begun again, or a place was wrong. Reports may come together, so that a second counts at least. */
const LEAP_M_PER_S = 1000;
const isLeap = (far: number, latitude: number, elapsed_s: number): boolean =>
  far * 40_075_017 * Math.cos((latitude * Math.PI) / 180) > LEAP_M_PER_S * Math.max(1, elapsed_s);
/** Below some metres a way has no direction; in parts of the world's width. */
const HEADED = 1e-7;
/** Of more points than this none leaves a trail: they would hide the map, and cost what the points need. */
const TRAILED = 2000;
/** Of more points than this each is drawn smaller, down to half its size. */
const CROWD = 4000;
/** Of more discs than this each is a dot with a hairline around it from far away, so that neither the map nor the discs are hidden. */
const DOTS = 100;
/** A disc is whole from this zoom on, and a dot from this number of levels further out. */
const WHOLE_ZOOM = 14;
const DOT_LEVELS = 3.5;
const HAIRLINE_PX = 0.75;
/** Points are drawn again when one has moved by so much of a pixel, and after so long at the latest. */
const SEEN_PX = 0.25;
const SLOWEST_MS = 250;
/** How fast the fastest point is counts for so long. */
const SPEED_MS = 2000;
/** From here on there is room to see where a point is headed. */
const HEADED_ZOOM = 11.5;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** A layer of points by their ids. Costs O(1) a change, and O(points) a frame in which one changed. */
export class Points {
  readonly #looks: readonly PointLook[];
  #base: BaseMap | undefined;
  #unlisten = (): void => undefined;
  #canvas: HTMLCanvasElement | undefined;
  #painter: Painter | undefined;
  #data = new Float32Array(1024 * FLOATS);
  #ids: string[] = [];
  readonly #places = new Map<string, number>();
  /** Mercator coordinates that all others are relative to, so that 32 bits are fine enough for millimetres around it. */
  #origin: readonly [number, number] | undefined;
  readonly #start_ms = performance.now();
  #changed = true;
  #visible = true;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #drawn_ms = 0;
  /** Until when something glides, in seconds of the layer. */
  #busyUntil = 0;
  /** In parts of the world a second: of the fastest point lately, and since when that is counted. */
  #speed = { before: 0, now: 0, since_ms: 0 };

  /** Hears whenever they have been drawn. */
  onDrawn: () => void = () => undefined;
  readonly #glide_s: number;
  readonly #rim_px: number | undefined;
  /** Lines behind the points; absent where there are none. */
  readonly trails: Trails | undefined;

  /** `looks`: at most twelve. */
  constructor(looks: readonly PointLook[], { glide_s = GLIDE_S, rim_px, trail_s }: PointsOptions = {}) {
    if (looks.length > LOOKS) throw new RangeError("twelve looks at most");
    this.#looks = looks;
    this.#glide_s = glide_s;
    this.#rim_px = rim_px;
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
      const elapsed_s = now - (this.#data[place * FLOATS + 4] ?? now);
      if (jump || far > 0.5 || isLeap(far, lonLat[1], elapsed_s)) [from_x, from_y, heading] = [to_x, to_y, NO_HEADING];
      else if (far > 0) {
        if (!calm.matches) glide = Math.min(this.#glide_s, elapsed_s);
        if (far > HEADED) heading = Math.atan2(to_x - from_x, from_y - to_y);
        if (this.#ids.length <= TRAILED) this.trails?.add([from_x, from_y], [to_x, to_y], now, glide);
      }
    }
    const at = place * FLOATS;
    const data = this.#data;
    // Member by member: an array would be made for each of thousands a second.
    data[at] = from_x;
    data[at + 1] = from_y;
    data[at + 2] = to_x;
    data[at + 3] = to_y;
    data[at + 4] = now;
    data[at + 5] = glide;
    data[at + 6] = look;
    data[at + 7] = heading;
    data[at + 8] = colour;
    data[at + 9] = life_s;
    this.#busyUntil = Math.max(this.#busyUntil, now + glide);
    if (glide > 0) this.#speed.now = Math.max(this.#speed.now, Math.hypot(to_x - from_x, to_y - from_y) / glide);
    this.#changed = true;
    if (jump) this.repaint();
    else this.#later();
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

  /** Calls with where each point is on the screen, in CSS pixels, and the variable of the theme that its colour is. Costs O(points). */
  eachOnScreen(call: (x: number, y: number, id: string, colour: string) => void): void {
    const screen = this.screen();
    for (const [place, id] of this.#ids.entries()) {
      const at = screen(id);
      if (at !== undefined) call(at[0], at[1], id, this.#colourOf(place * FLOATS));
    }
  }

  #colourOf(at: number): string {
    const colour = this.#data[at + 8] ?? -1;
    return colour >= 0 ? `--map-c${colour}` : (this.#looks[this.#data[at + 6] ?? 0]?.colour ?? "--map-object");
  }

  /** Where points are on the screen now, in CSS pixels, by their ids. */
  screen(): (id: string) => readonly [x: number, y: number] | undefined {
    const [map, origin] = [this.#base?.map, this.#origin];
    if (map === undefined || origin === undefined) return () => undefined;
    const centre = MercatorCoordinate.fromLngLat(map.getCenter());
    const world_px = 512 * 2 ** map.getZoom();
    const { clientWidth, clientHeight } = map.getCanvas();
    const now = this.#now();
    return (id) => {
      const place = this.#places.get(id);
      if (place === undefined) return undefined;
      const [x, y] = this.#at(place, now);
      return [(x + origin[0] - centre.x) * world_px + clientWidth / 2, (y + origin[1] - centre.y) * world_px + clientHeight / 2];
    };
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

  /** Puts the layer above all that the map draws, and above the names of places where that is said. */
  addTo(base: BaseMap, over: "map" | "names" = "map"): this {
    const { map } = base;
    const canvas = document.createElement("canvas");
    canvas.className = "points";
    if (over === "names") map.getContainer().querySelector(".place-names")?.after(canvas);
    else map.getCanvasContainer().append(canvas);
    this.#base = base;
    this.#canvas = canvas;
    if (isSoftware()) this.#painter = new PixelPainter(canvas);
    else {
      const gl = canvas.getContext("webgl2", { antialias: false, depth: false });
      if (gl === null) throw new Error("this browser draws no maps: it has no WebGL 2");
      this.#painter = new GlPainter(canvas, gl, () => this.repaint());
    }
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
    clearTimeout(this.#timer);
    this.#painter?.leave();
    this.#painter = undefined;
    this.#canvas?.remove();
    this.#base = undefined;
  }

  /** Draws again, in the colours that the theme has by then. */
  repaint(): void {
    this.#changed = true;
    if (this.#frame === 0 && this.#base !== undefined) this.#frame = requestAnimationFrame(this.#draw);
  }

  /** Draws again when what has changed can be seen to have. */
  #later(): void {
    if (this.#frame !== 0 || this.#timer !== undefined || this.#base === undefined) return;
    const wait_ms = this.#drawn_ms + this.#pause_ms() - performance.now();
    // A frame is never far, and a timer would miss the next one.
    if (wait_ms < 10) this.#frame = requestAnimationFrame(this.#draw);
    else
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#frame = requestAnimationFrame(this.#draw);
      }, wait_ms - 4);
  }

  /** How long a frame may stay: until the fastest point has moved by a part of a pixel. */
  #pause_ms(): number {
    const speed = this.#speed;
    const now_ms = performance.now();
    if (now_ms - speed.since_ms > SPEED_MS) this.#speed = { before: speed.now, now: 0, since_ms: now_ms };
    const px_per_s = Math.max(this.#speed.before, this.#speed.now) * 512 * 2 ** (this.#base?.map.getZoom() ?? 0);
    return Math.min(SLOWEST_MS, (1000 * SEEN_PX) / px_per_s);
  }

  readonly #draw = (): void => {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#frame = 0;
    const [base, canvas, painter] = [this.#base, this.#canvas, this.#painter];
    if (base === undefined || canvas === undefined || painter === undefined) return;
    this.#drawn_ms = performance.now();
    this.onDrawn();
    const { map, colour } = base;
    const some = this.#visible && this.#origin !== undefined && this.#ids.length > 0;
    // An empty canvas costs what a full one does when the page is put together.
    canvas.hidden = !some;
    if (!some || this.#origin === undefined) return;
    const { clientWidth, clientHeight } = map.getCanvas();
    const ratio = map.getPixelRatio();
    const size: [number, number] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    const now = this.#now();
    // The shift is computed in 64 bits before it is rounded to 32.
    const centre = MercatorCoordinate.fromLngLat(map.getCenter());
    const zoom = map.getZoom();
    const world_px = 512 * 2 ** zoom;
    const [scale_x, scale_y] = [(2 * world_px) / clientWidth, (-2 * world_px) / clientHeight];
    const crowd = Math.max(0.5, Math.min(1, Math.sqrt(CROWD / this.#ids.length)));
    const scale = crowd * Math.min(1.3, Math.max(0.55, 0.55 + (zoom - 8) * 0.11));
    const part = (of: number): number => Math.min(1, Math.max(0, of));
    const far = part((WHOLE_ZOOM - zoom) / DOT_LEVELS) * part(this.#ids.length / DOTS - 1);
    painter.draw({
      data: this.#data,
      count: this.#ids.length,
      changed: this.#changed,
      now,
      ratio,
      size,
      place: [scale_x, scale_y, (this.#origin[0] - centre.x) * scale_x, (this.#origin[1] - centre.y) * scale_y],
      copies: map.getRenderWorldCopies() ? Math.ceil(clientWidth / world_px / 2) : 0,
      rim: this.#rim_px ?? Math.max(HAIRLINE_PX * crowd, Math.min(1, 1.5 * (1 - far))),
      headed: this.trails !== undefined && zoom >= HEADED_ZOOM,
      looks: this.#looks.map((look) => ({
        ...look,
        size: look.size * (look.shape === "disc" ? Math.max(Math.min(scale, 0.6), scale * (1 - far / 5)) : scale),
      })),
      colours: this.#colours(colour),
      ground: colour("--map-ground"),
      trails: this.trails,
    });
    this.#changed = false;
    if (now < this.#busyUntil) this.#later();
  };

  /** Looks, then classes of values. */
  #colours(colour: BaseMap["colour"]): Colour[] {
    const looks = Array.from({ length: LOOKS }, (_, at) => colour(this.#looks[at]?.colour ?? "--map-object"));
    return [...looks, ...Array.from({ length: CLASSES }, (_, at) => colour(`--map-c${at}`))];
  }

  #now(): number {
    return (performance.now() - this.#start_ms) / 1000;
  }

  /** Where a point is on its way. */
  #at(place: number, now: number): [number, number] {
    const at = place * FLOATS;
    const data = this.#data;
    const [from_x, from_y] = [data[at] ?? 0, data[at + 1] ?? 0];
    const done = Math.min(1, Math.max(0, (now - (data[at + 4] ?? 0)) / Math.max(data[at + 5] ?? 0, 0.001)));
    return [from_x + ((data[at + 2] ?? 0) - from_x) * done, from_y + ((data[at + 3] ?? 0) - from_y) * done];
  }
}
