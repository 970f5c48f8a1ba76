// The console's address, what the list filters by, and the order of clients.

import type { DeliveredFeature } from "nearcast";
import { expect, test, vi } from "vitest";

import { fromQuery, toQuery, type Address } from "../../src/console/address.js";
import { holdsText } from "../../src/console/live/filter.js";

vi.stubGlobal("location", { href: "http://localhost/" });

test("an address says what is shown, and says it again", () => {
  const plain: Address = { tab: "live", filter: "", marks: "auto" };
  expect(toQuery(plain)).toBe("");
  expect(fromQuery("")).toEqual(plain);
  const full: Address = {
    tab: "clients",
    opened: { kind: "event", id: "a&b=c", object: "k bus 7" },
    sight: { place: [114.05712, -22.5], zoom: 12.5 },
    filter: "status=1 ü",
    marks: "heat",
    colourBy: "speed_kmh",
    following: "taxi-12",
  };
  expect(fromQuery(toQuery(full))).toEqual(full);
  expect(toQuery({ ...plain, opened: { kind: "client", client: "ann" } })).toBe("?client=ann");
  const opened: readonly NonNullable<Address["opened"]>[] = [
    { kind: "situation", of: "checks", name: "a/b" },
    { kind: "finding", of: "checks", name: "jump", id: "1f-2" },
    { kind: "edit", of: "checks" },
    { kind: "edit", of: "checks", name: "jump" },
    { kind: "situation", of: "rules", name: "a&b" },
    { kind: "finding", of: "rules", name: "traffic", id: "1f-2" },
    { kind: "edit", of: "rules" },
    { kind: "edit", of: "rules", name: "traffic" },
    { kind: "situation", of: "groups", name: "pick/up" },
    { kind: "finding", of: "groups", name: "pickup", id: "1f-2" },
    { kind: "edit", of: "groups" },
    { kind: "edit", of: "groups", name: "pickup" },
  ];
  for (const each of opened)
    expect(fromQuery(toQuery({ ...plain, tab: "checks", opened: each }))).toEqual({ ...plain, tab: "checks", opened: each });
});

test("what an address does not say rightly counts as absent", () => {
  for (const at of ["", "1,2", "1,2,3,4", "a,2,3", "1,2,99", "1,,3"]) expect(fromQuery(`?at=${at}`).sight, at).toBeUndefined();
  expect(fromQuery("?tab=x&marks=y")).toEqual({ tab: "live", filter: "", marks: "auto" });
});

test("a filter takes words anywhere, and a value of one attribute", () => {
  const geometry = { type: "Point", coordinates: [9, 45] } as const;
  const properties = { status: 1, speed: 12, line: { name: "M2" } };
  const feature: DeliveredFeature = { type: "Feature", id: "e1", key: "Bus 7", time: "2026-01-01T00:00:00Z", geometry, properties };
  const taken = ["", " ", "bus", "BUS 7", "status=1", "bus status=1", "line.name=m2", "e1"];
  expect(taken.filter((filter) => !holdsText(feature, filter))).toEqual([]);
  const left = ["tram", "status=12", "speed=1", "bus status=2", "=1"];
  expect(left.filter((filter) => holdsText(feature, filter))).toEqual([]);
});
