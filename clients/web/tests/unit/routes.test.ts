// Routes on the pages, without a broker: how places lie to a line, when a way is asked for, and what the answers mean.

import { signal } from "@preact/signals";
import { ProblemError, type ClientRoute, type Explanation, type FoundRoute, type Session, type Subscription } from "nearcast";
import { describe, expect, test, vi } from "vitest";

import type { Access } from "../../src/console/access.js";
import { Ways } from "../../src/console/clients/ways.js";
import { shapesOf } from "../../src/console/map/areas.js";
import { routeWords } from "../../src/console/words.js";
import { status, type Entry } from "../../src/phone/entry.js";
import { EVERYTHING, subscriptionOf } from "../../src/phone/interests.js";
import { Trip, wordsOf, type Asked } from "../../src/phone/trip.js";
import { Wish } from "../../src/phone/wish.js";
import { minutes } from "../../src/phone/words.js";
import { along, Corridor } from "../../src/shared/map/corridor.js";
import { destination, distance_m, planeOf, type Place } from "../../src/shared/map/plane.js";
import { haversine_m, nearest_m } from "../browser/phone-support.js";
import { random } from "../browser/console-support.js";

// Where the broker is: a page asks its own address.
vi.hoisted(() => vi.stubGlobal("location", { href: "http://localhost/" }));

const WEST: Place = [9.52, 47.14];
const EAST: Place = [9.54, 47.14];
const NORTH: Place = [9.53, 47.145];

function found(...coordinates: Place[]): FoundRoute {
  return { route: { type: "LineString", coordinates }, length_m: 2000, duration_s: 200, level: 0, score: 6 };
}

function problem(status: number, code: string, more: object = {}): ProblemError {
  return new ProblemError({ type: `urn:nearcast:problem:${code}`, title: code, status, ...more });
}

describe("a line", () => {
  test("is as near to places as a look at each half metre of it says, and so is its rest", () => {
    const next = random(7);
    const somewhere = (): Place => [9.5 + next() * 0.02, 47.1 + next() * 0.02];
    for (let round = 0; round < 20; round++) {
      const line = Array.from({ length: 6 }, somewhere);
      const place = somewhere();
      const { away_m, left_m } = along(line, place);
      expect(Math.abs(away_m - nearest_m(line, place))).toBeLessThan(0.6);
      const whole_m = line.reduce((sum, at, index) => sum + haversine_m(line[index - 1] ?? at, at), 0);
      expect(left_m).toBeGreaterThanOrEqual(0);
      expect(left_m).toBeLessThanOrEqual(whole_m + 1e-6);
      expect(new Corridor(line, away_m + 0.01).holds(place)).toBe(true);
      expect(new Corridor(line, away_m - 0.01).holds(place)).toBe(false);
    }
  });

  test("has its rest ahead", () => {
    const line = [WEST, [9.53, 47.14], EAST] as const;
    const half_m = distance_m("geodetic", WEST, [9.53, 47.14]);
    expect(along(line, WEST).left_m).toBeCloseTo(2 * half_m, 6);
    expect(along(line, [9.53, 47.141]).left_m).toBeCloseTo(half_m, 3);
    expect(along(line, EAST)).toEqual({ away_m: 0, left_m: 0 });
    expect(along([], EAST)).toEqual({ away_m: Infinity, left_m: 0 });
    expect(along([EAST, EAST], WEST).away_m).toBeCloseTo(2 * half_m, 4);
  });
});

test("what lies on the way is in reach, however far it is", () => {
  const entry = { place: [9.539, 47.1401] as Place } as Entry;
  const reach = { world: "geodetic", here: WEST, radius_m: 500 } as const;
  expect(status(entry, reach, 0)).toBe("away");
  expect(status(entry, { ...reach, corridor: new Corridor([WEST, EAST], 200) }, 0)).toBeUndefined();
  expect(status(entry, { ...reach, corridor: new Corridor([WEST, NORTH], 200) }, 0)).toBe("away");
  expect(status({ ...entry, gone: "over" }, { ...reach, corridor: new Corridor([WEST, EAST], 200) }, 0)).toBe("over");
});

test("a subscription has the same filters around the client and along its way", () => {
  const choice = { ...EVERYTHING, conditions: ["a = 1", "b = 2"] };
  expect(JSON.parse(JSON.stringify(subscriptionOf(choice, 500, { to: EAST, radius_m: 100 })))).toEqual({
    filters: [
      ...["a = 1", "b = 2"].map((where) => ({ area: { radius_m: 500 }, where })),
      ...["a = 1", "b = 2"].map((where) => ({ area: { route: { to: [...EAST] }, radius_m: 100 }, where })),
    ],
    durable: true,
  });
});

test("a way that the broker refuses leaves the rest in force, and is tried again when it is found again", async () => {
  const made: string[] = [];
  let refusal: ProblemError | undefined = problem(400, "invalid-document", {
    errors: [{ pointer: "/filters/1/area/route/to", detail: "no way leads there" }],
  });
  const session = {
    subscribe: (id: string, { filters }: Subscription) => {
      if (filters.length > 1 && refusal !== undefined) return Promise.reject(refusal);
      made.push(`${id} ${filters.length}`);
      return Promise.resolve();
    },
  } as unknown as Session;
  const wish = new Wish();
  wish.opened(session);
  wish.want(EVERYTHING, 500, { to: EAST, radius_m: 100 });
  await vi.waitFor(() => expect(wish.state.value).toBe("in force"));
  expect(made).toEqual(["around-me 1", "around-me-objects 1"]);
  expect([wish.wayFault.value?.errors[0]?.detail, wish.fault.value]).toEqual(["no way leads there", undefined]);
  refusal = problem(409, "limit", { setting: "routes.client_bytes", limit: 1 });
  wish.retryWay();
  await vi.waitFor(() => expect(wish.wayFault.value?.setting).toBe("routes.client_bytes"));
  refusal = undefined;
  wish.retryWay();
  await vi.waitFor(() => expect(made.slice(-2)).toEqual(["around-me 2", "around-me-objects 2"]));
  expect(wish.wayFault.value).toBeUndefined();
});

describe("a trip", () => {
  /** A session that answers with routes, and says of its corridor whether it holds what is asked about. */
  function broker(answer: (from: Place) => FoundRoute | Error) {
    const asked: Place[] = [];
    const state = { holds: false, explained: 0 };
    const session: Asked = {
      route: ([x, y]) => {
        if (x === 0 && y === 0) return Promise.reject(problem(404, "no-route"));
        asked.push([x, y]);
        const told = answer([x, y]);
        return told instanceof Error ? Promise.reject(told) : Promise.resolve(told);
      },
      explain: () => {
        state.explained += 1;
        return Promise.resolve({ filters: [{ area: { form: "route", holds: state.holds } }] } as unknown as Explanation);
      },
    };
    return { session, asked, state };
  }

  async function travelling(answer: (from: Place) => FoundRoute | Error) {
    const here = signal<Place | undefined>(WEST);
    const trip = new Trip(here);
    const fake = broker(answer);
    trip.opened(fake.session);
    trip.seek({ to: EAST, name: "home" });
    await vi.waitFor(() => expect(trip.sought.value).toBeUndefined());
    const goes = async (place: Place): Promise<void> => {
      here.value = place;
      trip.look();
      await new Promise((resolve) => setTimeout(resolve));
      await new Promise((resolve) => setTimeout(resolve));
    };
    return { trip, here, goes, ...fake };
  }

  test("asks when it begins, not on its way, and when one has left it", async () => {
    const { trip, goes, asked } = await travelling((from) => found(from, EAST));
    expect([trip.destination.value?.name, trip.possible.value, asked.length]).toEqual(["home", true, 1]);
    expect(trip.news.value).toBe("The way is found: 2.0 kilometres, about 3 min.");
    for (let step = 1; step < 20; step++) await goes([WEST[0] + step / 2000, WEST[1] + (step % 2) / 1000]);
    expect(asked).toHaveLength(1);
    expect(trip.left.value?.left_m).toBeLessThan(1000);
    expect(trip.left.value?.left_s).toBeCloseTo((trip.left.value?.left_m ?? 0) / 10, 6);
    await goes(NORTH);
    expect([asked.length, trip.route.value?.route.coordinates[0]]).toEqual([2, NORTH]);
    expect(trip.news.value).toMatch(/^Another way is found/);
    trip.end();
    await goes(WEST);
    expect([asked.length, trip.route.value, trip.destination.value]).toEqual([2, undefined, undefined]);
  });

  test("off the streets it asks again after some steps, not at each", async () => {
    const nowhere = problem(404, "no-route", { detail: "there is no street within 1000 m of from" });
    let isThere = true;
    const { trip, goes, asked } = await travelling((from) => (isThere ? found(from, EAST) : nowhere));
    isThere = false;
    await goes(NORTH);
    expect([trip.route.value, trip.problem.value]).toEqual([undefined, "There is no street within 1.0 km of you."]);
    for (let step = 1; step <= 10; step++) await goes(destination(NORTH, 4 * step, 0));
    expect(asked).toHaveLength(2);
    isThere = true;
    await goes(destination(NORTH, 60, 0));
    expect([asked.length, trip.problem.value, trip.route.value === undefined]).toEqual([3, undefined, false]);
  });

  test("a minute later it takes a way elsewhere if the corridor lies along it, and not otherwise", async () => {
    const ways = [found(WEST, EAST), found(WEST, NORTH, EAST), found(WEST, NORTH, EAST), found([9.525, 47.1425], NORTH, EAST)];
    const { trip, goes, state } = await travelling(() => ways.shift() ?? found(WEST, EAST));
    const drawn = trip.route.value;
    const now = vi.spyOn(Date, "now");
    now.mockReturnValue(Date.now() + 61_000);
    await goes(WEST);
    expect([state.explained, trip.route.value === drawn]).toEqual([1, true]);
    state.holds = true;
    now.mockReturnValue(Date.now() + 61_000);
    await goes(WEST);
    expect([state.explained, trip.route.value?.route.coordinates[1]]).toEqual([2, NORTH]);
    // The same way, from here on: nobody has to be asked.
    now.mockReturnValue(Date.now() + 61_000);
    await goes(WEST);
    expect(state.explained).toBe(2);
    now.mockRestore();
  });

  test("goes on as before where no way leads to another place", async () => {
    const nowhere = problem(404, "no-route", { detail: "there is no street within 1000 m of to" });
    let isThere = true;
    const { trip, asked } = await travelling((from) => (isThere ? found(from, EAST) : nowhere));
    isThere = false;
    const drawn = trip.route.value;
    trip.seek({ to: [8, 46] });
    await vi.waitFor(() => expect(trip.sought.value).toBeUndefined());
    expect([trip.destination.value?.name, trip.route.value === drawn, asked.length]).toEqual(["home", true, 2]);
    expect(trip.problem.value).toBe("There is no street within 1.0 km of that place. Choose another one.");
  });

  test("asks a broker again that has no time", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let isBusy = true;
    const trip = new Trip(signal(WEST));
    const { session, asked } = broker((from) => (isBusy ? problem(503, "late") : found(from, EAST)));
    trip.opened(session);
    trip.seek({ to: EAST });
    await vi.waitFor(() => expect(trip.problem.value).toBe("The broker has no time for it now. This page asks again by itself."));
    isBusy = false;
    await vi.advanceTimersByTimeAsync(2000);
    expect([asked.length, trip.problem.value, trip.destination.value?.to]).toEqual([2, undefined, EAST]);
    vi.useRealTimers();
  });

  test("a broker that knows streets no more is not asked again", async () => {
    const trip = new Trip(signal(WEST));
    trip.possible.value = true;
    trip.seek({ to: EAST });
    trip.opened({ route: () => Promise.reject(problem(404, "no-streets")), explain: () => Promise.reject(new Error("nobody asks")) });
    await vi.waitFor(() => expect(trip.possible.value).toBe(false));
  });

  test("says what is wrong", () => {
    expect(wordsOf(problem(404, "no-streets"))).toMatch(/its operator has to name them \(routes\.streets\)/);
    expect(wordsOf(problem(404, "no-route"))).toBe("No way leads there along the streets. Choose another place.");
    expect(wordsOf(problem(400, "invalid-document", { detail: "/to: far out" }))).toBe("No way can be found: /to: far out.");
    expect(wordsOf(new TypeError("fetch failed"))).toMatch(/^Without a connection/);
  });
});

test("times on the way", () => {
  expect([10, 109, 3600, 4330].map(minutes)).toEqual(["less than a minute", "2 min", "1 h", "1 h 12 min"]);
});

describe("ways on the console", () => {
  const plane = planeOf("geodetic");
  const area = { route: { to: [...EAST] }, radius_m: 100 };

  const way = { subscription: "s", filter: 0, to: EAST, by: "duration", radius_m: 100, state: "found", left_m: 1500, left_s: 110 } as const;
  const along: ClientRoute = { ...way, route: found(WEST, EAST).route };

  function ways(answer: () => readonly ClientRoute[] | Error) {
    const asked: unknown[] = [];
    const call: Access["call"] = (path) => {
      asked.push(path);
      const told = answer();
      if (told instanceof Error) return Promise.reject(told);
      // A page of one, so that all of them are asked for until the area is there.
      const index = Number(/after=(\d+)/.exec(path)?.[1] ?? 0);
      const next = index + 1 < told.length ? { next: String(index + 1) } : {};
      return Promise.resolve({ routes: told.slice(index, index + 1), ...next });
    };
    return { asked, all: new Ways({ call }) };
  }

  test("an area along a route is drawn as its corridor, asked for once and again when its client has left it", async () => {
    // Others of the client's areas lead elsewhere, or are wider.
    const { asked, all } = ways(() => [{ ...along, to: NORTH }, { ...along, radius_m: 50 }, { ...along, by: "length" }, along]);
    const draw = (from: Place | undefined) => shapesOf(plane, all.laid("ann", area, from), from);
    expect([draw(undefined), asked]).toEqual([[], []]);
    expect(draw(WEST)).toEqual([]);
    await vi.waitFor(() => expect(all.answers.value).toBe(1));
    expect(draw(WEST)[0]?.geometry).toEqual({ type: "LineString", coordinates: [WEST, EAST] });
    for (let step = 1; step < 10; step++) draw([WEST[0] + step / 1000, WEST[1]]);
    const pages = ["", "?after=1", "?after=2", "?after=3"].map((page) => `v1/clients/ann/routes${page}`);
    expect(asked).toEqual(pages);
    expect(all.of("ann", area, WEST).found?.left_m).toBe(1500);
    draw(NORTH);
    await vi.waitFor(() => expect(all.answers.value).toBe(2));
    expect(asked).toEqual([...pages, ...pages]);
    expect(all.laid("ann", { radius_m: 5 }, WEST)).toEqual({ radius_m: 5 });
  });

  test("says why the broker has laid none", async () => {
    const { all } = ways(() => [{ ...way, state: "unreachable", why: "no way leads there" }]);
    all.of("ann", area, WEST);
    await vi.waitFor(() => expect(all.of("ann", area, WEST)).toEqual({ why: "no way leads there" }));
    expect(all.laid("ann", area, WEST)).toBe(area);
  });

  test("says why there is none, and keeps a bounded number", async () => {
    const { asked, all } = ways(() => new Error("there is no street"));
    all.of("ann", area, WEST);
    await vi.waitFor(() => expect(all.of("ann", area, WEST).why).toBe("there is no street"));
    for (let client = 0; client < 150; client++) all.of(`c${client}`, area, WEST);
    all.of("ann", area, WEST);
    await vi.waitFor(() => expect(asked.length).toBeGreaterThan(100));
    expect(asked.length).toBeLessThanOrEqual(103);
  });

  test("a route in words", () => {
    expect(routeWords({ ...found(WEST, EAST), length_m: 3067, duration_s: 212 })).toBe("3.1 km, 4 min, the best one (level 0)");
    expect(routeWords({ ...found(WEST, EAST), level: 2 })).toBe("2.0 km, 3 min, level 2: it may take a detour");
  });
});
