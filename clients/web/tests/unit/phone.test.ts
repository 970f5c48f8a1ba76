import { ProblemError, type Checkpoint, type Delivery, type Gap, type Message, type Session, type Subscription } from "nearcast";
import { describe, expect, test, vi } from "vitest";

import { Announcer } from "../../src/phone/announcer.js";
import { Entries, ENTRIES_MAX, held, ordered, type Order } from "../../src/phone/entries.js";
import { afterTransition, doubted, entryOf, pressing, status, type Entry, type Reach } from "../../src/phone/entry.js";
import { grouped, groupShares, groupTitle } from "../../src/phone/groups.js";
import { Inbox } from "../../src/phone/inbox.js";
import { EVERYTHING, isEverything, offered, subscriptionOf, toggled, type Choice } from "../../src/phone/interests.js";
import { radiusAt, RADIUS_MAX_M, RADIUS_MIN_M, stepOf, STEPS } from "../../src/phone/radius.js";
import type { Saving, Store } from "../../src/phone/storage.js";
import { Wish } from "../../src/phone/wish.js";
import { ago, bearing_deg, direction, doubtWords, faultAt, gapWords, metres, spokenMetres, whereabouts } from "../../src/phone/words.js";
import { destination, type Place } from "../../src/shared/map/plane.js";

function delivery(offset: number, properties: Record<string, unknown>, more: Record<string, unknown> = {}): Delivery {
  const feature = {
    type: "Feature",
    id: `e${offset}`,
    time: "2026-03-01T07:30:00Z",
    geometry: { type: "Point", coordinates: [9, 45] },
    properties,
    ...more,
  } as Delivery["feature"];
  return { kind: "event", epoch: "a", offset, ahead: false, subscriptions: ["around-me"], cause: "published", feature };
}

function gap(reason: string, count: number, from = 5): Gap {
  return { kind: "gap", epoch: "a", from, to: from + count - 1, count, reason };
}

function entry(message: Message, serial = 1): Entry {
  const made = entryOf(message, serial, 1000);
  if (made === undefined) throw new Error("there is nothing to tell");
  return made;
}

describe("the radius slider", () => {
  test("goes from one end to the other in steps that differ and that it finds again", () => {
    const radii = Array.from({ length: STEPS + 1 }, (_, step) => radiusAt(step));
    expect([radii[0], radii.at(-1)]).toEqual([RADIUS_MIN_M, RADIUS_MAX_M]);
    expect(radii).toEqual([...new Set(radii)].sort((one, other) => one - other));
    expect(radii.map(stepOf)).toEqual(radii.map((_, step) => step));
  });

  test("is logarithmic: a step is the same part of the radius everywhere", () => {
    for (let step = 1; step <= STEPS; step++) {
      const ratio = radiusAt(step) / radiusAt(step - 1);
      expect(ratio).toBeGreaterThan(1.02);
      expect(ratio).toBeLessThan(1.11);
    }
  });

  test("takes radii that it does not have", () => {
    expect([stepOf(1), stepOf(1e9), radiusAt(stepOf(1000))]).toEqual([0, STEPS, 1000]);
  });
});

describe("checks", () => {
  const found = (bindings: object, by = "checks/jump"): Delivery =>
    delivery(9, { type: "violation", check: "jump", bindings }, { derived: { by, from: [], depth: 1 } });

  test("an event whose frame says that it violates a check is in doubt", () => {
    expect(entry({ ...delivery(1, { taxi: 7 }), violates: ["jump"] }).doubts).toEqual(["jump"]);
    expect(entry({ ...delivery(1, { taxi: 7 }), violates: [] }).doubts).toBeUndefined();
    expect(entry(delivery(1, { taxi: 7 })).doubts).toBeUndefined();
  });

  test("a finding puts those of its events in doubt that are in the list, and no others", () => {
    const entries = [entry(delivery(1, { taxi: 7 })), entry(delivery(2, { taxi: 8 }))];
    const doubts = (message: Delivery): unknown => doubted(message, () => entries).map(({ id, doubts }) => [id, doubts]);
    expect(doubts(found({ a: "e1", b: "gone" }))).toEqual([["e1", ["jump"]]]);
    expect(doubts(found({ a: "gone" }))).toEqual([]);
    expect(doubts(delivery(9, { type: "violation", check: "jump", bindings: { a: "e1" } }))).toEqual([]);
    expect(doubtWords(["jump"])).toBe("▲ Its place may be wrong: check jump");
  });

  test("a finding whose events are not in the list has a line of its own", () => {
    expect(entry(found({ a: "gone" })).title).toBe("Check jump: events that do not fit together");
  });
});

describe("words", () => {
  test("of distances", () => {
    expect([0.2, 850.4, 999.6, 1240, 9949, 9951, 20_000].map(metres)).toEqual([
      "0 m",
      "850 m",
      "1.0 km",
      "1.2 km",
      "9.9 km",
      "10 km",
      "20 km",
    ]);
    expect([spokenMetres(50), spokenMetres(20_000)]).toEqual(["50 metres", "20 kilometres"]);
  });

  test("of directions, over the antimeridian and in the plane too", () => {
    for (const from of [
      [9.19, 45.46],
      [179.9999, -16],
      [-179.9999, 60],
    ] as Place[]) {
      for (let bearing = 0; bearing < 360; bearing += 15) {
        const to = destination(from, 500, (bearing * Math.PI) / 180);
        expect(Math.abs(((bearing_deg("geodetic", from, to) - bearing + 540) % 360) - 180)).toBeLessThan(0.1);
      }
    }
    expect(bearing_deg("planar", [0, 0], [-3, 0])).toBe(270);
    expect([0, 22, 23, 90, 200, 338, 359].map(direction)).toEqual(["north", "north", "north-east", "east", "south", "north", "north"]);
    expect(whereabouts("planar", [0, 0], [300, -300])).toBe("424 m south-east");
    expect(whereabouts("planar", [0, 0], [0.4, 0])).toBe("here");
  });

  test("of ages", () => {
    expect([0, 3000, 61_000, 7_200_000, 3 * 86_400_000].map(ago)).toEqual(["just now", "3 s ago", "1 min ago", "2 h ago", "3 days ago"]);
  });

  test("of gaps: an alarm that came before its turn is none", () => {
    expect(gapWords(gap("ahead", 1))).toBeUndefined();
    expect(gapWords(gap("overflow", 1))).toContain("1 event is missing");
    expect(gapWords(gap("something new", 3))).toContain("3 events are missing");
    expect(gapWords(gap("epoch", 0))).not.toContain("0 events");
  });

  test("of where a condition is wrong", () => {
    expect(faultAt("expected a value after '<', found '<', at column 12")).toBe(11);
    expect(faultAt("the text that begins at column 5, found end of text, at column 7; a ' inside")).toBe(6);
    expect(faultAt("too long")).toBeUndefined();
  });
});

describe("an entry", () => {
  test("has the best of the titles, and the rest as pairs", () => {
    expect(
      entry(delivery(1, { type: "fire", name: "Warehouse", road: { name: "A4" }, lanes: [1, 2], open: false, gone: null })),
    ).toMatchObject({
      title: "Warehouse",
      pairs: [
        ["type", "fire"],
        ["road.name", "A4"],
        ["lanes", "1, 2"],
        ["open", "no"],
      ],
      place: [9, 45],
      alarm: false,
    });
    expect(entry(delivery(1, { text: 7 })).title).toBe("7");
    expect(entry(delivery(1, {}, { key: "bus-7" })).title).toBe("bus-7");
    expect(entry(delivery(1, { title: "" })).title).toBe("Event");
  });

  test("is small, of one line, and finds the title behind many properties", () => {
    const many = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`p${i}`, "x".repeat(10_000)]));
    const made = entry(delivery(1, { ...many, type: `line one\nline\u0007two ${"😀".repeat(300)}` }));
    expect(made.title.startsWith("Line one line two 😀")).toBe(true);
    expect(made.title).not.toMatch(/[\ud800-\udfff]/u);
    expect(made.pairs.length).toBeLessThanOrEqual(40);
    expect(JSON.stringify(made).length).toBeLessThan(25_000);
  });

  test("of what has no attributes is one as well", () => {
    const message = delivery(1, {});
    const bare = { ...message, feature: { ...message.feature, properties: null } } as unknown as Delivery;
    expect(entry(bare)).toMatchObject({ title: "Event", pairs: [] });
  });

  test("stands for its object where it is live, for itself where it is not", () => {
    const keys = [
      delivery(1, {}, { key: "7" }),
      delivery(2, {}, { key: "7", ttl_s: 5 }),
      delivery(3, {}, { ttl_s: 5, id: "7" }),
      delivery(4, {}, { id: "7" }),
      delivery(5, {}, { id: "7" }),
    ].map((message) => entry(message).key);
    expect(keys[0]).toBe(keys[1]);
    expect(new Set(keys).size).toBe(4);
  });

  test("of an alarm that is told twice is one", () => {
    const early = { ...delivery(3, {}, { id: "a", priority: "alarm" }), ahead: true };
    const again = delivery(9, {}, { id: "a", priority: "alarm" });
    expect(entry(early)).toMatchObject({ alarm: true, key: entry(again).key });
  });
});

describe("the list", () => {
  test("is newest first, of each object the newest, and bounded", () => {
    const list = new Entries();
    const dropped = ({ dropped }: { readonly dropped: readonly Entry[] }): string[] => dropped.map(({ key }) => key);
    for (let i = 1; i <= ENTRIES_MAX + 50; i++) list.add(entry(delivery(i, { type: "x" }), i), 0);
    expect(list.newestFirst()).toHaveLength(ENTRIES_MAX);
    expect(list.newestFirst()[0]?.serial).toBe(ENTRIES_MAX + 50);
    expect(list.newestFirst().at(-1)?.serial).toBe(51);
    expect(dropped(list.add(entry(delivery(900, {}, { key: "k" }), 900), 0))).toEqual([entry(delivery(51, {})).key]);
    list.add(entry(delivery(901, {}), 901), 0);
    expect(list.add(entry(delivery(902, {}, { key: "k" }), 902), 0)).toEqual({ fresh: false, dropped: [] });
    expect(
      list
        .newestFirst()
        .map(({ serial }) => serial)
        .slice(0, 2),
    ).toEqual([902, 901]);
  });

  test("begins in the order in which things came, whatever order they were stored in", () => {
    const stored = [3, 1, 2].map((offset) => entry(delivery(offset, {}), offset));
    expect(new Entries(stored).newestFirst().map(({ serial }) => serial)).toEqual([3, 2, 1]);
    expect(new Entries(stored).lastSerial).toBe(3);
  });
});

describe("alarms in the list", () => {
  const T = Date.parse("2026-03-01T07:30:00Z");
  const of = (offset: number, more: Record<string, unknown> = {}): Entry => {
    const made = entryOf(delivery(offset, {}, more), offset, T);
    if (made === undefined) throw new Error("there is nothing to tell");
    return made;
  };

  const nowhere: Reach = { world: "geodetic", here: undefined, radius_m: 1000 };

  test("the nearest come first, or the newest; what is over or out of reach comes after them, newest first", () => {
    const at = (offset: number, lon: number, more: Record<string, unknown> = {}): Entry => ({ ...of(offset, more), place: [lon, 0] });
    const list = [at(5, 0.002), at(4, 0.001, { ttl_s: 1 }), at(3, 0.001), at(2, 5), at(1, 0.003, { priority: "alarm" })];
    const here: Reach = { world: "geodetic", here: [0, 0], radius_m: 1000 };
    const order = (by: Order) => ordered(list, by, here, T + 5000).map(({ serial }) => serial);
    expect(order("nearest")).toEqual([1, 3, 5, 4, 2]);
    expect(order("newest")).toEqual([1, 5, 3, 4, 2]);
  });

  test("are evicted last, and stand on top until they are opened and over", () => {
    const list = new Entries([], 3);
    const alarm = of(1, { priority: "alarm", ttl_s: 60 });
    for (const made of [alarm, of(2), of(3), of(4), of(5)]) list.add(made, T);
    expect(list.newestFirst().map(({ serial }) => serial)).toEqual([5, 4, 1]);
    expect(ordered(list.newestFirst(), "newest", nowhere, T).map(({ serial }) => serial)).toEqual([1, 5, 4]);
    expect([pressing(alarm, T + 61_000), pressing({ ...alarm, read: true }, T)]).toEqual([true, true]);
    list.replace({ ...alarm, read: true });
    expect(ordered(list.newestFirst(), "nearest", nowhere, T + 61_000).map(({ serial }) => serial)).toEqual([5, 4, 1]);
    // The same again stays opened, and goes as others do.
    list.add(alarm, T + 61_000);
    expect(list.get(alarm.key)?.read).toBe(true);
    for (const made of [of(6), of(7), of(8)]) list.add(made, T + 61_000);
    expect(list.newestFirst().map(({ serial }) => serial)).toEqual([8, 7, 6]);
  });

  test("that are too many push out each other, the oldest first", () => {
    const list = new Entries([], 2);
    for (const offset of [1, 2, 3]) list.add(of(offset, { priority: "alarm" }), T);
    expect(list.newestFirst().map(({ serial }) => serial)).toEqual([3, 2]);
  });
});

test("while a finger is on the list its lines stay, as they are by now, and what is new waits", () => {
  const [one, two, three] = [1, 2, 3].map((offset) => entry(delivery(offset, {}), offset)) as [Entry, Entry, Entry];
  const changed = { ...one, title: "newer" };
  expect(held([two, one], [changed, three])).toEqual({ lines: [two, changed], waiting: [three] });
});

describe("what is not of here and now any more", () => {
  const T = Date.parse("2026-03-01T07:30:00Z");
  const at = (x: number): Reach => ({ world: "planar", here: [x, 45], radius_m: 10 });
  const made = (message: Message, now_ms = T): Entry => {
    const one = entryOf(message, 1, now_ms);
    if (one === undefined) throw new Error("there is nothing to tell");
    return one;
  };
  const transition = (kind: "enter" | "exit", cause: string, more: Record<string, unknown> = {}): Delivery => ({
    ...delivery(9, {}, { id: "e1", key: "bus", ...more }),
    cause,
    transition: kind,
  });

  test("is over by the event's own time, also on arrival", () => {
    const late = made(delivery(1, {}, { ttl_s: 60 }), T + 3_600_000);
    expect([late.time_ms, late.over_ms]).toEqual([T, T + 60_000]);
    expect(status(late, at(9), T + 3_600_000)).toBe("over");
    expect(status(late, at(9), T + 59_000)).toBeUndefined();
    // Of later than now is nothing, and what is no time is of now.
    expect(made(delivery(1, {}), T - 5000).time_ms).toBe(T - 5000);
    expect(made(delivery(1, {}, { time: "yesterday" }), T).time_ms).toBe(T);
  });

  test("is out of reach by distance, edge included", () => {
    const one = made(delivery(1, {}));
    expect([19, 20, -2].map((x) => status(one, at(x), T))).toEqual([undefined, "away", "away"]);
    expect(status(one, { ...at(20), here: undefined }, T)).toBeUndefined();
  });

  test("is what a transition of the same event says, until one says otherwise", () => {
    const bus = made(delivery(1, {}, { key: "bus" }));
    const find = (key: string): Entry | undefined => (key === bus.key ? bus : undefined);
    const after = (message: Delivery, entries = find): string | undefined => {
      const next = afterTransition(message, entries);
      return next === undefined ? "untouched" : status(next, at(9), T);
    };
    expect(["published", "moved", "changed", "expired", "revoked", "new"].map((cause) => after(transition("exit", cause)))).toEqual([
      "left",
      "away",
      "unwanted",
      "over",
      "over",
      "away",
    ]);
    expect(after(transition("enter", "moved"))).toBe("untouched");
    expect(after(transition("enter", "moved"), () => ({ ...bus, gone: "away" }))).toBeUndefined();
    expect(after(transition("exit", "expired", { id: "e0" }))).toBe("untouched");
    expect(entryOf(transition("exit", "moved"), 1, T)).toBeUndefined();
  });
});

test("the attribute that names objects names the line and the object of events without a key", () => {
  const of = (properties: Record<string, unknown>, object: string, more: Record<string, unknown> = {}): Entry | undefined =>
    entryOf(delivery(1, properties, more), 1, 1000, object);
  expect(of({ taxi_id: 5724, speed: 3 }, "taxi_id")).toMatchObject({ key: "object 5724", title: "Taxi 5724", pairs: [["speed", "3"]] });
  expect(of({ taxi_id: 5724, type: "taxi" }, "taxi_id")).toMatchObject({ key: "object 5724", title: "Taxi 5724", pairs: [] });
  expect(of({ car: { plate: "B 12" } }, "car.plate")).toMatchObject({ key: "object B 12", title: "Plate B 12", pairs: [] });
  expect(of({ taxi_id: 5724 }, "taxi_id", { key: "k" })?.key).toBe("key k");
  expect(of({ taxi_id: {} }, "taxi_id")?.title).toBe("Event");
});

/** A store in memory, with a tap. */
class Tap implements Store {
  readonly savings: Saving[] = [];
  full = false;
  #wait: Promise<void> = Promise.resolve();
  open: () => void = () => undefined;

  /** Savings wait until it is opened. */
  close(): void {
    this.#wait = new Promise((resolve) => (this.open = resolve));
  }
  load(): Promise<{ entries: Entry[]; checkpoint: undefined }> {
    return Promise.resolve({ entries: [], checkpoint: undefined });
  }
  async save(saving: Saving): Promise<void> {
    await this.#wait;
    if (this.full) throw new DOMException("full", "QuotaExceededError");
    this.savings.push(saving);
  }
  destroy(): Promise<void> {
    return Promise.resolve();
  }
}

const NOTHING: { entries: Entry[]; checkpoint: Checkpoint | undefined } = { entries: [], checkpoint: undefined };

describe("the inbox", () => {
  test("acknowledges what is stored, and not before", async () => {
    const tap = new Tap();
    tap.close();
    const acknowledged: number[] = [];
    const inbox = new Inbox(tap, NOTHING, () => undefined);
    for (const offset of [1, 2, 3]) inbox.take(delivery(offset, {}), () => acknowledged.push(offset));
    await Promise.resolve();
    expect(acknowledged).toEqual([]);
    tap.open();
    await inbox.settled();
    expect(acknowledged).toEqual([1, 3]);
    expect(tap.savings.map(({ checkpoint }) => checkpoint.offset)).toEqual([1, 3]);
    expect(tap.savings.flatMap(({ put }) => put)).toHaveLength(3);
  });

  test("acknowledges nothing while the store is full, and stores everything when it is not", async () => {
    const tap = new Tap();
    tap.full = true;
    const acknowledged: number[] = [];
    const inbox = new Inbox(tap, NOTHING, () => undefined);
    inbox.take(delivery(1, {}), () => acknowledged.push(1));
    await inbox.settled();
    expect([acknowledged, inbox.stored.value]).toEqual([[], false]);
    tap.full = false;
    inbox.take(delivery(2, {}), () => acknowledged.push(2));
    await inbox.settled();
    expect([acknowledged, inbox.stored.value]).toEqual([[2], true]);
    expect(tap.savings).toMatchObject([{ anew: true, checkpoint: { offset: 2 } }]);
    expect(tap.savings[0]?.put).toHaveLength(2);
  });

  test("without a store shows what comes and acknowledges nothing", async () => {
    const came = vi.fn();
    const inbox = new Inbox(undefined, NOTHING, came);
    inbox.take(delivery(1, {}), () => expect.unreachable());
    await inbox.settled();
    expect([came.mock.calls.length, inbox.stored.value]).toEqual([1, false]);
  });

  test("goes back in no session, and begins anew in another", async () => {
    const inbox = new Inbox(new Tap(), { entries: [], checkpoint: { epoch: "a", offset: 7 } }, () => undefined);
    inbox.take({ ...delivery(6, {}, { priority: "alarm" }), ahead: true }, () => undefined);
    expect(inbox.checkpoint).toEqual({ epoch: "a", offset: 7 });
    inbox.take({ ...gap("epoch", 0), epoch: "b", from: 1, to: 0 }, () => undefined);
    expect(inbox.checkpoint).toEqual({ epoch: "b", offset: 0 });
    await inbox.settled();
  });

  test("tells of an object once, and drops from the store what the list drops", async () => {
    const tap = new Tap();
    const came = vi.fn();
    const inbox = new Inbox(tap, NOTHING, came);
    for (let i = 1; i <= ENTRIES_MAX + 10; i++) inbox.take(delivery(i, {}), () => undefined);
    for (let i = 0; i < 5; i++) inbox.take(delivery(1000 + i, {}, { key: "bus" }), () => undefined);
    await inbox.settled();
    expect(came).toHaveBeenCalledTimes(ENTRIES_MAX + 11);
    const stored = new Set<string>();
    for (const { put, remove } of tap.savings) {
      for (const key of remove) stored.delete(key);
      for (const { key } of put) stored.add(key);
    }
    expect(stored.size).toBe(ENTRIES_MAX);
  });
});

test("the inbox says when it had no room for something that lasts or was not looked at, and keeps what was opened", async () => {
  const tap = new Tap();
  const inbox = new Inbox(tap, NOTHING, () => undefined);
  const now = new Date().toISOString();
  inbox.take(delivery(0, {}, { priority: "alarm", id: "a", time: now }), () => undefined);
  for (let i = 1; i < ENTRIES_MAX; i++) inbox.take(delivery(i, {}), () => undefined);
  inbox.look();
  inbox.take(delivery(500, {}), () => undefined);
  expect(inbox.overfull.value).toBe(false);
  inbox.take(delivery(501, {}, { ttl_s: 60, time: now }), () => undefined);
  for (let i = 502; i < 502 + ENTRIES_MAX; i++) inbox.take(delivery(i, {}), () => undefined);
  expect(inbox.overfull.value).toBe(true);
  await inbox.settled();
  inbox.read(`alarm a ${now}`);
  await inbox.settled();
  expect(tap.savings.at(-1)?.put).toMatchObject([{ id: "a", read: true }]);
});

describe("interests", () => {
  test("become one filter each, the own condition last", () => {
    const slow = toggled(EVERYTHING, "speed < 10");
    const both = toggled(slow, "free = TRUE");
    expect(JSON.parse(JSON.stringify(subscriptionOf({ ...both, own: " a = 1 ", ownOn: true }, 500)))).toEqual({
      filters: [
        { area: { radius_m: 500 }, where: "speed < 10" },
        { area: { radius_m: 500 }, where: "free = TRUE" },
        { area: { radius_m: 500 }, where: "a = 1" },
      ],
      durable: true,
    });
    expect(toggled(both, "speed < 10").conditions).toEqual(["free = TRUE"]);
  });

  test("are everything where nothing is chosen", () => {
    for (const choice of [EVERYTHING, { ...EVERYTHING, own: "a = 1" }, { ...EVERYTHING, own: " ", ownOn: true }]) {
      expect(isEverything(choice)).toBe(true);
      expect(JSON.parse(JSON.stringify(subscriptionOf(choice, 50)))).toEqual({ filters: [{ area: { radius_m: 50 } }], durable: true });
    }
  });

  test("that the broker does not offer any more are left out", () => {
    const choice = { ...EVERYTHING, conditions: ["a = 1", "b = 2"] };
    expect(offered(choice, [{ label: "B", where: "b = 2" }]).conditions).toEqual(["b = 2"]);
  });
});

test("more than three objects of a sort are one line, and what happens has its own", () => {
  const taxi = (id: number, status: string, more = {}): Entry => {
    const made = entryOf(delivery(id, { taxi_id: id, speed_kmh: id, status }, more), id, 1000, "taxi_id");
    if (made === undefined) throw new Error("there is nothing to tell");
    return made;
  };
  const fire = entry(delivery(9, { title: "Fire" }));
  const taxis = [taxi(1, "free"), taxi(2, "hired"), taxi(3, "free")];
  expect(grouped([fire, ...taxis])).toEqual([fire, ...taxis]);
  const [fourth, alarm] = [taxi(4, "free"), taxi(5, "free", { priority: "alarm" })];
  const [flood, group] = [entry(delivery(10, { title: "Flood" })), { sort: "Taxi", entries: [...taxis, fourth] }];
  // Where the first of them stands.
  expect(grouped([flood, ...taxis, fire, alarm, fourth])).toEqual([flood, group, fire, alarm]);
  expect(groupTitle(group)).toBe("4 taxis");
  expect(groupShares(group)).toEqual([
    ["free", 3],
    ["hired", 1],
  ]);
  expect(["Bus", "Box", "GPS unit"].map((sort) => groupTitle({ sort, entries: taxis }))).toEqual(["3 buses", "3 boxes", "3 GPS units"]);
});

test("a voice says alarms at once and few words of the rest", () => {
  vi.useFakeTimers();
  const announcer = new Announcer("planar", () => [0, 0]);
  const of = (title: string, alarm = false): Entry => ({ ...entry(delivery(1, { title })), place: [0, 200], alarm });
  for (const title of ["one", "two", "three", "four"]) announcer.came(of(title));
  announcer.came(of("fire", true));
  expect([announcer.news.value, announcer.alarm.value]).toEqual(["", "Alarm: fire, 200 m north"]);
  vi.advanceTimersByTime(4000);
  expect(announcer.news.value).toBe("New: one, 200 m north; two, 200 m north; and 2 more");
  vi.useRealTimers();
});

describe("the wish", () => {
  const refusal = (pointer: string): ProblemError =>
    new ProblemError({ type: "urn:nearcast:problem:invalid-document", title: "no", status: 400, errors: [{ pointer, detail: "no" }] });

  /** A broker that refuses conditions that say so; what it has at last. */
  function broker(): { readonly session: Pick<Session, "subscribe">; readonly made: Map<string, Subscription> } {
    const made = new Map<string, Subscription>();
    const subscribe = (id: string, subscription: Subscription): Promise<void> => {
      const at = subscription.filters.findIndex(({ where }) => typeof where === "string" && where.includes("wrong"));
      if (at >= 0) return Promise.reject(refusal(`/filters/${at}/where`));
      made.set(id, subscription);
      return Promise.resolve();
    };
    return { session: { subscribe }, made };
  }

  async function wished(wish: Wish, choice: Choice, radius_m: number): Promise<void> {
    wish.want(choice, radius_m);
    await vi.advanceTimersByTimeAsync(1000);
  }

  const shown = (made: Map<string, Subscription>): unknown =>
    JSON.parse(JSON.stringify([...made].map(([id, { filters, on }]) => [id, filters, ...(on === undefined ? [] : [on])])));

  test("keeps what was in force beside a condition that is refused, and the radius goes on", async () => {
    vi.useFakeTimers();
    const [wish, { session, made }] = [new Wish(), broker()];
    const own = (text: string): Choice => ({ conditions: ["a = 1"], own: text, ownOn: true });
    wish.inForce.value = EVERYTHING;
    wish.opened(session);
    await wished(wish, own("b = 2"), 100);
    expect([wish.state.value, wish.fault.value]).toEqual(["in force", undefined]);
    await wished(wish, own("wrong"), 100);
    await wished(wish, own("wrong"), 200);
    await wished(wish, { ...own("wrong"), conditions: [] }, 300);
    const filters = [{ area: { radius_m: 300 }, where: "b = 2" }];
    expect(shown(made)).toEqual([
      ["around-me", filters],
      ["around-me-objects", filters, ["enter", "exit"]],
    ]);
    expect([wish.state.value, wish.fault.value?.own, wish.inForce.value]).toEqual(["in force", true, { ...own("b = 2"), conditions: [] }]);
    await wished(wish, own("c = 3"), 300);
    expect([wish.fault.value, wish.inForce.value]).toEqual([undefined, own("c = 3")]);
    vi.useRealTimers();
  });

  test("says so where nothing is in force, and asks for no more than was wanted", async () => {
    vi.useFakeTimers();
    const [wish, { session, made }] = [new Wish(), broker()];
    wish.inForce.value = { conditions: [], own: "wrong now", ownOn: true };
    wish.opened(session);
    await wished(wish, wish.inForce.value, 100);
    expect([wish.state.value, wish.fault.value?.own, wish.inForce.value, made.size]).toEqual(["refused", true, undefined, 0]);
    vi.useRealTimers();
  });

  test("goes back to the choice before where an interest is refused", async () => {
    vi.useFakeTimers();
    const [wish, { session, made }] = [new Wish(), broker()];
    wish.inForce.value = EVERYTHING;
    wish.opened(session);
    await wished(wish, toggled(EVERYTHING, "wrong"), 100);
    expect([wish.state.value, wish.fault.value?.own, wish.inForce.value]).toEqual(["in force", false, EVERYTHING]);
    expect(shown(made)).toContainEqual(["around-me", [{ area: { radius_m: 100 } }]]);
    vi.useRealTimers();
  });
});
