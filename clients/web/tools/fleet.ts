// Objects that drive about a city, told to a broker. What is told is made before, so that telling it costs next to nothing.

import { Agent, request } from "node:http";

/** The walk has so many places, to be walked forth and back. */
const PLACES = 16;
/** Reports go in so many batches a second. */
const BATCHES = 20;
/** Degrees in a second, about 15 m. */
const STEP = 0.00014;
/** Quarters of the city, and how far objects are from their middles, in degrees. */
const QUARTERS = [
  [114.06, 22.545, 0.05, 0.02],
  [113.93, 22.54, 0.04, 0.03],
  [114.12, 22.6, 0.04, 0.04],
  [113.88, 22.6, 0.03, 0.05],
  [114.25, 22.72, 0.05, 0.03],
  [114.03, 22.66, 0.04, 0.05],
] as const;

/** Of a bell, about. */
function around(middle: number, reach: number): number {
  return middle + reach * (Math.random() + Math.random() + Math.random() - 1.5) * 1.6;
}

/** Where an object is at each place of its walk: it turns at times. */
function walk(): [number, number][] {
  let heading = Math.random() * 2 * Math.PI;
  const [x, y, wide, high] = QUARTERS[Math.floor(Math.random() * QUARTERS.length)] ?? QUARTERS[0];
  const at: [number, number] = [around(x, wide), around(y, high)];
  return Array.from({ length: PLACES }, () => {
    if (Math.random() < 0.1) heading += (Math.random() < 0.5 ? -1 : 1) * (Math.PI / 2);
    at[0] += Math.cos(heading) * STEP;
    at[1] += Math.sin(heading) * STEP;
    return [at[0], at[1]];
  });
}

export class Fleet {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4 });
  readonly #timer: NodeJS.Timeout | undefined;
  #under = 0;
  /** Events that the broker has taken. */
  told = 0;
  /** Batches that were left out, as four were under way. */
  late = 0;

  /** Begins to tell of so many objects, each once a second. */
  constructor(
    readonly url: string,
    count: number,
  ) {
    if (count === 0) return;
    const walks = Array.from({ length: count }, walk);
    // One body for each place of the walk and each batch.
    const bodies = Array.from({ length: PLACES }, (_, place) =>
      Array.from({ length: BATCHES }, (_, batch) => {
        const lines: string[] = [];
        for (let object = batch; object < count; object += BATCHES) {
          const [x, y] = walks[object]?.[place] ?? [0, 0];
          const kind = object % 5 === 0 ? "bus" : "taxi";
          const geometry = `{"type":"Point","coordinates":[${x.toFixed(6)},${y.toFixed(6)}]}`;
          const properties = `{"kind":"${kind}","speed_kmh":${(object * 7 + place) % 80}}`;
          lines.push(`{"type":"Feature","key":"object-${object}","geometry":${geometry},"properties":${properties},"ttl_s":60}`);
        }
        return Buffer.from(lines.join("\n"));
      }),
    );
    const began = performance.now();
    let next = 0;
    this.#timer = setInterval(() => {
      for (; next < ((performance.now() - began) * BATCHES) / 1000; next++) {
        const round = Math.floor(next / BATCHES) % (2 * PLACES - 2);
        const body = bodies[round < PLACES ? round : 2 * PLACES - 2 - round]?.[next % BATCHES];
        if (this.#under >= 4) this.late += 1;
        else if (body !== undefined && body.length > 0) this.#tell(body);
      }
    }, 1000 / BATCHES);
  }

  #tell(body: Buffer): void {
    this.#under += 1;
    const headers = { "content-type": "application/x-ndjson", "content-length": body.length };
    const sent = request(`${this.url}/v1/events`, { method: "POST", agent: this.#agent, headers }, (answer) => {
      let text = "";
      answer.on("data", (chunk: Buffer) => (text += chunk.toString()));
      answer.on("end", () => {
        this.#under -= 1;
        this.told += (JSON.parse(text) as { accepted?: number }).accepted ?? 0;
      });
    });
    sent.on("error", () => (this.#under -= 1));
    sent.end(body);
  }

  /** Tells no more; resolves when the last answer is there. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    while (this.#under > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    this.#agent.destroy();
  }
}
