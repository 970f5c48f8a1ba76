// How smooth the console's map is with so many moving objects: frames a second and the main thread's time, in the Chromium of the tests.
//
//   npm run objects            0, 1,000, 5,000 and 20,000 objects, each of which reports once a second; 20 s each
//   npm run objects -- 5000

import { cpus } from "node:os";

import { Broker } from "../../typescript/tests/support/broker.js";
import { launch, pagesOf } from "../tests/support/pages.js";

const counts = process.argv.slice(2).map(Number);
const SECONDS = 20;
/** Reports go in so many batches a second. */
const BATCHES = 10;

interface Figures {
  readonly objects: number;
  readonly frames_per_s: number;
  readonly frame_ms: { readonly p50: number; readonly p95: number; readonly max: number };
  /** Share of the main thread's time that is spent on tasks, of which on scripts. */
  readonly main_thread: number;
  readonly scripts: number;
  /** Tasks of more than 50 ms. */
  readonly long_tasks: { readonly count: number; readonly max_ms: number };
  readonly events_per_s: number;
}

/** What the page does meanwhile. As text, for what the compiler adds to functions is not in the page. */
const WATCH = `new Promise((resolve) => {
  const [intervals, long] = [[], []];
  new PerformanceObserver((list) => long.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
  const start = performance.now();
  let last = start;
  requestAnimationFrame(function frame(now) {
    intervals.push(now - last);
    last = now;
    if (now - start < ${SECONDS * 1000}) requestAnimationFrame(frame);
    else resolve({ intervals, long });
  });
})`;

/** Objects on a random walk over a city, told to the broker until it is stopped. */
class Fleet {
  readonly #at: [number, number][];
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #under = new Set<Promise<unknown>>();
  told = 0;

  constructor(
    readonly url: string,
    count: number,
  ) {
    this.#at = Array.from({ length: count }, () => [113.85 + Math.random() * 0.3, 22.5 + Math.random() * 0.15]);
    if (count === 0) return;
    let batch = 0;
    this.#timer = setInterval(() => {
      const lines: string[] = [];
      for (let object = batch; object < count; object += BATCHES) {
        const at = this.#at[object] ?? [0, 0];
        at[0] += (Math.random() - 0.5) * 0.0003;
        at[1] += (Math.random() - 0.5) * 0.0003;
        const properties = { kind: object % 5 === 0 ? "bus" : "taxi", speed_kmh: Math.round(Math.random() * 80) };
        lines.push(
          JSON.stringify({ type: "Feature", key: `object-${object}`, geometry: { type: "Point", coordinates: at }, properties, ttl_s: 60 }),
        );
      }
      batch = (batch + 1) % BATCHES;
      const sent = fetch(`${url}/v1/events`, {
        method: "POST",
        headers: { "content-type": "application/x-ndjson" },
        body: lines.join("\n"),
      }).then(async (answer) => {
        this.told += ((await answer.json()) as { accepted: number }).accepted;
      });
      this.#under.add(sent);
      void sent.finally(() => this.#under.delete(sent));
    }, 1000 / BATCHES);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#under);
  }
}

async function measure(objects: number): Promise<Figures> {
  const broker = await Broker.start({ settings: { "console.base_map": "demo" } });
  const pages = await pagesOf(broker);
  const browser = await launch();
  const fleet = new Fleet(broker.url, objects);
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto(pages.url);
    await page.waitForFunction(
      (least) => Number(document.querySelector("output[data-layer=events]")?.textContent.replaceAll(",", "") ?? -1) >= least,
      objects,
      { timeout: 60_000 },
    );
    const tools = await page.context().newCDPSession(page);
    // The thread's own time: on a machine that is busy the clock's would count how long it waited for a processor.
    await tools.send("Performance.enable", { timeDomain: "threadTicks" });
    const spent = async (): Promise<Record<string, number>> =>
      Object.fromEntries((await tools.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
    const [before, told] = [await spent(), fleet.told];
    const { intervals, long } = await page.evaluate<{ intervals: number[]; long: number[] }>(WATCH);
    const after = await spent();
    const share = (name: string): number =>
      ((after[name] ?? 0) - (before[name] ?? 0)) / ((after["Timestamp"] ?? 0) - (before["Timestamp"] ?? 0));
    const sorted = intervals.slice(1).sort((one, other) => one - other);
    const quantile = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
    return {
      objects,
      frames_per_s: intervals.length / SECONDS,
      frame_ms: { p50: quantile(0.5), p95: quantile(0.95), max: quantile(1) },
      main_thread: share("TaskDuration"),
      scripts: share("ScriptDuration"),
      long_tasks: { count: long.length, max_ms: Math.max(0, ...long) },
      events_per_s: (fleet.told - told) / SECONDS,
    };
  } finally {
    await fleet.stop();
    await browser.close();
    await pages.close();
    await broker.stop();
  }
}

console.log(`${cpus().length} processors (${cpus()[0]?.model ?? "?"}), drawn by the processor (SwiftShader), 1280x800, ${SECONDS} s each`);
console.log("objects  frames/s  frame p50/p95/max ms  main thread  of it scripts  tasks > 50 ms (longest)  events/s");
for (const objects of counts.length > 0 ? counts : [0, 1000, 5000, 20_000]) {
  const { frames_per_s, frame_ms, main_thread, scripts, long_tasks, events_per_s } = await measure(objects);
  const per_cent = (part: number): string => `${(part * 100).toFixed(1)} %`;
  console.log(
    [
      String(objects).padStart(7),
      frames_per_s.toFixed(1).padStart(8),
      `${frame_ms.p50.toFixed(0)} / ${frame_ms.p95.toFixed(0)} / ${frame_ms.max.toFixed(0)}`.padStart(20),
      per_cent(main_thread).padStart(11),
      per_cent(scripts).padStart(13),
      `${long_tasks.count} (${long_tasks.max_ms.toFixed(0)} ms)`.padStart(23),
      events_per_s.toFixed(0).padStart(8),
    ].join("  "),
  );
}
