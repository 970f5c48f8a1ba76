// The marks of the map for the keyboard and for screen readers: one of them is current, arrow keys go to its neighbours, Enter opens it.

import { useSignal } from "@preact/signals";
import { Keyboard } from "lucide";
import { useEffect, useRef } from "preact/hooks";

import { Icon } from "../../shared/icon.js";
import { useConsole } from "../context.js";
import { nameOf } from "../why/name.js";
import { counted, valueText } from "../words.js";
import type { MapView } from "./view.js";
import { isWay, nearestOf, nextOf, type Spot } from "./walk.js";

/** The ring keeps up with its mark so often. */
const KEEP_UP_MS = 100;

export function Walker() {
  const console = useConsole();
  const view = console.view.value;
  const current = useSignal<Spot | undefined>(undefined);
  const told = useSignal("");
  const focused = useSignal(false);
  const timer = useRef<ReturnType<typeof setInterval> | undefined>(undefined);
  useEffect(() => () => clearInterval(timer.current), []);

  const show = (spot: Spot | undefined): void => {
    current.value = spot;
    console.walked.value = spot;
    const at = spot === undefined ? undefined : { x: spot.x, y: spot.y };
    console.hovered.value =
      spot === undefined || at === undefined || spot.kind === "cluster"
        ? undefined
        : { events: spot.kind === "event" ? [spot.id] : [], clients: spot.kind === "client" ? [spot.id] : [], at };
  };
  const go = (to: Spot | undefined, otherwise: string): void => {
    if (to === undefined) told.value = otherwise;
    else {
      show(to);
      told.value = words(to);
    }
  };
  const words = (spot: Spot): string => {
    if (spot.kind === "cluster") return `${counted(spot.count ?? 0, "mark")} close together. Enter zooms in.`;
    if (spot.kind === "client") return `Client ${spot.id}`;
    const feature = console.live.objects.get(spot.id)?.feature;
    if (feature === undefined) return "A mark";
    const { attribute } = console.live.objects;
    const properties = Object.entries((feature.properties as Record<string, unknown> | null) ?? {})
      .filter(([name]) => name !== attribute)
      .slice(0, 4)
      .map(([name, value]) => `${name} ${valueText(value, 32)}`);
    const checks = console.live.violations.checksOf(spot.id);
    const violates = checks.length === 0 ? [] : [`its place may be wrong: check ${checks.join(", ")}`];
    return [nameOf(feature, attribute), ...violates, ...properties].join(", ");
  };
  const begin = (on: MapView): void => go(nearestOf(on.spots(), on.middle()), "There is no mark on this part of the map.");

  return (
    <>
      <div
        class="walker"
        role="application"
        tabIndex={0}
        aria-label="Marks on the map"
        aria-describedby="walker-help walker-now"
        title="Marks by keyboard: arrow keys, Enter"
        onFocus={() => {
          if (view === undefined) return;
          focused.value = true;
          begin(view);
          timer.current = setInterval(() => {
            const spot = current.peek();
            const now = spot === undefined ? undefined : view.spotOf(spot);
            if (now !== undefined) show(now);
          }, KEEP_UP_MS);
        }}
        onBlur={() => {
          clearInterval(timer.current);
          focused.value = false;
          show(undefined);
        }}
        onKeyDown={(event) => {
          if (view === undefined) return;
          const spot = current.value;
          if (isWay(event.key)) {
            const spots = view.spots().filter(({ id, kind }) => id !== spot?.id || kind !== spot.kind);
            if (spot === undefined) begin(view);
            else go(nextOf(spots, spot, event.key), "There is no mark further on in this direction.");
          } else if (event.key === "Home") begin(view);
          else if ((event.key === "Enter" || event.key === " ") && spot !== undefined) {
            if (spot.kind === "cluster") view.into(spot);
            else console.pick({ events: spot.kind === "event" ? [spot.id] : [], clients: spot.kind === "client" ? [spot.id] : [] }, true);
          } else return;
          event.preventDefault();
        }}
      >
        <Icon of={Keyboard} size={18} />
        <span id="walker-help" class="visually-hidden">
          Arrow keys go from mark to mark, Enter opens one, Home goes to the middle of the map.
        </span>
      </div>
      <p id="walker-now" class="visually-hidden" role="status" data-mark={focused.value ? current.value?.id : undefined}>
        {focused.value ? told.value : ""}
      </p>
    </>
  );
}

/** Around the current mark. It is beside the buttons, as its place is that of the map. */
export function WalkerRing({ at }: { readonly at: { readonly x: number; readonly y: number } }) {
  return <span class="walker-ring" aria-hidden="true" style={{ left: `${at.x}px`, top: `${at.y}px` }} />;
}
