// What of many places a map is to show.

/** The bounds of places but for the outermost hundredth on each side: one road that leads far away is not to make the rest small. */
export function middleOf(places: readonly (readonly [number, number])[]): [number, number, number, number] {
  const lons = places.map(([lon]) => lon).sort((one, other) => one - other);
  const lats = places.map(([, lat]) => lat).sort((one, other) => one - other);
  const [first, last] = [Math.floor(places.length / 100), Math.ceil(places.length * 0.99) - 1];
  return [lons[first] ?? 0, lats[first] ?? 0, lons[last] ?? 0, lats[last] ?? 0];
}
