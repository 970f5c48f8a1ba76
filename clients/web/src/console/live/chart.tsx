// A chart over time: axes with round numbers and units, lines with their names and newest values beside them, and a line to read others off.

import { useSignal } from "@preact/signals";

import { areaOf, bucketed, linearAxis, logarithmicAxis, momentsOf, nearestOf, pathOf, apart } from "./plot.js";

export interface Series {
  readonly name: string;
  /** One for each of the chart's times; `undefined` where there was none. */
  readonly values: readonly (number | undefined)[];
}

const [WIDTH, HEIGHT] = [336, 98];
/** Lines end where their labels begin. */
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 122, 8, 17];
const END = WIDTH - RIGHT;
const BASE = HEIGHT - BOTTOM;
/** A rate of now is the mean of this time. */
const NOW_MS = 5000;
/** From one label to the next. */
const LABEL = 17;
/** Narrower, what says that there is no data has no room for its words. */
const NARROW = 58;
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

/** Draws `series` over `times_ms`, ascending, in buckets of `step_s`; the axis ends at the newest and is `range_s` long. */
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
  const to_ms = times_ms.at(-1) ?? 0;
  const span_ms = range_s * 1000;
  const from_ms = to_ms - span_ms;
  const begins = Math.max(
    0,
    times_ms.findIndex((time) => time >= from_ms - 2000 * step_s),
  );
  const all = bucketed(
    times_ms.slice(begins),
    series.map(({ values }) => values.slice(begins)),
    step_s * 1000,
    isLog ? "most" : "mean",
  );
  const first = all.times_ms.findIndex((time) => time >= from_ms);
  const times = first < 0 ? [] : all.times_ms.slice(first);
  const lines = all.lines.map((values) => (first < 0 ? [] : values.slice(first)));
  const drawn = lines.flatMap((values) => values.filter((value) => value !== undefined));
  const axis = isLog ? logarithmicAxis(drawn) : linearAxis(Math.max(0, ...drawn) || 1);
  const x = (time: number): number => LEFT + ((time - from_ms) / span_ms) * (END - LEFT);
  const y = (value: number): number => BASE - axis.part(value) * (BASE - TOP);
  const index = pointed.value === undefined ? -1 : nearestOf(times, from_ms + pointed.value * span_ms);
  const time = times[index];
  const shown = series.map(({ name, values }, at) => {
    const line = lines[at] ?? [];
    const last = line.length - 1 - [...line].reverse().findIndex((value) => value !== undefined);
    return {
      name,
      line,
      value: time !== undefined ? line[index] : isLog ? values.at(-1) : lately(times_ms, values),
      begins_ms: beginOf(times, line),
      last,
      end: line[last],
    };
  });
  const tops = apart(
    shown.map(({ end }) => (end === undefined ? BASE : y(end))),
    LABEL,
    TOP + 2,
    HEIGHT - LABEL / 2,
  );
  const begins_ms = Math.min(to_ms, ...shown.map((each) => each.begins_ms ?? Infinity));
  const isEmpty = begins_ms - from_ms > 1500 * step_s;
  return (
    <figure class="chart">
      <figcaption>
        <span>
          <strong>{title}</strong> <span class="quiet">{unit}</span>
        </span>
        <span class="quiet numbers">{time === undefined ? "now" : clock(time)}</span>
      </figcaption>
      <div class="plot">
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
              {/* At the very end it would stand on the one before, or on a label. */}
              {x(moment) <= END - 10 && (
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
          {shown.map(({ name, last, end }, at) =>
            end === undefined ? null : (
              <polyline
                key={name}
                class="leader"
                points={`${x(times[last] ?? 0)},${y(end)} ${END + 2},${y(end)} ${END + 9},${tops[at]}`}
                style={{ stroke: colourOf(at) }}
              />
            ),
          )}
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
        <ul class="numbers">
          {shown.map(({ name, value }, at) => (
            <li
              key={name}
              style={{
                left: `${(100 * (END + 11)) / WIDTH}%`,
                top: `${((100 * (tops[at] ?? 0)) / HEIGHT).toFixed(1)}%`,
                color: colourOf(at),
              }}
            >
              {name}{" "}
              <output data-rate={name} data-latency={name}>
                {value === undefined ? "–" : text(value)}
              </output>
            </li>
          ))}
        </ul>
      </div>
    </figure>
  );
}

/** The mean of the last seconds: of one alone it would jump. */
function lately(times: readonly number[], values: readonly (number | undefined)[]): number | undefined {
  const since_ms = (times.at(-1) ?? 0) - NOW_MS;
  const last = values.filter((value, at): value is number => value !== undefined && (times[at] ?? 0) > since_ms);
  return last.length === 0 ? undefined : last.reduce((sum, value) => sum + value, 0) / last.length;
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
