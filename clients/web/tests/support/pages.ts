// The pages in a browser, as the broker serves them.

import { existsSync } from "node:fs";

import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { createServer, preview, type Connect, type Plugin, type ProxyOptions } from "vite";

/** Whether pages are served as they were built: those that are not have no service worker. */
export const areBuilt = process.env["NEARCAST_PAGES"] !== "dev";

/**
 * Where a broker's pages are. `NEARCAST_PAGES=dev` puts Vite's development server in front of it, so that a change of a page needs no build of
 * the program, and `NEARCAST_PAGES=built` what `npm run build` has left.
 */
export async function pagesOf(broker: { readonly url: string }): Promise<{ readonly url: string; close(): Promise<void> }> {
  const wanted = process.env["NEARCAST_PAGES"];
  if (wanted === undefined || wanted === "") return { url: `${broker.url}/`, close: () => Promise.resolve() };
  const target: ProxyOptions = {
    target: broker.url,
    ws: true,
    // A stream that has broken off behind the proxy breaks off before it, too.
    configure: (server) => server.on("proxyRes", (from, _, to) => void from.on("aborted", () => to.destroy())),
  };
  const proxy = { "/v1": target, "/metrics": target, "/pages.json": target, "/base-map": target };
  const rewrite = ({ middlewares }: { readonly middlewares: Connect.Server }): void =>
    void middlewares.use((request, _, next) => {
      if (request.url !== undefined) request.url = request.url.replace(/^\/phone(?=$|\?)/, "/phone.html");
      next();
    });
  const addresses: Plugin = { name: "addresses of the broker", configureServer: rewrite, configurePreviewServer: rewrite };
  const common = { logLevel: "error" as const, plugins: [addresses] };
  const where = { host: "127.0.0.1", port: 0, proxy };
  if (wanted === "built") {
    const server = await preview({ ...common, preview: where });
    return { url: server.resolvedUrls?.local[0] ?? "", close: () => server.close() };
  }
  // Nobody changes pages meanwhile, and a page that had lost this server would load itself anew.
  const server = await createServer({ ...common, server: { hmr: false, ...where } });
  await server.listen();
  return { url: server.resolvedUrls?.local[0] ?? "", close: () => server.close() };
}

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
/** Chromium without windows and tabs, which are a third of its work. It keeps no permission over a reload. */
const SHELL = process.env["CHROMIUM_SHELL"] ?? "/usr/bin/chromium-headless-shell";

/** Chromium, which draws maps, and everything else, on the processor as on a graphics card. `whole`: with all that it has. */
export function launch({
  flags = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
  whole = false,
}: { readonly flags?: readonly string[] | undefined; readonly whole?: boolean } = {}): Promise<Browser> {
  return chromium.launch({
    executablePath: !whole && existsSync(SHELL) ? SHELL : CHROMIUM,
    args: ["--no-sandbox", ...flags],
  });
}

/** A new page on which nothing moves that need not. Its errors are kept: a test asks for them at its end. */
export async function newPage(browser: Browser, options: BrowserContextOptions): Promise<{ page: Page; errors: string[] }> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  return { page, errors };
}
