// The map's frame. The map library comes after the first paint.

import { useSignal, type Signal } from "@preact/signals";
import { LocateFixed, Minus, Plus } from "lucide";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { Icon } from "../../shared/icon.js";
import type { PhoneMap } from "../map.js";
import type { Props } from "./app.js";

interface MapViewProps extends Props {
  /** Where the map is put when it is there. */
  readonly map: Signal<PhoneMap | undefined>;
}

export function MapView({ phone, map }: MapViewProps): JSX.Element {
  const canvas = useRef<HTMLDivElement>(null);
  const failed = useSignal(false);
  const world = phone.world.value;
  useEffect(() => {
    const container = canvas.current;
    if (container === null || world === undefined) return;
    let gone = false;
    import("../map.js")
      .then(({ drawMap }) => drawMap(container, phone, world.settings))
      .then(
        (drawn) => {
          if (gone) drawn.remove();
          else map.value = drawn;
        },
        () => (failed.value = true),
      );
    return () => {
      gone = true;
      map.value?.remove();
    };
  }, [world]);
  const here = phone.here.value;
  const forgotten = phone.stage.value.at === "forgotten";
  const ready = map.value !== undefined && !forgotten;
  const { choosing } = phone.trip;
  return (
    <section class="map" aria-label="Map">
      <div class="canvas" ref={canvas} />
      {failed.value && <p class="note">The map cannot be drawn here: it needs WebGL 2. The list works without it.</p>}
      {ready && here === undefined && !choosing.value && <span class="goal first-place" aria-hidden="true" />}
      {ready && (choosing.value || (here !== undefined && !phone.locating.value)) && <span class="cross" aria-hidden="true" />}
      {ready && (
        <div class="tools">
          {here !== undefined && (
            <button type="button" class="icon" aria-label="Centre on me" onClick={() => map.value?.centre()}>
              <Icon of={LocateFixed} size={24} />
            </button>
          )}
          <span class="zooms">
            <button type="button" class="icon" aria-label="Zoom in" onClick={() => map.value?.zoom(1)}>
              <Icon of={Plus} size={24} />
            </button>
            <button type="button" class="icon" aria-label="Zoom out" onClick={() => map.value?.zoom(-1)}>
              <Icon of={Minus} size={24} />
            </button>
          </span>
          {choosing.value && (
            <button type="button" class="primary" onClick={() => map.value?.goToMiddle()}>
              Go to the middle
            </button>
          )}
          {!choosing.value && here !== undefined && !phone.locating.value && (
            <button type="button" onClick={() => map.value?.putAtMiddle()}>
              Put me here
            </button>
          )}
        </div>
      )}
    </section>
  );
}
