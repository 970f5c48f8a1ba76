// A chart over time, in panels beside each other: axes with round numbers and units, lines with their names and newest values above them, and a line to
// read others off.

import { useSignal } from "@preact/signals";

import { areaOf, bucketed, linearAxis, logarithmicAxis, momentsOf, nearestOf, newestOf, pathOf, type Axis } from "./plot.js";

export interface Series {
  /** The panel that it is drawn in: lines of like values in one panel would lie on each other. */
  readonly panel: string;
  /** Its name in there; absent where it is the only one. */
  readonly name?: string;
  /** What is counted or measured. */
  readonly says: string;
  /** One for each of the chart's times; `undefined` where there was none. */
  readonly values: readonly (number | undefined)[];
}

const [WIDTH, HEIGHT] = [160, 60];
const [LEFT, RIGHT, TOP, BOTTOM] = [42, 6, 6, 15];
const END = WIDTH - RIGHT;
const BASE = HEIGHT - BOTTOM;
/** Numbers on an upright axis, at most, and times below. */
const NUMBERS = 3;
const MOMENTS = 3;
/** Narrower, what says that there is no data has no room for its words. */
const NARROW = 76;
/** The first line of a panel, with the area below it, and the second one. */
const STROKES = [{ "stroke-width": 2 }, { "stroke-width": 1.5 }] as const;
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
  /** A logarithmic scale shows the greatest of each bucket and is the same in all panels, a linear one shows the mean and is each panel's own. */
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
  const index = pointed.value === undefined ? -1 : nearestOf(times, from_ms + pointed.value * span_ms);
  const time = times[index];
  const shown = series.map((each, at) => {
    const line = first < 0 ? [] : (all.lines[at] ?? []).slice(first);
    return { ...each, line, value: time === undefined ? newestOf(line, each.values) : line[index] };
  });
  const known = (lines: readonly Line[]): number[] => lines.flatMap(({ line }) => line.filter((value) => value !== undefined));
  return (
    <figure class="chart">
      <figcaption>
        <span>
          <strong>{title}</strong> <span class="quiet">{unit}</span>
        </span>
        <span class="quiet numbers">{time === undefined ? `last ${step_s} s` : clock(time)}</span>
      </figcaption>
      {[...new Set(series.map(({ panel }) => panel))].map((panel) => {
        const lines = shown.filter((each) => each.panel === panel);
        return (
          <Panel
            key={panel}
            name={panel}
            says={`${title}, ${panel}, ${unit}, of the last ${range_s / 60} minutes`}
            lines={lines}
            times={times}
            time={time}
            from_ms={from_ms}
            to_ms={to_ms}
            step_ms={1000 * step_s}
            axis={isLog ? logarithmicAxis(known(shown)) : linearAxis(Math.max(0, ...known(lines)) || 1)}
            text={text}
            point={(part) => (pointed.value = part)}
          />
        );
      })}
    </figure>
  );
}

/** A series with its line, and its value where the pointer is or else at the line's end. */
interface Line extends Series {
  readonly line: readonly (number | undefined)[];
  readonly value: number | undefined;
}

function Panel({
  name: panel,
  says,
  lines,
  times,
  time,
  from_ms,
  to_ms,
  step_ms,
  axis,
  text,
  point,
}: {
  readonly name: string;
  readonly says: string;
  readonly lines: readonly Line[];
  readonly times: readonly number[];
  /** What the pointer is at. */
  readonly time: number | undefined;
  readonly from_ms: number;
  readonly to_ms: number;
  readonly step_ms: number;
  readonly axis: Axis;
  readonly text: (value: number) => string;
  /** Hears at which part of the time the pointer is. */
  readonly point: (part: number | undefined) => void;
}) {
  const x = (at_ms: number): number => LEFT + ((at_ms - from_ms) / (to_ms - from_ms)) * (END - LEFT);
  const y = (value: number): number => BASE - axis.part(value) * (BASE - TOP);
  const begins_ms = Math.min(to_ms, ...lines.map(({ line }) => times[line.findIndex((value) => value !== undefined)] ?? Infinity));
  const isEmpty = begins_ms - from_ms > 1.5 * step_ms;
  const every = Math.ceil((axis.ticks.length - 1) / (NUMBERS - 1));
  const paths = lines.map(({ line }) => pathOf(times, line, 2.5 * step_ms, x, y));
  return (
    <div class="plot">
      <p class="numbers">
        <span>{panel}</span>
        {lines.map(({ name, says, value }, at) => (
          <span key={name} title={says}>
            {name !== undefined && <span style={{ color: colourOf(at) }}>{name}</span>}{" "}
            <output data-rate={panel} data-latency={`${panel} ${name ?? ""}`}>
              {value === undefined ? "–" : text(value)}
            </output>
          </span>
        ))}
      </p>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${says}${isEmpty ? `, no data before ${minute(begins_ms)}` : ""}`}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const at = ((event.clientX - box.left) / box.width) * WIDTH;
          point(Math.min(1, Math.max(0, (at - LEFT) / (END - LEFT))));
        }}
        onPointerLeave={() => point(undefined)}
      >
        {axis.ticks
          .filter((_, at) => at % every === 0)
          .map((tick) => (
            <g key={tick} class="axis">
              <line x1={LEFT} x2={END} y1={y(tick)} y2={y(tick)} />
              <text x={LEFT - 5} y={y(tick) + 3.5} text-anchor="end">
                {text(tick).replace(/\.0(?= )/, "")}
              </text>
            </g>
          ))}
        {momentsOf(from_ms, to_ms, MOMENTS).map((moment) => (
          <g key={moment} class="axis">
            <line x1={x(moment)} x2={x(moment)} y1={TOP} y2={BASE} />
            {/* At the very end it would be cut. */}
            {x(moment) <= END - 8 && (
              <text x={Math.max(LEFT + 13, x(moment))} y={HEIGHT - 3} text-anchor="middle">
                {minute(moment)}
              </text>
            )}
          </g>
        ))}
        {isEmpty && <Unmeasured to={x(begins_ms)} words={["no data before", minute(begins_ms)]} />}
        <path class="below" d={areaOf(paths[0] ?? "", BASE)} style={{ fill: colourOf(0) }} />
        {paths.map((path, at) => (
          <path key={at} d={path} style={{ stroke: colourOf(at) }} stroke-linejoin="round" {...strokeOf(at)} />
        ))}
        {time !== undefined && <line class="pointed" x1={x(time)} x2={x(time)} y1={TOP} y2={BASE} />}
        {/* Which point of the line the number above is. */}
        {lines.map(({ value }, at) => {
          const at_ms = time ?? times.at(-1);
          if (value === undefined || at_ms === undefined) return null;
          return <circle key={at} cx={x(at_ms)} cy={y(value)} r={3.5} style={{ fill: colourOf(at) }} />;
        })}
      </svg>
    </div>
  );
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
