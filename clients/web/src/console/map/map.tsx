// The map's place on the page, its buttons, and what can be switched.

import { useEffect, useRef } from "preact/hooks";

import { reasonOf } from "../access.js";
import { useConsole } from "../context.js";
import { count } from "../words.js";
import type { Layer } from "./view.js";

export function MapPart() {
  const console = useConsole();
  const container = useRef<HTMLDivElement>(null);
  const { view, mapProblem } = console;
  useEffect(() => {
    void (async () => {
      if (container.current === null) return;
      try {
        // The map library comes after the frame of the page is painted.
        const [{ MapView }, { Drawing }] = await Promise.all([import("./view.js"), import("../try/draw.js")]);
        const made = await MapView.create(container.current, console.settings);
        console.show(made, new Drawing(made, console.draft));
      } catch (error) {
        mapProblem.value = reasonOf(error);
      }
    })();
  }, []);
  return (
    <>
      <div class="canvas" ref={container} />
      {mapProblem.value !== undefined && (
        <p class="notice bad" role="alert">
          There is no map: {mapProblem.value}. It takes a browser with WebGL 2; everything beside the map works.
        </p>
      )}
      <Layers />
      <div class="zoom" role="group" aria-label="Map">
        <button type="button" aria-label="Zoom in" title="Zoom in" onClick={() => view.value?.zoom(1)}>
          <span aria-hidden="true">+</span>
        </button>
        <button type="button" aria-label="Zoom out" title="Zoom out" onClick={() => view.value?.zoom(-1)}>
          <span aria-hidden="true">−</span>
        </button>
        <button type="button" aria-label="Fit to the data" title="Fit to the data" onClick={() => console.showAll()}>
          <svg aria-hidden="true" viewBox="0 0 16 16" width="16" height="16">
            <path d="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4" fill="none" stroke="currentColor" stroke-width="1.6" />
          </svg>
        </button>
      </div>
    </>
  );
}

const LAYERS: readonly (readonly [Layer, string])[] = [
  ["events", "Events"],
  ["clients", "Clients"],
  ["areas", "Areas"],
];

function Layers() {
  const { layers, live, clients, draft, settings } = useConsole();
  const counts: Readonly<Record<Layer, number>> = { events: live.points.value, clients: clients.places.value, areas: clients.areas.value };
  return (
    <fieldset class="layers">
      <legend class="visually-hidden">What the map shows</legend>
      {LAYERS.map(([layer, label]) => (
        <label key={layer}>
          <input
            type="checkbox"
            checked={layers.value[layer]}
            onChange={({ currentTarget }) => (layers.value = { ...layers.value, [layer]: currentTarget.checked })}
          />
          <span class={`sample ${layer}`} aria-hidden="true" />
          <span>{label}</span>
          <output class="numbers quiet" data-layer={layer}>
            {count(counts[layer])}
          </output>
        </label>
      ))}
      {draft.trial.value.state === "running" && (
        <p>
          <span class="sample match" aria-hidden="true" /> Matches of the draft
        </p>
      )}
      {clients.tooMany.value && <p class="quiet">Zoom in to see areas around clients.</p>}
      {settings.round_m === 0 && clients.list.value.length > 1 && (
        <p class="quiet hidden-positions">
          Clients are not on the map: this broker hides positions. Set <code>privacy.round_m = 100</code> in its configuration to show them
          to 100 m.
        </p>
      )}
    </fieldset>
  );
}
