import type { DeliveredFeature } from "nearcast";
import { expect, test } from "vitest";

import { Attributes } from "../../src/console/live/attributes.js";
import { pointsOf, ticksOf } from "../../src/console/live/chart.js";
import { Feed } from "../../src/console/live/feed.js";
import { bucketsOf, spread } from "../../src/console/live/histogram.js";
import { attributeOf, Objects } from "../../src/console/live/objects.js";
import { HISTORY, Rates, type Stats } from "../../src/console/live/rates.js";
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
  expect([rates.history.events, rates.history.moves]).toEqual([[500], [5]]);
  rates.look({ ...STATS, events: 3 }, 3000);
  expect(rates.history.events).toEqual([500]);
  rates.look({ ...STATS, events: 13 }, 4000);
  expect(rates.history.events).toEqual([500, 10]);
  const earlier = { at_ms: 0, events: 7, matches: 0, deliveries: 0, moves: 0 };
  rates.earlier([earlier, { ...earlier, at_ms: Date.now() + 60_000, events: 9 }]);
  expect(rates.history.events).toEqual([7, 500, 10]);
  for (let second = 5; second < 5000; second++) rates.look({ ...STATS, events: second * 100 }, second * 1000);
  expect(rates.history.events).toHaveLength(HISTORY);
  expect(rates.times_ms).toHaveLength(HISTORY);
});

test("an axis has round steps up to what it shows, and a thinned line keeps its peaks", () => {
  expect(ticksOf(750)).toEqual([0, 500, 1000]);
  expect(ticksOf(3)).toEqual([0, 1, 2, 3]);
  expect(ticksOf(0.0042)).toEqual([0, 0.002, 0.004, 0.006]);
  const times = Array.from({ length: 1600 }, (_, at) => at);
  const points = pointsOf(
    times,
    times.map((at) => (at === 777 ? 99 : 1)),
    (x) => x,
    (y) => y,
  );
  expect(points.split(" ")).toHaveLength(160);
  expect(points).toContain(",99.0");
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

test("figures are short", () => {
  expect([count(0), count(3), count(3.14), count(1234.5)]).toEqual(["0", "3", "3.1", "1,235"]);
  expect([duration(0.00064), duration(0.00213), duration(0.05), duration(1.26)]).toEqual(["640 µs", "2.1 ms", "50 ms", "1.3 s"]);
  expect([metres(0), metres(0.25), metres(30.4), metres(1234), metres(29_481)]).toEqual(["0 m", "0.3 m", "30 m", "1.2 km", "29 km"]);
  expect([span(12), span(240), span(10_800), span(172_800)]).toEqual(["12 s", "4 min", "3 h", "2 days"]);
});
