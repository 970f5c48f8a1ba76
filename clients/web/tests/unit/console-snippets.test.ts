// What Try writes for other programs, and what it says of a condition.

import { expect, test, vi } from "vitest";

import { unknownNames } from "../../src/console/try/completion.js";
import { snippet, type DraftDocument } from "../../src/console/try/snippets.js";

vi.stubGlobal("location", { href: "http://localhost/" });

const names = { client: "ann", id: "near" };
const url = "http://localhost:7070/";
const draft: DraftDocument = {
  filters: [{ area: { radius_m: 500, nearest: 3 }, where: "type = 'bus'" }],
  on: ["enter", "exit"],
  dwell_s: 5,
};

test("a subscription is written for each language", () => {
  expect(snippet("curl", draft, names, url)).toBe(
    `curl -X PUT http://localhost:7070/v1/clients/ann/subscriptions/near \\\n  -H 'content-type: application/json' \\\n  -d '{"filters":[{"area":{"radius_m":500,"nearest":3},"where":"type = '\\''bus'\\''"}],"on":["enter","exit"],"dwell_s":5}'`,
  );
  expect(snippet("Python", draft, names, url)).toContain(
    `session.subscribe("near", Filter(around(500).nearest(3), where="type = 'bus'"), on=["enter","exit"], dwell_s=5)`,
  );
  expect(snippet("TypeScript", draft, names, url)).toContain(
    `session.subscribe("near", { filters: [{ area: around(500).nearest(3), where: "type = 'bus'" }], on: ["enter","exit"], dwell_s: 5 });`,
  );
  expect(snippet("Rust", draft, names, url)).toContain(
    `Subscription::from(around(500.0).nearest(3).when("type = 'bus'")).enters().exits().dwell(std::time::Duration::from_secs_f64(5.0))`,
  );
  expect(JSON.parse(snippet("JSON", draft, names, url))).toEqual(draft);
  const corridor: DraftDocument = {
    filters: [
      {
        area: {
          corridor: {
            type: "LineString",
            coordinates: [
              [9, 45],
              [9.5, 45],
            ],
          },
          radius_m: 20,
        },
      },
    ],
  };
  expect(snippet("Rust", corridor, names, url)).toContain("corridor(vec![[9.0, 45.0], [9.5, 45.0]], 20.0)");
  expect(snippet("Python", { filters: [{}] }, names, url)).toContain('session.subscribe("near", Filter())');
});

test("attributes that no event has had are named, but for functions and what is being written", () => {
  const known = new Set(["status", "speed kmh"]);
  expect(unknownNames("stat > 1 AND status = 1", known)).toEqual(["stat"]);
  expect(unknownNames(`"speed kmh" > 1 OR "spede" > 2`, known)).toEqual(["spede"]);
  expect(unknownNames("CASEI(status) = 'stat' AND ends > DATE('2026-01-01')", known)).toEqual(["ends"]);
  expect(unknownNames("status = 1 AND sta", known)).toEqual([]);
});
