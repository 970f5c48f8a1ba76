// A chart over time: axes with round numbers and units, lines with their names and newest values above them, and a line to read others off.

import { useSignal } from "@preact/signals";

import { areaOf, bucketed, linearAxis, logarithmicAxis, momentsOf, nearestOf, newestOf, pathOf } from "./plot.js";

export interface Series {
  readonly name: string;
  /** What is counted or measured. */
  readonly says: string;
  /** One for each of the chart's times; `undefined` where there was none. */
  readonly values: readonly (number | undefined)[];
}

const [WIDTH, HEIGHT] = [336, 88];
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 6, 8, 17];
const END = WIDTH - RIGHT;
const BASE = HEIGHT - BOTTOM;
/** Narrower, what says that there is no data has no room for its words. */
const NARROW = 76;
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

const clock = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB");
const minute = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Draws `series` over `times_ms`, ascending, in buckets of `step_s`; the axis ends at the newest whole one and is `range_s` long. */
export function Chart({
  title,
  unit,
  times_ms,
  series,
  range_s,
  step_s,
  scale,
  text,
}: {
  readonly title: string;
  /** Of the upright axis, for people. */
  readonly unit: string;
  readonly times_ms: readonly number[];
  readonly series: readonly Series[];
  readonly range_s: number;
  readonly step_s: number;
  /** A logarithmic scale shows the greatest of each bucket, a linear one the mean. */
  readonly scale: "linear" | "logarithmic";
  /** A value with its unit. */
  readonly text: (value: number) => string;
}) {
  const pointed = useSignal<number | undefined>(undefined);
  const isLog = scale === "logarithmic";
  const span_ms = range_s * 1000;
  const begins = Math.max(
    0,
    times_ms.findIndex((time) => time >= (times_ms.at(-1) ?? 0) - span_ms - 3000 * step_s),
  );
  const all = bucketed(
    times_ms.slice(begins),
    series.map(({ values }) => values.slice(begins)),
    step_s * 1000,
    isLog ? "most" : "mean",
  );
  const to_ms = all.times_ms.at(-1) ?? times_ms.at(-1) ?? 0;
  const from_ms = to_ms - span_ms;
  const first = all.times_ms.findIndex((time) => time >= from_ms);
  const times = first < 0 ? [] : all.times_ms.slice(first);
  const lines = all.lines.map((values) => (first < 0 ? [] : values.slice(first)));
  const drawn = lines.flatMap((values) => values.filter((value) => value !== undefined));
  const axis = isLog ? logarithmicAxis(drawn) : linearAxis(Math.max(0, ...drawn) || 1);
  const x = (time: number): number => LEFT + ((time - from_ms) / span_ms) * (END - LEFT);
  const y = (value: number): number => BASE - axis.part(value) * (BASE - TOP);
  const index = pointed.value === undefined ? -1 : nearestOf(times, from_ms + pointed.value * span_ms);
  const time = times[index];
  const shown = series.map(({ name, says, values }, at) => {
    const line = lines[at] ?? [];
    return { name, says, line, value: time === undefined ? newestOf(line, values) : line[index], begins_ms: beginOf(times, line) };
  });
  const begins_ms = Math.min(to_ms, ...shown.map((each) => each.begins_ms ?? Infinity));
  const isEmpty = begins_ms - from_ms > 1500 * step_s;
  return (
    <figure class="chart">
      <figcaption>
        <span>
          <strong>{title}</strong> <span class="quiet">{unit}</span>
        </span>
        <span class="quiet numbers">{time === undefined ? `newest ${step_s} s` : clock(time)}</span>
      </figcaption>
      <ul class="lines numbers">
        {shown.map(({ name, says, value }, at) => (
          <li key={name} title={says}>
            <span>
              <svg viewBox="0 0 16 4" width="16" height="4" aria-hidden="true">
                <line x1="1.5" x2="14.5" y1="2" y2="2" style={{ stroke: colourOf(at) }} {...strokeOf(at)} />
              </svg>{" "}
              {name}
            </span>
            <output data-rate={name} data-latency={name}>
              {value === undefined ? "–" : text(value)}
            </output>
          </li>
        ))}
      </ul>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${title}, ${unit}, of the last ${range_s / 60} minutes${isEmpty ? `, no data before ${minute(begins_ms)}` : ""}`}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const at = ((event.clientX - box.left) / box.width) * WIDTH;
          pointed.value = Math.min(1, Math.max(0, (at - LEFT) / (END - LEFT)));
        }}
        onPointerLeave={() => (pointed.value = undefined)}
      >
        {axis.ticks.map((tick) => (
          <g key={tick} class="axis">
            <line x1={LEFT} x2={END} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 5} y={y(tick) + 3.5} text-anchor="end">
              {text(tick).replace(/\.0(?= )/, "")}
            </text>
          </g>
        ))}
        {momentsOf(from_ms, to_ms).map((moment) => (
          <g key={moment} class="axis">
            <line x1={x(moment)} x2={x(moment)} y1={TOP} y2={BASE} />
            {/* At the very end it would be cut. */}
            {x(moment) <= END - 8 && (
              <text x={Math.max(LEFT + 8, x(moment))} y={HEIGHT - 4} text-anchor="middle">
                {minute(moment)}
              </text>
            )}
          </g>
        ))}
        {isEmpty && <Unmeasured to={x(begins_ms)} words={["no data before", minute(begins_ms)]} />}
        {shown.slice(0, 1).map(({ name, line }) => (
          <path key={name} class="below" d={areaOf(pathOf(times, line, 2500 * step_s, x, y), BASE)} style={{ fill: colourOf(0) }} />
        ))}
        {shown.map(({ name, line }, at) => (
          <path
            key={name}
            d={pathOf(times, line, 2500 * step_s, x, y)}
            style={{ stroke: colourOf(at) }}
            stroke-linejoin="round"
            {...strokeOf(at)}
          />
        ))}
        <Later series={shown} begins_ms={begins_ms} step_ms={1000 * step_s} x={x} />
        {time !== undefined && (
          <>
            <line class="pointed" x1={x(time)} x2={x(time)} y1={TOP} y2={BASE} />
            {shown.map(({ name, value }, at) =>
              value === undefined ? null : <circle key={name} cx={x(time)} cy={y(value)} r={3.5} style={{ fill: colourOf(at) }} />,
            )}
          </>
        )}
      </svg>
    </figure>
  );
}

/** When a line begins. */
function beginOf(times: readonly number[], line: readonly (number | undefined)[]): number | undefined {
  return times[line.findIndex((value) => value !== undefined)];
}

/** The part of the time of which nothing is known. */
function Unmeasured({ to, words }: { readonly to: number; readonly words: readonly string[] }) {
  return (
    <g class="unmeasured">
      <rect x={LEFT} y={TOP} width={to - LEFT} height={BASE - TOP} />
      {to - LEFT >= NARROW &&
        words.map((word, at) => (
          <text key={word} x={(LEFT + to) / 2} y={(TOP + BASE) / 2 - 2 + 12 * at} text-anchor="middle">
            {word}
          </text>
        ))}
    </g>
  );
}

/** Where lines begin that are measured only since later than the others, with the first words of their names. */
function Later({
  series,
  begins_ms,
  step_ms,
  x,
}: {
  readonly series: readonly { readonly name: string; readonly begins_ms: number | undefined }[];
  readonly begins_ms: number;
  readonly step_ms: number;
  readonly x: (time: number) => number;
}) {
  const later = series.filter((each) => each.begins_ms !== undefined && each.begins_ms - begins_ms > 1.5 * step_ms);
  const from_ms = later[0]?.begins_ms;
  if (from_ms === undefined) return null;
  const names = [...new Set(later.map(({ name }) => name.split(" ")[0]))].join(" and ");
  const isNearLeft = x(from_ms) - LEFT < 90;
  return (
    <g class="later">
      <line x1={x(from_ms)} x2={x(from_ms)} y1={TOP} y2={BASE} />
      <text x={x(from_ms) + (isNearLeft ? 4 : -4)} y={TOP + 8} text-anchor={isNearLeft ? "start" : "end"}>
        {names} since {minute(from_ms)}
      </text>
    </g>
  );
}
