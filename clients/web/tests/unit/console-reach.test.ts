import { signal } from "@preact/signals";
import type { DeliveredFeature } from "nearcast";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Access } from "../../src/console/access.js";

vi.stubGlobal("location", { href: "http://broker/" });
vi.stubGlobal("sessionStorage", { getItem: () => null });
const { Reach } = await import("../../src/console/live/reach.js");
const { HttpProblem } = await import("../../src/shared/http.js");

const event = (id: string): DeliveredFeature => ({
  type: "Feature",
  id,
  time: "2026-03-01T07:30:00Z",
  geometry: { type: "Point", coordinates: [9, 45] },
  properties: {},
});

/** The console's access to a broker that says of each event that it reached one client besides the console. */
function reachOf(call: (path: string) => Promise<unknown>): InstanceType<typeof Reach> {
  const access = { token: signal(undefined), usable: signal(true), client: signal("console"), call };
  return new Reach(access as unknown as Access);
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("document", { hidden: false });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("a listed event is awaited until its number is there, and asked about before others", async () => {
  const asked: string[] = [];
  const reach = reachOf((path) => {
    asked.push(path);
    const deliveries = ["console", "ann"].map((client) => ({ client, subscriptions: ["near"] }));
    return Promise.resolve({ deliveries });
  });
  reach.show(
    () => true,
    () => undefined,
  );
  for (const id of ["seen", "listed"]) reach.offer(event(id));
  reach.offer(event("listed"), true);
  expect([...reach.awaited.value]).toEqual(["listed"]);
  await vi.advanceTimersByTimeAsync(500);
  expect(asked).toEqual(["v1/events/listed/deliveries"]);
  expect([reach.counts.value.get("listed"), reach.awaited.value.size]).toEqual([1, 0]);
  // It is known by now.
  reach.offer(event("listed"), true);
  expect(reach.awaited.value.size).toBe(0);
});

test("nothing is awaited of a broker that says no", async () => {
  const reach = reachOf(() => Promise.reject(new HttpProblem(403, "no")));
  reach.offer(event("a"), true);
  expect(reach.awaited.value.size).toBe(1);
  await vi.advanceTimersByTimeAsync(1000);
  reach.offer(event("b"), true);
  expect([reach.awaited.value.size, reach.counts.value.size]).toEqual([0, 0]);
});
