// The area of a draft: drawn on the map or written as numbers.

import { around, circle, corridor, polygon, type Area } from "nearcast";

import { DEGREE_M, type Place, type Plane } from "../../shared/map/plane.js";

export type Shape =
  | { readonly form: "everywhere" }
  /** Around a client, which it follows; `center` is where the client is now. */
  | { readonly form: "around"; readonly client: string; readonly center: Place | undefined; readonly radius_m: number }
  | { readonly form: "circle"; readonly center: Place; readonly radius_m: number }
  /** Corners without the first one again at the end. */
  | { readonly form: "polygon"; readonly corners: readonly Place[] }
  | { readonly form: "corridor"; readonly corners: readonly Place[]; readonly radius_m: number };

export type Form = Shape["form"];

/** What is missing of a shape; `undefined` of a whole one. */
export function missing(shape: Shape): string | undefined {
  if ("corners" in shape && shape.corners.length === 0) return "Click on the map to draw it, or write it instead.";
  switch (shape.form) {
    case "everywhere":
    case "circle":
      return undefined;
    case "around":
      return shape.center === undefined ? "Choose a client whose position is shown." : undefined;
    case "polygon":
      return shape.corners.length < 3 ? "A polygon has three corners at least." : undefined;
    case "corridor":
      return shape.corners.length < 2 ? "A corridor has two places at least." : undefined;
  }
}

/** As the broker reads it; `undefined` for everywhere. */
export function areaOf(shape: Shape): Area | undefined {
  switch (shape.form) {
    case "everywhere":
      return undefined;
    case "around":
      return around(shape.radius_m);
    case "circle":
      return circle(shape.center, shape.radius_m);
    case "polygon":
      return polygon([shape.corners]);
    case "corridor":
      return corridor(shape.corners, shape.radius_m);
  }
}

/** As the console tries it: an area around a client is a circle where the client is now. */
export function triedArea(shape: Shape): Area | undefined {
  return shape.form === "around" && shape.center !== undefined ? circle(shape.center, shape.radius_m) : areaOf(shape);
}

/** West, south, east, north in the units of the world; east may be beyond 180. */
export type Box = readonly [west: number, south: number, east: number, north: number];

const EVERYWHERE: Box = [-Infinity, -Infinity, Infinity, Infinity];

/** A box around a shape: it holds all that the shape holds, and some more. */
export function boxOf(shape: Shape, world: Plane["world"]): Box {
  switch (shape.form) {
    case "everywhere":
      return EVERYWHERE;
    case "around":
      return boxAround(shape.center === undefined ? [] : [shape.center], shape.radius_m, world);
    case "circle":
      return boxAround([shape.center], shape.radius_m, world);
    case "polygon":
      return boxAround(shape.corners, 0, world);
    case "corridor":
      return boxAround(shape.corners, shape.radius_m, world);
  }
}

function boxAround(corners: readonly Place[], margin_m: number, world: Plane["world"]): Box {
  const xs = corners.map(([x]) => x);
  const ys = corners.map(([, y]) => y);
  const [west, south, east, north] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  if (world === "planar") return [west - margin_m, south - margin_m, east + margin_m, north + margin_m];
  const lats = margin_m / DEGREE_M;
  const furthest = Math.max(Math.abs(south - lats), Math.abs(north + lats));
  // Around a pole, and where a great circle may lead over one, all longitudes count.
  if (furthest >= 89.9 || east - west >= 90)
    return [-Infinity, east - west >= 90 ? -Infinity : south - lats, Infinity, east - west >= 90 ? Infinity : north + lats];
  const lons = lats / Math.cos((furthest * Math.PI) / 180);
  // A great circle between two places of one latitude bulges towards the pole, by less than a quarter of its width here.
  const bulge = corners.length > 1 && margin_m > 0 ? (east - west) / 4 : 0;
  return [west - lons, south - lats - bulge, east + lons, north + lats + bulge];
}

/** Whether a place is in a box, whichever way round the earth it is written. */
export function inBox([west, south, east, north]: Box, [x, y]: Place, world: Plane["world"]): boolean {
  if (y < south || y > north) return false;
  if (x >= west && x <= east) return true;
  return world === "geodetic" && ((x + 360 >= west && x + 360 <= east) || (x - 360 >= west && x - 360 <= east));
}

/** A number of a coordinate with no more digits than mean something: some centimetres. */
export function rounded(value: number, world: Plane["world"]): number {
  return Number(value.toFixed(world === "planar" ? 2 : 6));
}
