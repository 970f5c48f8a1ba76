// Files of tiles as tests need them: PMTiles, version 3, of a few tiles.

import { zxyToTileId, type TileType } from "pmtiles";

export interface Tile {
  readonly at: readonly [zoom: number, x: number, y: number];
  readonly bytes: Uint8Array;
}

const HEADER_BYTES = 127;
/** Neither directories nor tiles are compressed. */
const PLAIN = 1;

export function pmtilesOf(
  tiles: readonly Tile[],
  type: TileType,
  [west, south, east, north]: readonly [number, number, number, number],
  metadata: object,
): Uint8Array {
  const sorted = tiles.map(({ at, bytes }) => ({ id: zxyToTileId(...at), bytes })).sort((one, other) => one.id - other.id);
  const lengths = sorted.map(({ bytes }) => bytes.length);
  const directory = [
    sorted.length,
    ...sorted.map(({ id }, index) => id - (sorted[index - 1]?.id ?? 0)),
    ...sorted.map(() => 1),
    ...lengths,
    // Each but the first follows the one before.
    ...sorted.map((_, index) => (index === 0 ? 1 : 0)),
  ].flatMap(varint);
  const told = new TextEncoder().encode(JSON.stringify(metadata));
  const data = lengths.reduce((sum, length) => sum + length, 0);
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  new Uint8Array(header.buffer).set(new TextEncoder().encode("PMTiles\x03"));
  const beginnings = [HEADER_BYTES, HEADER_BYTES + directory.length, 0, HEADER_BYTES + directory.length + told.length];
  [directory.length, told.length, 0, data].forEach((length, index) => {
    header.setBigUint64(8 + 16 * index, BigInt(beginnings[index] ?? 0), true);
    header.setBigUint64(16 + 16 * index, BigInt(length), true);
  });
  for (const at of [72, 80, 88]) header.setBigUint64(at, BigInt(sorted.length), true);
  const zooms = tiles.map(({ at: [zoom] }) => zoom);
  [1, PLAIN, PLAIN, type, Math.min(...zooms), Math.max(...zooms)].forEach((byte, index) => header.setUint8(96 + index, byte));
  [west, south, east, north].forEach((degrees, index) => header.setInt32(102 + 4 * index, Math.round(degrees * 1e7), true));
  return Buffer.concat([new Uint8Array(header.buffer), Uint8Array.from(directory), told, ...sorted.map(({ bytes }) => bytes)]);
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}
