// Layers whose colours follow the theme, and what they have in common.

import type {
  ExpressionSpecification,
  LayerSpecification,
  LineLayerSpecification,
  Map as MapLibreMap,
  SymbolLayerSpecification,
} from "maplibre-gl";

import type { Palette } from "./palette.js";

/** Layers as they are with a palette. */
export type Drawn = (palette: Palette) => LayerSpecification[];

/** Layers in the order in which they lie: each group is put below the mark that ends it. */
export const ENDS = { ground: "ground-end", streets: "streets-end", names: "names-end" } as const;
export type Group = keyof typeof ENDS;

type PaintProperty = Parameters<MapLibreMap["setPaintProperty"]>[1];
type PaintValue = Parameters<MapLibreMap["setPaintProperty"]>[2];

/** Adds layers to a group. Returns what paints them with another palette. */
export function addLayers(map: MapLibreMap, group: Group, drawn: Drawn, palette: Palette): (palette: Palette) => void {
  for (const layer of drawn(palette)) map.addLayer(layer, ENDS[group]);
  let painted = palette;
  return (next) => {
    if (next === painted) return;
    painted = next;
    for (const { id, paint } of drawn(next)) {
      for (const [property, value] of Object.entries(paint ?? {})) {
        map.setPaintProperty(id, property as PaintProperty, value as PaintValue);
      }
    }
  };
}

// Fonts of the device draw all names: nothing is fetched for them, and every script that the device has is there. A weight or style is the first "family",
// as the map library has it.
export const PLAIN = ["system-ui"];
export const STRONG = ["Semibold", "system-ui"];
export const SLANTED = ["Italic", "system-ui"];

/** A number that grows with the zoom, from pairs of zoom and number. */
export function byZoom(
  base: number,
  ...stops: readonly (readonly [zoom: number, value: number | ExpressionSpecification])[]
): ExpressionSpecification {
  return ["interpolate", ["exponential", base], ["zoom"], ...stops.flat()] as unknown as ExpressionSpecification;
}

/** What all names have: a halo in the colour of the ground, and some air around them. */
export function names(
  palette: Palette,
  colour: string,
  layer: Omit<SymbolLayerSpecification, "type" | "paint"> & { readonly paint?: SymbolLayerSpecification["paint"] },
): SymbolLayerSpecification {
  return {
    ...layer,
    type: "symbol",
    layout: { "text-font": PLAIN, "text-padding": 4, "text-max-width": 8, "text-line-height": 1.15, ...layer.layout },
    paint: { "text-color": colour, "text-halo-color": palette.halo, "text-halo-width": 1.4, "text-halo-blur": 0.4, ...layer.paint },
  };
}

/** A line with round ends. */
export function line(layer: Omit<LineLayerSpecification, "type">): LineLayerSpecification {
  return { ...layer, type: "line", layout: { "line-cap": "round", "line-join": "round", ...layer.layout } };
}
