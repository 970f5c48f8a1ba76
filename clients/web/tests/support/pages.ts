// The pages in a browser, as the broker serves them.

import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { createServer, type ViteDevServer } from "vite";

/**
 * Where a broker's pages are. `NEARCAST_PAGES=dev` puts Vite's development server in front of it, so that a change of a page needs no build of
 * the program.
 */
export async function pagesOf(broker: { readonly url: string }): Promise<{ readonly url: string; close(): Promise<void> }> {
  if (process.env["NEARCAST_PAGES"] !== "dev") return { url: `${broker.url}/`, close: () => Promise.resolve() };
  const proxy = { target: broker.url, ws: true };
  const server: ViteDevServer = await createServer({
    logLevel: "error",
    // Nobody changes pages meanwhile, and a page that had lost this server would load itself anew.
    server: {
      host: "127.0.0.1",
      port: 0,
      hmr: false,
      proxy: { "/v1": proxy, "/metrics": proxy, "/pages.json": proxy, "/base-map": proxy },
    },
    plugins: [
      {
        name: "addresses of the broker",
        configureServer: ({ middlewares }) =>
          void middlewares.use((request, _, next) => {
            if (request.url !== undefined) request.url = request.url.replace(/^\/phone(?=$|\?)/, "/phone.html");
            next();
          }),
      },
    ],
  });
  await server.listen();
  return { url: server.resolvedUrls?.local[0] ?? "", close: () => server.close() };
}

/** Chromium, which draws maps on the processor where there is no graphics card. */
export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
  });
}

/** A new page whose errors are kept: a test asks for them at its end. */
export async function newPage(browser: Browser, options: BrowserContextOptions): Promise<{ page: Page; errors: string[] }> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  return { page, errors };
}
