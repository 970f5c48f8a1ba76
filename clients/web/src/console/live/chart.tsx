// A chart over time: axes with round numbers and units, above them the names of all lines with their values, which choose the lines that are drawn, and a
// line to read values off, which goes through all charts and is moved by the pointer or by arrow keys.

import { useSignal, type Signal } from "@preact/signals";

import { unbroken } from "../../shared/readable.js";
import { span } from "../words.js";
import { areaOf, bucketed, linearAxis, logarithmicAxis, momentsOf, nearestOf, newestOf, pathOf, type Axis } from "./plot.js";

export interface Series {
  /** What it is called at its end. */
  readonly name: string;
  /** Its name for programs that drive the page. */
  readonly id: string;
  /** What is counted or measured. */
  readonly says: string;
  /** One for each of the chart's times; `undefined` where there was none. */
  readonly values: readonly (number | undefined)[];
}

/** Lines over one axis: the first with the area below it on a linear scale, so that both can be told apart. */
export interface PanelShown {
  /** What it is of; absent where the names of its lines say that. */
  readonly name?: string;
  readonly series: readonly Series[];
}

const [WIDTH, HEIGHT] = [380, 92];
const [LEFT, RIGHT, TOP, BOTTOM] = [46, 10, 7, 3];
/** Times below the lines. */
const CLOCK = 17;
const END = WIDTH - RIGHT;
const BASE = HEIGHT - BOTTOM;
/** Numbers on an upright axis, at most, and times below. */
const NUMBERS = 5;
const MOMENTS = 5;
/** Narrower, what says that there is no data has no room for its words. */
const NARROW = 88;
/** The first line of a panel, with the area below it, and the second one. */
const STROKES = [{ "stroke-width": 2 }, { "stroke-width": 1.5 }] as const;
/** The colour of a line: the theme has one for each stroke. */
const colourOf = (at: number): string => `var(--chart-${at % STROKES.length})`;
const strokeOf = (at: number) => ({ fill: "none", "stroke-linecap": "round", ...STROKES[at % STROKES.length] }) as const;

const clock = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB");
const minute = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Draws `panels` over `times_ms`, ascending, in buckets of `step_s`; the axis ends at the newest whole one and is `range_s` long. */
export function Chart({
  title,
  unit,
  times_ms,
  panels,
  range_s,
  step_s,
  scale,
  text,
  pointed,
}: {
  readonly title: string;
  /** Of the upright axis, for people. */
  readonly unit: string;
  readonly times_ms: readonly number[];
  readonly panels: readonly PanelShown[];
  readonly range_s: number;
  readonly step_s: number;
  /** A logarithmic scale shows the greatest of each bucket and is the same for all lines, a linear one shows the mean and is of the lines that are drawn. */
  readonly scale: "linear" | "logarithmic";
  /** A value with its unit. */
  readonly text: (value: number) => string;
  /** At which part of the time somebody reads the charts. */
  readonly pointed: Signal<number | undefined>;
}) {
  const isLog = scale === "logarithmic";
  const chosen = useSignal(0);
  const span_ms = range_s * 1000;
  const series = panels.flatMap((panel) => panel.series);
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
  const shown = series.map((each, at): Line => {
    const line = first < 0 ? [] : (all.lines[at] ?? []).slice(first);
    const newest = newestOf(line, each.values);
    return { ...each, line, newest, value: time === undefined ? newest : line[index] };
  });
  const known = (lines: readonly Line[]): number[] => lines.flatMap(({ line }) => line.filter((value) => value !== undefined));
  const drawn = panels[chosen.value] ?? panels[0];
  const lines = shown.filter(({ id }) => drawn?.series.some((each) => each.id === id) === true);
  const words = shown.map(({ id, value }) => `${id} ${value === undefined ? "unknown" : text(value)}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <span>
          <strong>{title}</strong> <span class="quiet">{unit}</span>
        </span>
        <span class="quiet numbers">
          {time === undefined ? `last ${step_s} s` : clock(time)}
          {isLog && `, max of ${unbroken(span(range_s))}`}
        </span>
      </figcaption>
      <input
        class="visually-hidden"
        type="range"
        min={0}
        max={1}
        step={step_s / range_s}
        value={pointed.value ?? 1}
        aria-label={`${title}: time to read`}
        aria-valuetext={`${time === undefined ? `last ${step_s} s` : clock(time)}: ${words}`}
        onFocus={() => (pointed.value ??= 1)}
        onBlur={() => (pointed.value = undefined)}
        onInput={({ currentTarget }) => (pointed.value = Number(currentTarget.value))}
      />
      <div class="tiles" role="group" aria-label={`${title}: lines`}>
        {panels.map(({ series: own }, at) => (
          <button key={at} type="button" class="numbers" aria-pressed={chosen.value === at} onClick={() => (chosen.value = at)}>
            {own.map(({ id, name, says }, of) => {
              const { value, line = [] } = shown.find((each) => each.id === id) ?? {};
              // The newest one alone flatters.
              const most = Math.max(...line.map((each) => each ?? 0));
              const greatest = isLog && most > 0 ? most : undefined;
              const [, figure = "–", its = ""] = /^([\d.,]+)(.*)$/.exec(value === undefined ? "" : text(value)) ?? [];
              return (
                <span key={id} title={says}>
                  <span class="key" style={{ "--line-colour": colourOf(of) }}>
                    {name}
                  </span>
                  <span class="figure">
                    <span data-rate={id}>
                      {figure}
                      <small>{its}</small>
                    </span>
                    {greatest !== undefined && <small class="most">max {unbroken(text(greatest))}</small>}
                  </span>
                </span>
              );
            })}
          </button>
        ))}
      </div>
      <Plot
        says={`${title}, ${drawn?.name ?? lines.map(({ name }) => name).join(" and ")}, ${unit}, of the last ${range_s / 60} minutes`}
        lines={lines}
        times={times}
        time={time}
        from_ms={from_ms}
        to_ms={to_ms}
        step_ms={1000 * step_s}
        // Down to no 0: the area below a line on a logarithmic scale would say nothing.
        isFilled={!isLog}
        axis={isLog ? logarithmicAxis(known(shown)) : linearAxis(Math.max(0, ...known(lines)) || 1)}
        tick={(value) => (value === 0 ? "0" : text(value))}
        point={(part) => (pointed.value = part)}
      />
    </figure>
  );
}

/** A series with its line, its newest value, and its value where somebody reads it. */
interface Line extends Series {
  readonly line: readonly (number | undefined)[];
  readonly newest: number | undefined;
  readonly value: number | undefined;
}

function Plot({
  says,
  lines,
  times,
  time,
  from_ms,
  to_ms,
  step_ms,
  isFilled,
  axis,
  tick,
  point,
}: {
  readonly says: string;
  readonly lines: readonly Line[];
  readonly times: readonly number[];
  /** What is read. */
  readonly time: number | undefined;
  readonly from_ms: number;
  readonly to_ms: number;
  readonly step_ms: number;
  readonly isFilled: boolean;
  readonly axis: Axis;
  readonly tick: (value: number) => string;
  /** Hears at which part of the time the pointer is. */
  readonly point: (part: number | undefined) => void;
}) {
  const x = (at_ms: number): number => LEFT + ((at_ms - from_ms) / (to_ms - from_ms)) * (END - LEFT);
  const y = (value: number): number => BASE - axis.part(value) * (BASE - TOP);
  const begins_ms = Math.min(to_ms, ...lines.map(({ line }) => times[line.findIndex((value) => value !== undefined)] ?? Infinity));
  const isEmpty = begins_ms - from_ms > 1.5 * step_ms;
  const every = Math.ceil((axis.ticks.length - 1) / (NUMBERS - 1));
  const paths = lines.map(({ line }) => pathOf(times, line, 2.5 * step_ms, x, y));
  const height = HEIGHT + CLOCK;
  const isNear = (at_ms: number): boolean => time !== undefined && Math.abs(x(at_ms) - x(time)) < 48;
  return (
    <svg
      viewBox={`0 0 ${WIDTH} ${height}`}
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
        .map((value) => (
          <g key={value} class="axis">
            <line x1={LEFT} x2={END} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 6} y={y(value) + 4} text-anchor="end">
              {tick(value).replace(/\.0(?= )/, "")}
            </text>
          </g>
        ))}
      {momentsOf(from_ms, to_ms, MOMENTS)
        .filter((moment) => !isNear(moment))
        .map((moment) => (
          <text key={moment} x={Math.min(END - 10, Math.max(LEFT + 10, x(moment)))} y={height - 3} text-anchor="middle">
            {minute(moment)}
          </text>
        ))}
      {isEmpty && <Unmeasured to={x(begins_ms)} words={["no data before", minute(begins_ms)]} />}
      {isFilled && <path class="below" d={areaOf(paths[0] ?? "", BASE)} style={{ fill: colourOf(0) }} />}
      {paths.map((path, at) => (
        <path key={at} d={path} style={{ stroke: colourOf(at) }} stroke-linejoin="round" {...strokeOf(at)} />
      ))}
      {time !== undefined && <line class="pointed" x1={x(time)} x2={x(time)} y1={TOP} y2={BASE} />}
      {time !== undefined && (
        <text class="read" x={Math.min(END - 20, Math.max(LEFT + 20, x(time)))} y={height - 3} text-anchor="middle">
          {clock(time)}
        </text>
      )}
      {/* Which point of the line the number above it is. */}
      {lines.map(({ value }, at) => {
        const at_ms = time ?? times.at(-1);
        if (value === undefined || at_ms === undefined) return null;
        return <circle key={at} cx={x(at_ms)} cy={y(value)} r={4} style={{ fill: colourOf(at) }} />;
      })}
    </svg>
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
