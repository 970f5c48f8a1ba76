// A chart over time: axes with round numbers and units, a legend with the newest values, and a line to read others off.

import { useSignal } from "@preact/signals";

export interface Series {
  readonly name: string;
  /** One for each of the chart's times; `undefined` where there was none. */
  readonly values: readonly (number | undefined)[];
}

const [WIDTH, HEIGHT] = [336, 116];
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 8, 10, 20];
/** A line breaks where for longer there is nothing; the broker's own points are ten seconds apart. */
const BREAK_MS = 15_000;
/** Steps of the axis of time. */
const STEPS_S = [60, 120, 300, 600, 900];
/** Points of a line; of more, the greatest of each few are drawn, so that no peak is lost. */
const POINTS = 160;
/** Lines of like values lie on each other, and each is seen: one with the area below it, then a thin one, dashes and dots. */
const STROKES = [
  { "stroke-width": 2.5 },
  { "stroke-width": 1.5 },
  { "stroke-width": 2.25, "stroke-dasharray": "4 6" },
  { "stroke-width": 2.5, "stroke-dasharray": "0.1 5" },
] as const;
/** The colour of a line: the theme has one for each stroke. */
const colourOf = (at: number): string => `var(--chart-${at % STROKES.length})`;
const strokeOf = (at: number) => ({ fill: "none", "stroke-linecap": "round", ...STROKES[at % STROKES.length] }) as const;

/** Steps of 1, 2 or 5 times a power of ten from 0 to at least `most`. */
export function ticksOf(most: number): number[] {
  const raw = Math.max(most, 1e-9) / 3;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw * 0.999) ?? raw;
  return Array.from({ length: Math.max(1, Math.ceil(most / step - 1e-9)) + 1 }, (_, at) => Number((at * step).toPrecision(12)));
}

/** Round times of the day between two times, at most six. */
export function momentsOf(from_ms: number, to_ms: number): number[] {
  const step_ms = 1000 * (STEPS_S.find((step) => (to_ms - from_ms) / (step * 1000) <= 6) ?? 1800);
  const first = Math.ceil(from_ms / step_ms) * step_ms;
  return Array.from({ length: Math.max(0, Math.floor((to_ms - first) / step_ms) + 1) }, (_, at) => first + at * step_ms);
}

/** Draws `series` over `times_ms`, ascending; the axis ends at the newest and is `range_s` long, blank where nothing was measured. */
export function Chart({
  title,
  unit,
  times_ms,
  series,
  range_s,
  text,
}: {
  readonly title: string;
  /** Of the upright axis, for people. */
  readonly unit: string;
  readonly times_ms: readonly number[];
  readonly series: readonly Series[];
  readonly range_s: number;
  /** A value with its unit. */
  readonly text: (value: number) => string;
}) {
  const pointed = useSignal<number | undefined>(undefined);
  const to_ms = times_ms.at(-1) ?? 0;
  const span_ms = range_s * 1000;
  const from_ms = to_ms - span_ms;
  const first = times_ms.findIndex((time) => time >= from_ms);
  const shown = first < 0 ? [] : times_ms.slice(first);
  const most = Math.max(0, ...series.flatMap(({ values }) => values.slice(first).filter((value) => value !== undefined)));
  const ticks = ticksOf(most === 0 ? 1 : most);
  const top = ticks.at(-1) ?? 1;
  const x = (time: number): number => LEFT + ((time - from_ms) / span_ms) * (WIDTH - LEFT - RIGHT);
  const y = (value: number): number => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const index = pointed.value === undefined ? shown.length - 1 : nearestOf(shown, from_ms + pointed.value * span_ms);
  const time = shown[index];
  const clock = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB");
  const minute = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return (
    <figure class="chart">
      <figcaption>
        <span>
          <strong>{title}</strong> <span class="quiet">{unit}</span>
        </span>
        <span class="quiet numbers">{pointed.value !== undefined && time !== undefined ? clock(time) : "now"}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${title}, ${unit}, of the last ${range_s / 60} minutes`}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const at = ((event.clientX - box.left) / box.width) * WIDTH;
          pointed.value = Math.min(1, Math.max(0, (at - LEFT) / (WIDTH - LEFT - RIGHT)));
        }}
        onPointerLeave={() => (pointed.value = undefined)}
      >
        {ticks.map((tick) => (
          <g key={tick} class="axis">
            <line x1={LEFT} x2={WIDTH - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 6} y={y(tick) + 3.5} text-anchor="end">
              {text(tick)}
            </text>
          </g>
        ))}
        {momentsOf(from_ms, to_ms).map((moment) => (
          <g key={moment} class="axis">
            <line x1={x(moment)} x2={x(moment)} y1={TOP} y2={HEIGHT - BOTTOM} />
            <text x={Math.min(WIDTH - 14, Math.max(LEFT + 2, x(moment)))} y={HEIGHT - 5} text-anchor="middle">
              {minute(moment)}
            </text>
          </g>
        ))}
        {series.slice(0, 1).map(({ name, values }) => (
          <path key={name} class="below" d={areaOf(pathOf(shown, values.slice(first), x, y), y(0))} style={{ fill: colourOf(0) }} />
        ))}
        {series.map(({ name, values }, at) => (
          <path
            key={name}
            d={pathOf(shown, values.slice(first), x, y)}
            style={{ stroke: colourOf(at) }}
            stroke-linejoin="round"
            {...strokeOf(at)}
          />
        ))}
        {pointed.value !== undefined && time !== undefined && (
          <>
            <line class="pointed" x1={x(time)} x2={x(time)} y1={TOP} y2={HEIGHT - BOTTOM} />
            {series.map(({ name, values }, at) => {
              const value = values.slice(first)[index];
              return value === undefined ? null : <circle key={name} cx={x(time)} cy={y(value)} r={3.5} style={{ fill: colourOf(at) }} />;
            })}
          </>
        )}
      </svg>
      <ul class="numbers">
        {series.map(({ name, values }, at) => {
          const value = values.slice(first)[index];
          return (
            <li key={name}>
              <svg class="stroke" aria-hidden="true" viewBox="0 0 26 8" style={{ stroke: colourOf(at) }}>
                <line x1={3} x2={23} y1={4} y2={4} {...strokeOf(at)} />
              </svg>{" "}
              <span class="quiet">{name}</span>{" "}
              <output data-rate={name} data-latency={name}>
                {value === undefined ? "–" : text(value)}
              </output>
            </li>
          );
        })}
      </ul>
    </figure>
  );
}

function nearestOf(times: readonly number[], wanted: number): number {
  const after = times.findIndex((time) => time >= wanted);
  if (after < 0) return times.length - 1;
  return after > 0 && wanted - (times[after - 1] ?? 0) < (times[after] ?? 0) - wanted ? after - 1 : after;
}

/** The area between a line and the axis, for each of its pieces. */
export function areaOf(path: string, base: number): string {
  return path
    .split("M")
    .filter((piece) => piece !== "")
    .map((piece) => {
      const places = piece.split("L");
      const [from = "", to = ""] = [places[0], places.at(-1)].map((place) => place?.split(",")[0] ?? "");
      return `M${from},${base.toFixed(1)}L${piece}L${to},${base.toFixed(1)}Z`;
    })
    .join("");
}

/** A line, thinned where there are more points than can be seen, and broken where there are none for long, or a value is missing. */
export function pathOf(
  times: readonly number[],
  values: readonly (number | undefined)[],
  x: (time: number) => number,
  y: (value: number) => number,
): string {
  const slot_ms = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / POINTS;
  let path = "";
  let before_ms = -Infinity;
  for (let at = 0; at < times.length;) {
    const from_ms = times[at] ?? 0;
    let most = -Infinity;
    // Of what falls into one slot the greatest is drawn.
    do most = Math.max(most, values[at++] ?? -Infinity);
    while (at < times.length && (times[at] ?? 0) - from_ms < slot_ms);
    if (most === -Infinity) {
      before_ms = -Infinity;
      continue;
    }
    path += `${from_ms - before_ms > BREAK_MS + slot_ms ? "M" : "L"}${x(from_ms).toFixed(1)},${y(most).toFixed(1)}`;
    before_ms = from_ms;
  }
  return path;
}
