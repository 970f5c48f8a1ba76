// The colours of the map below the marks: quiet, so that what moves stands out. tests/unit/base-map.test.ts holds marks and names to their contrast.

import { parts } from "../colour.js";

export interface Palette {
  readonly land: string;
  readonly water: string;
  /** Along coasts. */
  readonly shore: string;
  /** Parks, woods and meadows. */
  readonly green: string;
  readonly sand: string;
  /** Hospitals, schools, works: where it is not the street that people are in. */
  readonly site: string;
  /** Where streets lie close to each other, from far away. */
  readonly built: string;
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
  /** From far away each is one thin line. */
  readonly minorThin: string;
  readonly mediumThin: string;
  readonly majorThin: string;
  readonly motorwayThin: string;
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
  land: "#f2f1ed",
  water: "#b9d6ea",
  shore: "#86b0cf",
  green: "#dfeadb",
  sand: "#efeadb",
  site: "#eaecee",
  built: "#e4e4e0",
  building: "#e4e6e9",
  buildingEdge: "#d8dbe0",
  border: "#b3bdc7",
  path: "#cfd5da",
  minor: "#ffffff",
  minorCasing: "#c2cad0",
  major: "#ffffff",
  majorCasing: "#a3afb9",
  motorway: "#fbe2a0",
  motorwayCasing: "#d0a95a",
  minorThin: "#c6cacd",
  mediumThin: "#b2b8bd",
  majorThin: "#979ea5",
  motorwayThin: "#cfa04a",
  rail: "#cfd4d9",
  name: "#505c68",
  nameStrong: "#2b353f",
  nameQuiet: "#66717c",
  nameWater: "#3f5f79",
  nameGreen: "#4d6b48",
  halo: "#f8f8f7",
};

export const DARK: Palette = {
  land: "#1a1f26",
  water: "#0e2e49",
  shore: "#3f7ba3",
  green: "#17241f",
  sand: "#211f1b",
  site: "#1a2027",
  built: "#262d36",
  building: "#222a33",
  buildingEdge: "#323d48",
  border: "#66788a",
  path: "#36424d",
  minor: "#3a4651",
  minorCasing: "#12161b",
  major: "#586979",
  majorCasing: "#0f1317",
  motorway: "#8a7a4a",
  motorwayCasing: "#15130d",
  minorThin: "#434b54",
  mediumThin: "#58626c",
  majorThin: "#727d88",
  motorwayThin: "#a38c55",
  rail: "#333e49",
  name: "#97a5b2",
  nameStrong: "#c4d0da",
  nameQuiet: "#8190a0",
  nameWater: "#86abc9",
  nameGreen: "#7d9c7c",
  halo: "#12171c",
};

/** The palette that goes with a theme: the theme is dark where its ground is. */
export function paletteOf(ground: string): Palette {
  const [red, green, blue] = parts(ground);
  return red + green + blue < 1.5 ? DARK : LIGHT;
}
