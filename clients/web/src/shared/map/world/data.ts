// What the outline of the world is made of, as it comes with the pages (tools/world makes it).

import type { Topology } from "topojson-specification";

/** `zoom` is the one from which on there is room for the name. */
export type CountryRow = readonly [name: string, lon: number, lat: number, zoom: number];
export type SeaRow = readonly [name: string, lon: number, lat: number, zoom: number];
export type CityRow = readonly [name: string, lon: number, lat: number, thousands: number, isCapital: 0 | 1];

export interface World {
  /** With the object `countries`, one geometry for each. */
  readonly outline: Topology;
  /** With the objects `lakes` and `rivers`. */
  readonly waters: Topology;
  readonly countries: readonly CountryRow[];
  /** Largest first. */
  readonly cities: readonly CityRow[];
  readonly seas: readonly SeaRow[];
}
