// The map library knows longitudes and latitudes only. Planar worlds are laid onto the earth around 0, 0, where a degree is the same both ways.

import type { PageSettings } from "../pages.js";

/** Metres of a degree on the sphere of the broker (R = 6,371,008.8 m). */
export const DEGREE_M = (Math.PI / 180) * 6_371_008.8;
/** Mercator ends there. */
const LAT_MAX = 85;

export type Place = readonly [x: number, y: number];

/** How places of the broker's world and of the map belong together. */
export interface Plane {
  readonly world: PageSettings["world"];
  /** Where a place of the world is on the map, in degrees. */
  toMap(place: Place): [lon: number, lat: number];
  /** Which place of the world is there on the map. */
  toWorld(lonLat: Place): [x: number, y: number];
}

const geodetic: Plane = {
  world: "geodetic",
  toMap: ([lon, lat]) => [lon, lat],
  toWorld: ([lon, lat]) => [((((lon + 180) % 360) + 360) % 360) - 180, Math.max(-90, Math.min(90, lat))],
};

/** Latitude to the ordinate of Mercator, in degrees of longitude, and back: so that what is square in the plane is square on the map. */
const ordinate = (lat: number): number => (180 / Math.PI) * Math.log(Math.tan(Math.PI / 4 + (lat * Math.PI) / 360));
const latitude = (y: number): number => (360 / Math.PI) * Math.atan(Math.exp((y * Math.PI) / 180)) - 90;

const planar: Plane = {
  world: "planar",
  toMap: ([x, y]) => [x / DEGREE_M, Math.max(-LAT_MAX, Math.min(LAT_MAX, latitude(y / DEGREE_M)))],
  toWorld: ([lon, lat]) => [lon * DEGREE_M, ordinate(lat) * DEGREE_M],
};

export function planeOf(world: PageSettings["world"]): Plane {
  return world === "planar" ? planar : geodetic;
}

/** Metres between two places: great circle by the haversine formula, or Euclid. */
export function distance_m(world: PageSettings["world"], [x1, y1]: Place, [x2, y2]: Place): number {
  if (world === "planar") return Math.hypot(x2 - x1, y2 - y1);
  const rad = Math.PI / 180;
  const h = Math.sin(((y2 - y1) * rad) / 2) ** 2 + Math.cos(y1 * rad) * Math.cos(y2 * rad) * Math.sin(((x2 - x1) * rad) / 2) ** 2;
  return 2 * 6_371_008.8 * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** Corners of a circle's drawing. */
const CORNERS = 96;

/** The ring of a circle as map coordinates, closed. Longitudes go on beyond 180 where it crosses the antimeridian, so that it is in one piece. */
export function circleRing(plane: Plane, [x, y]: Place, radius_m: number): [number, number][] {
  const ring: [number, number][] = [];
  for (let corner = 0; corner < CORNERS; corner++) {
    const bearing = (2 * Math.PI * corner) / CORNERS;
    ring.push(
      plane.world === "planar"
        ? plane.toMap([x + radius_m * Math.sin(bearing), y + radius_m * Math.cos(bearing)])
        : destination([x, y], radius_m, bearing),
    );
  }
  return [...ring, ...ring.slice(0, 1)];
}

/** The point at a distance and bearing (radians, clockwise from north) on the sphere. */
export function destination([lon, lat]: Place, distance: number, bearing: number): [number, number] {
  const rad = Math.PI / 180;
  const angle = Math.min(distance / 6_371_008.8, Math.PI);
  const sine = Math.sin(lat * rad) * Math.cos(angle) + Math.cos(lat * rad) * Math.sin(angle) * Math.cos(bearing);
  const lat2 = Math.asin(Math.max(-1, Math.min(1, sine)));
  const dLon = Math.atan2(Math.sin(bearing) * Math.sin(angle) * Math.cos(lat * rad), Math.cos(angle) - Math.sin(lat * rad) * sine);
  return [lon + dLon / rad, lat2 / rad];
}
