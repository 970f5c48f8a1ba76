import type { DeliveredFeature } from "nearcast";
import { expect, test } from "vitest";

import { Attributes } from "../../src/console/live/attributes.js";
import { slowOf } from "../../src/console/clients/state.js";
import { bucketed, linearAxis, logarithmicAxis, momentsOf, newestOf, pathOf } from "../../src/console/live/plot.js";
import { Feed } from "../../src/console/live/feed.js";
import { bucketsOf, spread } from "../../src/console/live/histogram.js";
import { attributeOf, Objects } from "../../src/console/live/objects.js";
import { pointsOfHistory } from "../../src/console/live/history.js";
import { HISTORY, Rates, Timeline, type Stats } from "../../src/console/live/rates.js";
import { count, duration, metres, span } from "../../src/console/words.js";

function feature(id: string, members: Partial<DeliveredFeature> = {}): DeliveredFeature {
  return {
    type: "Feature",
    id,
    time: "2026-03-01T07:30:00Z",
    geometry: { type: "Point", coordinates: [9, 45] },
    properties: {},
    ...members,
  };
}

const BOUNDS = { points: 3, object_ms: 600_000, event_ms: 60_000 };

test("an object is a key, a value of the attribute, or a live event's id, and none is taken for another", () => {
  const objects = new Objects("car.id");
  const ids = [
    feature("a", { key: "7" }),
    feature("b", { properties: { car: { id: 7 } } }),
    feature("7", { ttl_s: 60 }),
    feature("7"),
    feature("7"),
    feature("c", { key: "7", properties: { car: { id: 9 } } }),
    feature("d", { properties: { "car.id": "7" } }),
  ].map((event) => objects.put(event, false, 0).seen.id);
  expect(ids).toEqual(["k7", "a7", "i7", "e0", "e1", "k7", "a7"]);
  expect(objects.size).toBe(5);
  expect(objects.newest().map(({ feature: { id } }) => id)).toEqual(["d", "c", "7", "7", "7"]);
});

test("beyond the bound the one goes that was not heard of for longest", () => {
  const objects = new Objects(undefined, BOUNDS);
  for (const key of ["a", "b", "c", "a"]) expect(objects.put(feature("x", { key }), false, 0).gone).toBeUndefined();
  expect(objects.put(feature("x", { key: "d" }), false, 0).gone).toBe("kb");
  expect(objects.size).toBe(3);
});

test("objects and events go when their time is over, and fade before", () => {
  const objects = new Objects(undefined, { ...BOUNDS, points: 10 });
  const { seen } = objects.put(feature("alone"), false, 0);
  objects.put(feature("x", { key: "object" }), false, 0);
  objects.put(feature("live", { ttl_s: 5 }), false, 0);
  expect(objects.sweep(4999)).toEqual([]);
  expect(objects.sweep(5000)).toEqual(["ilive"]);
  expect(objects.sweep(60_000)).toEqual([seen.id]);
  expect(objects.sweep(600_000)).toEqual(["kobject"]);
  expect(objects.size).toBe(0);
});

test("a mark is on the newest event of an object alone", () => {
  const objects = new Objects(undefined);
  objects.put(feature("x", { key: "k" }), false, 0);
  expect(objects.mark("kk", true)?.matched).toBe(true);
  objects.put(feature("y", { key: "k" }), false, 1);
  expect(objects.get("kk")?.matched).toBe(false);
  expect(objects.mark("gone", true)).toBeUndefined();
});

test("attributes are found by their dotted names", () => {
  const properties = { a: { b: [1], "c.d": 2 }, "e.f": 3 };
  expect(["a.b", "e.f", "a.x", "a.b.c", "toString"].map((name) => attributeOf(properties, name))).toEqual([
    [1],
    3,
    undefined,
    undefined,
    undefined,
  ]);
});

test("attributes are learnt with their kinds and some values, and no more than so many", () => {
  const attributes = new Attributes();
  attributes.learn({ road: { name: "A4", lanes: [2, 3] }, open: true, x: null });
  attributes.learn({ road: { name: 4 } });
  expect(attributes.list()).toEqual([
    { name: "open", kinds: ["truth value"], values: [true] },
    { name: "road.lanes", kinds: ["number"], values: [2, 3] },
    { name: "road.name", kinds: ["text", "number"], values: ["A4", 4] },
  ]);
  for (let index = 0; index < 1000; index++) attributes.learn({ [`n${index}`]: 1, road: { name: index } });
  expect(attributes.list()).toHaveLength(200);
  expect(attributes.list().find(({ name }) => name === "road.name")?.values).toHaveLength(20);
});

test("the feed lists all of a few events, the newest first, and of a flood the newest", () => {
  const feed = new Feed();
  for (const id of ["1", "2", "3"]) feed.offer(feature(id), false);
  feed.look();
  expect(feed.rows.map(({ feature }) => feature.id)).toEqual(["3", "2", "1"]);
  expect(feed.flooded).toBe(false);
  for (let id = 4; id < 1000; id++) feed.offer(feature(String(id)), false);
  feed.look();
  expect(feed.rows.slice(0, 3).map(({ feature }) => feature.id)).toEqual(["999", "998", "3"]);
  expect(feed.flooded).toBe(true);
  for (let look = 0; look < 200; look++) {
    feed.offer(feature(`look ${look}`), false);
    feed.look();
  }
  expect(feed.rows.length).toBe(100);
  expect(feed.rows[0]?.feature.id).toBe("look 199");
});

const STATS: Stats = {
  version: "1",
  engine: "cells",
  engine_why: "",
  world: "geodetic",
  shards: 1,
  uptime_s: 1,
  connections: 0,
  clients: 0,
  subscriptions: 0,
  live_objects: 0,
  durable_sessions: 0,
  queued: 0,
  events: 0,
  matches: 0,
  deliveries: 0,
  deliveries_dropped: 0,
  moves: 0,
};

test("rates are differences over the time between, and a broker that began anew gives none", () => {
  const rates = new Rates();
  rates.look({ ...STATS, events: 100 }, 0);
  rates.look({ ...STATS, events: 1100, moves: 10 }, 2000);
  expect([rates.of.events, rates.of.moves]).toEqual([[500], [5]]);
  rates.look({ ...STATS, events: 3 }, 3000);
  expect(rates.of.events).toEqual([500]);
  rates.look({ ...STATS, events: 13 }, 4000);
  expect(rates.of.events).toEqual([500, 10]);
  for (let second = 5; second < 5000; second++) rates.look({ ...STATS, events: second * 100 }, second * 1000);
  expect(rates.of.events).toHaveLength(HISTORY);
  expect(rates.times_ms).toHaveLength(HISTORY);
});

test("what the broker has kept comes before the first look and into gaps, and nowhere else", () => {
  const line = new Timeline(["events"]);
  for (const second of [100, 101, 102, 160, 161]) line.add(second * 1000, { events: second });
  const kept = Array.from({ length: 17 }, (_, at) => ({ at_ms: at * 10_000 + 3000, events: at }));
  line.fill(kept, 10_000);
  expect(line.times_ms.map((time) => time / 1000)).toEqual([
    3, 13, 23, 33, 43, 53, 63, 73, 83, 93, 100, 101, 102, 113, 123, 133, 143, 153, 160, 161,
  ]);
  expect(line.of.events.slice(8, 15)).toEqual([8, 9, 100, 101, 102, 11, 12]);
  line.fill(kept, 10_000);
  expect(line.times_ms).toHaveLength(20);
});

test("the broker's columns are points, also where its clock is another", () => {
  const history = {
    step_s: 10,
    time_unix_ms: [990_000, 1_000_000],
    events_per_s: [1, 2],
    deliveries_per_s: [3, 4],
    moves_per_s: [5, 6],
    queue_p50_s: [null, 0.1],
    queue_p99_s: [null, 0.2],
  };
  expect(pointsOfHistory(history, 1_005_000)).toEqual([
    { at_ms: 990_000, events: 1, deliveries: 3, moves: 5, p50: undefined, p99: undefined },
    { at_ms: 1_000_000, events: 2, deliveries: 4, moves: 6, p50: 0.1, p99: 0.2 },
  ]);
  expect(pointsOfHistory(history, 5_000_000).map(({ at_ms }) => at_ms)).toEqual([4_990_000, 5_000_000]);
  expect(pointsOfHistory({ ...history, time_unix_ms: [] }, 0)).toEqual([]);
});

test("an axis has round steps up to what it shows, and round times of the day", () => {
  expect(linearAxis(750).ticks).toEqual([0, 500, 1000]);
  expect(linearAxis(3).ticks).toEqual([0, 1, 2, 3]);
  expect(linearAxis(0.0042).ticks).toEqual([0, 0.002, 0.004, 0.006]);
  expect(linearAxis(750).part(250)).toBe(0.25);
  expect(momentsOf(10_000, 310_000, 5).map((time) => time / 1000)).toEqual([60, 120, 180, 240, 300]);
  expect(momentsOf(0, 3_600_000, 5).map((time) => time / 60_000)).toEqual([0, 15, 30, 45, 60]);
});

test("a logarithmic axis has the powers of ten around what it shows", () => {
  const axis = logarithmicAxis([0.0002, 0.26]);
  expect(axis.ticks).toEqual([0.0001, 0.001, 0.01, 0.1, 1]);
  expect([0, 0.0001, 0.01, 1].map(axis.part)).toEqual([0, 0, 0.5, 1]);
  expect(logarithmicAxis([0.01]).ticks).toEqual([0.001, 0.01]);
  expect(logarithmicAxis([]).ticks).toEqual([0.001, 0.01, 0.1]);
  expect(logarithmicAxis([1e-30, 1]).ticks).toHaveLength(8);
});

test("buckets have their mean or their peak, and those that are not whole are left out", () => {
  // Half of the first bucket of ten and of the last one was seen.
  const times = Array.from({ length: 31 }, (_, at) => 5000 + at * 1000);
  const values = times.map((time) => (time === 15_000 ? 110 : 10));
  expect(bucketed(times, [values], 10_000, "mean")).toEqual({ times_ms: [15_000, 25_000], lines: [[20, 10]] });
  expect(bucketed(times, [values, values.map((value) => (value > 10 ? value : undefined))], 10_000, "most").lines).toEqual([
    [110, 10],
    [110, undefined],
  ]);
  // A rate counts for the time since the look before.
  expect(bucketed([0, 10_000, 11_000, 19_000, 20_000], [[0, 5, 90, 10, 0]], 10_000, "mean").lines).toEqual([[(5 * 10 + 90 + 10 * 8) / 19]]);
  expect(bucketed([], [[]], 10_000, "mean")).toEqual({ times_ms: [], lines: [[]] });
});

test("a line breaks where nothing was measured", () => {
  const draw = (times: readonly number[], values: readonly (number | undefined)[]): string => pathOf(times, values, 15_000, Number, Number);
  expect(draw([0, 10_000, 60_000, 70_000], [1, 2, 3, 4])).toBe("M0.0,1.0L10000.0,2.0M60000.0,3.0L70000.0,4.0");
  expect(draw([0, 1], [undefined, undefined])).toBe("");
  expect(draw([0, 10_000, 20_000, 30_000], [1, undefined, 3, 4])).toBe("M0.0,1.0M20000.0,3.0L30000.0,4.0");
});

test("the figure beside a line is where the line ends, and the newest there is before it begins", () => {
  const values = [10, 20, 90];
  const { lines } = bucketed([0, 15_000, 25_000], [values], 10_000, "mean");
  expect(newestOf(lines[0] ?? [], values)).toBe(20);
  expect(newestOf([undefined, undefined], values)).toBe(90);
  expect(newestOf([3, undefined], values)).toBeUndefined();
});

const METRICS = `# HELP t
t_bucket{le="0.2"} 30
t_bucket{le="0.1"} 10
tt_bucket{le="0.1"} 99
t_bucket{le="+Inf"} 40
t_count 40
`;

test("quantiles lie on the line between the ends of their bucket", () => {
  const buckets = bucketsOf(METRICS, "t");
  expect(buckets).toEqual([
    [0.1, 10],
    [0.2, 30],
    [Infinity, 40],
  ]);
  expect(spread(buckets, [])).toMatchObject({ count: 40, p99: 0.2 });
  expect(spread(buckets, [])?.p50).toBeCloseTo(0.15);
  expect(spread(buckets, buckets)).toBeUndefined();
  expect(spread([], [])).toBeUndefined();
});

test("a histogram is of what came between two looks, also after the broker began anew", () => {
  const before = bucketsOf(METRICS, "t");
  const later = before.map(([end, below]): [number, number] => [end, below + 4]);
  const between = spread(later, before);
  expect([between?.count, between?.p50.toFixed(3), between?.p99.toFixed(3)]).toEqual([4, "0.050", "0.099"]);
  const anew: [number, number][] = [
    [0.1, 2],
    [0.2, 2],
    [Infinity, 2],
  ];
  expect(spread(anew, before)?.count).toBe(2);
});

test("a client does not keep up if it did not at two looks in a row", () => {
  const client = { client: "a", connections: 1, subscriptions: 1, durable: false, behind: 0, waiting_frames: 0, kept_matches: 0 };
  const slow = { ...client, behind: 3 };
  const own = { ...slow, client: "~checks/x" };
  expect(slowOf([client], [slow])).toBe(0);
  expect(slowOf([slow, own], [client, own])).toBe(0);
  expect(slowOf([slow, own], [slow, own])).toBe(1);
});

test("figures are short", () => {
  expect([count(0), count(3), count(3.14), count(1234.5)]).toEqual(["0", "3", "3.1", "1,235"]);
  expect([duration(0.00064), duration(0.00213), duration(0.05), duration(1.26)]).toEqual(["640 µs", "2.1 ms", "50 ms", "1.3 s"]);
  expect([metres(0), metres(0.25), metres(30.4), metres(1234), metres(29_481)]).toEqual(["0 m", "0.3 m", "30 m", "1.2 km", "29 km"]);
  expect([span(12), span(240), span(10_800), span(172_800)]).toEqual(["12 s", "4 min", "3 h", "2 days"]);
});
