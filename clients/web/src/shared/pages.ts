// What a page has to know of its broker before it has a token.

/** `GET /pages.json`. */
export interface PageSettings {
  readonly world: "geodetic" | "planar";
  /** Tokens are wanted. */
  readonly tokens: boolean;
  /** There is a base map at `/base-map.json`. */
  readonly base_map: boolean;
  /** The attribute that names the object of an event without `key`. */
  readonly object: string | null;
  /** Conditions that whoever runs the broker offers to choose from. */
  readonly interests: readonly { readonly label: string; readonly where: string }[];
}

/** Where the broker is: the page's own folder, whatever path a proxy has put it at. */
export const brokerUrl = new URL(".", location.href);

export async function pageSettings(): Promise<PageSettings> {
  const response = await fetch(new URL("pages.json", brokerUrl));
  if (!response.ok) throw new Error(`the broker answered ${response.status} to pages.json`);
  return (await response.json()) as PageSettings;
}
