// Drawing a draft's area on the map: one shape at a time, whose numbers are also fields. A library for drawing would bring layers, shapes and stores of its
// own, of which one shape in a world that may be planar needs little.

import { effect, signal, type Signal } from "@preact/signals";
import type { Feature } from "geojson";
import type { MapMouseEvent, MapTouchEvent } from "maplibre-gl";

import { destination, distance_m, type Place } from "../../shared/map/plane.js";
import { shapesOf } from "../map/areas.js";
import type { MapView } from "../map/view.js";
import { missing, rounded, triedArea, type Form, type Shape } from "./shape.js";

/** A corridor that is drawn is as wide as this until its field says otherwise. */
const CORRIDOR_M = 200;
/** Two clicks of a double click are one corner. */
const SAME_PX = 6;

/** What is drawn; an area around a client goes where the client is. */
export type DrawnForm = Exclude<Form, "everywhere" | "around">;

/** Whose shape is drawn. */
export interface Drawn {
  readonly shape: Signal<Shape>;
  /** Only while it is, its shape is on the map. */
  readonly active: Signal<boolean>;
}

export class Drawing {
  readonly active = signal<Form | undefined>(undefined);
  readonly #view: MapView;
  readonly #draft: Drawn;
  /** The radius was not set by a click yet. */
  #open = false;
  /** Where the pointer went down, while it is. */
  #pressed: Place | undefined;

  constructor(view: MapView, draft: Drawn) {
    this.#view = view;
    this.#draft = draft;
    let shown = false;
    effect(() => {
      const { value: active } = draft.active;
      // Another drawing may be on the map.
      if (active || shown) this.#show(active ? draft.shape.value : { form: "everywhere" });
      shown = active;
    });
    const { map } = view.base;
    map.on("dblclick", (event) => {
      if (this.active.value === undefined) return;
      event.preventDefault();
      this.finish();
    });
    map.getCanvas().addEventListener("keydown", (event) => {
      if (this.active.value !== undefined && (event.key === "Enter" || event.key === "Escape")) this.finish();
    });
    map.on("mousedown", "draft-handles", (event) => this.#grab(event, "mousemove", "mouseup"));
    map.on("touchstart", "draft-handles", (event) => this.#grab(event, "touchmove", "touchend"));
  }

  /** Begins a new shape: the next clicks on the map are its places. */
  begin(form: DrawnForm): void {
    const { radius_m = CORRIDOR_M } =
      this.#draft.shape.peek().form === "corridor" ? (this.#draft.shape.peek() as { radius_m?: number }) : {};
    this.#draft.shape.value = form === "corridor" ? { form, corners: [], radius_m } : { form: "polygon", corners: [] };
    this.#pressed = undefined;
    this.#view.use({
      ended: () => {
        this.active.value = undefined;
        this.#open = false;
      },
      click: (place) => this.#click(form, place),
      move: (place) => this.#move(form, place),
      press: (place) => (this.#pressed = place),
      release: (place) => this.#release(form, place),
    });
    this.active.value = form;
  }

  finish(): void {
    this.#view.use(undefined);
  }

  /** A circle may be dragged from its middle to its edge. */
  #move(form: DrawnForm, at: Place): void {
    const from = this.#pressed;
    if (form === "circle" && from !== undefined && !this.#open && this.#apart(from, at) >= SAME_PX) {
      this.#open = true;
      this.#draft.shape.value = { form, center: this.#rounded(from), radius_m: 0 };
    }
    this.#follow(at);
  }

  #release(form: DrawnForm, at: Place): void {
    const from = this.#pressed;
    this.#pressed = undefined;
    if (form !== "circle" || from === undefined || !this.#open || this.#apart(from, at) < SAME_PX) return;
    this.#follow(at);
    this.finish();
  }

  #click(form: DrawnForm, at: Place): void {
    const place = this.#rounded(at);
    const shape = this.#draft.shape.peek();
    if (form === "circle") {
      if (this.#open && shape.form === "circle") {
        this.#follow(at);
        this.finish();
      } else {
        this.#open = true;
        this.#draft.shape.value = { form, center: place, radius_m: 0 };
      }
      return;
    }
    if (shape.form !== "polygon" && shape.form !== "corridor") return;
    const last = shape.corners.at(-1);
    if (last !== undefined && this.#apart(last, place) < SAME_PX) return;
    this.#draft.shape.value = { ...shape, corners: [...shape.corners, place] };
  }

  /** The circle's edge is where the pointer is. */
  #follow(at: Place): void {
    const shape = this.#draft.shape.peek();
    if (!this.#open || shape.form !== "circle") return;
    this.#draft.shape.value = { ...shape, radius_m: Math.round(distance_m(this.#view.base.plane.world, shape.center, at)) };
  }

  /** Moves a corner, or the circle's edge, as long as it is held. */
  #grab(event: MapMouseEvent | MapTouchEvent, moves: "mousemove" | "touchmove", ends: "mouseup" | "touchend"): void {
    const { map, plane } = this.#view.base;
    if (this.active.value !== undefined || !this.#draft.active.peek()) return;
    const [handle] = map.queryRenderedFeatures(event.point, { layers: ["draft-handles"] });
    const index: unknown = handle?.properties["index"];
    if (typeof index !== "number") return;
    event.preventDefault();
    const move = ({ lngLat }: MapMouseEvent | MapTouchEvent): void => {
      const at = plane.toWorld([lngLat.lng, lngLat.lat]);
      const place = this.#rounded(at);
      const shape = this.#draft.shape.peek();
      if (shape.form === "everywhere" || shape.form === "around") return;
      if (shape.form !== "circle") {
        this.#draft.shape.value = { ...shape, corners: shape.corners.map((corner, other) => (other === index ? place : corner)) };
      } else if (index === 0) this.#draft.shape.value = { ...shape, center: place };
      else this.#draft.shape.value = { ...shape, radius_m: Math.round(distance_m(plane.world, shape.center, at)) };
    };
    map.on(moves, move);
    map.once(ends, () => void map.off(moves, move));
  }

  #show(shape: Shape): void {
    const { plane } = this.#view.base;
    const whole = missing(shape) === undefined;
    const features = whole ? shapesOf(plane, triedArea(shape)?.toJSON(), undefined) : [];
    const places: Place[] = [];
    if (shape.form === "circle") {
      const east: Place =
        plane.world === "planar"
          ? [shape.center[0] + shape.radius_m, shape.center[1]]
          : destination(shape.center, shape.radius_m, Math.PI / 2);
      places.push(shape.center, east);
    } else if (shape.form !== "everywhere" && shape.form !== "around") {
      places.push(...shape.corners);
      if (!whole && places.length > 1) features.push(line(places.map((place) => plane.toMap(place))));
    }
    this.#view.draw("draft", features);
    this.#view.draw(
      "draft-handles",
      places.map((place, index): Feature => ({
        type: "Feature",
        properties: { index, main: index === 0 },
        geometry: { type: "Point", coordinates: plane.toMap(place) },
      })),
    );
  }

  #rounded([x, y]: Place): Place {
    const { world } = this.#view.base.plane;
    return [rounded(x, world), rounded(y, world)];
  }

  #apart(one: Place, other: Place): number {
    const { map, plane } = this.#view.base;
    return map.project(plane.toMap(one)).dist(map.project(plane.toMap(other)));
  }
}

function line(coordinates: [number, number][]): Feature {
  return { type: "Feature", properties: { width: 0 }, geometry: { type: "LineString", coordinates } };
}
