// The colours of the map below the marks: quiet, so that what moves stands out. tests/unit/base-map.test.ts holds marks and names to their contrast.

import { parts } from "../colour.js";

export interface Palette {
  readonly land: string;
  readonly water: string;
  /** Parks, woods and meadows. */
  readonly green: string;
  readonly sand: string;
  /** Hospitals, schools, works: where it is not the street that people are in. */
  readonly site: string;
  readonly building: string;
  readonly buildingEdge: string;
  readonly border: string;
  /** Streets from the smallest to the widest, and what goes around them. */
  readonly path: string;
  readonly minor: string;
  readonly minorCasing: string;
  readonly major: string;
  readonly majorCasing: string;
  readonly motorway: string;
  readonly motorwayCasing: string;
  readonly rail: string;
  readonly name: string;
  /** Of what is larger or matters more. */
  readonly nameStrong: string;
  readonly nameQuiet: string;
  readonly nameWater: string;
  readonly nameGreen: string;
  readonly halo: string;
}

export const LIGHT: Palette = {
  land: "#f3f4f4",
  water: "#c9d9e4",
  green: "#e0eadc",
  sand: "#efeadb",
  site: "#eaecee",
  building: "#e4e6e9",
  buildingEdge: "#d8dbe0",
  border: "#a9b4bf",
  path: "#cfd5da",
  minor: "#ffffff",
  minorCasing: "#d0d6db",
  major: "#ffffff",
  majorCasing: "#b7c1c9",
  motorway: "#fdf6e3",
  motorwayCasing: "#c4b88f",
  rail: "#cfd4d9",
  name: "#505c68",
  nameStrong: "#2b353f",
  nameQuiet: "#66717c",
  nameWater: "#3f5f79",
  nameGreen: "#4d6b48",
  halo: "#f7f8f8",
};

export const DARK: Palette = {
  land: "#161b21",
  water: "#0b1622",
  green: "#17231f",
  sand: "#211f1b",
  site: "#1a2027",
  building: "#1f262e",
  buildingEdge: "#283039",
  border: "#485663",
  path: "#2b333c",
  minor: "#2a323b",
  minorCasing: "#161b21",
  major: "#36414c",
  majorCasing: "#161b21",
  motorway: "#4a4a45",
  motorwayCasing: "#161b21",
  rail: "#262e36",
  name: "#97a5b2",
  nameStrong: "#c4d0da",
  nameQuiet: "#8190a0",
  nameWater: "#6f93b0",
  nameGreen: "#7d9c7c",
  halo: "#12171c",
};

/** The palette that goes with a theme: the theme is dark where its ground is. */
export function paletteOf(ground: string): Palette {
  const [red, green, blue] = parts(ground);
  return red + green + blue < 1.5 ? DARK : LIGHT;
}
