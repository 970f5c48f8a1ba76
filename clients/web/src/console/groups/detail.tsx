// A group definition that was opened, and a group that came or went.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { distance_m, type Place } from "../../shared/map/plane.js";
import { useConsole } from "../context.js";
import type { Console } from "../model.js";
import { placeOf } from "../place.js";
import { Rows } from "../rows.js";
import type { Bound } from "../situations/bound.js";
import { BoundEvents } from "../situations/bound-events.js";
import { FilterWords, Findings, FindingPage, Pair, SituationDetail } from "../situations/detail.js";
import { count, counted, metres } from "../words.js";
import { drawingOf, waysOf } from "./drawing.js";
import { changeOf, linksOf, objectsOf, rolesOf, type Group, type GroupChange, type GroupDefinitionShown } from "./groups.js";
import { RolesFacts } from "./tab.js";
import { WhyObject } from "./why.js";

export function GroupDefinitionDetail({ name }: { readonly name: string }) {
  const { groups } = useConsole();
  return (
    <SituationDetail of={groups} name={name}>
      {(shown) => (
        <>
          <StandingGroups shown={shown} />
          <section aria-labelledby="why">
            <h3 id="why">Why is an object in a group, or in none?</h3>
            <WhyObject key={name} definition={name} />
          </section>
          <Findings
            of={groups}
            name={name}
            title="What came and went"
            none="Nothing so far."
            read={changeOf}
            nameOf={(change) => changeWords(change, Object.keys(shown.roles))}
            summaryOf={({ transition }) => <span class="summary">{transition}</span>}
          />
          <DocumentPart shown={shown} />
        </>
      )}
    </SituationDetail>
  );
}

/** The objects of a change. */
function changeWords({ group, definition }: GroupChange, roles: readonly string[]): string {
  return group === undefined ? definition : objectsOf(group, roles).join(" · ");
}

/** Where an object is now, as far as the page has seen it. */
function placeOfObject({ live }: Console, object: string): Place | undefined {
  return live.objects.named(object)?.place;
}

/** The groups that there are, each to be shown on the map. */
function StandingGroups({ shown }: { readonly shown: GroupDefinitionShown }) {
  const { groups = [], roles, where } = shown;
  const console = useConsole();
  const names = Object.keys(roles);
  const links = linksOf(names, where);
  const chosen = useSignal<string | undefined>(undefined);
  const held = useRef(false);
  const list = useRef(groups);
  if (!held.current) list.current = groups;
  const map = console.view.value;
  const keyOf = (group: Group): string => JSON.stringify(objectsOf(group, names));
  const clear = (): void => map?.answer.show(undefined);
  useEffect(() => clear, [map]);
  useEffect(() => {
    if (chosen.value === undefined || groups.some((group) => keyOf(group) === chosen.value)) return;
    chosen.value = undefined;
    clear();
  }, [groups]);
  const choose = (group: Group): void => {
    const key = keyOf(group);
    chosen.value = chosen.value === key ? undefined : key;
    console.following.value = undefined;
    const known = objectsOf(group).some((object) => placeOfObject(console, object) !== undefined);
    map?.answer.show(
      chosen.value === undefined || !known
        ? undefined
        : drawingOf(map.base.plane, group, links, (object) => placeOfObject(console, object)),
    );
  };
  return (
    <section class="found" aria-labelledby="standing">
      <h3 id="standing">Groups now</h3>
      <RolesFacts shown={shown} />
      {groups.length > 0 && (
        <Rows alone list={list.current} hold={(holds) => (held.current = holds)}>
          {(group) => (
            <li key={keyOf(group)}>
              <button type="button" class="row" aria-pressed={chosen.value === keyOf(group)} onClick={() => choose(group)}>
                <span class="name">
                  <bdi>{objectsOf(group, names).join(" · ")}</bdi>
                </span>
                <span class="summary numbers">
                  {waysOf(console.settings.world, group, links, (object) => placeOfObject(console, object))
                    .map(({ text }) => text)
                    .join(", ")}
                </span>
              </button>
            </li>
          )}
        </Rows>
      )}
    </section>
  );
}

function DocumentPart({ shown: { roles, where = [], limit, order } }: { readonly shown: GroupDefinitionShown }) {
  return (
    <section aria-labelledby="definition">
      <h3 id="definition">Definition</h3>
      <dl class="pairs">
        {Object.entries(roles).map(([name, { where: condition, area }]) => (
          <Pair key={name} name={name}>
            live objects <FilterWords where={condition} area={area} />
          </Pair>
        ))}
        <Pair name="conditions">
          {where.map((condition) => (
            <code key={condition} class="where">
              <bdi>{condition}</bdi>
            </code>
          ))}
          {where.length === 0 && "none: any objects fit together"}
        </Pair>
        <Pair name="order">{order === undefined ? "the names of the objects" : <code>{order}</code>}</Pair>
        {limit !== undefined && <Pair name="limit">the first {counted(limit, "group")}</Pair>}
      </dl>
    </section>
  );
}

/** A group that came or went: its objects, as they were, in words and on the map. */
export function ChangeDetail({ name, id }: { readonly name: string; readonly id: string }) {
  const { groups, live, settings } = useConsole();
  const { find } = live.violations;
  const known = find(id);
  const shown = groups.get(name);
  const roles = Object.keys(shown?.roles ?? {});
  return (
    <FindingPage
      of={groups}
      name={name}
      id={id}
      known={known === undefined ? undefined : changeOf(known)}
      read={changeOf}
      drawingOf={(plane, change) => {
        const seen = membersOf(change, roles, find);
        const at = (object: string): Place | undefined => {
          const member = seen.find(({ id: member }) => member === object);
          return member?.feature === undefined ? undefined : placeOf(member.feature);
        };
        const drawing = drawingOf(plane, change.group ?? {}, linksOf(rolesOf(change.group ?? {}, roles), shown?.where), at);
        // Of objects that the page has not seen it knows where the first one was.
        return drawing.features.length > 0 ? drawing : drawingOf(plane, { first: "" }, [], () => placeOf(change.feature));
      }}
    >
      {(change) => (
        <section aria-labelledby="members">
          <h3 id="members">{change.transition === "enter" ? "These fit together" : "These do not fit together any more"}</h3>
          {change.group === undefined ? (
            <p class="quiet">Objects that this token does not permit to see.</p>
          ) : (
            <BoundEvents
              bound={membersOf(change, roles, find)}
              between={(one, other) => `${metres(distance_m(settings.world, placeOf(one), placeOf(other)))} apart`}
            />
          )}
          {change.transition === "exit" && <p class="quiet">An object left, changed, or others come before them in the order.</p>}
        </section>
      )}
    </FindingPage>
  );
}

/** The objects of a change, with the events that it names. */
function membersOf({ group = {}, feature }: GroupChange, roles: readonly string[], find: (id: string) => Bound["feature"]): Bound[] {
  const events = (feature.derived?.from ?? []).flatMap((id) => find(id) ?? []);
  return rolesOf(group, roles).map((role): Bound => {
    const object = group[role] ?? "";
    const event = events.find(({ key, id }) => (key ?? String(id)) === object);
    return { variable: role, id: object, ...(event === undefined ? {} : { feature: event }) };
  });
}

/** Of a live object that was opened: in which groups it is, and why it is in none. */
export function ObjectGroups({ object }: { readonly object: string }) {
  const console = useConsole();
  const { groups } = console;
  const list = groups.list.value ?? [];
  if (list.length === 0) return null;
  const has = list.flatMap(({ name, groups: standing = [] }) => {
    const number = standing.filter((group) => Object.values(group).includes(object)).length;
    return number === 0 ? [] : [{ name, number }];
  });
  return (
    <section aria-labelledby="object-groups">
      <h3 id="object-groups">Groups</h3>
      {has.map(({ name, number }) => (
        <p key={name}>
          It is in {counted(number, "group")} of{" "}
          <button type="button" class="link" onClick={() => console.open({ kind: "situation", of: "groups", name })}>
            <bdi>{name}</bdi>
          </button>
          .
        </p>
      ))}
      {has.length === 0 && (
        <p class="quiet">It is in no group of {list.length === 1 ? "the definition" : `${count(list.length)} definitions`}.</p>
      )}
      <WhyObject object={object} />
    </section>
  );
}
