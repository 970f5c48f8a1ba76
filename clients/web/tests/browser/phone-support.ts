// What tests of the phone page share: the page as a person has it, a network that can go, real taxis, and what a brute force says.

import { readFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { gunzipSync } from "node:zlib";

import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";

import { Broker, type BrokerOptions } from "../../../typescript/tests/support/broker.js";
import { newPage, pagesOf } from "../support/pages.js";

/** `[longitude, latitude]`, or `[x, y]`. */
export type Place = readonly [number, number];

export interface PhonePage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors of the page, but for what Chromium writes of connections that cannot be made or are refused. */
  errors(): string[];
  /** Titles of the list, in its order. */
  titles(): Promise<string[]>;
  /** Resolves when the list has an event of this title. */
  came(title: string): Promise<void>;
  /** The client's name, as the settings show it. */
  client(): Promise<string>;
}

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } satisfies BrowserContextOptions;

const INTERESTS = "Slow traffic: speed_kmh < 10\nFires: type = 'fire'";

/** A broker with interests and a base map, and its pages. */
export interface Served {
  readonly broker: Broker;
  readonly url: string;
  close(): Promise<void>;
}

export async function serve(options: BrokerOptions = {}): Promise<Served> {
  const broker = await Broker.start({
    ...options,
    settings: { "console.interests": INTERESTS, "console.base_map": "demo", ...options.settings },
  });
  const pages = await pagesOf(broker);
  return {
    broker,
    url: pages.url,
    async close() {
      await pages.close();
      await broker.stop();
    },
  };
}

/** Opens the page on a phone. */
export async function openPhone(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<PhonePage> {
  const { page, errors } = await newPage(browser, { ...PHONE, ...options });
  await page.goto(`${url}phone`);
  return phonePage(page, errors);
}

export function phonePage(page: Page, errors: readonly string[]): PhonePage {
  return {
    page,
    context: page.context(),
    errors: () => errors.filter((text) => !/WebSocket connection to|Failed to load resource/.test(text)),
    titles: () => page.locator(".entry .title bdi").allTextContents(),
    came: (title) => page.locator(".entry .title bdi").getByText(title, { exact: true }).first().waitFor(),
    async client() {
      await page.getByRole("button", { name: "Settings" }).click();
      const name = await page.locator("dialog dd").textContent();
      await page.getByRole("button", { name: "Close" }).click();
      return name ?? "";
    },
  };
}

/** Opens, or closes, the line of how far, what and where. */
export async function around(page: Page): Promise<void> {
  await page.locator(".around > summary").click();
}

/** Waits until a text is seen. */
export async function seen(page: Page, text: string | RegExp): Promise<void> {
  await page.getByText(text).first().waitFor();
}

export function feature(title: string, place: Place, more: Record<string, unknown> = {}, properties: Record<string, unknown> = {}): object {
  return { type: "Feature", geometry: { type: "Point", coordinates: place }, properties: { title, ...properties }, ...more };
}

/** Publishes events; the broker has them when it resolves. */
export async function publish(broker: Broker, features: readonly object[], token?: string): Promise<void> {
  if (features.length === 0) return;
  const response = await fetch(`${broker.url}/v1/events`, {
    method: "POST",
    headers: { "content-type": "application/geo+json", ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ type: "FeatureCollection", features }),
  });
  expect(await response.json()).toEqual({ accepted: features.length, rejected: [] });
}

/** Waits until the broker has a place of a client, and the subscription of the page. */
export async function placed(broker: Broker, client: string, place: Place): Promise<void> {
  const question = JSON.stringify({ client, subscription: "around-me", event: feature("?", place) });
  const ask = async (): Promise<Place | undefined> => {
    const request = { method: "POST", headers: { "content-type": "application/json" }, body: question };
    const answer = (await (await fetch(`${broker.url}/v1/explain`, request)).json()) as { position?: { coordinates: Place } | null };
    return answer.position?.coordinates;
  };
  await expect.poll(ask, { timeout: 20_000, interval: 20 }).toEqual(place);
}

/** A network between a page and its broker. */
export class Network {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #up = true;
  #swallowing = false;

  private constructor(target: { readonly url: string }) {
    this.#server = createServer((near) => {
      if (!this.#up) {
        near.destroy();
        return;
      }
      const { hostname, port } = new URL(target.url);
      const far = connect(Number(port), hostname);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(one);
        one.on("data", (bytes) => {
          if (!this.#swallowing) other.write(bytes);
        });
        one.on("error", () => other.destroy());
        one.on("close", () => {
          this.#sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  static async to(target: { readonly url: string }): Promise<Network> {
    const network = new Network(target);
    await new Promise<void>((resolve) => network.#server.listen(0, "127.0.0.1", resolve));
    return network;
  }

  get url(): string {
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new Error("the network is closed");
    return `http://127.0.0.1:${address.port}`;
  }

  /** Breaks every connection, and lets none come about. */
  cut(): void {
    this.#up = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Takes what is sent, and brings it nowhere: what a phone has that has gone out of reach. */
  swallow(): void {
    this.#swallowing = true;
  }

  mend(): void {
    this.#up = true;
    this.#swallowing = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

/** A report of a taxi. */
export interface Report {
  readonly seq: number;
  readonly taxi: string;
  readonly place: Place;
  readonly speed_kmh: number;
}

/** The demo's recording, in the order of time. */
export function reports(): Report[] {
  const file = new URL("../../../../loadgen/data/shenzhen-taxi/taxi_20min.csv.gz", import.meta.url);
  const [, ...lines] = gunzipSync(readFileSync(file)).toString().trim().split("\n");
  return lines.map((line) => {
    const [seq, , taxi = "", lon, lat, speed] = line.split(",");
    return { seq: Number(seq), taxi, place: [Number(lon), Number(lat)], speed_kmh: Number(speed) };
  });
}

const RAD = Math.PI / 180;
const EARTH_M = 6_371_008.8;

/** Great-circle distance by the haversine formula. */
export function haversine_m([lon1, lat1]: Place, [lon2, lat2]: Place): number {
  const h =
    Math.sin(((lat2 - lat1) / 2) * RAD) ** 2 + Math.cos(lat1 * RAD) * Math.cos(lat2 * RAD) * Math.sin(((lon2 - lon1) / 2) * RAD) ** 2;
  return 2 * EARTH_M * Math.asin(Math.sqrt(h));
}

/** How near a way comes to a place, looked at every half metre. Straight in degrees, which for pieces of a kilometre is the same to decimetres. */
export function nearest_m(way: readonly Place[], place: Place): number {
  let nearest = Infinity;
  for (const [i, to] of way.entries()) {
    const from = way[i - 1] ?? to;
    const steps = Math.max(1, Math.ceil(haversine_m(from, to) * 2));
    for (let step = 0; step <= steps; step++) {
      const part = step / steps;
      nearest = Math.min(nearest, haversine_m([from[0] + (to[0] - from[0]) * part, from[1] + (to[1] - from[1]) * part], place));
    }
  }
  return nearest;
}

/** The two numbers of a place as the page says it, south and west below 0. */
export function numbersIn(text: string | null): number[] {
  const parts = (text ?? "").matchAll(/(-?[\d.]+)\D*?([NSEW]|m|$)/g);
  return [...parts].map(([, number, side]) => Number(number) * (side === "S" || side === "W" ? -1 : 1));
}
