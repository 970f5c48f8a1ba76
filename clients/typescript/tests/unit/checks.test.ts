// What checks add to frames and problems.

import { expect, test } from "vitest";

import type { EventFrame } from "../../src/frames.js";
import { readFrame } from "../../src/frames.js";
import { message } from "../../src/messages.js";
import { frameProblem, readProblem } from "../../src/problems.js";

const event = { type: "Feature", id: "e3", geometry: { type: "Point", coordinates: [9, 45] }, properties: {} };
const inconsistent = {
  type: "urn:nearcast:problem:inconsistent",
  title: "the event does not fit",
  status: 422,
  check: "jump",
  links: [{ a: "e1", b: "e3" }],
};

test("an event says what it violates", () => {
  const frame = { op: "event", offset: 1, subscriptions: ["s"], cause: "published", event };
  const read = (members: object): unknown => message(readFrame(JSON.stringify({ ...frame, ...members })) as EventFrame, "e");
  expect(read({ violates: ["jump"] })).toMatchObject({ violates: ["jump"], offset: 1 });
  expect(read({})).not.toHaveProperty("violates");
});

test("a refused event says with which it does not fit", () => {
  const head = { status: 422, header: (name: string) => (name === "content-type" ? "application/problem+json" : null) };
  expect(readProblem(head, JSON.stringify(inconsistent))).toMatchObject({
    code: "inconsistent",
    check: "jump",
    links: [{ a: "e1", b: "e3" }],
  });
  expect(frameProblem(inconsistent).links).toEqual([{ a: "e1", b: "e3" }]);
  expect(readProblem(head, JSON.stringify({ ...inconsistent, links: "odd" })).links).toEqual([]);
});
