// Names of places above the points, which would hide them. The map finds which names have room and leaves them undrawn.

import type { Map as MapLibreMap } from "maplibre-gl";

import { CITIES_MAX_ZOOM } from "./world/layers.js";

/** Layers of names that are shown above the points, from that zoom on: there a name stands in the middle of its place. */
const LAYERS = ["base-name-city", "base-name-town", "base-name-quarter", "base-name-point", "world-cities"];
/** How names of a layer look; those of the outline go by how many people live there. */
const KINDS: Readonly<Record<string, string>> = {
  "base-name-city": "city",
  "base-name-town": "town",
  "base-name-quarter": "quarter",
  "base-name-point": "quarter",
};
const RANKS = ["city", "town", "quarter"];
/** What stands on the map, in both pages. */
const OVER =
  ".layers, .zoom, .time, .scene-key, .tools button, .why-label, .why-pin .card, .maplibregl-ctrl-attrib, .maplibregl-ctrl-scale";
/** While the map moves its names are looked for so often. */
const LOOK_MS = 120;

/** Shows the names of places above all that is added to the map's canvas. Costs a look at the map's names whenever it was drawn. */
export function showPlaceNames(map: MapLibreMap): void {
  const holder = document.createElement("div");
  holder.className = "place-names";
  holder.setAttribute("aria-hidden", "true");
  map.getCanvasContainer().after(holder);
  let places: { readonly name: HTMLElement; readonly at: [lon: number, lat: number] }[] = [];
  let looked_ms = 0;
  const stand = (): void => {
    for (const { name, at } of places) {
      const { x, y } = map.project(at);
      name.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px) translate(-50%, -50%)`;
    }
  };
  const look = (): void => {
    looked_ms = performance.now();
    const layers = LAYERS.filter((layer) => map.getLayer(layer) !== undefined);
    const found = layers.length === 0 || map.getZoom() < CITIES_MAX_ZOOM ? [] : map.queryRenderedFeatures({ layers });
    const named = new Set<string>();
    places = found.flatMap(({ geometry, properties, layer }) => {
      const text = String(properties["name"] ?? "");
      if (geometry.type !== "Point" || text === "" || named.has(text)) return [];
      named.add(text);
      const name = document.createElement("span");
      name.textContent = text;
      name.className = KINDS[layer.id] ?? (Number(properties["people"]) > 1000 ? "city" : "town");
      const [lon = 0, lat = 0] = geometry.coordinates;
      return [{ name, at: [lon, lat] }];
    });
    holder.replaceChildren(...places.map(({ name }) => name));
    stand();
    hideWhatOverlaps(holder);
  };
  map.on("move", stand);
  map.on("render", () => {
    if (performance.now() - looked_ms >= LOOK_MS) look();
  });
  map.on("idle", look);
}

/** Hides names that would be cut by the map's edge, lie below what stands on the map, or overlap a name of a larger place. */
function hideWhatOverlaps(holder: HTMLElement): void {
  const frame = holder.getBoundingClientRect();
  const around = holder.closest(".map")?.querySelectorAll(OVER) ?? [];
  const taken = [...around].map((element) => element.getBoundingClientRect()).filter(({ width }) => width > 0);
  const size = (name: Element): number => RANKS.findIndex((rank) => name.classList.contains(rank));
  for (const name of [...holder.children].sort((one, other) => size(one) - size(other))) {
    const box = name.getBoundingClientRect();
    const isCut = box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom;
    if (isCut || taken.some((other) => overlap(box, other))) name.classList.add("covered");
    else taken.push(box);
  }
}

function overlap(one: DOMRect, other: DOMRect): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}
