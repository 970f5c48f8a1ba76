// Places by their names, in what the map below the marks has of them.

/** A place that has a name. */
export interface Place {
  readonly name: string;
  /** What it is, in a word for people: `capital`, `city`, `town`, `country`, `street`, `park`. */
  readonly kind: string;
  /** Degrees, WGS 84. */
  readonly lon: number;
  readonly lat: number;
  /** The zoom at which it is well seen. */
  readonly zoom: number;
}

/** What finds places of one source, best first. */
export type Finder = (text: string, limit: number) => readonly Place[] | Promise<readonly Place[]>;

/** The sources of the page's map, the most exact first. */
const finders: Finder[] = [];

/** Adds a source that is asked before those that were there. Returns what takes it away again. */
export function addFinder(finder: Finder): () => void {
  finders.unshift(finder);
  return () => void finders.splice(finders.indexOf(finder), 1);
}

/**
 * Places whose name has a word that begins as `text` does, best first, `limit` at most. Case and accents make no difference. Empty where the text is, where
 * nothing has that name, and in planar worlds, which have no map. A source that fails counts as empty.
 */
export async function findPlaces(text: string, limit: number): Promise<Place[]> {
  const wanted = folded(text);
  if (wanted === "" || limit <= 0) return [];
  const found = await Promise.all(finders.map(async (find) => await find(wanted, limit)).map((places) => places.catch(() => [])));
  const all = found.flat().map((place, index) => ({ place, score: scoreOf(folded(place.name), wanted) * 1e6 + index }));
  const best = all.sort((one, other) => one.score - other.score).map(({ place }) => place);
  return best.filter((place, index) => !best.slice(0, index).some((before) => isSame(before, place))).slice(0, limit);
}

/** A text without what people leave out when they type. */
export function folded(text: string): string {
  return text
    .normalize("NFD")
    .replace(/[\p{M}'’]/gu, "")
    .toLowerCase()
    .replace(/\s+/g, " ")
    .trim();
}

/** How well a folded name fits: 0 the whole name, 1 its beginning, 2 a word's beginning; absent where it does not. */
export function fit(name: string, wanted: string): 0 | 1 | 2 | undefined {
  if (name === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  for (let at = name.indexOf(wanted, 1); at > 0; at = name.indexOf(wanted, at + 1)) {
    if (!/[\p{L}\p{N}]/u.test(name.charAt(at - 1))) return 2;
  }
  return undefined;
}

function scoreOf(name: string, wanted: string): number {
  return fit(name, wanted) ?? 3;
}

/** The same name about the same place comes from two sources, or from two pieces of one street. */
function isSame(one: Place, other: Place): boolean {
  return one.name === other.name && Math.hypot(one.lon - other.lon, one.lat - other.lat) < 0.25;
}
