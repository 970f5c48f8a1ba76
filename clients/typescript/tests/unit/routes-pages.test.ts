// Areas along routes that come in pages.

import { expect, test } from "vitest";

import { allRoutes } from "../../src/routes.js";

test("all pages are asked for, each after the one before", async () => {
  const pages = [{ routes: ["a", "b"], next: "1:x & y" }, { routes: ["c"], next: "0:z" }, { routes: [] }];
  const asked: string[] = [];
  const routes = await allRoutes((query) => {
    asked.push(query);
    return Promise.resolve(pages[asked.length - 1]);
  });
  expect(routes).toEqual(["a", "b", "c"]);
  expect(asked).toEqual(["?limit=1000", "?limit=1000&after=1%3Ax%20%26%20y", "?limit=1000&after=0%3Az"]);
});
