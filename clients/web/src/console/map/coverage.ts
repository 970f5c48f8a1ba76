// Where the small areas are, all together: one outline around what they cover, and one tint. Rings of hundreds would hide the map, and without an edge
// nobody sees from far away what is covered. It has a canvas: the map's own layers draw every circle for itself.

import { MercatorCoordinate, type LngLat } from "maplibre-gl";
import type { Feature } from "geojson";

import type { BaseMap } from "../../shared/map/map.js";
import { cleared } from "../../shared/map/pen.js";

/** Pixels of the world's width at zoom 0. */
const WORLD_PX = 512;
/** A city is seen below them; from close by they are what is looked at. */
const OUTLINE = { width: 1.25, city: 0.45, street: 0.65 };
const TINT = { city: 0.09, street: 0.1 };
/** In between the one becomes the other. From farther away there is no outline. */
export const CITY_ZOOM = 9.5;
const STREET_ZOOM = 13.5;
/** Narrower discs have no outline, which would be one more mark, and a deeper tint. */
const LEAST_PX = 5;
const FAR_TINT = 0.08;

export class Coverage {
  readonly #base: BaseMap;
  readonly #canvas: HTMLCanvasElement;
  /** The discs in pixels at zoom 0, from `#origin`: a path far from its origin would be coarse close by. */
  #path: Path2D | undefined;
  #origin: readonly [x: number, y: number] = [0, 0];
  /** Of the largest disc, in pixels at zoom 0. */
  #radius = 0;
  #visible = true;
  /** Where the map was when it was drawn. */
  #drawn: { readonly centre: LngLat; readonly zoom: number } | undefined;

  constructor(base: BaseMap) {
    this.#base = base;
    this.#canvas = document.createElement("canvas");
    this.#canvas.className = "points coverage";
    this.#canvas.hidden = true;
    base.map.getCanvas().after(this.#canvas);
    base.map.on("move", () => this.#shift());
    base.map.on("resize", () => this.#draw());
    base.onTheme(() => this.#draw());
  }

  /** Draws points that have a `radius`, in pixels at zoom 0, as one area. */
  show(discs: readonly Feature[]): void {
    this.#path = undefined;
    this.#radius = 0;
    for (const { geometry, properties } of discs) {
      const radius: unknown = properties?.["radius"];
      if (geometry.type !== "Point" || typeof radius !== "number") continue;
      const [lon = 0, lat = 0] = geometry.coordinates;
      const { x, y } = MercatorCoordinate.fromLngLat([lon, lat]);
      if (this.#path === undefined) [this.#path, this.#origin] = [new Path2D(), [x, y]];
      const [east, south] = [(x - this.#origin[0]) * WORLD_PX, (y - this.#origin[1]) * WORLD_PX];
      this.#radius = Math.max(this.#radius, radius);
      this.#path.moveTo(east + radius, south);
      this.#path.arc(east, south, radius, 0, 2 * Math.PI);
    }
    this.#draw();
  }

  set visible(visible: boolean) {
    this.#visible = visible;
    this.#draw();
  }

  /** What is drawn goes along with the map: to draw hundreds of discs takes longer than a frame. They are shown anew once the map rests. */
  #shift(): void {
    if (this.#canvas.hidden || this.#drawn === undefined) return;
    const { map } = this.#base;
    const { x, y } = map.project(this.#drawn.centre);
    const { clientWidth, clientHeight } = map.getCanvas();
    const [east, south] = [x - clientWidth / 2, y - clientHeight / 2];
    this.#canvas.style.transform = `translate(${east}px, ${south}px) scale(${2 ** (map.getZoom() - this.#drawn.zoom)})`;
  }

  #draw(): void {
    const path = this.#path;
    // An empty canvas costs what a full one does when the page is put together.
    this.#canvas.hidden = !this.#visible || path === undefined;
    const { map } = this.#base;
    const pen = this.#canvas.hidden || path === undefined ? null : cleared(this.#canvas, map);
    if (pen === null || path === undefined) return;
    const scale = 2 ** map.getZoom();
    this.#drawn = { centre: map.getCenter(), zoom: map.getZoom() };
    this.#canvas.style.transform = "";
    const centre = MercatorCoordinate.fromLngLat(this.#drawn.centre);
    const { clientWidth, clientHeight } = map.getCanvas();
    pen.save();
    pen.translate(
      (this.#origin[0] - centre.x) * WORLD_PX * scale + clientWidth / 2,
      (this.#origin[1] - centre.y) * WORLD_PX * scale + clientHeight / 2,
    );
    pen.scale(scale, scale);
    pen.strokeStyle = pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--map-area");
    // Half of each ring lies within a disc, and is taken away: what is left is the outline of all.
    const street = Math.min(1, Math.max(0, (this.#drawn.zoom - CITY_ZOOM) / (STREET_ZOOM - CITY_ZOOM)));
    const isFar = this.#radius * scale < LEAST_PX;
    if (!isFar && this.#drawn.zoom >= CITY_ZOOM) {
      pen.lineWidth = (2 * OUTLINE.width) / scale;
      pen.globalAlpha = OUTLINE.city + (OUTLINE.street - OUTLINE.city) * street;
      pen.stroke(path);
      pen.globalAlpha = 1;
      pen.globalCompositeOperation = "destination-out";
      pen.fill(path);
      pen.globalCompositeOperation = "source-over";
    }
    pen.globalAlpha = isFar ? FAR_TINT : TINT.city + (TINT.street - TINT.city) * street;
    pen.fill(path);
    pen.restore();
  }
}
