// What came, newest first.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { distance_m, type Place } from "../../shared/map/plane.js";
import type { PageSettings } from "../../shared/pages.js";
import type { Entry } from "../entry.js";
import { slowNow_ms } from "../now.js";
import { ago, bearing_deg, whereabouts } from "../words.js";
import type { Props } from "./app.js";

export function List({ phone }: Props): JSX.Element {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const heading = head.current;
    if (heading === null) return;
    const observer = new IntersectionObserver(([seen]) => {
      phone.listSeen.value = seen?.isIntersecting === true;
    });
    observer.observe(heading);
    return () => observer.disconnect();
  }, []);
  const inbox = phone.inbox.value;
  const entries = inbox?.entries.value ?? [];
  const world = phone.world.value?.settings.world ?? "geodetic";
  return (
    <section class="came" aria-labelledby="came">
      <h2 id="came" ref={head}>
        What came{entries.length > 0 && <span class="quiet numbers"> ({entries.length})</span>}
      </h2>
      {inbox?.stored.value === false && (
        <p class="note warn">
          This browser keeps nothing for this page just now. What comes stays at the broker and comes again the next time.
        </p>
      )}
      {entries.length === 0 ? (
        <p class="quiet">Nothing yet. What happens within your radius appears here.</p>
      ) : (
        <ol>
          {entries.map((entry) => (
            <Line key={entry.key} phone={phone} entry={entry} world={world} />
          ))}
        </ol>
      )}
    </section>
  );
}

interface LineProps extends Props {
  readonly entry: Entry;
  readonly world: PageSettings["world"];
}

/** The first properties stand in the line itself; all of them where it is open. */
const IN_LINE = 3;

function Line({ phone, entry, world }: LineProps): JSX.Element {
  const { key, kind, title, pairs, place, alarm, received_ms, over_ms } = entry;
  if (kind === "gap") {
    return (
      <li class="entry gap">
        <p>{title}</p>
        <p class="quiet numbers">{ago(slowNow_ms.value - received_ms)}</p>
      </li>
    );
  }
  const here = phone.here.value?.place;
  const open = phone.selected.value === key;
  const over = over_ms !== undefined && over_ms <= slowNow_ms.value;
  const words = [
    here !== undefined && place !== undefined ? whereabouts(world, here, place) : undefined,
    ago(slowNow_ms.value - received_ms),
    over ? "over" : undefined,
  ].filter((word) => word !== undefined);
  return (
    <li class={alarm ? "entry alarm" : "entry"} data-key={key}>
      <button type="button" class="line" aria-expanded={open} onClick={() => (phone.selected.value = open ? undefined : key)}>
        {here !== undefined && place !== undefined && distance_m(world, here, place) >= 1 ? (
          <Arrow world={world} from={here} to={place} />
        ) : (
          <span class="arrow" aria-hidden="true">
            •
          </span>
        )}
        <span class="what">
          <span class="title">
            {alarm && <strong class="tag">◆ Alarm</strong>} <bdi>{title}</bdi>
          </span>
          {!open && pairs.length > 0 && (
            <span class="summary quiet">
              {pairs.slice(0, IN_LINE).map(([name, value]) => (
                <bdi key={name}>
                  {name} {value}
                </bdi>
              ))}
            </span>
          )}
          <span class="quiet numbers">{words.join(" · ")}</span>
        </span>
      </button>
      {open && pairs.length > 0 && (
        <dl>
          {pairs.map(([name, value]) => (
            <div key={name}>
              <dt>
                <bdi>{name}</bdi>
              </dt>
              <dd>
                <bdi>{value}</bdi>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </li>
  );
}

function Arrow({ world, from, to }: { world: PageSettings["world"]; from: Place; to: Place }): JSX.Element {
  return (
    <svg
      class="arrow"
      viewBox="0 0 24 24"
      aria-hidden="true"
      style={{ transform: `rotate(${bearing_deg(world, from, to).toFixed(0)}deg)` }}
    >
      <path d="M12 3 19 20 12 16 5 20Z" fill="currentColor" />
    </svg>
  );
}
