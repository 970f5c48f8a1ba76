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
  land: "#f4f4f2",
  water: "#c6dae8",
  shore: "#9fbfd6",
  green: "#dfeadb",
  sand: "#efeadb",
  site: "#eaecee",
  building: "#e4e6e9",
  buildingEdge: "#d8dbe0",
  border: "#b3bdc7",
  path: "#cfd5da",
  minor: "#ffffff",
  minorCasing: "#d2d8dd",
  major: "#ffffff",
  majorCasing: "#bcc6ce",
  motorway: "#fbe8b8",
  motorwayCasing: "#d9bd82",
  minorThin: "#cdcfd1",
  majorThin: "#b0b3b6",
  motorwayThin: "#b3aea4",
  rail: "#cfd4d9",
  name: "#505c68",
  nameStrong: "#2b353f",
  nameQuiet: "#66717c",
  nameWater: "#3f5f79",
  nameGreen: "#4d6b48",
  halo: "#f8f8f7",
};

export const DARK: Palette = {
  land: "#171c22",
  water: "#0b1927",
  shore: "#38637f",
  green: "#17241f",
  sand: "#211f1b",
  site: "#1a2027",
  building: "#222a33",
  buildingEdge: "#323d48",
  border: "#66788a",
  path: "#36424d",
  minor: "#35414d",
  minorCasing: "#1d242c",
  major: "#4a5968",
  majorCasing: "#222a33",
  motorway: "#6e6749",
  motorwayCasing: "#2f2d26",
  minorThin: "#3f4348",
  majorThin: "#5d6268",
  motorwayThin: "#716c62",
  rail: "#333e49",
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
