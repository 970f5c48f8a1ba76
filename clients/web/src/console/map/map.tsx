// The map's place on the page, its buttons, and what can be switched.

import { useSignal } from "@preact/signals";
import { Layers as LayersIcon, Maximize, Minus, Plus } from "lucide";
import { useEffect, useRef } from "preact/hooks";

import { Icon } from "../../shared/icon.js";
import { objectKind } from "../../shared/readable.js";
import { reasonOf } from "../access.js";
import { useConsole } from "../context.js";
import { stateOf } from "../clients/state.js";
import { LINES } from "../groups/lines.js";
import { EventName, EventSummary } from "../why/name.js";
import { count, counted, moment, valueText } from "../words.js";
import { OTHER } from "../live/scale.js";
import type { Marks } from "./density.js";
import { ObjectChoice } from "./object-choice.js";
import { Time } from "./time.js";
import type { Layer } from "./view.js";
import { Walker, WalkerRing } from "./walker.js";

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
        console.show(made, new Drawing(made, console.draft), new Drawing(made, console.outline));
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
      <RingKey />
      <SceneKey />
      <Tip />
      <div class="zoom" role="group" aria-label="Map">
        <button type="button" aria-label="Zoom in" title="Zoom in" onClick={() => view.value?.zoom(1)}>
          <Icon of={Plus} size={18} />
        </button>
        <button type="button" aria-label="Zoom out" title="Zoom out" onClick={() => view.value?.zoom(-1)}>
          <Icon of={Minus} size={18} />
        </button>
        <button type="button" aria-label="Fit to the data" title="Fit to the data" onClick={() => console.showAll()}>
          <Icon of={Maximize} size={17} />
        </button>
        <Walker />
      </div>
      <Time />
    </>
  );
}

const LAYERS: readonly (readonly [Layer, string])[] = [
  ["events", "Events"],
  ["clients", "Clients"],
  ["areas", "Areas"],
  ["groups", "Groups"],
  ["flashes", "Deliveries"],
  ["violations", "Violations"],
];
const MOTIONS: readonly (readonly [Layer, string])[] = [["trails", "Trails"]];
/** What else is seen on the map. */
const SIGNS: readonly (readonly [sample: string, words: string])[] = [
  ["heading", "headed where its tip points"],
  ["trails", "its way in the last 40 s"],
  ["lit", "an area by which an event reached its client"],
  ["rings", "how many marks are there, a part for each colour"],
  ["dashes", "how far it is between two places"],
  ["violations", "violated a check lately"],
  ["derived", "made by a rule set"],
];
const MARKS: readonly (readonly [Marks | "auto", string])[] = [
  ["auto", "Automatic"],
  ["points", "Points"],
  ["clusters", "Clusters"],
  ["heat", "Heat map"],
];

/** The layers and what else can be switched. On a narrow screen, and while an answer or a finding is on the map, they are behind a button. */
function Layers() {
  const detail = useConsole().details.value.at(-1);
  const isScene = detail?.kind === "finding" || (detail?.kind === "event" && detail.why !== undefined);
  const open = useSignal(false);
  return (
    <div class={isScene ? "layers scene" : "layers"}>
      <button type="button" class="unfold" aria-expanded={open.value} aria-controls="layers" onClick={() => (open.value = !open.value)}>
        <Icon of={LayersIcon} /> Layers
      </button>
      <div id="layers" class={open.value ? undefined : "folded"}>
        <Switches />
      </div>
    </div>
  );
}

function Switches() {
  const console = useConsole();
  const { live, clients, draft, settings, groups, view } = console;
  const definitions = groups.list.value ?? [];
  const merged = clients.merged.value;
  const [placed, known] = [
    clients.places.value + merged,
    Math.max(console.figures.shown.value?.stats.clients ?? 0, clients.list.value.length),
  ];
  const attribute = live.objects.attribute;
  const kind = attribute === undefined ? "object" : objectKind(attribute).toLowerCase();
  const marked = live.violations.marked.value;
  // What only the frame of its event says has a mark and is no finding.
  const found = live.violations.lately.value || marked;
  const far = view.value?.far.value;
  const shaded = clients.shaded.value;
  /** What is drawn close by only, all of it or most. */
  const closeBy: Readonly<Partial<Record<Layer, boolean>>> = {
    areas: far !== undefined && 2 * shaded > clients.areas.value,
    clients: far === "marks",
    flashes: far === "marks",
  };
  const standing = definitions.reduce((sum, each) => sum + (each.groups?.length ?? 0), 0);
  const counts: Readonly<Partial<Record<Layer, number>>> = {
    events: live.points.value - (view.value?.hidden.value ?? 0),
    clients: placed,
    areas: clients.areas.value,
    groups: standing,
    violations: found,
  };
  /** What a layer is, and what its count is of, where that is not all. */
  const notes: Readonly<Partial<Record<Layer, string>>> = {
    ...(attribute !== undefined && { events: `the newest of each ${kind}` }),
    flashes: "areas that matched light up",
    violations: `in the last minute${marked > 0 && found !== marked ? `, by ${counted(marked, kind)}` : ""}`,
    clients:
      known > placed
        ? `${count(known - placed)} more without position`
        : merged > 0
          ? `${merged === placed ? "" : `${count(merged)} `}drawn as ${kind}s`
          : "",
    areas: clients.tooMany.value
      ? `of ${count(clients.allAreas.value)}, zoom in for more`
      : 2 * clients.following.value > clients.areas.value
        ? "they move with their clients"
        : "",
  };
  return (
    <>
      <fieldset>
        <legend class="visually-hidden">What the map shows</legend>
        {LAYERS.filter(([layer]) => (layer !== "groups" || definitions.length > 0) && (layer !== "violations" || found > 0)).map(
          ([layer, label]) => (
            <LayerSwitch
              key={layer}
              layer={layer}
              label={label}
              count={counts[layer]}
              note={notes[layer]}
              // Clients that are all drawn as objects have no mark of their own.
              isFaint={closeBy[layer] === true || (layer === "clients" && merged > 0 && merged === placed)}
              isCloseBy={closeBy[layer] === true}
            />
          ),
        )}
      </fieldset>
      {draft.trial.value.state === "running" && (
        <p class="marked">
          <span class="sample match" aria-hidden="true" /> Matches of the draft
        </p>
      )}
      {console.lines.value >= LINES && <p class="quiet">{count(LINES)} lines of groups are drawn at most.</p>}
      {settings.round_m === 0 && clients.list.value.length > 1 && (
        <p class="quiet hidden-positions">
          Clients are not on the map: this broker hides positions. Set <code>privacy.round_m = 100</code> in its configuration to show them
          to 100 m.
        </p>
      )}
      <Legend />
      <div class="folds">
        <details>
          <summary>Display</summary>
          <Display />
        </details>
        <details>
          <summary>Signs</summary>
          <ul class="signs">
            {SIGNS.map(([sign, words]) => (
              <li key={sign}>
                <span class={`sample ${sign}`} aria-hidden="true" /> {words}
              </li>
            ))}
          </ul>
        </details>
      </div>
    </>
  );
}

function LayerSwitch({
  layer,
  label,
  count: number,
  note = "",
  isFaint = false,
  isCloseBy = false,
}: {
  readonly layer: Layer;
  readonly label: string;
  readonly count?: number | undefined;
  /** What the count is of. */
  readonly note?: string | undefined;
  /** Nothing on the map has its sign now. */
  readonly isFaint?: boolean;
  /** It is not drawn from so far away. */
  readonly isCloseBy?: boolean;
}) {
  const { layers, scale } = useConsole();
  const [one, other] = layer === "events" ? (scale.value?.legend ?? []) : [];
  // Events that are coloured by a value have no colour of their own.
  const style = one && other && { background: `linear-gradient(90deg, var(--map-c${one.colour}) 50%, var(--map-c${other.colour}) 50%)` };
  return (
    <label>
      <input
        type="checkbox"
        checked={layers.value[layer]}
        onChange={({ currentTarget }) => (layers.value = { ...layers.value, [layer]: currentTarget.checked })}
      />
      <span class={`sample ${layer}${isFaint ? " faint" : ""}`} aria-hidden="true" style={style} />
      <span>
        {label}
        {isCloseBy && <small class="quiet"> close by</small>}
      </span>
      {number !== undefined && (
        <output class="numbers quiet" data-layer={layer} data-violations={layer === "violations" ? number : undefined}>
          {count(number)}
        </output>
      )}
      {note !== "" && <small class="note quiet">{note}</small>}
    </label>
  );
}

function Display() {
  const { marks, colourBy, live } = useConsole();
  const names = useSignal<readonly string[]>([]);
  // The list is made anew when somebody is about to choose.
  const renew = (): void => void (names.value = live.attributes.list().map(({ name }) => name));
  const chosen = colourBy.value;
  return (
    <fieldset>
      <legend class="visually-hidden">How marks are shown</legend>
      <div class="field">
        <label for="marks">Marks</label>
        <select id="marks" value={marks.value} onChange={({ currentTarget }) => (marks.value = currentTarget.value as Marks)}>
          {MARKS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </div>
      <div class="field">
        <label for="colour-by">Colour by</label>
        <select
          id="colour-by"
          value={chosen ?? ""}
          onPointerDown={renew}
          onFocus={renew}
          onChange={({ currentTarget: { value } }) => (colourBy.value = value === "" ? undefined : value)}
        >
          <option value="">one colour</option>
          {[...new Set([...(chosen === undefined ? [] : [chosen]), ...names.value])].map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <ObjectChoice />
      {MOTIONS.map(([layer, label]) => (
        <LayerSwitch key={layer} layer={layer} label={label} />
      ))}
    </fieldset>
  );
}

function Legend() {
  const scale = useConsole().scale.value;
  if (scale === undefined) return null;
  return (
    <section class="legend" aria-label="Colours">
      <h3>
        <bdi>{scale.attribute}</bdi>
      </h3>
      <ul>
        {scale.legend.map(({ colour, text }) => (
          <li key={`${colour} ${text}`}>
            <span class="swatch" aria-hidden="true" style={{ background: `var(--map-c${colour})` }} /> <bdi>{valueText(text, 24)}</bdi>
          </li>
        ))}
        {scale.legend.length === 0 && <li class="quiet">No event has it yet.</li>}
      </ul>
    </section>
  );
}

/** What rings of clusters mean, where the legend is folded. */
function RingKey() {
  const { scale, live } = useConsole();
  const { attribute } = live.objects;
  const kinds = (scale.value?.legend ?? []).filter(({ colour }) => colour !== OTHER);
  return (
    <p class="ring-key">
      {attribute === undefined ? "marks" : `${objectKind(attribute)}s`}
      {kinds.slice(0, 3).map(({ colour, text }) => (
        <span key={text}>
          <span class="swatch" aria-hidden="true" style={{ background: `var(--map-c${colour})` }} /> <bdi>{valueText(text, 12)}</bdi>
        </span>
      ))}
    </p>
  );
}

/** What an answer's drawing means, part by part; of a finding its words say that. */
function SceneKey() {
  const { view, layers, clients } = useConsole();
  const drawing = view.value?.answer.shown.value;
  if (drawing?.pins === undefined) return null;
  const has = (name: string, value?: string): boolean =>
    drawing.features.some(({ properties }) => properties?.[name] !== undefined && (value === undefined || properties[name] === value));
  const area = drawing.features.find(({ geometry, properties }) => geometry.type !== "Point" && properties?.["matched"] !== undefined);
  const keys: readonly (readonly [sign: string, words: string, isShown: boolean])[] = [
    [area?.properties?.["holds"] === true ? "area good" : "area", "area of the subscription", area !== undefined],
    ["whole", "within reach", has("way", "whole")],
    ["gap", "too far", has("way", "gap")],
    ["events", "other events", layers.value.events],
    ["clients", "other clients", layers.value.clients && clients.places.value > 0],
  ];
  const shown = keys.filter(([, , isShown]) => isShown);
  if (shown.length === 0) return null;
  return (
    <ul class="scene-key" aria-label="What is drawn">
      {shown.map(([sign, words]) => (
        <li key={sign}>
          <span class={`sample key-${sign} ${sign}`} aria-hidden="true" /> {words}
        </li>
      ))}
    </ul>
  );
}

/** What the pointer is above. */
function Tip() {
  const { hovered, live, clients, replay, walked } = useConsole();
  // What is known of an object is of now.
  const isLive = replay.value?.at_ms.value === undefined;
  const ring = walked.value === undefined ? null : <WalkerRing at={walked.value} />;
  const what = hovered.value;
  if (what === undefined) return ring;
  const [event] = what.events.flatMap((id) => live.objects.get(id)?.feature ?? []);
  const jumped = what.events[0] === undefined ? [] : live.violations.checksOf(what.events[0]);
  const client = what.clients[0];
  const listed = clients.list.value.find((each) => each.client === client);
  const more = what.events.length + what.clients.length - 1;
  return (
    <>
      {ring}
      <div class="tip" aria-hidden="true" style={{ left: `${what.at.x}px`, top: `${what.at.y}px` }}>
        {event !== undefined ? (
          <>
            <strong>
              <EventName feature={event} />
            </strong>
            {isLive && <EventSummary feature={event} />}
            {isLive && jumped.length > 0 && <span class="bad">its place may be wrong: check {jumped.join(", ")}</span>}
            {isLive && <span class="quiet">{moment(event.time)}</span>}
          </>
        ) : (
          <>
            <strong>
              <bdi>{client}</bdi>
            </strong>
            <span class="quiet">
              client{listed === undefined ? "" : `, ${stateOf(listed).word}, ${counted(listed.subscriptions, "subscription")}`}
            </span>
          </>
        )}
        {more > 0 && <span class="quiet">and {more} more here</span>}
      </div>
    </>
  );
}
