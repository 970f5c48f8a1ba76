// Outlines that cross the antimeridian: their longitudes go on beyond 180, for the map is flat and would draw a line around the earth.

import type { MultiLineString, MultiPolygon, Position } from "geojson";

/** A line whose longitudes have no jumps. */
function unwound(corners: readonly Position[]): Position[] {
  let turn = 0;
  return corners.map(([lon = 0, lat = 0], index) => {
    const before = corners[index - 1]?.[0] ?? lon;
    if (Math.abs(lon - before) > 180) turn += lon > before ? -360 : 360;
    return [lon + turn, lat];
  });
}

/** A ring likewise. One that leads around a pole is closed over the pole. */
function unwoundRing(ring: readonly Position[]): Position[] {
  const corners = unwound(ring);
  const [first, last] = [corners[0], corners.at(-1)];
  if (first?.[0] === undefined || last?.[0] === undefined || Math.abs(first[0] - last[0]) < 180) return corners;
  const pole = (first[1] ?? 0) < 0 ? -90 : 90;
  return [...corners, [last[0], pole], [first[0], pole], first];
}

export function unwoundPolygons({ type, coordinates }: MultiPolygon): MultiPolygon {
  return { type, coordinates: coordinates.map((rings) => rings.map(unwoundRing)) };
}

export function unwoundLines({ type, coordinates }: MultiLineString): MultiLineString {
  return { type, coordinates: coordinates.map(unwound) };
}
