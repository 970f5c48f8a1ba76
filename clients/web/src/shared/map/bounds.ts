// What of many places a map is to show.

/** The bounds of places but for the outermost part on each side: one road that leads far away is not to make the rest small. */
export function middleOf(places: readonly (readonly [number, number])[], part = 0.01): [number, number, number, number] {
  const lons = places.map(([lon]) => lon).sort((one, other) => one - other);
  const lats = places.map(([, lat]) => lat).sort((one, other) => one - other);
  const [first, last] = [Math.floor(places.length * part), Math.ceil(places.length * (1 - part)) - 1];
  return [lons[first] ?? 0, lats[first] ?? 0, lons[last] ?? 0, lats[last] ?? 0];
}
