// A person walks along a real track, and gets exactly what a brute force says: what is published within the radius, what lives and comes into reach,
// over a loss of the network and over closing the page.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { Broker } from "../../../typescript/tests/support/broker.js";
import { degrees } from "../../src/shared/degrees.js";
import { launch, pagesOf } from "../support/pages.js";
import {
  around,
  feature,
  haversine_m,
  nearest_m,
  Network,
  openPhone,
  placed,
  publish,
  reports,
  seen,
  type Place,
  type Report,
} from "./phone-support.js";

const RADIUS_M = 1000;
/** What lies so near to an edge is not published: the way is looked at every half metre. */
const EDGE_M = 2;
/** Moves over the network, without it, and over it again. */
const [ONLINE, OFFLINE, AFTER] = [18, 9, 3];
/** Each third event lives. */
const LIVE_EVERY = 3;

let browser: Browser;
let broker: Broker;
let network: Network;
let pages: Awaited<ReturnType<typeof pagesOf>>;

beforeAll(async () => {
  [browser, broker] = await Promise.all([launch(), Broker.start({ data: true })]);
  network = await Network.to(broker);
  pages = await pagesOf(network);
});

afterAll(async () => {
  await browser.close();
  await pages.close();
  network.close();
  await broker.stop();
});

/** One move of the walk, and what others report between it and the next. */
interface Step {
  readonly place: Place;
  readonly events: readonly Report[];
}

/** The moves of one taxi that went far enough without a fault of its receiver, and what happened around it. */
function walk(): Step[] {
  const all = reports();
  for (const taxi of new Set(all.map((report) => report.taxi))) {
    const moves: Report[] = [];
    for (const report of all) {
      const before = moves.at(-1);
      if (report.taxi === taxi && (before === undefined || haversine_m(before.place, report.place) > 20)) moves.push(report);
    }
    const way = moves.slice(0, ONLINE + OFFLINE + AFTER);
    const longest_m = Math.max(...way.map(({ place }, i) => haversine_m(way[i - 1]?.place ?? place, place)));
    if (way.length < ONLINE + OFFLINE + AFTER || longest_m > 1500) continue;
    const clear = (event: Report): boolean => way.every(({ place }) => Math.abs(haversine_m(place, event.place) - RADIUS_M) > EDGE_M);
    const steps = way.map(({ place, seq }, i): Step => {
      const end = way[i + 1]?.seq ?? seq + 200;
      const near = all.filter(
        (event) => event.seq > seq && event.seq < end && event.taxi !== taxi && haversine_m(place, event.place) < 2 * RADIUS_M,
      );
      return { place, events: near.filter(clear) };
    });
    // Where something happens, but not more than the list has room for.
    const reached = steps.map(({ place, events }) => events.filter((event) => haversine_m(place, event.place) <= RADIUS_M).length);
    const sum = (some: readonly number[]): number => some.reduce((all, count) => all + count, 0);
    if (sum(reached.slice(0, ONLINE)) >= 50 && sum(reached.slice(ONLINE, ONLINE + OFFLINE)) >= 30 && sum(reached) <= 150) return steps;
  }
  throw new Error("no taxi went so far");
}

function title({ seq }: Report): string {
  return `r${seq}`;
}

/** What has to come: decided by looking at everything. */
class Oracle {
  readonly expected: string[] = [];
  #live: Report[] = [];
  #place: Place | undefined;

  static lives({ seq }: Report): boolean {
    return seq % LIVE_EVERY === 0;
  }

  published(event: Report): void {
    if (this.#place !== undefined && haversine_m(this.#place, event.place) <= RADIUS_M) this.expected.push(title(event));
    else if (Oracle.lives(event)) this.#live.push(event);
  }

  /** The person went this way, or is at its one place. */
  went(way: readonly Place[]): void {
    this.#place = way.at(-1);
    const near = (event: Report): boolean => nearest_m(way, event.place) <= RADIUS_M;
    this.expected.push(...this.#live.filter(near).map(title));
    this.#live = this.#live.filter((event) => !near(event));
  }
}

function sorted(titles: readonly string[]): string[] {
  return [...titles].sort();
}

test("a walk along a real track brings exactly what the oracle says, over a loss of the network and over closing the page", async () => {
  const steps = walk();
  const way = steps.map(({ place }) => place);
  const [start, last, end] = [0, ONLINE - 1, way.length - 1].map((i): Place => way[i] ?? [0, 0]) as [Place, Place, Place];
  const oracle = new Oracle();
  const phone = await openPhone(browser, pages.url, {
    permissions: ["geolocation"],
    geolocation: { longitude: start[0], latitude: start[1], accuracy: 10 },
  });
  const { page } = phone;
  const locate = ([longitude, latitude]: Place): Promise<void> => phone.context.setGeolocation({ longitude, latitude, accuracy: 10 });
  await page.getByRole("button", { name: "Use my location" }).click();
  await seen(page, /Your place was sent/);
  const client = await phone.client();
  await around(page);

  const happen = async (events: readonly Report[]): Promise<void> => {
    for (const event of events) oracle.published(event);
    const lasting = (event: Report): Record<string, unknown> => (Oracle.lives(event) ? { ttl_s: 3600 } : {});
    await publish(
      broker,
      events.map((event) => feature(title(event), event.place, lasting(event), { speed_kmh: event.speed_kmh })),
    );
  };
  const walkOn = async (some: readonly Step[]): Promise<void> => {
    for (const { place, events } of some) {
      await locate(place);
      await placed(broker, client, place);
      oracle.went([place]);
      await happen(events);
    }
  };

  await walkOn(steps.slice(0, ONLINE));
  await publish(broker, [feature("before the tunnel", last)]);
  await phone.came("before the tunnel");
  const before = oracle.expected.length;
  expect(sorted(await phone.titles())).toEqual(sorted([...oracle.expected, "before the tunnel"]));

  network.cut();
  await phone.context.setOffline(true);
  await seen(page, /^Offline since/);
  const tunnel = way.slice(ONLINE - 1, ONLINE + OFFLINE);
  for (const { place, events } of steps.slice(ONLINE, ONLINE + OFFLINE)) {
    await locate(place);
    await seen(page, degrees(place, "geodetic"));
    await happen(events.filter((event) => Math.abs(nearest_m(tunnel, event.place) - RADIUS_M) > EDGE_M));
  }
  await seen(page, /Your way is recorded/);
  oracle.went(tunnel);
  const through = oracle.expected.length;

  network.mend();
  await phone.context.setOffline(false);
  await placed(broker, client, tunnel.at(-1) ?? end);
  await walkOn(steps.slice(ONLINE + OFFLINE));
  await publish(broker, [feature("at the end", end)]);
  await phone.came("at the end");
  const expected = [...oracle.expected, "before the tunnel", "at the end"];
  expect(sorted(await phone.titles())).toEqual(sorted(expected));
  // Much came, some of it along the way in the tunnel, and the list had room for all of it.
  expect(before).toBeGreaterThanOrEqual(50);
  expect(through - before).toBeGreaterThan(3);
  expect(expected.length).toBeLessThan(200);

  // Closed, and opened again: what was published meanwhile comes, and nothing comes twice.
  await page.goto("about:blank");
  await publish(broker, [feature("while it was closed", end)]);
  await page.goto(`${pages.url}phone`);
  await phone.came("while it was closed");
  await seen(page, /Your place was sent/);
  await publish(broker, [feature("opened again", end)]);
  await phone.came("opened again");
  expect(sorted(await phone.titles())).toEqual(sorted([...expected, "while it was closed", "opened again"]));
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("a browser without a network says so at once, and that it is back", async () => {
  const phone = await openPhone(browser, pages.url);
  const { page } = phone;
  await page.getByRole("button", { name: "Put me here" }).click();
  await seen(page, /Your place was sent/);
  const connection = page.locator(".connection");
  // The connection itself stays, and says nothing.
  network.swallow();
  await phone.context.setOffline(true);
  await expect.poll(() => connection.textContent()).toMatch(/^Offline since/);
  network.mend();
  await phone.context.setOffline(false);
  await expect.poll(() => connection.textContent()).toBe("Connected");
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});

test("where one went while the network swallowed everything counts, too", async () => {
  const [longitude, latitude] = [114.5, 22.6];
  const phone = await openPhone(browser, pages.url, { permissions: ["geolocation"], geolocation: { longitude, latitude, accuracy: 10 } });
  const { page } = phone;
  await page.getByRole("button", { name: "Use my location" }).click();
  await seen(page, /Your place was sent/);
  await publish(broker, [
    feature("on the way", [longitude + 0.05, latitude + 0.05], { ttl_s: 3600 }),
    feature("beside the way", [longitude + 0.05, latitude - 0.05], { ttl_s: 3600 }),
  ]);
  await around(page);
  network.swallow();
  for (const [east, north] of [
    [0.05, 0.05],
    [0.1, 0],
  ] as const) {
    await phone.context.setGeolocation({ longitude: longitude + east, latitude: latitude + north, accuracy: 10 });
    await seen(page, degrees([longitude + east, latitude + north], "geodetic"));
  }
  network.cut();
  network.mend();
  await phone.came("on the way");
  await publish(broker, [feature("at the end", [longitude + 0.1, latitude])]);
  await phone.came("at the end");
  expect(await phone.titles()).toEqual(["at the end", "on the way"]);
  expect(phone.errors()).toEqual([]);
  await phone.context.close();
});
