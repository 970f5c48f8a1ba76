// Areas of subscriptions as shapes on the map.

import type { Feature, Position } from "geojson";

import { corridorWidth } from "../../shared/map/corridor.js";
import { circleRing, type Place, type Plane } from "../../shared/map/plane.js";

/** An area as the broker shows it. */
export interface AreaShown {
  readonly radius_m?: number;
  readonly center?: readonly number[];
  readonly polygon?: { readonly type: string; readonly coordinates: unknown };
  readonly corridor?: { readonly coordinates: readonly (readonly number[])[] };
  readonly route?: unknown;
  readonly nearest?: number;
}

/** Pieces of a great-circle segment's drawing are no longer than this. */
const PIECE_M = 100_000;

const place = (position: readonly number[]): Place => [position[0] ?? 0, position[1] ?? 0];

/**
 * The shapes of an area; none for everywhere, for one along a route whose way is not laid (clients/ways.ts), and for one around a client of which no
 * position is shown. A polygon is filled, a corridor is a line that is as wide as its property `width` says, in pixels at zoom 0.
 */
export function shapesOf(
  plane: Plane,
  area: AreaShown | undefined,
  around: Place | undefined,
  properties: Record<string, unknown> = {},
): Feature[] {
  if (area === undefined) return [];
  const { radius_m = 0 } = area;
  if (area.polygon !== undefined) {
    const polygons = (area.polygon.type === "Polygon" ? [area.polygon.coordinates] : area.polygon.coordinates) as Position[][][];
    return polygons.map((rings) =>
      polygon(
        rings.map((ring) => ring.map((corner) => plane.toMap(place(corner)))),
        properties,
      ),
    );
  }
  if (area.corridor !== undefined) {
    const line = area.corridor.coordinates.map(place);
    const coordinates = plane.world === "planar" ? line.map((corner) => plane.toMap(corner)) : greatCircles(line);
    const width = corridorWidth(plane, line, radius_m);
    return [{ type: "Feature", properties: { ...properties, width }, geometry: { type: "LineString", coordinates } }];
  }
  if (area.route !== undefined) return [];
  const middle = area.center === undefined ? around : place(area.center);
  if (middle === undefined || area.radius_m === undefined) return [];
  return [polygon([circleRing(plane, middle, radius_m)], properties)];
}

/** West, south, east and north. */
export type Box = [number, number, number, number];

/** The bounds of a shape. */
export function boxOf({ geometry }: Feature): Box {
  const box: Box = [Infinity, Infinity, -Infinity, -Infinity];
  const places = geometry.type === "Polygon" ? geometry.coordinates.flat() : geometry.type === "LineString" ? geometry.coordinates : [];
  for (const [x = 0, y = 0] of places) {
    box[0] = Math.min(box[0], x);
    box[1] = Math.min(box[1], y);
    box[2] = Math.max(box[2], x);
    box[3] = Math.max(box[3], y);
  }
  return box;
}

/** The middle of a shape, with half its width in pixels at zoom 0 as the property `radius`. */
export function discOf(shape: Feature): Feature {
  const [west, south, east, north] = boxOf(shape);
  const coordinates = [(west + east) / 2, (south + north) / 2];
  return { type: "Feature", properties: { radius: ((east - west) * 256) / 360 }, geometry: { type: "Point", coordinates } };
}

function polygon(coordinates: Position[][], properties: Record<string, unknown>): Feature {
  return { type: "Feature", properties, geometry: { type: "Polygon", coordinates } };
}

/** A line along great circles, in pieces that are short enough to be drawn straight. */
export function greatCircles(line: readonly Place[]): [number, number][] {
  const drawn: [number, number][] = [];
  for (const [index, [lon, lat]] of line.entries()) {
    const before = drawn.at(-1);
    // Longitudes go on beyond 180, so that the line takes the short way.
    const east = before === undefined ? lon : lon + 360 * Math.round((before[0] - lon) / 360);
    const last = line[index - 1];
    if (before !== undefined && last !== undefined) {
      const [one, other] = [vector(last), vector([lon, lat])];
      const angle = Math.acos(Math.max(-1, Math.min(1, one[0] * other[0] + one[1] * other[1] + one[2] * other[2])));
      const pieces = Math.min(128, Math.ceil((angle * 6_371_008.8) / PIECE_M));
      for (let piece = 1; piece < pieces; piece++) {
        const [a, b] = [Math.sin((1 - piece / pieces) * angle), Math.sin((piece / pieces) * angle)];
        const [x, y, z] = [a * one[0] + b * other[0], a * one[1] + b * other[1], a * one[2] + b * other[2]];
        const at = (Math.atan2(y, x) * 180) / Math.PI;
        drawn.push([at + 360 * Math.round(((drawn.at(-1)?.[0] ?? at) - at) / 360), (Math.atan2(z, Math.hypot(x, y)) * 180) / Math.PI]);
      }
    }
    drawn.push([east, lat]);
  }
  return drawn;
}

function vector([lon, lat]: Place): [number, number, number] {
  const rad = Math.PI / 180;
  return [Math.cos(lat * rad) * Math.cos(lon * rad), Math.cos(lat * rad) * Math.sin(lon * rad), Math.sin(lat * rad)];
}

/** An area in words. */
export function areaWords(area: AreaShown | undefined, metresText: (m: number) => string): string {
  const nearest = area?.nearest === undefined ? "" : `, the ${area.nearest} nearest`;
  if (area?.polygon !== undefined) return `in a polygon${nearest}`;
  if (area?.radius_m === undefined) return `everywhere${nearest}`;
  const radius = metresText(area.radius_m);
  if (area.corridor !== undefined) return `within ${radius} of a line${nearest}`;
  if (area.route !== undefined) return `within ${radius} of the client’s way to a place${nearest}`;
  return `within ${radius} of ${area.center === undefined ? "the client" : "a place"}${nearest}`;
}
