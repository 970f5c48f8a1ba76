// The layers of an answer to Why.

import { LngLatBounds, Marker, type ExpressionSpecification } from "maplibre-gl";

import { CorridorLayer } from "../../shared/map/corridor-layer.js";
import { EMPTY, type BaseMap } from "../../shared/map/map.js";
import type { WhyDrawing } from "../why/drawing.js";
import { paddingOf } from "./padding.js";

const HOLDS: ExpressionSpecification = ["boolean", ["get", "holds"], false];
/** Of the map's shorter side, around what is drawn. */
const PADDING = 0.18;
/** How much is left of areas that an answer is not about. */
const BACK = 0.25;
/** A number stands so far from its mark. */
const NUMBER_PX = 15;

export class AnswerLayer {
  readonly #base: BaseMap;
  readonly #corridors: CorridorLayer;
  #labels: Marker[] = [];

  constructor(base: BaseMap, css: (variable: string, opacity?: number) => string) {
    this.#base = base;
    this.#corridors = new CorridorLayer(base, (properties) => [variableOf(properties), 0.2]);
    const { map } = base;
    map.addSource("why", { type: "geojson", data: EMPTY });
    map.addLayer({ id: "why-fill", type: "fill", source: "why", filter: ["==", ["geometry-type"], "Polygon"] });
    map.addLayer({
      id: "why-line",
      type: "line",
      source: "why",
      filter: ["==", ["geometry-type"], "Polygon"],
      paint: { "line-width": 2.5 },
    });
    map.addLayer({
      id: "why-way",
      type: "line",
      source: "why",
      filter: ["has", "way"],
      paint: { "line-width": 2.5, "line-dasharray": [2, 1.5] },
    });
    map.addLayer({
      id: "why-event",
      type: "circle",
      source: "why",
      filter: ["==", ["geometry-type"], "Point"],
      paint: { "circle-radius": 9, "circle-stroke-width": 3, "circle-opacity": 0 },
    });
    base.onTheme(() => {
      const by = (opacity: number): ExpressionSpecification => [
        "match",
        ["get", "as"],
        "violation",
        css("--map-violation", opacity),
        "derived",
        css("--map-derived", opacity),
        "group",
        css("--map-group", opacity),
        ["case", HOLDS, css("--good", opacity), css("--bad", opacity)],
      ];
      map.setPaintProperty("why-fill", "fill-color", by(0.12));
      for (const id of ["why-line", "why-way"]) map.setPaintProperty(id, "line-color", by(1));
      map.setPaintProperty("why-event", "circle-stroke-color", by(1));
    });
  }

  /** Draws an answer and shows all of it, or takes the one before away. */
  show(drawing: WhyDrawing | undefined): void {
    const { map } = this.#base;
    for (const label of this.#labels) label.remove();
    this.#labels = [];
    this.#corridors.show(drawing?.features ?? []);
    // What the answer is not about stands back.
    const others = drawing === undefined ? 1 : BACK;
    map.setPaintProperty("areas-fill", "fill-opacity", others);
    map.setPaintProperty("areas-line", "line-opacity", others);
    this.#base.setData("why", drawing === undefined ? EMPTY : { type: "FeatureCollection", features: [...drawing.features] });
    if (drawing === undefined) return;
    this.#labels = drawing.labels.map(({ at, text, holds, as, isNumber = false }) => {
      const element = document.createElement("div");
      element.className = `why-label ${as ?? (holds === true ? "good" : "bad")}${isNumber ? " number" : ""}`;
      element.textContent = text;
      return new Marker({ element, offset: isNumber ? [NUMBER_PX, -NUMBER_PX] : [0, 0] }).setLngLat([at[0], at[1]]).addTo(map);
    });
    const bounds = new LngLatBounds();
    for (const { geometry } of drawing.features) {
      const places =
        geometry.type === "Point"
          ? [geometry.coordinates]
          : geometry.type === "LineString"
            ? geometry.coordinates
            : geometry.type === "Polygon"
              ? geometry.coordinates.flat()
              : [];
      for (const [lon = 0, lat = 0] of places) bounds.extend([lon, lat]);
    }
    const { clientWidth, clientHeight } = map.getCanvas();
    const around = Math.min(clientWidth, clientHeight) * PADDING;
    map.fitBounds(bounds, { padding: paddingOf(map, around), maxZoom: 16, duration: 600 });
  }
}

function variableOf({ as, holds }: Readonly<Record<string, unknown>>): string {
  if (as === "violation" || as === "derived" || as === "group") return `--map-${as}`;
  return holds === true ? "--good" : "--bad";
}
