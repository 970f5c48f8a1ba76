// What happens now: figures, and the newest events.

import { useSignal } from "@preact/signals";
import { CircleCheck, Pause, Play, TriangleAlert } from "lucide";
import { useEffect } from "preact/hooks";
import type { DeliveredFeature } from "nearcast";

import { findingOf } from "../../shared/finding.js";
import { Icon } from "../../shared/icon.js";
import { useConsole } from "../context.js";
import type { Tab } from "../model.js";
import { EventName, EventSummary } from "../why/name.js";
import { placeOf } from "../place.js";
import { holding } from "../rows.js";
import { isNarrow } from "../sheet.js";
import { clock, count, counted, duration, moment, span } from "../words.js";
import { Chart } from "./chart.js";
import { LATENCIES, RANGES, type Latency } from "./figures.js";
import { NoEvents } from "./empty.js";
import type { FeedRow } from "./feed.js";
import { useNear } from "./near.js";
import { figureOf } from "./plot.js";
import type { Rate } from "./rates.js";
import type { Reach } from "./reach.js";

const COUNTED: Readonly<Record<Rate, string>> = {
  events: "Events published",
  matches: "Pairs of an event and a subscription that it matches",
  deliveries: "Pairs of an event and a client that it goes to, by however many subscriptions",
  moves: "Positions that clients reported",
};
/** Rates of which one is seldom as large as the other: lines of like values would lie on each other. */
const PAIRS: readonly (readonly Rate[])[] = [
  ["events", "deliveries"],
  ["moves", "matches"],
];
/** What each latency ends with, and what one value of it is of. */
const MEASURED: Readonly<Record<Latency, readonly [name: string, says: string]>> = {
  match: ["matched", "From publish until the oldest event of a batch is matched; each batch counts once"],
  write: ["written", "From publish until the oldest event of a write to a client is written; each write counts once"],
};

/** A row waits so long for the number of clients that its event has reached, so that it stands there whole. */
const ASKED_MS = 4000;

/** How many seconds a point of a chart of so many is of. */
const stepOf = (range_s: number): number => (RANGES.find(([range]) => range === range_s) ?? RANGES[0])[2];

export function LiveTab() {
  // Before the first event, how to make one matters more than lines at 0.
  const isNew = useConsole().figures.shown.value?.stats.events === 0;
  const isCharted = useConsole().figures.shown.value !== undefined && !isNarrow.value;
  return (
    <>
      {!isCharted && <Attention />}
      {isNew && <NoEvents />}
      <FiguresPart />
      <Feed isNew={isNew} />
    </>
  );
}

/** What is wrong now, each with where to look; while nothing is, `calm` words or none. */
function Attention({ calm = false }: { readonly calm?: boolean }) {
  const console = useConsole();
  const { figures, clients, live } = console;
  const dropped = figures.shown.value?.dropped ?? 0;
  const slow = clients.slow.value;
  const violations = live.violations.lately.value;
  const all: readonly (readonly [tab: Tab, count: number, words: string])[] = [
    ["clients", dropped, `${counted(dropped, "delivery", "deliveries")} dropped in the last minute`],
    ["clients", slow, `${counted(slow, "client does", "clients do")} not keep up`],
    ["checks", violations, `${counted(violations, "violation")} in the last minute`],
  ];
  const wrong = all.filter(([, number]) => number > 0);
  if (wrong.length === 0)
    return calm ? (
      <p class="calm quiet">
        <Icon of={CircleCheck} /> Nothing dropped, nobody slow
      </p>
    ) : null;
  return (
    <section class="attention" aria-label="Attention">
      <Icon of={TriangleAlert} />
      <ul>
        {wrong.map(([tab, , words]) => (
          <li key={words.replace(/^\S+ /, "")}>
            <button type="button" class="link numbers" onClick={() => console.go(tab)}>
              {words}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function FiguresPart() {
  const { figures, access, settings, clients } = useConsole();
  const shown = figures.shown.value;
  const why = figures.why.value;
  const pointed = useSignal<number | undefined>(undefined);
  if (shown === undefined) {
    return (
      <section class={why === undefined ? "figures waiting" : "figures"} aria-label="Figures">
        <p class="quiet">{why ?? (access.usable.value ? "Asking for the figures…" : "The figures take a token.")}</p>
      </section>
    );
  }
  const { stats, rates, latencies } = shown;
  const range_s = figures.range_s.value;
  const step_s = stepOf(range_s);
  const now = (rate: Rate): number => figureOf(rates.times_ms, rates.of[rate], step_s, "mean") ?? 0;
  // Where each client has one subscription, one number says both.
  const isOneEach =
    stats.clients > 0 && stats.subscriptions === stats.clients && clients.list.value.every(({ subscriptions }) => subscriptions === 1);
  const connections = ["connections", stats.connections, "Connections that are open now"] as const;
  const population = isOneEach
    ? ([
        ...(stats.connections === stats.clients ? [] : [connections]),
        ["clients, each with one subscription", stats.clients, "Clients that the broker knows now, connected or not"],
      ] as const)
    : ([
        connections,
        ["clients", stats.clients, "Clients that the broker knows now, connected or not"],
        ["subscriptions", stats.subscriptions, "Subscriptions of all clients now"],
      ] as const);
  const rateChart = (
    <>
      <div class="title">
        {isNarrow.value ? <span>Time range</span> : <Attention calm />}
        <div class="ranges" role="group" aria-label="Time range">
          {RANGES.map(([range, label]) => (
            <button key={range} type="button" aria-pressed={range_s === range} onClick={() => (figures.range_s.value = range)}>
              {label}
            </button>
          ))}
        </div>
      </div>
      <Chart
        title="Rates"
        unit="per second"
        times_ms={rates.times_ms}
        range_s={range_s}
        step_s={step_s}
        scale="linear"
        text={count}
        panels={PAIRS.map((pair) => ({
          series: pair.map((rate) => ({ name: rate, id: rate, says: COUNTED[rate], values: rates.of[rate] })),
        }))}
        pointed={pointed}
      />
    </>
  );
  const write = figureOf(latencies.times_ms, latencies.of["write p50"], step_s, "most");
  const ofBroker = (
    <>
      <Chart
        title="Latency"
        unit="since published"
        times_ms={latencies.times_ms}
        range_s={range_s}
        step_s={step_s}
        scale="logarithmic"
        text={duration}
        panels={LATENCIES.map(([latency]) => {
          const [name, says] = MEASURED[latency];
          const parts = ["p50", "p99"] as const;
          const series = parts.map((part) => {
            const id = `${latency} ${part}` as const;
            return { name: `${latency} ${part}`, id, says, values: latencies.of[id] };
          });
          return { name: `until ${name}`, series };
        })}
        pointed={pointed}
      />
      <dl class="strip numbers">
        {(
          [
            ...population,
            // Nothing is kept of events without `ttl_s`, and a 0 would look like a loss.
            ...(stats.live_objects > 0 ? [["live events", stats.live_objects, "Events that the broker keeps now"] as const] : []),
            ["queued", stats.queued, "Deliveries that wait to be written now", "raised"],
            ["dropped", stats.deliveries_dropped, "Deliveries dropped since the broker started", "raised"],
          ] as const
        ).map(([name, value, says, above]) => (
          <div key={name} title={says}>
            <dt>{name}</dt>
            <dd class={value > 0 ? above : undefined}>{count(value)}</dd>
          </div>
        ))}
      </dl>
      <p class="broker quiet" title={stats.engine_why}>
        nearcast {stats.version} · up for {span(stats.uptime_s)} · engine {stats.engine} ·{" "}
        {settings.world === "planar" ? "planar" : "WGS 84"}
      </p>
    </>
  );
  // The events come soon: on a narrow screen all charts are folded, on a wide one those of the broker.
  return (
    <section class="figures" aria-label="Figures">
      {why !== undefined && <p class="warn">{why}</p>}
      {isNarrow.value ? (
        <details>
          <summary class="numbers">
            <strong>Rates and latency</strong>{" "}
            <span class="quiet">
              {count(now("events"))} events/s, {count(now("deliveries"))} deliveries/s
            </span>
          </summary>
          {rateChart}
          {ofBroker}
        </details>
      ) : (
        <>
          {rateChart}
          <details>
            <summary class="numbers">
              <strong>Latency and broker</strong>{" "}
              <span class="quiet">
                {write !== undefined && `${duration(write)} at the median · `}
                {counted(stats.connections, "connection")}
              </span>
            </summary>
            {ofBroker}
          </details>
        </>
      )}
    </section>
  );
}

function Feed({ isNew }: { readonly isNew: boolean }) {
  const console = useConsole();
  const { live, access, figures, reach } = console;
  // The chart's own number; without the scope for it, what the page has counted.
  const rates = figures.shown.value?.rates;
  const rate =
    (rates === undefined ? undefined : figureOf(rates.times_ms, rates.of.events, stepOf(figures.range_s.value), "mean")) ??
    live.came_per_s.value;
  // Rows stand still while somebody points at them or is among them. Where there are none, nobody is: a button that goes away leaves the
  // pointer that pressed it here.
  const held = useSignal(false);
  const whole = wholeRows(live.rows.value, reach, live.flooded.value);
  const rows = useSignal(whole);
  // Another filter is a wish of theirs.
  const filtered = useSignal(console.filter.value);
  const another = filtered.value !== console.filter.value;
  if (another) filtered.value = console.filter.value;
  // Nor do rows come to a list that is stopped, whose numbers came later.
  if (!(held.value || live.paused.value) || another || rows.value.length === 0) rows.value = whole;
  const now_ms = useSignal(Date.now());
  useEffect(() => {
    const tick = setInterval(() => (now_ms.value = Date.now()), 1000);
    return () => {
      clearInterval(tick);
      live.paused.value = false;
    };
  }, []);
  const scale = console.scale.value;
  /** As the event's mark on the map has it. */
  const colourOf = ({ properties }: DeliveredFeature): string => (scale === undefined ? "object" : `c${scale.of(properties)}`);
  return (
    <section class="feed" aria-labelledby="feed">
      <div class="title">
        <h2 id="feed">Newest events</h2>
        <span class="quiet numbers">{live.flooded.value ? `sample, ${count(rate)}/s` : "all of them"}</span>
      </div>
      {live.missed.value > 0 && <p class="warn missed numbers">{counted(live.missed.value, "event was", "events were")} not shown here.</p>}
      {access.borrowed.value && !live.wanted.value && (
        <div class="warn">
          <p>
            With this token the console is the client <bdi>{access.client.value}</bdi>, whose other connections would get all events, too,
            while they are shown here. A token with the scope admin lets it have a name of its own.
          </p>
          <button type="button" onClick={() => (live.wanted.value = true)}>
            Show events anyway
          </button>
        </div>
      )}
      <div class="tools">
        <input
          type="search"
          aria-label="Filter events"
          placeholder="Filter: text, or status=free"
          title="Filters the list and the map"
          autocomplete="off"
          value={console.filter.value}
          onInput={({ currentTarget }) => (console.filter.value = currentTarget.value)}
        />
        <button type="button" class="small" aria-pressed={live.paused.value} onClick={() => (live.paused.value = !live.paused.value)}>
          <Icon of={live.paused.value ? Play : Pause} size={14} filled /> Pause
        </button>
      </div>
      {rows.value.length === 0 &&
        (console.filter.value === "" ? (
          isNew ? (
            <p class="quiet">Events are listed here as they come.</p>
          ) : (
            <NoEvents />
          )
        ) : (
          <p class="quiet">
            No event like that so far.{" "}
            <button type="button" class="link" onClick={() => (console.filter.value = "")}>
              Clear the filter
            </button>
          </p>
        ))}
      {rows.value.length > 0 && (
        <p class="heads quiet" aria-hidden="true">
          <span>Event</span>
          <span>Values</span>
          <span class="near">Near</span>
          <span>Time</span>
          <span>Reached</span>
        </p>
      )}
      <ol class="rows" {...holding((holds) => (held.value = holds))}>
        {/* Rows stay where they are and say something else, so that nothing moves under who reads. */}
        {rows.value.map(({ feature, matched }, place) => (
          <li key={place}>
            <button
              type="button"
              class="row"
              title={`${moment(feature.time)}, ${span(Math.max(0, now_ms.value - Date.parse(feature.time)) / 1000)} ago`}
              onClick={() => console.open({ kind: "event", feature })}
            >
              {matched ? (
                <span class="sample match" role="img" aria-label="matches the draft" />
              ) : (
                <span class="swatch" aria-hidden="true" style={{ background: `var(--map-${colourOf(feature)})` }} />
              )}
              <span class="name">
                <EventName feature={feature} />
              </span>
              <EventSummary feature={feature} />
              <Near feature={feature} />
              <time class="numbers quiet" dateTime={feature.time}>
                {clock(feature.time)}
              </time>
              <Reached id={feature.id} />
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** Rows whose numbers are there, and those that will not have one. Of a flood, which is a sample anyhow, these are left out between others. */
function wholeRows(rows: readonly FeedRow[], { counts, awaited }: Reach, isFlood: boolean): readonly FeedRow[] {
  const isKnown = ({ feature }: FeedRow): boolean => counts.value.has(feature.id);
  const oldest = rows.map(isKnown).lastIndexOf(true);
  return rows.filter((row, index) => {
    if (isKnown(row)) return true;
    if (awaited.value.has(row.feature.id)) return Date.now() - row.came_ms > ASKED_MS;
    return !isFlood || index > oldest || findingOf(row.feature) !== undefined;
  });
}

/** The quarter or city that an event happened near. */
function Near({ feature }: { readonly feature: DeliveredFeature }) {
  const name = useNear(placeOf(feature));
  return <span class="near">{name === undefined ? <span class="quiet">–</span> : <bdi>{name}</bdi>}</span>;
}

/** How many clients an event has reached, of those that the broker was asked about. */
function Reached({ id }: { readonly id: string | number }) {
  const { counts, awaited } = useConsole().reach;
  const clients = counts.value.get(id);
  const isAsked = awaited.value.has(id);
  return (
    <span class="reached numbers">
      <span class="visually-hidden">reached </span>
      {clients !== undefined ? (
        <span title={clients === 0 ? "It reached nobody" : `It reached ${counted(clients, "client")}`}>{count(clients)}</span>
      ) : (
        <span class="quiet" title={isAsked ? "The broker is asked" : "The broker was not asked about this one"}>
          {isAsked ? "…" : "–"}
        </span>
      )}
    </span>
  );
}
