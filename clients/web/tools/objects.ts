// How smooth the console's map is with so many moving objects, in the Chromium of the tests: frames a second, and what each program took of the
// processors.
//
//   npm run objects                        0, 1,000, 5,000 and 20,000 objects, each of which reports once a second
//   npm run objects -- 5000 --rounds 3
//
// --nearcast PATH  the broker; that of the tests without it
// --dist           the pages of embed/pages/dist in place of those in the program
// --query TEXT     how the console is opened: `marks=clusters`
// --trace FILE     writes a trace for chrome://tracing
// --screenshot FILE  the console at the end
// --flags "A B"    of Chromium, in place of those of the tests: `--enable-unsafe-swiftshader` is Chromium as it is without a graphics card

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import type { CDPSession, Page } from "playwright-core";

import { launch, pagesOf } from "../tests/support/pages.js";
import { Fleet } from "./fleet.js";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    nearcast: { type: "string" },
    rounds: { type: "string", default: "1" },
    seconds: { type: "string", default: "20" },
    dist: { type: "boolean", default: false },
    query: { type: "string", default: "" },
    trace: { type: "string" },
    screenshot: { type: "string" },
    flags: { type: "string" },
  },
});
if (options.nearcast !== undefined) process.env["NEARCAST"] = options.nearcast;
// It reads where the program is when it is loaded.
const { Broker } = await import("../../typescript/tests/support/broker.js");
const SECONDS = Number(options.seconds);

interface Figures {
  readonly frames_per_s: number;
  /** How often the marks were drawn: as often as they have moved. */
  readonly drawn_per_s: number;
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
  /** Shares of a processor. */
  readonly main: number;
  readonly page: number;
  readonly graphics: number;
  readonly network: number;
  readonly broker: number;
  readonly publisher: number;
  /** Tasks of more than 50 ms. */
  readonly long: number;
  readonly told_per_s: number;
  /** What the console says came to it. */
  readonly shown_per_s: number;
  readonly missed: number;
}

/** What the page does meanwhile. As text, for what the compiler adds to functions is not in the page. */
const WATCH = `new Promise((resolve) => {
  const [intervals, long] = [[], []];
  new PerformanceObserver((list) => long.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
  // Where there is no graphics card the marks are one image, put whenever they are drawn.
  const pen = CanvasRenderingContext2D.prototype;
  const put = pen.putImageData;
  let drawn = 0;
  pen.putImageData = function (...what) {
    drawn += 1;
    put.apply(this, what);
  };
  const start = performance.now();
  let last = start;
  requestAnimationFrame(function frame(now) {
    intervals.push(now - last);
    last = now;
    if (now - start < ${SECONDS * 1000}) requestAnimationFrame(frame);
    else resolve({ intervals, long, drawn });
  });
})`;

/** Seconds of processor time that the brokers started here have taken. */
function brokerTime_s(): number {
  let ticks = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [, comm = "", rest = ""] = /\((.*)\) (.*)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      const fields = rest.split(" ");
      if (comm.startsWith("nearcast") && fields[1] === String(process.pid)) ticks += Number(fields[11]) + Number(fields[12]);
    } catch {
      // It has ended meanwhile.
    }
  }
  return ticks / 100;
}

/** Serves the built pages in place of those that the program has. */
async function serveBuilt(page: Page): Promise<void> {
  const folder = fileURLToPath(new URL("../embed/pages/dist/", import.meta.url));
  // What is served so is of no address, and would have to ask before it may connect to one of this machine.
  await page.context().grantPermissions(["local-network-access"]);
  await page.route(
    (url) => url.pathname === "/" || url.pathname.startsWith("/assets/"),
    (route) => route.fulfill({ path: folder + (new URL(route.request().url()).pathname.slice(1) || "index.html") }),
  );
}

async function spent(tools: CDPSession, whole: CDPSession): Promise<Record<string, number>> {
  const { metrics } = await tools.send("Performance.getMetrics");
  const { processInfo } = await whole.send("SystemInfo.getProcessInfo");
  const { user, system } = process.cpuUsage();
  const found: Record<string, number> = { at: performance.now() / 1000, broker: brokerTime_s(), publisher: (user + system) / 1e6 };
  found["main"] = metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0;
  for (const { type, cpuTime } of processInfo) found[type] = (found[type] ?? 0) + cpuTime;
  return found;
}

async function measure(objects: number): Promise<Figures> {
  const broker = await Broker.start({ settings: { "console.base_map": "demo" } });
  const pages = await pagesOf(broker);
  const browser = await launch({ flags: options.flags?.split(" "), whole: true });
  const fleet = new Fleet(broker.url, objects);
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.on("pageerror", (error) => console.error(error.message));
    if (options.dist) await serveBuilt(page);
    await page.goto(`${pages.url}?${options.query}`);
    await page.waitForFunction(
      (least) => Number(document.querySelector("output[data-layer=events]")?.textContent.replaceAll(",", "") ?? -1) >= least,
      Math.floor(objects * 0.99),
      { timeout: 60_000, polling: 500 },
    );
    await page.waitForTimeout(3000);
    const [tools, whole] = [await page.context().newCDPSession(page), await browser.newBrowserCDPSession()];
    // The thread's own time: on a machine that is busy the clock's would count how long it waited for a processor.
    await tools.send("Performance.enable", { timeDomain: "threadTicks" });
    const [before, told] = [await spent(tools, whole), fleet.told];
    if (options.trace !== undefined) await browser.startTracing(page, { categories: TRACED });
    const { intervals, long, drawn } = await page.evaluate<{ intervals: number[]; long: number[]; drawn: number }>(WATCH);
    const after = await spent(tools, whole);
    if (options.trace !== undefined) writeFileSync(options.trace, await browser.stopTracing());
    const seconds = (after["at"] ?? 0) - (before["at"] ?? 0);
    const share = (name: string): number => ((after[name] ?? 0) - (before[name] ?? 0)) / seconds;
    const sorted = intervals.slice(1).sort((one, other) => one - other);
    const quantile = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
    if (options.screenshot !== undefined) await page.screenshot({ path: options.screenshot });
    const number = async (selector: string): Promise<number> =>
      page.evaluate((where) => parseFloat(document.querySelector(where)?.textContent.replaceAll(/[^\d.]/g, "") ?? "0") || 0, selector);
    return {
      frames_per_s: intervals.length / SECONDS,
      drawn_per_s: drawn / SECONDS,
      p50: quantile(0.5),
      p95: quantile(0.95),
      max: quantile(1),
      main: share("main"),
      page: share("renderer"),
      graphics: share("GPU"),
      network: share("utility") + share("browser"),
      broker: share("broker"),
      publisher: share("publisher"),
      long: long.length,
      told_per_s: (fleet.told - told) / seconds,
      shown_per_s: await number(".feed > p.numbers span"),
      missed: await number(".missed"),
    };
  } finally {
    await fleet.stop();
    await browser.close();
    await pages.close();
    await broker.stop();
  }
}

const TRACED = ["toplevel", "cc", "gpu", "viz", "benchmark", "devtools.timeline", "disabled-by-default-v8.cpu_profiler"];

const per_cent = (part: number): string => `${(part * 100).toFixed(0)} %`;
const COLUMNS: readonly (readonly [string, (figures: Figures) => string])[] = [
  ["frames/s", ({ frames_per_s }) => frames_per_s.toFixed(1)],
  ["marks drawn/s", ({ drawn_per_s }) => drawn_per_s.toFixed(1)],
  ["p50/p95/max ms", ({ p50, p95, max }) => [p50, p95, max].map((ms) => ms.toFixed(0)).join("/")],
  ["tasks > 50 ms", ({ long }) => String(long)],
  ["main thread", ({ main }) => per_cent(main)],
  ["page", ({ page }) => per_cent(page)],
  ["graphics", ({ graphics }) => per_cent(graphics)],
  ["browser", ({ network }) => per_cent(network)],
  ["broker", ({ broker }) => per_cent(broker)],
  ["publisher", ({ publisher }) => per_cent(publisher)],
  ["told/s", ({ told_per_s }) => told_per_s.toFixed(0)],
  ["shown/s", ({ shown_per_s }) => shown_per_s.toFixed(0)],
  ["missed", ({ missed }) => missed.toFixed(0)],
];

console.log(`${cpus().length} processors (${cpus()[0]?.model ?? "?"}), drawn by the processor (SwiftShader), 1280x800, ${SECONDS} s each`);
console.log(["objects", ...COLUMNS.map(([name]) => name)].join(" | "));
const counts = positionals.map(Number);
for (let round = 0; round < Number(options.rounds); round++) {
  for (const objects of counts.length > 0 ? counts : [0, 1000, 5000, 20_000]) {
    const figures = await measure(objects);
    console.log([objects, ...COLUMNS.map(([, text]) => text(figures))].join(" | "));
  }
}
