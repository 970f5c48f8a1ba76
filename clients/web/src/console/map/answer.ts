// The layers of an answer to Why.

import { signal } from "@preact/signals";
import { LngLatBounds, Marker, type ExpressionSpecification } from "maplibre-gl";

import { CorridorLayer } from "../../shared/map/corridor-layer.js";
import { EMPTY, type BaseMap } from "../../shared/map/map.js";
import type { WhyDrawing } from "../why/drawing.js";
import { pinElement } from "../why/pin.js";
import { paddingOf } from "./padding.js";

const HOLDS: ExpressionSpecification = ["boolean", ["get", "holds"], false];
/** Of the map's shorter side, around what is drawn. */
const PADDING = 0.18;
/** How much is left of areas that a finding is not about; of those that an answer is not about nothing is. */
const BACK = 0.06;
/** An answer is not shown closer than that: what lies around it says where it is. */
const CLOSEST = 16;
/** Half the width of a pin's words. */
const WORDS_PX = 110;
/** A number stands so far from its mark. */
const NUMBER_PX = 15;
/** Words beside their place are off it by so much. */
const BESIDE_PX = 12;

export class AnswerLayer {
  readonly #base: BaseMap;
  readonly #corridors: CorridorLayer;
  #labels: Marker[] = [];
  /** What is on the map. */
  readonly shown = signal<WhyDrawing | undefined>(undefined);
  /** Hears whether an answer is on the map. */
  onShown: (shown: boolean) => void = () => undefined;

  constructor(base: BaseMap, css: (variable: string, opacity?: number) => string) {
    this.#base = base;
    this.#corridors = new CorridorLayer(base, (properties) => [variableOf(properties), 0.2], "scene");
    const { map } = base;
    // Without tolerance: a circle would be drawn with some twenty corners.
    map.addSource("why", { type: "geojson", data: EMPTY, tolerance: 0 });
    const isArea: ExpressionSpecification = ["all", ["==", ["geometry-type"], "Polygon"], ["!", ["has", "around"]]];
    map.addLayer({ id: "why-around", type: "fill", source: "why", filter: ["has", "around"], paint: { "fill-antialias": false } });
    map.addLayer({ id: "why-fill", type: "fill", source: "why", filter: isArea });
    map.addLayer({ id: "why-line", type: "line", source: "why", filter: isArea, paint: { "line-width": 2.5 } });
    const layout = { "line-cap": "round" } as const;
    map.addLayer({ id: "why-edge", type: "line", source: "why", filter: ["has", "way"], layout, paint: { "line-width": 7 } });
    // Dots join events of a finding, which lie apart; a line is whole as far as an area reaches, and dashed beyond.
    const ways: readonly (readonly [id: string, filter: ExpressionSpecification, dashes: number[] | undefined])[] = [
      ["why-dots", ["has", "as"], [0.1, 2]],
      ["why-whole", ["==", ["get", "way"], "whole"], undefined],
      ["why-gap", ["==", ["get", "way"], "gap"], [1.2, 1.6]],
    ];
    for (const [id, filter, dashes] of ways) {
      const paint = { "line-width": 3, ...(dashes !== undefined && { "line-dasharray": dashes }) };
      map.addLayer({ id, type: "line", source: "why", filter: ["all", ["has", "way"], filter], layout, paint });
    }
    const isPoint: ExpressionSpecification = ["==", ["geometry-type"], "Point"];
    map.addLayer({
      id: "why-event",
      type: "circle",
      source: "why",
      filter: ["all", isPoint, ["!", ["has", "rim"]]],
      paint: { "circle-radius": 9, "circle-stroke-width": 3, "circle-opacity": 0 },
    });
    map.addLayer({
      id: "why-rim",
      type: "circle",
      source: "why",
      filter: ["has", "rim"],
      paint: { "circle-radius": 4.5, "circle-stroke-width": 2.5 },
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
      map.setPaintProperty("why-around", "fill-color", css("--map-ground", 0.1));
      map.setPaintProperty("why-edge", "line-color", css("--surface", 0.9));
      // An area that the event is outside of has done nothing wrong.
      const area = (opacity: number): ExpressionSpecification => ["case", HOLDS, css("--good", opacity), css("--map-area", opacity)];
      map.setPaintProperty("why-fill", "fill-color", area(0.14));
      map.setPaintProperty("why-line", "line-color", area(1));
      for (const [id] of ways) map.setPaintProperty(id, "line-color", by(1));
      map.setPaintProperty("why-rim", "circle-color", css("--surface"));
      map.setPaintProperty("why-rim", "circle-stroke-color", css("--bad"));
      map.setPaintProperty("why-event", "circle-stroke-color", by(1));
    });
  }

  /** Draws an answer and shows all of it, or takes the one before away. */
  show(drawing: WhyDrawing | undefined): void {
    const { map } = this.#base;
    for (const label of this.#labels) label.remove();
    this.#labels = [];
    this.onShown(drawing !== undefined);
    this.shown.value = drawing;
    this.#corridors.show(drawing?.features ?? []);
    // What the answer is not about stands back.
    const pins = drawing?.pins ?? [];
    const others = drawing === undefined ? 1 : pins.length > 0 ? 0 : BACK;
    map.setPaintProperty("areas-fill", "fill-opacity", others);
    for (const line of ["areas-line", "areas-middle"]) map.setPaintProperty(line, "line-opacity", others);
    map.setPaintProperty("shade", "circle-opacity", others);
    this.#base.setData("why", drawing === undefined ? EMPTY : { type: "FeatureCollection", features: [...drawing.features] });
    if (drawing === undefined) return;
    this.#labels = drawing.labels.map(({ at, text, holds, as, anchor, isNumber = false }) => {
      const element = document.createElement("div");
      element.className = `why-label ${as ?? (holds === true ? "good" : "bad")}${isNumber ? " number" : ""}`;
      element.textContent = text;
      const to = (first: string, second: string): number =>
        anchor?.includes(first) === true ? BESIDE_PX : anchor?.includes(second) === true ? -BESIDE_PX : 0;
      const offset: [number, number] = isNumber ? [NUMBER_PX, -NUMBER_PX] : [to("left", "right"), to("top", "bottom")];
      return new Marker({ element, offset, anchor: anchor ?? "center" }).setLngLat([at[0], at[1]]).addTo(map);
    });
    for (const pin of pins) this.#labels.push(new Marker({ element: pinElement(pin) }).setLngLat([pin.at[0], pin.at[1]]).addTo(map));
    const bounds = new LngLatBounds();
    for (const { geometry, properties } of drawing.features) {
      if (properties?.["around"] === true) continue;
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
    map.fitBounds(bounds, { padding: paddingOf(map, around, pins.length > 0 ? WORDS_PX : 0, "folded"), maxZoom: CLOSEST, duration: 600 });
  }
}

function variableOf({ as, holds }: Readonly<Record<string, unknown>>): string {
  if (as === "violation" || as === "derived" || as === "group") return `--map-${as}`;
  return holds === true ? "--good" : "--map-area";
}
