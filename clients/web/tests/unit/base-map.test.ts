// What lies below the marks of the map: its colours, the outline of the world, and the places in it.

import { gzipSync } from "node:zlib";
import { readFileSync } from "node:fs";
import type { Position } from "geojson";
import { merge, mesh } from "topojson-client";
import type { GeometryCollection, Polygon } from "topojson-specification";
import { expect, test, vi } from "vitest";

import { featuresOf } from "../../src/shared/map/base/document.js";
import { findIn, nearestIn } from "../../src/shared/map/base/find.js";
import { streetLayers, nameLayers } from "../../src/shared/map/base/streets.js";
import { DARK, LIGHT, paletteOf } from "../../src/shared/map/base/palette.js";
import { schemaOf } from "../../src/shared/map/base/schema.js";
import { parts } from "../../src/shared/map/colour.js";
import { addFinder, findPlaces, fit, folded } from "../../src/shared/map/places.js";
import { planeOf } from "../../src/shared/map/plane.js";
import { unwoundLines, unwoundPolygons } from "../../src/shared/map/world/unwind.js";
import { cityZoom } from "../../src/shared/map/world/world.js";
import { makeWorld } from "../../tools/world/make.js";

function luminance(colour: string): number {
  const [red, green, blue] = parts(colour).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0);
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const css = readFileSync(new URL("../../src/shared/theme.css", import.meta.url), "utf8").split("@media (prefers-color-scheme: dark)");

test.each([
  ["light", LIGHT, css[0] ?? ""],
  ["dark", DARK, css[1] ?? ""],
] as const)("names and marks are read on the %s map", (_, palette, theme) => {
  for (const [name, below] of [
    ["name", "halo"],
    ["nameStrong", "halo"],
    ["nameQuiet", "halo"],
    ["nameWater", "water"],
    ["nameGreen", "green"],
  ] as const) {
    expect(contrast(palette[name], palette[below]), `${name} on ${below}`).toBeGreaterThanOrEqual(4);
  }
  for (const mark of ["object", "client", "delivery", "match", "area"]) {
    const colour = new RegExp(`--map-${mark}: (#[0-9a-f]{6});`).exec(theme)?.[1] ?? "";
    for (const below of ["land", "water", "green", "site", "building", "minor"] as const) {
      expect(contrast(colour, palette[below]), `${mark} on ${below}`).toBeGreaterThanOrEqual(3);
    }
  }
});

test("the palette is the one of the ground", () => {
  expect(paletteOf("#f3f5f7")).toBe(LIGHT);
  expect(paletteOf("#0e1318")).toBe(DARK);
});

const world = makeWorld();

test("the outline of the world is small, and has the countries and cities that everybody knows", () => {
  expect(gzipSync(JSON.stringify(world), { level: 9 }).length).toBeLessThan(420_000);
  const countries = new Map(world.countries.map(([name, lon, lat, zoom]) => [name, { lon, lat, zoom }]));
  expect(countries.get("Brazil")).toMatchObject({ zoom: 1 });
  expect(countries.get("Liechtenstein")?.zoom).toBeGreaterThan(4);
  expect(countries.get("Fiji")?.lat).toBeCloseTo(-17.8, 0);
  expect(world.countries.length).toBeGreaterThan(230);
  const vaduz = world.cities.find(([name]) => name === "Vaduz");
  expect(vaduz).toEqual(["Vaduz", 9.52, 47.14, 5, 1]);
  const [largest] = world.cities;
  if (largest === undefined || vaduz === undefined) throw new Error("there are no cities");
  expect(cityZoom(largest)).toBeLessThan(3);
  expect(cityZoom(vaduz)).toBe(4.5);
});

const jumps = (lines: readonly Position[][]): number =>
  lines.flatMap((line) => line.slice(1).filter(([lon = 0, lat = 0], index) => Math.abs(lon - (line[index]?.[0] ?? 0)) > 180 && lat !== -90))
    .length;

test("no outline leads around the earth where it crosses the antimeridian", () => {
  const countries = world.outline.objects["countries"] as GeometryCollection;
  const land = merge(world.outline, countries.geometries as Polygon[]);
  const borders = mesh(world.outline, countries, (one, other) => one !== other);
  expect(jumps(land.coordinates.flat())).toBeGreaterThan(5);
  const polygons = unwoundPolygons(land).coordinates;
  expect(jumps(polygons.flat())).toBe(0);
  expect(jumps(unwoundLines(borders).coordinates)).toBe(0);
  // Antarctica is closed over the pole.
  expect(polygons.flat(2).filter(([, lat]) => lat === -90).length).toBeGreaterThanOrEqual(2);
  const square: Position[] = [
    [0, 0],
    [1, 0],
    [1, 1],
    [0, 0],
  ];
  expect(unwoundPolygons({ type: "MultiPolygon", coordinates: [[square]] }).coordinates).toEqual([[square]]);
});

test("names are found by the beginnings of their words, whatever their accents", () => {
  expect(folded("  São  Paulo")).toBe("sao paulo");
  expect([fit("zurich", "zurich"), fit("zurich", "zur"), fit("new york", "york"), fit("zurich", "rich")]).toEqual([0, 1, 2, undefined]);
});

test("places come best first, each once, and a source that fails is left out", async () => {
  const place = (name: string, lon: number) => ({ name, kind: "city", lon, lat: 47, zoom: 11 });
  const ends = [
    addFinder(() => [place("Zürich West", 8.5), place("Zürich", 8.54)]),
    addFinder(() => Promise.reject(new Error("gone"))),
    addFinder((wanted, limit) => (wanted === "zur" ? [place("Zürich", 8.55), place("Zurich", -81)].slice(0, limit) : [])),
  ];
  expect((await findPlaces("ZÜR", 10)).map(({ name, lon }) => [name, lon])).toEqual([
    ["Zürich", 8.55],
    ["Zurich", -81],
    ["Zürich West", 8.5],
  ]);
  expect(await findPlaces("ZÜR", 1)).toHaveLength(1);
  expect([await findPlaces(" ", 9), await findPlaces("zur", 0)]).toEqual([[], []]);
  for (const end of ends) end();
  expect(await findPlaces("zur", 9)).toEqual([]);
});

test("features of tiles and documents are found with what they are", () => {
  const line = {
    type: "LineString" as const,
    coordinates: [
      [1, 1],
      [2, 2],
      [3, 3],
    ],
  };
  const features = [
    { layer: "roads", geometry: line, properties: { name: "Lindenstrasse", kind: "minor_road" } },
    {
      layer: "places",
      geometry: { type: "Point" as const, coordinates: [5, 6] },
      properties: { name: "Linden", kind: "locality", kind_detail: "town" },
    },
    { layer: "roads", geometry: line, properties: { name: 7 } },
  ];
  expect(findIn(features, "linden", 5)).toEqual([
    { name: "Linden", kind: "town", lon: 5, lat: 6, zoom: 13 },
    { name: "Lindenstrasse", kind: "street", lon: 2, lat: 2, zoom: 16 },
  ]);
});

test("the nearest name says where one is, if it is near enough", () => {
  const at = (name: string, lon: number) => ({
    layer: "",
    geometry: { type: "Point" as const, coordinates: [lon, 0] },
    properties: { name },
  });
  const line = {
    type: "LineString" as const,
    coordinates: [
      [0, 0],
      [1, 0],
    ],
  };
  const features = [at("Far", 0.03), at("Near", 0.01), { layer: "", geometry: line, properties: { name: "Street" } }];
  expect(nearestIn(features, planeOf("geodetic"), [0, 0], 4000)).toBe("Near");
  expect(nearestIn(features, planeOf("geodetic"), [0, 0], 1000)).toBeUndefined();
});

test("documents of any form are taken apart with their properties, and put where the map has them", () => {
  const point = { type: "Point" as const, coordinates: [1000, 0] };
  const collection = {
    type: "FeatureCollection" as const,
    features: [
      {
        type: "Feature" as const,
        properties: { name: "A" },
        geometry: { type: "GeometryCollection" as const, geometries: [point, point] },
      },
      { type: "Feature" as const, properties: null, geometry: null as never },
    ],
  };
  const features = featuresOf(collection, planeOf("planar"));
  expect(features).toHaveLength(2);
  expect(features[0]).toMatchObject({ properties: { name: "A" }, geometry: { coordinates: [expect.closeTo(0.009, 3), 0] } });
});

test("both schemas of tiles are drawn with layers of different names", () => {
  for (const layer of ["roads", "transportation"]) {
    const schema = schemaOf(["water", layer]);
    if (schema === undefined) throw new Error(`no schema has ${layer}`);
    const ids = [...streetLayers(schema)(LIGHT), ...nameLayers(schema)(LIGHT)].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain("base-road-motorway");
  }
  expect(schemaOf(["streets"])).toBeUndefined();
});

test("names of an extract are fetched when they are wanted first, and once", async () => {
  vi.stubGlobal("location", { href: "http://broker/" });
  vi.doMock("../../src/shared/map/base/attribution.js", () => ({ plainAttribution: (text: string) => text }));
  const asked: string[] = [];
  const answers: Record<string, unknown> = {
    "http://broker/base-map.json": {
      tiles: ["base-map/{z}/{x}/{y}"],
      names: "base-map/names.json",
      bounds: [9, 47, 10, 48],
      vector_layers: [{ id: "roads" }],
    },
    "http://broker/base-map/names.json": {
      names: [
        ["Landstrasse", "street", 9.5, 47.1],
        ["Vaduz", "town", 9.52, 47.14],
      ],
    },
  };
  vi.stubGlobal("fetch", (url: URL) => {
    asked.push(url.href);
    return Promise.resolve(new Response(JSON.stringify(answers[url.href])));
  });
  const sources: Record<string, unknown> = {};
  const map = { addSource: (id: string, source: unknown) => (sources[id] = source), addLayer: () => undefined };
  const { showBase } = await import("../../src/shared/map/base/base.js");
  const base = await showBase(map as never, planeOf("geodetic"), () => LIGHT);
  expect(base?.bounds).toEqual([9, 47, 10, 48]);
  expect(sources["base"]).toMatchObject({ type: "vector", tiles: ["http://broker/base-map/{z}/{x}/{y}"] });
  expect(asked).toHaveLength(1);
  expect(await base?.find("land", 5)).toEqual([{ name: "Landstrasse", kind: "street", lon: 9.5, lat: 47.1, zoom: 16 }]);
  expect(await base?.find("vaduz", 5)).toEqual([{ name: "Vaduz", kind: "town", lon: 9.52, lat: 47.14, zoom: 13 }]);
  expect(asked).toHaveLength(2);
  vi.unstubAllGlobals();
});
