// Icons of kinds on the marks of the map: elements above the points, moved with them.

import { h, render } from "preact";

import { Icon } from "../shared/icon.js";
import type { BaseMap } from "../shared/map/map.js";
import type { Points } from "../shared/map/points.js";
import type { Kind } from "./kind.js";

/** With more marks than this none has an icon: they would be a crowd. */
const MOST = 80;
/** Farther away marks are too small. */
const LEAST_ZOOM = 12;
const SIZE_PX = 15;

export interface Marked {
  readonly key: string;
  readonly kind: Kind;
  readonly layer: Points;
}

/** Returns what shows the icons of these marks and of no others. A frame of the points costs O(icons). */
export function kindIcons({ map }: BaseMap, layers: readonly Points[]): (marked: readonly Marked[]) => void {
  const holder = document.createElement("div");
  holder.className = "kinds";
  // The list says the same in words.
  holder.setAttribute("aria-hidden", "true");
  map.getCanvasContainer().append(holder);
  const shown = new Map<string, { readonly element: HTMLElement; readonly layer: Points; readonly sign: string }>();
  const move = (): void => {
    holder.hidden = map.getZoom() < LEAST_ZOOM;
    if (holder.hidden) return;
    const screens = new Map(layers.map((layer) => [layer, layer.screen()]));
    for (const [key, { element, layer }] of shown) {
      const at = screens.get(layer)?.(key);
      element.hidden = at === undefined;
      if (at !== undefined) element.style.transform = `translate(${at[0].toFixed(1)}px, ${at[1].toFixed(1)}px) translate(-50%, -50%)`;
    }
  };
  for (const layer of layers) layer.onDrawn = move;
  map.on("move", move);
  return (marked) => {
    const wanted = new Map(marked.length > MOST ? [] : marked.map((each) => [each.key, each]));
    for (const [key, { element }] of shown) {
      if (wanted.has(key)) continue;
      element.remove();
      shown.delete(key);
    }
    for (const { key, kind, layer } of wanted.values()) {
      const before = shown.get(key);
      const sign = `${kind.icon === undefined ? kind.letter : kind.colour} ${kind.letter} ${kind.taken}`;
      if (before?.layer === layer && before.sign === sign) continue;
      before?.element.remove();
      const element = document.createElement("span");
      // Its mark is an outline, so that the icon has the colour.
      if (kind.taken) element.style.color = `var(--map-c${kind.colour})`;
      if (kind.icon === undefined) element.textContent = kind.letter;
      else render(h(Icon, { of: kind.icon, size: SIZE_PX }), element);
      holder.append(element);
      shown.set(key, { element, layer, sign });
    }
    move();
  };
}
