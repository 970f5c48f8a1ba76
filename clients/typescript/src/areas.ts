// Where: areas of subscriptions. docs/protocol/subscribe.md of the broker has their meaning.

/** `[longitude, latitude]` in degrees (WGS 84), or `[x, y]` in metres in a planar world; a third number, the altitude, is not used. */
export type Coordinates = readonly [number, number] | readonly [number, number, number];

/** Positions of which the last is the first again. */
export type Ring = readonly Coordinates[];

/** A GeoJSON Polygon, or several. */
export type PolygonGeometry =
  | { readonly type: "Polygon"; readonly coordinates: readonly Ring[] }
  | { readonly type: "MultiPolygon"; readonly coordinates: readonly (readonly Ring[])[] };

/** A GeoJSON LineString. */
export interface LineGeometry {
  readonly type: "LineString";
  readonly coordinates: readonly Coordinates[];
}

/** Where the route of an area leads, and what is to be least. */
export interface RouteEnd {
  readonly to: Coordinates;
  readonly by?: "duration" | "length";
}

/** An area as it goes over the wire. */
export type AreaDocument =
  | { readonly radius_m: number; readonly nearest?: number }
  | { readonly center: Coordinates; readonly radius_m: number; readonly nearest?: number }
  | { readonly polygon: PolygonGeometry; readonly nearest?: number }
  | { readonly corridor: LineGeometry; readonly radius_m: number; readonly nearest?: number }
  | { readonly route: RouteEnd; readonly radius_m: number; readonly nearest?: number }
  | { readonly nearest: number };

/** An area of a filter. Made by {@link around}, {@link circle}, {@link polygon}, {@link corridor}, {@link alongRoute} and {@link everywhere}. */
export class Area {
  readonly #document: AreaDocument | undefined;

  /** @internal */
  constructor(document: AreaDocument | undefined) {
    this.#document = document;
  }

  /** Counts only the `k` live objects that are nearest to the client, of those that the filter takes. */
  nearest(k: number): Area {
    return new Area({ ...this.#document, nearest: k });
  }

  /** As it goes over the wire; `undefined` for everywhere, where a filter has no area. */
  toJSON(): AreaDocument | undefined {
    return this.#document;
  }
}

/** Within a distance of the client, in metres, wherever it moves. Holds nothing until the client has told its position. */
export function around(radius_m: number): Area {
  return new Area({ radius_m });
}

/** Within a distance of a place, in metres, the edge included. */
export function circle(center: Coordinates, radius_m: number): Area {
  return new Area({ center, radius_m });
}

/**
 * Inside a polygon, edges included: its outer ring and then its holes, or a GeoJSON Polygon or MultiPolygon. Rings that do not end
 * where they begin are closed. A polygon across the antimeridian comes cut in two.
 */
export function polygon(shape: readonly Ring[] | PolygonGeometry): Area {
  const geometry: PolygonGeometry = "type" in shape ? shape : { type: "Polygon", coordinates: shape.map(closed) };
  return new Area({ polygon: geometry });
}

function closed(ring: Ring): Ring {
  const first = ring[0];
  const last = ring.at(-1);
  if (first === undefined || last === undefined || (first[0] === last[0] && first[1] === last[1])) return ring;
  return [...ring, first];
}

/** Within a distance, in metres, of a line of two positions or more, or of a GeoJSON LineString. */
export function corridor(line: readonly Coordinates[] | LineGeometry, radius_m: number): Area {
  return new Area({ corridor: "type" in line ? line : { type: "LineString", coordinates: line }, radius_m });
}

/**
 * Within a distance, in metres, of the quickest way along streets from the client to a place. It is found again when the client has left it,
 * and holds nothing until the client has told its position. The broker has to know the streets.
 */
export function alongRoute(to: Coordinates, radius_m: number): Area {
  return new Area({ route: { to }, radius_m });
}

/** Everywhere; with `.nearest(k)` the k nearest, however far they are. */
export function everywhere(): Area {
  return new Area(undefined);
}
