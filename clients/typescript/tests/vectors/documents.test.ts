// The contract's vectors of frames, conditions, areas and problems.

import { describe, expect, test } from "vitest";

import { alongRoute, and, around, attr, circle, corridor, everywhere, not, or, polygon } from "nearcast";
import type { Area, Condition, Coordinates, Value } from "nearcast";
import { readFrame, writeFrame, type ClientFrame } from "../../src/frames.js";
import { readProblem } from "../../src/problems.js";
import { vectors } from "./read.js";

type Json = Record<string, unknown>;

describe("frames of the broker", () => {
  const { server } = vectors("frames.json") as { server: { name: string; text: string; expect: Json }[] };
  test.each(server)("$name", ({ text, expect: expected }) => {
    expect(readFrame(text)).toEqual(expected);
  });
});

describe("frames of a client", () => {
  const { client } = vectors("frames.json") as { client: { name: string; call: Json; frame: Json }[] };
  test.each(client)("$name", ({ call, frame }) => {
    const { verb, ...members } = call;
    const op = verb === "track" ? "move" : verb;
    expect(JSON.parse(writeFrame({ op, ...members } as unknown as ClientFrame))).toEqual(frame);
  });
});

type Form = readonly [string, ...unknown[]];

function condition([form, ...rest]: Form): Condition {
  const [name, value, high] = rest as [string, Value, Value];
  const values = value as unknown as [Value, ...Value[]];
  const texts = value as unknown as [string, ...string[]];
  const [first, ...others] = rest as [Form, ...Form[]];
  switch (form) {
    case "and":
      return and(condition(first), ...others.map(condition));
    case "or":
      return or(condition(first), ...others.map(condition));
    case "not":
      return not(condition(first));
    case "=":
      return attr(name).eq(value);
    case "<>":
      return attr(name).ne(value);
    case "<":
      return attr(name).lt(value);
    case "<=":
      return attr(name).le(value);
    case ">":
      return attr(name).gt(value);
    case ">=":
      return attr(name).ge(value);
    case "between":
      return attr(name).between(value, high);
    case "in":
      return attr(name).in(...values);
    case "like":
      return attr(name).like(value as string);
    case "isnull":
      return attr(name).isNull();
    case "isnotnull":
      return attr(name).isNotNull();
    case "casei=":
      return attr(name)
        .casei()
        .eq(value as string);
    case "casei<>":
      return attr(name)
        .casei()
        .ne(value as string);
    case "caseiin":
      return attr(name)
        .casei()
        .in(...texts);
    case "caseilike":
      return attr(name)
        .casei()
        .like(value as string);
    default:
      throw new Error(`a form that the contract does not have: ${form}`);
  }
}

describe("conditions", () => {
  const all = vectors("conditions.json") as { name: string; builder?: Form; text: string }[];
  const built = all.filter((vector): vector is { name: string; builder: Form; text: string } => vector.builder !== undefined);
  test.each(built)("$name", ({ builder, text }) => {
    expect(String(condition(builder))).toBe(text);
    expect(JSON.stringify(condition(builder))).toBe(JSON.stringify(text));
  });
  test("there are many", () => {
    expect(built.length).toBeGreaterThan(50);
  });
});

function area([form, ...rest]: Form): Area {
  const last = rest.at(-1);
  if (Array.isArray(last) && last[0] === "nearest") return area([form, ...rest.slice(0, -1)]).nearest(last[1] as number);
  switch (form) {
    case "around":
      return around(rest[0] as number);
    case "circle":
      return circle(rest[0] as Coordinates, rest[1] as number);
    case "polygon":
      return polygon(rest[0] as Coordinates[][]);
    case "along_route":
      return alongRoute(rest[0] as Coordinates, rest[1] as number);
    case "corridor":
      return corridor(rest[0] as Coordinates[], rest[1] as number);
    case "everywhere":
      return everywhere();
    default:
      throw new Error(`a form that the contract does not have: ${form}`);
  }
}

describe("areas", () => {
  const all = ["areas.json", "route_areas.json"].flatMap((file) => vectors(file) as { name: string; builder: Form; area: Json | null }[]);
  test.each(all)("$name", ({ builder, area: expected }) => {
    const filter = JSON.parse(JSON.stringify({ area: area(builder) })) as Json;
    expect(filter).toEqual(expected === null ? {} : { area: expected });
  });
});

interface ProblemVector {
  readonly name: string;
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly expect: Json;
}

describe("problems", () => {
  test.each(vectors("problems.json") as ProblemVector[])("$name", ({ status, headers, body, expect: expected }) => {
    const error = readProblem({ status, header: (name) => headers[name] }, body);
    const { type, ...members } = error.problem;
    expect(error.type).toBe(type);
    const { code, detail, limit, setting, retry_after_s, title } = error;
    const read: Json = { ...members, code, status: error.status, title, detail, limit, setting, retry_after_s };
    expect(read).toEqual(expected);
    expect(error.errors).toEqual(expected["errors"] ?? []);
  });
});
