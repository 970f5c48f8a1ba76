// Tiles in one file, of which a page reads the parts that it needs.

import { addProtocol } from "maplibre-gl";
import { PMTiles, Protocol, TileType } from "pmtiles";

import type { Tiles } from "./base.js";

let protocol: Protocol | undefined;

/** Makes the tiles of a PMTiles file known to the map library. */
export async function addArchive(url: URL): Promise<Tiles & { readonly tiles: readonly string[]; readonly isRaster: boolean }> {
  if (protocol === undefined) {
    protocol = new Protocol();
    addProtocol("pmtiles", protocol.tile);
  }
  const archive = new PMTiles(url.href);
  protocol.add(archive);
  const header = await archive.getHeader();
  const metadata = (await archive.getMetadata()) as Pick<Tiles, "attribution" | "vector_layers"> | null;
  return {
    tiles: [`pmtiles://${url.href}/{z}/{x}/{y}`],
    isRaster: header.tileType !== TileType.Mvt,
    minzoom: header.minZoom,
    maxzoom: header.maxZoom,
    bounds: [header.minLon, Math.max(-85.05, header.minLat), header.maxLon, Math.min(85.05, header.maxLat)],
    attribution: metadata?.attribution,
    vector_layers: metadata?.vector_layers ?? [],
  };
}
