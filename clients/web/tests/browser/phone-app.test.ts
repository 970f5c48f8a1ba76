// The page as an app: installed, without a network, renewed, and with notifications.

import type { Browser, BrowserContext, Page, Worker } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { Front } from "../support/front.js";
import { areBuilt, launch, newPage } from "../support/pages.js";
import {
  around,
  feature,
  Network,
  openPhone,
  phonePage,
  publish,
  seen,
  serve,
  type PhonePage,
  type Place,
  type Served,
} from "./phone-support.js";

let browser: Browser;
let served: Served;
let front: Front;
let here: Place = [30, 45];

beforeAll(async () => {
  [browser, served] = await Promise.all([launch({ whole: true }), serve({ data: true })]);
});

afterAll(async () => {
  await browser.close();
  await served.close();
});

beforeEach(async () => {
  here = [here[0] + 0.5, here[1]];
  front = await Front.to(served.url);
});

afterEach(() => front.close());

type Permission = "geolocation" | "notifications";

async function located(
  url: string,
  permissions: Permission[] = ["geolocation"],
  init?: (context: BrowserContext) => Promise<void>,
): Promise<PhonePage> {
  const geolocation = { longitude: here[0], latitude: here[1], accuracy: 12 };
  const { page, errors } = await newPage(browser, { viewport: { width: 390, height: 844 }, hasTouch: true, permissions, geolocation });
  await init?.(page.context());
  await page.goto(`${url}phone`);
  await page.getByRole("button", { name: "Use my location" }).click();
  await seen(page, /Your place was sent/);
  return phonePage(page, errors);
}

/** Waits until the service worker has the page. */
async function controlled(page: Page): Promise<void> {
  await page.waitForFunction(() => navigator.serviceWorker.controller?.state === "activated");
}

// Pages that are not built have no service worker.
describe.runIf(areBuilt)("with its service worker", () => {
  test("it can be installed, and offers that where the browser does", async () => {
    const phone = await openPhone(browser, served.url);
    const { page } = phone;
    await controlled(page);
    const devtools = await phone.context.newCDPSession(page);
    const manifest = await devtools.send("Page.getAppManifest");
    expect([manifest.errors, new URL(manifest.url).pathname]).toEqual([[], "/assets/phone.webmanifest"]);
    const { installabilityErrors } = await devtools.send("Page.getInstallabilityErrors");
    // A test's window keeps nothing, and browsers install from none of those.
    expect(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== "in-incognito")).toEqual([]);
    const { icons } = JSON.parse(manifest.data ?? "{}") as { icons: { src: string; sizes: string; purpose?: string }[] };
    expect(icons.filter(({ purpose }) => purpose === "maskable")).toHaveLength(1);
    for (const { src, sizes } of icons.filter(({ src }) => src.endsWith(".png"))) {
      const side = await page.evaluate(async (address) => {
        const picture = new Image();
        picture.src = address;
        await picture.decode();
        return [picture.naturalWidth, picture.naturalHeight].join("x");
      }, new URL(src, manifest.url).href);
      expect(side).toBe(sizes);
    }
    await page.getByRole("button", { name: "Settings" }).click();
    expect(await page.getByRole("button", { name: "Install" }).count()).toBe(0);
    await page.evaluate(() => {
      const asked = Object.assign(new Event("beforeinstallprompt", { cancelable: true }), {
        prompt: () => Promise.resolve((document.body.dataset["installed"] = "asked")),
      });
      dispatchEvent(asked);
    });
    await page.getByRole("button", { name: "Install" }).click();
    await expect.poll(() => page.evaluate(() => document.body.dataset["installed"])).toBe("asked");
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });

  test("without a network it opens, shows what came, and keeps the way for later, over closing it", async () => {
    const network = await Network.to(served);
    const net = await Network.to({ url: front.url });
    network.close();
    const phone = await located(`${net.url}/`);
    const { page } = phone;
    await controlled(page);
    const live = (title: string, [east, north]: Place): object => feature(title, [here[0] + east, here[1] + north], { ttl_s: 3600 });
    await publish(served.broker, [feature("before", here), live("on the way", [0.05, 0.05]), live("beside it", [0.05, -0.05])]);
    await phone.came("before");
    net.cut();
    await seen(page, /^Offline since/);
    const locate = ([east, north]: Place): Promise<void> =>
      phone.context.setGeolocation({ longitude: here[0] + east, latitude: here[1] + north, accuracy: 12 });
    await around(page);
    await locate([0.05, 0.05]);
    await seen(page, /Your way is recorded/);
    // Loaded anew and closed without a network.
    await page.reload();
    await phone.came("before");
    await seen(page, /^Offline since/);
    await locate([0.1, 0]);
    await page.goto("about:blank");
    await page.goto(`${net.url}/phone`);
    await phone.came("before");
    await seen(page, /^Offline since/);
    await expect.poll(() => page.locator(".maplibregl-canvas").count()).toBe(1);
    net.mend();
    await phone.came("on the way");
    await seen(page, /Your place was sent/);
    await publish(served.broker, [feature("after", [here[0] + 0.1, here[1]])]);
    await phone.came("after");
    expect(await phone.titles()).toEqual(["after", "on the way", "before"]);
    // Nothing that the protocol's calls answer is kept.
    const kept = await page.evaluate(async () => {
      const urls = [];
      for (const name of await caches.keys())
        for (const { url } of await (await caches.open(name)).keys()) urls.push(new URL(url).pathname);
      return urls;
    });
    expect(kept).toContain("/phone");
    expect(kept.filter((path) => path.startsWith("/v1") || path.includes("console"))).toEqual([]);
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
    net.close();
  });

  test("a new version is told of, and taken when the person wants it", async () => {
    const phone = await openPhone(browser, front.url);
    const { page } = phone;
    await controlled(page);
    await page.evaluate(() => (document.body.dataset["loaded"] = "before"));
    front.version = "newer";
    await page.evaluate(async () => (await navigator.serviceWorker.ready).update());
    await seen(page, "A new version is ready.");
    expect(await page.evaluate(() => document.body.dataset["loaded"])).toBe("before");
    await page.getByRole("button", { name: "Reload" }).click();
    await page.waitForFunction(() => document.body.dataset["loaded"] === undefined);
    await seen(page, "Where are you?");
    expect(await page.getByText("A new version is ready.").count()).toBe(0);
    expect(await page.evaluate(async () => (await navigator.serviceWorker.ready).waiting)).toBeNull();
    expect(phone.errors()).toEqual([]);
    await phone.context.close();
  });

  describe("notifications", () => {
    /** What the page has sent of its push subscription. */
    let told: { method: string; body: unknown }[];

    /** The broker's side as its contract has it. The browser's is its own, but for the service behind it, which is not there in a test. */
    function withPush(client: string): void {
      told = [];
      const path = `/v1/clients/${client}/push`;
      const key = `B${"A".repeat(86)}`;
      front.answers.set("GET /v1/push", (_, __, response) => {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ public_key: key }));
      });
      for (const [method, status] of [
        ["PUT", 201],
        ["DELETE", 204],
      ] as const) {
        front.answers.set(`${method} ${path}`, (_, body, response) => {
          told.push({ method, body: body === "" ? undefined : JSON.parse(body) });
          response.writeHead(status).end();
        });
      }
    }

    async function stubSubscribe(context: BrowserContext): Promise<void> {
      await context.addInitScript(() => {
        const keys = { p256dh: "BPoint", auth: "secret" };
        const made = (applicationServerKey: BufferSource | null): object => ({
          endpoint: "https://push.example/1",
          options: { applicationServerKey, userVisibleOnly: true },
          toJSON: () => ({ endpoint: "https://push.example/1", expirationTime: null, keys }),
          unsubscribe: () => {
            localStorage.removeItem("test.subscribed");
            return Promise.resolve(true);
          },
        });
        const { prototype } = PushManager;
        prototype.getSubscription = () =>
          Promise.resolve(localStorage.getItem("test.subscribed") === null ? null : (made(null) as PushSubscription));
        prototype.subscribe = (options) => {
          const key = options?.applicationServerKey as Uint8Array<ArrayBuffer>;
          if (options?.userVisibleOnly !== true || key.length !== 65) throw new DOMException("not like this", "InvalidAccessError");
          localStorage.setItem("test.subscribed", "yes");
          return Promise.resolve(made(key) as PushSubscription);
        };
      });
    }

    /** Brings a message to the service worker as the browser's service would. */
    async function deliver(phone: PhonePage, message: object): Promise<void> {
      const devtools = await phone.context.newCDPSession(phone.page);
      const registered = new Promise<string>((resolve) => {
        devtools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
          const mine = registrations.find(({ scopeURL, isDeleted }) => scopeURL.startsWith(front.url) && !isDeleted);
          if (mine !== undefined) resolve(mine.registrationId);
        });
      });
      await devtools.send("ServiceWorker.enable");
      const origin = new URL(front.url).origin;
      await devtools.send("ServiceWorker.deliverPushMessage", { origin, registrationId: await registered, data: JSON.stringify(message) });
      await devtools.detach();
    }

    function shown(page: Page): Promise<string[]> {
      return page.evaluate(async () => {
        const notifications = await (await navigator.serviceWorker.ready).getNotifications();
        return notifications.map(({ title, body, tag }) => `${tag}: ${title}, ${body}`);
      });
    }

    function worker(context: BrowserContext): Worker {
      const one = context.serviceWorkers().find((candidate) => candidate.url().startsWith(front.url));
      if (one === undefined) throw new Error("there is no service worker");
      return one;
    }

    test("are switched on by a tap, shown one for each client, and lead to their event", async () => {
      const phone = await located(front.url, ["geolocation", "notifications"], stubSubscribe);
      const { page } = phone;
      await controlled(page);
      const client = await phone.client();
      withPush(client);
      await page.reload();
      await seen(page, /Your place was sent/);
      expect(told).toEqual([]);
      await page.getByRole("button", { name: "Settings" }).click();
      const toggle = page.getByRole("switch", { name: "Notify me when this page is closed" });
      await expect.poll(() => toggle.isEnabled()).toBe(true);
      await toggle.click();
      await expect.poll(() => toggle.isChecked()).toBe(true);
      const body = { endpoint: "https://push.example/1", expirationTime: null, keys: { p256dh: "BPoint", auth: "secret" } };
      expect(told).toEqual([{ method: "PUT", body }]);
      await page.getByRole("button", { name: "Close" }).click();
      // When the page is opened again the broker hears of it again: it may have forgotten.
      await page.reload();
      await expect.poll(() => told.length).toBe(2);

      await publish(served.broker, [feature("Flood", here, { id: "f 1", ttl_s: 600 })]);
      await phone.came("Flood");
      // A page that has just been opened clears what was shown, and nobody says whether a message got there: it is sent until it is seen.
      const after = async (message: object): Promise<string[]> => {
        await deliver(phone, message);
        return shown(page);
      };
      await expect
        .poll(() => after({ client, title: "Rain", body: "first", count: 1 }), { interval: 1000 })
        .toEqual([`${client}: Rain, first`]);
      await deliver(phone, { client, title: "Flood", body: "here", count: 2, event: "f 1", url: "/phone#event=f%201" });
      await expect.poll(() => shown(page)).toEqual([`${client}: Flood, here`]);
      await worker(phone.context).evaluate(async () => {
        const scope = self as unknown as ServiceWorkerRegistration & { registration: ServiceWorkerRegistration };
        const [notification] = await scope.registration.getNotifications();
        const Tapped = (self as unknown as Record<string, new (kind: string, init: object) => Event>)["NotificationEvent"];
        if (Tapped !== undefined) dispatchEvent(new Tapped("notificationclick", { notification }));
      });
      await page.getByRole("heading", { name: "Flood" }).waitFor();
      await expect.poll(() => shown(page)).toEqual([]);
      await page.getByRole("button", { name: "Close" }).click();

      // The worker renews what the browser has renewed, by the broker's call.
      await worker(phone.context).evaluate(() => {
        const renewed = { endpoint: "https://push.example/2", toJSON: () => ({ endpoint: "https://push.example/2" }) };
        dispatchEvent(
          Object.assign(new (self as unknown as { ExtendableEvent: typeof Event }).ExtendableEvent("pushsubscriptionchange"), {
            newSubscription: renewed,
          }),
        );
      });
      await expect.poll(() => told[2]).toEqual({ method: "PUT", body: { endpoint: "https://push.example/2" } });
      // Of an open page it wants the word of the page, too.
      await expect.poll(() => told.length).toBe(4);

      await page.getByRole("button", { name: "Settings" }).click();
      await toggle.click();
      await expect.poll(() => toggle.isChecked()).toBe(false);
      await expect.poll(() => told.at(-1)?.method).toBe("DELETE");
      expect(await page.evaluate(() => localStorage.getItem("test.subscribed"))).toBeNull();
      expect(phone.errors()).toEqual([]);
      await phone.context.close();
    });

    test("that somebody has forbidden are explained with what helps", async () => {
      const phone = await located(front.url, ["geolocation"], stubSubscribe);
      const { page } = phone;
      withPush(await phone.client());
      await page.reload();
      await seen(page, /Your place was sent/);
      await page.getByRole("button", { name: "Settings" }).click();
      const toggle = page.getByRole("switch", { name: "Notify me when this page is closed" });
      await expect.poll(() => toggle.isEnabled()).toBe(true);
      await toggle.click();
      await seen(page, /You have forbidden notifications of this page. Allow them in the browser's settings/);
      expect([await toggle.isChecked(), told]).toEqual([false, []]);
      await phone.context.close();
    });

    test("are not offered by a broker that sends none", async () => {
      front.answers.set("GET /v1/push", (_, __, response) => {
        response
          .writeHead(404, { "content-type": "application/problem+json" })
          .end('{"type":"urn:nearcast:problem:no-push","title":"no","status":404}');
      });
      const phone = await located(front.url);
      const { page } = phone;
      await page.getByRole("button", { name: "Settings" }).click();
      await seen(page, "This broker sends no notifications.");
      expect(await page.getByRole("switch").isDisabled()).toBe(true);
      expect(phone.errors()).toEqual([]);
      await phone.context.close();
    });
  });
});
