// What lies below the marks: the outline of the world, and the base maps of the settings.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { GeoJSONVT } from "@maplibre/geojson-vt";
import { fromGeojsonVt } from "@maplibre/vt-pbf";
import type { Feature, Geometry } from "geojson";
import type { Browser, Page } from "playwright-core";
import { TileType } from "pmtiles";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { Broker, type BrokerOptions } from "../../../typescript/tests/support/broker.js";
import { DARK, LIGHT, type Palette } from "../../src/shared/map/base/palette.js";
import { parts } from "../../src/shared/map/colour.js";
import { colourAt, coloursAbout } from "../support/colours.js";
import { launch, newPage, pagesOf } from "../support/pages.js";
import { pmtilesOf, type Tile } from "../support/pmtiles.js";
import { connected, ownErrors } from "./console-support.js";

let browser: Browser;
const ends: (() => Promise<void>)[] = [];

beforeAll(async () => {
  browser = await launch();
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
afterAll(() => browser.close());

interface Shown {
  readonly colorScheme?: "light" | "dark";
  readonly viewport?: { readonly width: number; readonly height: number };
}

async function open(options: BrokerOptions, { colorScheme = "light", viewport = { width: 1280, height: 800 } }: Shown = {}): Promise<Page> {
  const broker = await Broker.start(options);
  ends.push(() => broker.stop());
  const pages = await pagesOf(broker);
  ends.push(() => pages.close());
  const { page, errors } = await newPage(browser, { colorScheme, viewport });
  ends.push(async () => {
    await page.context().close();
    // A file's handlers are refused by the policy of the pages before they are left out.
    const refused = (error: string): boolean => error.startsWith("Executing inline event handler");
    expect(ownErrors(errors).filter((error) => !refused(error))).toEqual([]);
  });
  await page.goto(pages.url);
  await connected(page);
  return page;
}

const rgb = (colour: string): number[] =>
  parts(colour)
    .slice(0, 3)
    .map((part) => Math.round(part * 255));

async function expectColour(page: Page, place: readonly [number, number], colour: string): Promise<void> {
  await expect.poll(() => colourAt(page, place), { message: place.join(), timeout: 30_000 }).toEqual(rgb(colour));
}

test.each([
  ["light", LIGHT],
  ["dark", DARK],
] as const)("the map has land and water without a base map, %s", async (colorScheme, palette: Palette) => {
  const page = await open({}, { colorScheme });
  await expectColour(page, [20, 27], palette.land); // Libya
  await expectColour(page, [-30, 40], palette.water); // the Atlantic
  await expectColour(page, [62, 61], palette.land); // Siberia, which crosses the antimeridian
  await expectColour(page, [-8, 67], palette.water); // and what is west of Norway
  const other = colorScheme === "light" ? "dark" : "light";
  await page.emulateMedia({ colorScheme: other });
  await expectColour(page, [20, 27], other === "dark" ? DARK.land : LIGHT.land);
});

test("where the data is from is told beside the scale, and behind a button on a phone", async () => {
  const page = await open({});
  await page.getByText("Natural Earth, GeoNames").waitFor();
  const box = async (part: string): Promise<{ x: number; width: number }> => {
    const found = await page.locator(`.maplibregl-ctrl-${part}`).boundingBox();
    if (found === null) throw new Error(`${part} is not on the screen`);
    return found;
  };
  const scale = await box("scale");
  expect((await box("attrib")).x).toBeGreaterThan(scale.x + scale.width);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.reload();
  await connected(page);
  await expectColour(page, [20, 27], LIGHT.land);
  await expect.poll(() => page.getByText("Natural Earth, GeoNames").isVisible()).toBe(false);
  const button = page.locator(".maplibregl-ctrl-attrib-button");
  await button.click();
  const { x, width } = await box("attrib");
  expect(x).toBeGreaterThanOrEqual(0);
  expect(x + width).toBeLessThanOrEqual(390);
});

test("land is not seen in the colour of water while the map is still being drawn", async () => {
  const broker = await Broker.start({});
  ends.push(() => broker.stop());
  const pages = await pagesOf(broker);
  ends.push(() => pages.close());
  const { page } = await newPage(browser, { colorScheme: "light", viewport: { width: 1280, height: 800 } });
  ends.push(() => page.context().close());
  const slow = await page.context().newCDPSession(page);
  await slow.send("Emulation.setCPUThrottlingRate", { rate: 6 });
  await page.goto(pages.url);
  await page.locator("[data-center]").waitFor({ timeout: 60_000 });
  const seen = new Set<string>();
  await expect
    .poll(
      async () => {
        seen.add(String(await colourAt(page, [20, 27]))); // Libya
        return colourAt(page, [-30, 40]); // the Atlantic
      },
      { timeout: 60_000, interval: 1 },
    )
    .toEqual(rgb(LIGHT.water));
  expect([...seen]).not.toContain(String(rgb(LIGHT.water)));
});

test("a planar world has its grid and no earth below it", async () => {
  const page = await open({ settings: { "server.world": "planar" } });
  expect(await page.getByText("Natural Earth").count()).toBe(0);
  expect(await page.evaluate(() => performance.getEntriesByType("resource").some(({ name }) => /virtual.world/.test(name)))).toBe(false);
});

const feature = (geometry: Geometry, properties: Record<string, unknown>): Feature => ({ type: "Feature", properties, geometry });
const square = (west: number, south: number, side: number): Geometry => ({
  type: "Polygon",
  coordinates: [
    [
      [west, south],
      [west + side, south],
      [west + side, south + side],
      [west, south + side],
      [west, south],
    ],
  ],
});
/** A city in the Libyan desert: a lake in the west, a park in the north-east, and a street between. */
const CITY = { west: 20, south: 27, side: 0.02 };
const LAKE = [20.003, 27.003] as const;
const PARK = [20.017, 27.017] as const;
const BOUNDS = [CITY.west, CITY.south, CITY.west + CITY.side, CITY.south + CITY.side] as const;

/** The tiles of zoom 14 about the city, of these layers. */
function tilesOf(layers: Readonly<Record<string, readonly Feature[]>>): Tile[] {
  const cut = Object.entries(layers).map(([name, features]) => {
    const data = { type: "FeatureCollection" as const, features: [...features] };
    return [name, new GeoJSONVT(data, { maxZoom: 14, indexMaxZoom: 14, indexMaxPoints: 0 })] as const;
  });
  const north = Math.asinh(Math.tan((CITY.south * Math.PI) / 180)) / Math.PI;
  const [x, y] = [(CITY.west + 180) / 360, (1 - north) / 2].map((part) => Math.floor(part * 2 ** 14)) as [number, number];
  const around = [-2, -1, 0, 1, 2].flatMap((east) => [-2, -1, 0, 1, 2].map((south) => [14, x + east, y + south] as const));
  return around.flatMap((at) => {
    const found = cut.map(([name, index]) => [name, index.getTile(...at)] as const).filter(([, tile]) => tile !== null);
    return found.length === 0 ? [] : [{ at, bytes: fromGeojsonVt(Object.fromEntries(found) as never, { version: 2, extent: 4096 }) }];
  });
}

function withFile(name: string, bytes: Uint8Array): BrokerOptions {
  const folder = mkdtempSync(join(tmpdir(), "nearcast-map-"));
  ends.push(() => {
    rmSync(folder, { recursive: true });
    return Promise.resolve();
  });
  writeFileSync(join(folder, name), bytes);
  return { settings: { "console.base_map": join(folder, name) } };
}

test.each([
  [
    "Protomaps",
    {
      water: [feature(square(20, 27, 0.008), { kind: "water" })],
      landuse: [feature(square(20.012, 27.012, 0.008), { kind: "park" })],
      roads: [
        feature(
          {
            type: "LineString",
            coordinates: [
              [20, 27.01],
              [20.02, 27.01],
            ],
          },
          { kind: "major_road", kind_detail: "primary", name: "Main Street" },
        ),
      ],
      places: [feature({ type: "Point", coordinates: [20.01, 27.015] }, { kind: "locality", kind_detail: "town", name: "Oasis" })],
    },
  ],
  [
    "OpenMapTiles",
    {
      water: [feature(square(20, 27, 0.008), { class: "lake" })],
      landcover: [feature(square(20.012, 27.012, 0.008), { class: "grass" })],
      transportation: [
        feature(
          {
            type: "LineString",
            coordinates: [
              [20, 27.01],
              [20.02, 27.01],
            ],
          },
          { class: "primary" },
        ),
      ],
      place: [feature({ type: "Point", coordinates: [20.01, 27.015] }, { class: "town", name: "Oasis" })],
    },
  ],
])("a city of vector tiles in one file is drawn, in the schema of %s", async (_, layers) => {
  const metadata = {
    attribution: '<a href="https://example.org/" onclick="alert(1)">© nobody</a><script>alert(1)</script>',
    vector_layers: Object.keys(layers).map((id) => ({ id })),
  };
  const page = await open(withFile("city.pmtiles", pmtilesOf(tilesOf(layers), TileType.Mvt, BOUNDS, metadata)));
  await expectColour(page, LAKE, LIGHT.water);
  await expectColour(page, PARK, LIGHT.green);
  await expectColour(page, [20.004, 27.01], LIGHT.major);
  await expectColour(page, [20.017, 27.004], LIGHT.land);
  const link = page.getByRole("link", { name: "© nobody" });
  await link.waitFor();
  expect(await link.evaluate((element) => element.parentElement?.innerHTML)).toContain(
    '<a href="https://example.org/" target="_blank" rel="noopener noreferrer">© nobody</a>',
  );
  expect(await page.locator(".maplibregl-ctrl-attrib").innerHTML()).not.toMatch(/script|onclick/);
});

test("a view close by has the names of the places that it lies between, and that of a place in sight where that is", async () => {
  const place = (name: string, lon: number): Feature => feature({ type: "Point", coordinates: [lon, 27.01] }, { name });
  const street: Geometry = {
    type: "LineString",
    coordinates: [
      [19.96, 27.01],
      [20.04, 27.01],
    ],
  };
  const features = [feature(street, { traffic: 3 }), place("Westend", 19.97), place("Eastend", 20.03), place("Far away", 20.3)];
  const city = Buffer.from(JSON.stringify({ type: "FeatureCollection", features }));
  const page = await open(withFile("city.geojson", city));
  const at = async (lon: number, zoom: number): Promise<void> => {
    const address = new URL(page.url());
    address.searchParams.set("at", `${lon},27.01,${zoom}`);
    await page.goto(address.href);
    await connected(page);
  };
  const names = (of: string) => page.locator(`.place-names ${of}:not(.covered)`);
  // Both lie 3 km from the middle of a view of 2 km: each has its half.
  await at(20, 15);
  await expect.poll(() => names(".area").allTextContents(), { timeout: 30_000 }).toHaveLength(2);
  const left = async (name: string): Promise<number> => (await names(".area").getByText(name).boundingBox())?.x ?? NaN;
  // A name that has no room for a moment has no place.
  await expect.poll(async () => (await left("Westend")) < (await left("Eastend")), { timeout: 30_000 }).toBe(true);
  await at(19.97, 15);
  await expect.poll(() => names(".quarter").allTextContents(), { timeout: 30_000 }).toEqual(["Westend"]);
  expect(await names(".area").count()).toBe(0);
});

test("pictures in one file are drawn", async () => {
  // One red pixel.
  const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC", "base64");
  const tiles = tilesOf({ all: [feature(square(20, 27, 0.02), {})] }).map(({ at }) => ({ at, bytes: png }));
  const page = await open(withFile("pictures.pmtiles", pmtilesOf(tiles, TileType.Png, BOUNDS, {})));
  await expect
    .poll(async () => {
      const [red = 0, green = 0, blue = 0] = await colourAt(page, [20.01, 27.01]);
      return red - Math.max(green, blue);
    })
    .toBeGreaterThan(100);
});

test("an extract of OpenStreetMap is drawn, with where it is from", async () => {
  const extract = fileURLToPath(new URL("../../../../loadgen/data/liechtenstein/highways.osm.pbf", import.meta.url));
  const page = await open({ settings: { "console.base_map": extract } });
  await page.getByRole("link", { name: "© OpenStreetMap contributors" }).waitFor();
  // Streets with casings and names, where the outline of the world has a border at most.
  await expect.poll(async () => (await coloursAbout(page, [9.52, 47.14], 160)).size).toBeGreaterThan(20);
});
