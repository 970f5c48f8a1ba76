// The calls for checks, rule sets and group definitions, without a broker.

import { Addresses } from "../../src/addresses.js";
import { Http } from "../../src/http.js";
import { SituationCalls } from "../../src/situations.js";
import { Tokens } from "../../src/tokens.js";
import { FakeClock } from "./clock.js";

class Calls extends SituationCalls {}

/** Calls to a broker that answers all of them alike, and takes down what came. */
export function scripted(status: number, body: unknown): { calls: Calls; asked: string[]; bodies: unknown[] } {
  const asked: string[] = [];
  const bodies: unknown[] = [];
  const fetch = (url: unknown, request: RequestInit = {}): Promise<Response> => {
    asked.push(`${request.method ?? "GET"} ${String(url).replace("http://broker.example", "")}`);
    bodies.push(typeof request.body === "string" ? JSON.parse(request.body) : undefined);
    return Promise.resolve(new Response(body === undefined ? null : JSON.stringify(body), { status }));
  };
  const clock = new FakeClock();
  return {
    calls: new Calls(new Http(new Addresses("http://broker.example"), new Tokens(undefined, clock), { fetch, clock, timeout_s: 30 })),
    asked,
    bodies,
  };
}
