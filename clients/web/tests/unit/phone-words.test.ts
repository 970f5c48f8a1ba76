// Properties as people read them, what a push message says, and where it leads.

import { expect, test } from "vitest";

import { inLine, kindText, objectName, readable, unbroken, words } from "../../src/shared/readable.js";
import { eventHash, hashEvent } from "../../src/phone/worker/names.js";
import { noticeOf, target } from "../../src/phone/worker/notice.js";

test("names of properties become words, and units stand behind their numbers", () => {
  expect(["speed_kmh", "road.laneCount", "CO2", "_", "größe"].map(words)).toEqual(["Speed kmh", "Road lane count", "Co2", "_", "Größe"]);
  expect(readable("speed_kmh", "12")).toEqual(["Speed", "12 km/h"]);
  expect(readable("air.temp_c", "-3.5")).toEqual(["Air temp", "-3.5 °C"]);
  expect(readable("depth_m", "unknown")).toEqual(["Depth m", "unknown"]);
  expect(readable("m", "3")).toEqual(["M", "3"]);
  expect(readable("type", "road_works")).toEqual(["Type", "Road works"]);
  expect(kindText("fire at Smith & Sons")).toBe("Fire at Smith & Sons");
  expect(readable("opened", "2026-03-01T07:30:00Z")[1]).toContain("2026");
  expect(readable("opened", "2026-03-01")).toEqual(["Opened", "2026-03-01"]);
});

test("a line has the kind alone, numbers behind their names, and texts behind a colon", () => {
  expect(inLine("type", "road_works")).toBe("Road works");
  expect(inLine("lanes", "2")).toBe("Lanes 2");
  expect(inLine("depth_cm", "40")).toBe("Depth 40 cm");
  expect(inLine("price_per_h", "10 CNY")).toBe("Price 10 CNY/h");
  expect(inLine("price_per_h", "free")).toBe("Price per h: free");
  expect(inLine("advice", "Do not drive in")).toBe("Advice: Do not drive in");
});

test("objects are called by the attribute that names them, without its ending", () => {
  const names = ["taxi_id", "vehicleId", "car.plate", "id", "fleet.id", "casino"].map((attribute) => objectName(attribute, "7"));
  expect(names).toEqual(["Taxi 7", "Vehicle 7", "Plate 7", "Object 7", "Object 7", "Casino 7"]);
});

test("a push message becomes a notification, whatever is in it", () => {
  const message = { client: "ann", title: "Flood", body: "300 m north", count: 3, event: "e 1" };
  expect(noticeOf(JSON.stringify(message))).toEqual({ title: "Flood", body: "300 m north", tag: "ann", event: "e 1" });
  const empty = { title: "Something happened near you", body: "", tag: "nearcast" };
  for (const text of [undefined, "", "{", "null", "[]", "7", '{"title":7,"body":{},"client":[],"event":{}}']) {
    expect(noticeOf(text)).toEqual(empty);
  }
  expect(noticeOf(JSON.stringify({ title: "x".repeat(5000), body: "y".repeat(5000) }))).toMatchObject({
    title: "x".repeat(120),
    body: "y".repeat(400),
  });
});

test("a notification leads to the page and nowhere else", () => {
  const page = new URL("https://broker.example/city/phone");
  const led = (data: Parameters<typeof target>[0]): string => target(data, page).href;
  expect(led({ event: "a b/ü#" })).toBe("https://broker.example/city/phone#event=a%20b%2F%C3%BC%23");
  expect(led({ url: "/city/phone#event=7" })).toBe("https://broker.example/city/phone#event=7");
  for (const url of ["https://elsewhere.example/", "//elsewhere.example/city/phone", "javascript:alert(1)", "/", "http://[", "/phone"]) {
    expect(led({ url })).toBe(page.href);
  }
  expect(led({})).toBe(page.href);
  for (const id of ["e1", "a b/ü#%", "=&?"]) expect(hashEvent(eventHash(id))).toBe(id);
  expect(["", "#", "#event=", "#other=1"].map(hashEvent)).toEqual(Array(4).fill(undefined));
  expect(hashEvent("#client=ann+b&event=e%2F1")).toBe("e/1");
});

test("no line ends between a number and its unit, and between words it may", () => {
  expect(unbroken("it is 266 m away, 1.1 km/h, within the 500 m around 3 men")).toBe(
    "it is 266\u00a0m away, 1.1\u00a0km/h, within the 500\u00a0m around 3 men",
  );
  expect(unbroken("10 s ago, 3 km in 90 min, -3.5 °C")).toBe("10\u00a0s ago, 3\u00a0km in 90\u00a0min, -3.5\u00a0°C");
});
