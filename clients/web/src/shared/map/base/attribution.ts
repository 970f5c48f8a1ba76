// Who made the map: texts that come with the data, as the map library wants them.

import { AttributionControl, type Map as MapLibreMap } from "maplibre-gl";

/** So narrow a map has the texts behind a button. The map library has the same number. */
const NARROW_PX = 640;

/** Shows where the data is from, at the right: the scale is at the left. On narrow maps it opens at a touch. */
export function addAttribution(map: MapLibreMap, own: string | undefined): void {
  map.addControl(new AttributionControl(own === undefined ? {} : { customAttribution: own }), "bottom-right");
  const details = map.getContainer().querySelector("details.maplibregl-ctrl-attrib");
  const fold = (): void => {
    if (map.getContainer().offsetWidth > NARROW_PX) return;
    details?.removeAttribute("open");
    details?.classList.remove("maplibregl-compact-show");
  };
  fold();
  // The first text opens it.
  map.once("idle", fold);
}

/** The text of an attribution, with its links to pages: what else a file may have in there is left out. */
export function plainAttribution(html: string): string {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  const text = (node: Node): string => {
    if (node.nodeType === Node.TEXT_NODE) return escaped(node.textContent ?? "");
    const inner = [...node.childNodes].map(text).join("");
    const href = node instanceof HTMLAnchorElement && /^https?:/.test(node.protocol) ? node.href : undefined;
    return href === undefined ? inner : `<a href="${escaped(href)}" target="_blank" rel="noopener noreferrer">${inner}</a>`;
  };
  return text(body).trim();
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
