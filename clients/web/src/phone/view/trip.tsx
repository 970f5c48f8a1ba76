// Where to: a destination, the way there, and how far from it one hears.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { findPlaces, type Place as NamedPlace } from "../../shared/map/places.js";
import type { Trip } from "../trip.js";
import { metres, minutes } from "../words.js";
import type { Props } from "./app.js";
import { RadiusSlider } from "./radius.js";

interface TripProps extends Props {
  /** Makes room for the map. */
  readonly showMap: () => void;
}

export function TripPart({ phone, showMap }: TripProps): JSX.Element | null {
  const { trip } = phone;
  const part = useRef<HTMLElement>(null);
  const [choosing, sought, destination] = [trip.choosing.value, trip.sought.value, trip.destination.value];
  const at = choosing ? "choosing" : sought !== undefined ? "sought" : destination !== undefined ? "going" : "nowhere";
  // What had the focus is gone: what has come in its place has it then.
  const before = useRef(at);
  useEffect(() => {
    if (before.current !== at && (document.activeElement === document.body || at === "choosing"))
      part.current?.querySelector<HTMLElement>("h2, .wide")?.focus({ preventScroll: true });
    before.current = at;
  }, [at]);
  if (!trip.possible.value && destination === undefined) return null;
  return (
    <section class="trip" aria-label="Where to" ref={part}>
      {at === "nowhere" && (
        <button
          type="button"
          class="wide"
          onClick={() => {
            showMap();
            trip.choosing.value = true;
          }}
        >
          Where to?
        </button>
      )}
      {at === "choosing" && <Choosing trip={trip} />}
      {at === "sought" && (
        <div class="row">
          <h2 tabIndex={-1}>
            Looking for the way to <DestinationName trip={trip} />…
          </h2>
          <button type="button" onClick={() => (trip.sought.value = undefined)}>
            Cancel
          </button>
        </div>
      )}
      {at === "going" && <Going phone={phone} showMap={showMap} />}
      <p class="visually-hidden" role="status">
        {trip.news.value}
      </p>
      <p class="warn" role="status">
        {trip.problem.value}
      </p>
    </section>
  );
}

/** Found places that are offered. */
const LISTED = 6;
const TYPED_MS = 150;

function Choosing({ trip }: { readonly trip: Trip }): JSX.Element {
  const text = useSignal("");
  const found = useSignal<readonly NamedPlace[] | undefined>(undefined);
  const cancel = (): void => void (trip.choosing.value = false);
  useEffect(() => {
    let isOver = false;
    const timer = setTimeout(() => {
      const wanted = text.value.trim();
      void (wanted === "" ? Promise.resolve(undefined) : findPlaces(wanted, LISTED)).then((places) => {
        if (!isOver) found.value = places;
      });
    }, TYPED_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [text.value]);
  // At once, for an effect that waits for a frame would miss a key that comes before it.
  useLayoutEffect(() => {
    const escape = ({ key, target }: KeyboardEvent): void => {
      // A dialog above closes by itself, and alone.
      if (key === "Escape" && !(target instanceof Element && target.closest("dialog") !== null)) cancel();
    };
    addEventListener("keydown", escape);
    return () => removeEventListener("keydown", escape);
  }, []);
  const go = ({ name, lon, lat }: NamedPlace): void => trip.seek({ to: [lon, lat], name });
  return (
    <>
      <div class="row">
        <h2 tabIndex={-1}>Where to?</h2>
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      </div>
      <p>Tap the place on the map, or bring it to the middle.</p>
      <label for="to">Or by its name</label>
      <input
        id="to"
        type="search"
        autocomplete="off"
        maxLength={100}
        placeholder="Town, street"
        value={text.value}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        onKeyDown={({ key }) => {
          const [first] = found.value ?? [];
          if (key === "Enter" && first !== undefined) go(first);
        }}
      />
      <ul class="places">
        {found.value?.map((place) => (
          <li key={`${place.name} ${place.lon} ${place.lat}`}>
            <button type="button" onClick={() => go(place)}>
              <bdi>{place.name}</bdi> <span class="quiet">{place.kind}</span>
            </button>
          </li>
        ))}
      </ul>
      <p class="quiet" role="status">
        {found.value === undefined
          ? ""
          : found.value.length === 0
            ? "The map has no such name."
            : `${found.value.length} ${found.value.length === 1 ? "place" : "places"}`}
      </p>
    </>
  );
}

function DestinationName({ trip }: { readonly trip: Trip }): JSX.Element {
  const name = (trip.sought.value ?? trip.destination.value)?.name;
  return name === undefined ? <>the place on the map</> : <bdi>{name}</bdi>;
}

function Going({ phone, showMap }: TripProps): JSX.Element {
  const { trip, wish } = phone;
  const left = trip.left.value;
  const fault = wish.wayFault.value;
  return (
    <>
      <div class="row">
        <h2 tabIndex={-1}>
          To <DestinationName trip={trip} />
        </h2>
        <button
          type="button"
          onClick={() => {
            showMap();
            trip.choosing.value = true;
          }}
        >
          Change
        </button>
        <button type="button" onClick={() => trip.end()}>
          End
        </button>
      </div>
      {left !== undefined && (
        <p class="numbers">
          <strong>{metres(left.left_m)}</strong>, about {minutes(left.left_s)}
        </p>
      )}
      <RadiusSlider
        id="corridor"
        label="Beside the way"
        radius_m={trip.radius_m.value}
        change={(radius_m) => {
          trip.radius_m.value = radius_m;
        }}
      />
      <p class="quiet">What happens this near to your way comes, too. When you leave it, another way is found.</p>
      <p class="warn" role="status">
        {fault !== undefined && (
          <>
            What lies on your way does not come: <bdi>{fault.errors[0]?.detail ?? fault.detail ?? fault.title}</bdi>
          </>
        )}
      </p>
    </>
  );
}
