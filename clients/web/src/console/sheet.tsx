// On a narrow screen the panel is a sheet over the map's lower edge, of three heights: it is dragged by its grip, or moved by keys.

import { signal, useSignal } from "@preact/signals";

const narrow = matchMedia("(width < 720px)");
/** Whether the panel is a sheet. */
export const isNarrow = signal(narrow.matches);
narrow.addEventListener("change", ({ matches }) => (isNarrow.value = matches));

/** Heights of the sheet, as parts of what the bar leaves; the least one has room for the tabs. */
const HEIGHTS = [
  ["low", "Most of the map"],
  ["half", "Half of it"],
  ["full", "Most of the panel"],
] as const;
export type Height = (typeof HEIGHTS)[number][0];

/** The height that somebody has chosen. */
export const height = signal<Height>("half");
/** A drag of fewer pixels is a press. */
const PRESS_PX = 5;

const indexOf = (wanted: Height): number => HEIGHTS.findIndex(([name]) => name === wanted);
const at = (index: number): Height => HEIGHTS[Math.max(0, Math.min(HEIGHTS.length - 1, index))]?.[0] ?? "half";

/** Makes room for what somebody has asked for. */
export function raise(): void {
  if (height.peek() === "low") height.value = "half";
}

export function Grip() {
  const drag = useSignal<
    { readonly from_y: number; readonly from_px: number; readonly room_px: number; readonly moved: boolean } | undefined
  >(undefined);
  const index = indexOf(height.value);
  const frame = (element: HTMLElement): HTMLElement | null => element.closest<HTMLElement>(".console");
  const stop = (element: HTMLElement): void => {
    drag.value = undefined;
    frame(element)?.style.removeProperty("--sheet");
  };
  const end = (element: HTMLElement): void => {
    const [state, panel] = [drag.value, element.parentElement];
    if (state === undefined || panel === null) return;
    const part = panel.getBoundingClientRect().height / state.room_px;
    stop(element);
    // A press goes on to the next height, and from the last one back.
    if (state.moved) height.value = part < 0.35 ? "low" : part < 0.75 ? "half" : "full";
    else height.value = at((index + 1) % HEIGHTS.length);
  };
  return (
    <div
      class="grip"
      role="separator"
      tabIndex={0}
      aria-orientation="horizontal"
      aria-label="Height of the panel"
      aria-controls="views"
      aria-valuemin={0}
      aria-valuemax={HEIGHTS.length - 1}
      aria-valuenow={index}
      aria-valuetext={HEIGHTS[index]?.[1]}
      onKeyDown={(event) => {
        const to = { ArrowUp: index + 1, ArrowDown: index - 1, Home: 0, End: HEIGHTS.length - 1, Enter: (index + 1) % HEIGHTS.length }[
          event.key
        ];
        if (to === undefined) return;
        event.preventDefault();
        height.value = at(to);
      }}
      onPointerDown={(event) => {
        const [element, panel] = [event.currentTarget, event.currentTarget.parentElement];
        const map = frame(element)?.querySelector(".map");
        if (panel === null || map === null || map === undefined) return;
        element.setPointerCapture(event.pointerId);
        const from_px = panel.getBoundingClientRect().height;
        drag.value = { from_y: event.clientY, from_px, room_px: from_px + map.getBoundingClientRect().height, moved: false };
      }}
      onPointerMove={({ currentTarget, clientY }) => {
        const state = drag.value;
        if (state === undefined) return;
        const by = state.from_y - clientY;
        if (!state.moved && Math.abs(by) < PRESS_PX) return;
        drag.value = { ...state, moved: true };
        frame(currentTarget)?.style.setProperty("--sheet", `${Math.max(72, Math.min(state.room_px, state.from_px + by)).toFixed(0)}px`);
      }}
      onPointerUp={({ currentTarget }) => end(currentTarget)}
      onPointerCancel={({ currentTarget }) => stop(currentTarget)}
    />
  );
}
