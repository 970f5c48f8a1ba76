// Places for people.

/** A place as nobody can mistake it: `22.53165° N, 113.92497° E`, or `x 1030 m, y 2040 m`. */
export function degrees([x, y]: readonly [number, number], world: "geodetic" | "planar"): string {
  if (world === "planar") return `x ${Number(x.toFixed(2))} m, y ${Number(y.toFixed(2))} m`;
  return `${Math.abs(y).toFixed(5)}° ${y < 0 ? "S" : "N"}, ${Math.abs(x).toFixed(5)}° ${x < 0 ? "W" : "E"}`;
}
