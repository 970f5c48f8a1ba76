// One field that finds clients, objects, events and places.

import { useSignal } from "@preact/signals";
import { Search as SearchIcon } from "lucide";
import { useEffect, useRef } from "preact/hooks";

import { Icon } from "../shared/icon.js";
import { findPlaces, type Place as NamedPlace } from "../shared/map/places.js";
import { useConsole } from "./context.js";
import type { Console } from "./model.js";
import { nameOf } from "./why/name.js";
import { valueText } from "./words.js";

/** The types of the library want a list with it, which a listbox of our own takes the place of. */
const COMBOBOX = { role: "combobox" } as object;
/** Of each kind. */
const LISTED = 6;
const TYPED_MS = 120;

interface Hit {
  readonly kind: string;
  readonly name: string;
  readonly detail: string;
  readonly open: () => void;
}

/** How well a text fits: 0 where a word of it is meant, 1 where one begins so, 2 where it stands anywhere, and `undefined` where it does not. */
export function fitOf(text: string, wanted: string): 0 | 1 | 2 | undefined {
  const lower = text.toLowerCase();
  let best: 1 | 2 | undefined;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + 1)) {
    if (WORD.test(lower[at - 1] ?? "")) best ??= 2;
    else if (WORD.test(lower[at + wanted.length] ?? "")) best = 1;
    else return 0;
  }
  return best;
}

const WORD = /[\p{L}\p{N}]/u;

/** Clients and events whose name or values have a text, those that fit best first. */
function hitsOf(console: Console, text: string): Hit[] {
  const wanted = text.toLowerCase();
  const { clients, live } = console;
  const { attribute } = live.objects;
  const named = clients.list.peek().flatMap(({ client }) => {
    const fit = fitOf(client, wanted);
    return fit === undefined
      ? []
      : [{ fit, kind: "client", name: client, detail: "", open: () => console.visit({ kind: "client", client }) }];
  });
  const seen = live.objects.newest().flatMap(({ feature, object }) => {
    const values = Object.entries((feature.properties as Record<string, unknown> | null) ?? {}).filter(([name]) => name !== attribute);
    const name = nameOf(feature, attribute);
    const told = values.some(([, value]) =>
      typeof value === "string" ? value.toLowerCase().includes(wanted) : valueText(value) === wanted,
    );
    const fit = fitOf(name, wanted) ?? (told || String(feature.id).toLowerCase().startsWith(wanted) ? 3 : undefined);
    if (fit === undefined) return [];
    const detail = values
      .slice(0, 3)
      .map(([of, value]) => `${of} ${valueText(value, 60)}`)
      .join(" · ");
    const kind = object === undefined ? "event" : "object";
    return [{ fit, kind, name, detail, open: () => console.visit({ kind: "event", feature }) }];
  });
  return [named, seen].flatMap((found) => found.sort((one, other) => one.fit - other.fit).slice(0, LISTED));
}

/** A coordinate pair that somebody has pasted, longitude first as everywhere on the wire. */
export function pairOf(text: string): readonly [number, number] | undefined {
  const match = /^\s*\[?\s*(-?\d+(?:\.\d+)?)\s*[,; ]\s*(-?\d+(?:\.\d+)?)\s*\]?\s*$/.exec(text);
  return match === null ? undefined : [Number(match[1]), Number(match[2])];
}

export function Search() {
  const console = useConsole();
  const text = useSignal("");
  const hits = useSignal<readonly Hit[]>([]);
  const chosen = useSignal(0);
  const open = useSignal(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const wanted = text.value.trim();
    let over = false;
    const timer = setTimeout(() => {
      void (async () => {
        if (wanted === "") return void (hits.value = []);
        const first = hitsOf(console, wanted);
        const pair = pairOf(wanted);
        if (pair !== undefined)
          first.unshift({ kind: "coordinates", name: wanted, detail: "", open: () => console.view.value?.goTo(pair) });
        hits.value = first;
        chosen.value = 0;
        const places = console.settings.world === "planar" ? [] : await findPlaces(wanted, LISTED);
        if (!over) hits.value = [...first, ...places.map((place) => placeHit(console, place))];
      })();
    }, TYPED_MS);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [text.value]);
  useEffect(() => {
    // As in other consoles: a slash goes to the search.
    const key = (event: KeyboardEvent): void => {
      const { target } = event;
      if (
        event.key !== "/" ||
        event.ctrlKey ||
        event.metaKey ||
        (target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]"))
      )
        return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const take = (hit: Hit | undefined): void => {
    if (hit === undefined) return;
    open.value = false;
    text.value = "";
    field.current?.blur();
    hit.open();
  };
  const shown = open.value && text.value.trim() !== "";
  return (
    <div class="search">
      <Icon of={SearchIcon} />
      <input
        ref={field}
        type="search"
        {...COMBOBOX}
        aria-label="Search"
        aria-expanded={shown}
        aria-controls="hits"
        aria-autocomplete="list"
        aria-activedescendant={shown && hits.value.length > 0 ? `hit-${chosen.value}` : undefined}
        placeholder="Search clients, events, places"
        autocomplete="off"
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
          open.value = true;
        }}
        onFocus={() => (open.value = true)}
        onBlur={() => (open.value = false)}
        onKeyDown={(event) => {
          const count = hits.value.length;
          if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            if (count > 0) chosen.value = (chosen.value + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
          } else if (event.key === "Enter") take(hits.value[chosen.value]);
          else if (event.key === "Escape") open.value = false;
        }}
      />
      <kbd aria-hidden="true">/</kbd>
      <ul id="hits" role="listbox" aria-label="Found" hidden={!shown}>
        {hits.value.map((hit, index) => (
          <li
            key={`${hit.kind} ${hit.name} ${index}`}
            id={`hit-${index}`}
            role="option"
            aria-selected={index === chosen.value}
            onPointerDown={(event) => {
              event.preventDefault(); // The field keeps the focus until it is over.
              take(hit);
            }}
            onPointerEnter={() => (chosen.value = index)}
          >
            <span class="quiet">{hit.kind}</span>
            <bdi class="name">{valueText(hit.name, 60)}</bdi>
            <bdi class="quiet detail">{hit.detail}</bdi>
          </li>
        ))}
        {hits.value.length === 0 && (
          <li role="option" aria-selected="false" aria-disabled="true" class="quiet">
            Nothing found
          </li>
        )}
      </ul>
    </div>
  );
}

function placeHit({ view, following }: Console, { name, kind, lon, lat, zoom }: NamedPlace): Hit {
  return {
    kind,
    name,
    detail: "",
    open: () => {
      following.value = undefined;
      view.value?.goTo([lon, lat], zoom);
    },
  };
}
