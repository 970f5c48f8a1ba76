// What a page has to know of its broker before it has a token.

/** A condition that people choose by its name. */
export interface Interest {
  readonly label: string;
  /** CQL2 text. */
  readonly where: string;
}

/** `GET /pages.json`. */
export interface PageSettings {
  readonly world: "geodetic" | "planar";
  /** Tokens are wanted. */
  readonly tokens: boolean;
  /** There is a base map at `/base-map.json`. */
  readonly base_map: boolean;
  /** The broker knows streets. */
  readonly routes: boolean;
  /** The attribute that names the object of an event without `key`. */
  readonly object: string | null;
  /** The metres to which positions of clients are shown; 0: they are not. */
  readonly round_m: number;
  /** What people are to know of all that they see here, as that it is a replay; absent where there is nothing. */
  readonly notice?: string | null;
  /** Conditions that the phone page offers to choose from, each with a name for people. */
  readonly interests: readonly Interest[];
}

/** Where the broker is: the page's own folder, whatever path a proxy has put it at. */
export const brokerUrl = new URL(".", location.href);

export async function pageSettings(): Promise<PageSettings> {
  const response = await fetch(new URL("pages.json", brokerUrl));
  if (!response.ok) throw new Error(`the broker answered ${response.status} to pages.json`);
  return (await response.json()) as PageSettings;
}
