// What vector tiles call things. Two schemas are known: Protomaps' (versions 3 and 4), which the broker's own tiles follow, and OpenMapTiles'.

import type { ExpressionSpecification, FilterSpecification } from "maplibre-gl";

/** Some features of a layer of the tiles. */
export interface Part {
  readonly layer: string;
  readonly filter: FilterSpecification;
}

/** Streets from the smallest to the widest. */
export const ROADS = ["path", "service", "minor", "medium", "major", "motorway"] as const;
export type Road = (typeof ROADS)[number];

export interface Schema {
  /** Dry land, where tiles say so. */
  readonly land: readonly Part[];
  readonly green: readonly Part[];
  readonly sand: readonly Part[];
  readonly site: readonly Part[];
  readonly water: readonly Part[];
  readonly waterway: readonly Part[];
  readonly runway: readonly Part[];
  readonly building: readonly Part[];
  readonly road: Readonly<Record<Road, Part>>;
  readonly rail: Part;
  readonly border: readonly Part[];
  readonly roadName: Part;
  /** Names of water along a line, and at a point. */
  readonly waterwayName: Part;
  readonly waterName: Part;
  readonly parkName: Part;
  readonly places: {
    readonly layer: string;
    readonly city: FilterSpecification;
    readonly town: FilterSpecification;
    readonly village: FilterSpecification;
    readonly quarter: FilterSpecification;
    /** Smaller for what matters more. */
    readonly rank: ExpressionSpecification;
  };
}

/** The first of some properties that is there. */
const get = (...names: readonly string[]): ExpressionSpecification =>
  ["coalesce", ...names.map((name): ExpressionSpecification => ["get", name]), ""] as unknown as ExpressionSpecification;
const any = (property: ExpressionSpecification, ...values: readonly string[]): ExpressionSpecification => [
  "in",
  property,
  ["literal", [...values]],
];
const all = (...filters: readonly ExpressionSpecification[]): ExpressionSpecification => ["all", ...filters];
const not = (filter: ExpressionSpecification): ExpressionSpecification => ["!", filter];
const shape = (type: "Point" | "LineString" | "Polygon"): ExpressionSpecification => ["==", ["geometry-type"], type];
const named: ExpressionSpecification = ["has", "name"];

const kind = get("kind", "pmap:kind");
const detail = get("kind_detail", "pmap:kind_detail");
const PARKS = [
  "park",
  "forest",
  "wood",
  "nature_reserve",
  "national_park",
  "protected_area",
  "golf_course",
  "cemetery",
  "grass",
  "grassland",
];
const GREENS = [
  ...PARKS,
  "meadow",
  "garden",
  "village_green",
  "allotments",
  "playground",
  "pitch",
  "orchard",
  "scrub",
  "recreation_ground",
  "zoo",
];
const SITES = ["hospital", "school", "university", "college", "industrial", "aerodrome", "military", "railway", "commercial", "retail"];

const PROTOMAPS: Schema = {
  land: [{ layer: "earth", filter: shape("Polygon") }],
  green: [
    { layer: "landcover", filter: any(kind, "forest", "grassland", "scrub") },
    { layer: "landuse", filter: any(kind, ...GREENS) },
  ],
  sand: [{ layer: "landuse", filter: any(kind, "beach", "sand") }],
  site: [{ layer: "landuse", filter: any(kind, ...SITES) }],
  water: [{ layer: "water", filter: shape("Polygon") }],
  waterway: [{ layer: "water", filter: shape("LineString") }],
  runway: [{ layer: "roads", filter: any(detail, "runway", "taxiway") }],
  building: [{ layer: "buildings", filter: any(kind, "building", "") }],
  road: {
    path: { layer: "roads", filter: any(kind, "path", "other") },
    service: { layer: "roads", filter: all(any(kind, "minor_road"), any(detail, "service", "track")) },
    minor: { layer: "roads", filter: all(any(kind, "minor_road"), not(any(detail, "service", "track"))) },
    medium: {
      layer: "roads",
      filter: all(any(kind, "major_road", "medium_road"), not(any(detail, "trunk", "primary", "trunk_link", "primary_link"))),
    },
    major: { layer: "roads", filter: all(any(kind, "major_road"), any(detail, "trunk", "primary", "trunk_link", "primary_link")) },
    motorway: { layer: "roads", filter: any(kind, "highway") },
  },
  rail: { layer: "roads", filter: any(kind, "rail") },
  border: [{ layer: "boundaries", filter: any(kind, "region") }],
  roadName: { layer: "roads", filter: all(named, any(kind, "highway", "major_road", "medium_road", "minor_road")) },
  waterwayName: { layer: "water", filter: all(named, shape("LineString")) },
  waterName: { layer: "water", filter: all(named, shape("Point")) },
  parkName: { layer: "pois", filter: all(named, any(kind, "park", "forest", "cemetery", "nature_reserve")) },
  places: {
    layer: "places",
    city: any(detail, "city"),
    town: any(detail, "town"),
    village: all(any(kind, "locality"), not(any(detail, "city", "town"))),
    quarter: any(kind, "neighbourhood", "macrohood"),
    rank: ["-", 20, ["to-number", ["coalesce", ["get", "population_rank"], ["get", "pmap:population_rank"], 0]]],
  },
};

const CLASS = get("class");

const OPENMAPTILES: Schema = {
  land: [],
  green: [
    { layer: "landcover", filter: any(CLASS, "wood", "grass", "farmland") },
    { layer: "park", filter: shape("Polygon") },
    { layer: "landuse", filter: any(CLASS, "cemetery", "pitch", "playground", "zoo") },
  ],
  sand: [{ layer: "landcover", filter: any(CLASS, "sand") }],
  site: [
    {
      layer: "landuse",
      filter: any(CLASS, "hospital", "school", "university", "college", "industrial", "military", "railway", "commercial", "retail"),
    },
  ],
  water: [{ layer: "water", filter: shape("Polygon") }],
  waterway: [{ layer: "waterway", filter: shape("LineString") }],
  runway: [{ layer: "aeroway", filter: all(shape("LineString"), any(CLASS, "runway", "taxiway")) }],
  building: [{ layer: "building", filter: shape("Polygon") }],
  road: {
    path: { layer: "transportation", filter: any(CLASS, "path", "pedestrian") },
    service: { layer: "transportation", filter: any(CLASS, "service", "track") },
    minor: { layer: "transportation", filter: any(CLASS, "minor", "street") },
    medium: { layer: "transportation", filter: any(CLASS, "secondary", "tertiary") },
    major: { layer: "transportation", filter: any(CLASS, "trunk", "primary") },
    motorway: { layer: "transportation", filter: any(CLASS, "motorway") },
  },
  rail: { layer: "transportation", filter: any(CLASS, "rail", "transit") },
  border: [{ layer: "boundary", filter: ["==", ["get", "admin_level"], 4] }],
  roadName: { layer: "transportation_name", filter: all(named, not(any(CLASS, "path", "rail", "ferry"))) },
  waterwayName: { layer: "waterway", filter: named },
  waterName: { layer: "water_name", filter: all(named, shape("Point")) },
  parkName: { layer: "poi", filter: all(named, any(CLASS, "park", "cemetery")) },
  places: {
    layer: "place",
    city: any(CLASS, "city"),
    town: any(CLASS, "town"),
    village: any(CLASS, "village", "hamlet"),
    quarter: any(CLASS, "suburb", "quarter", "neighbourhood"),
    rank: ["to-number", ["coalesce", ["get", "rank"], 20]],
  },
};

/** The schema of tiles with these layers; none that is known is taken for none. */
export function schemaOf(layers: readonly string[]): Schema | undefined {
  if (layers.includes("transportation")) return OPENMAPTILES;
  return layers.includes("roads") || layers.includes("earth") ? PROTOMAPS : undefined;
}
