// @vitest-environment happy-dom
// The hooks of `nearcast/react`, in a document, against a scripted broker.

import { createElement, useState, type ReactElement } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WebSocket } from "ws";

import { useMessages, useSession, useSubscription } from "../../src/react.js";
import { ScriptedServer } from "../support/scripted.js";
import { until, within } from "../support/wait.js";

let server: ScriptedServer;
beforeEach(async () => {
  vi.stubGlobal("WebSocket", WebSocket);
  server = await ScriptedServer.start();
});
afterEach(async () => {
  await server.stop();
  vi.unstubAllGlobals();
});

function Near({ where }: { where: string }): ReactElement {
  const { session, connection } = useSession<{ n: number }>({ url: server.url, client: "ann", backoff: { base_s: 0, cap_s: 0 } });
  const [seen, setSeen] = useState<number[]>([]);
  const refused = useSubscription(session, "near", { filters: [{ where }] });
  useMessages(session, (message) => {
    if (message.kind === "event") setSeen((before) => [...before, message.feature.properties.n]);
  });
  return createElement("p", null, `${connection.state} ${seen.join()} ${refused?.message ?? ""}`);
}

test("a component has a session for as long as it is there", async () => {
  const place = document.createElement("div");
  const root = createRoot(place);
  const shows = (text: string): Promise<void> => until(() => place.textContent.includes(text), `it shows ${text}`);
  root.render(createElement(Near, { where: "n > 0" }));
  await shows("connecting");
  const peer = await server.accept();
  const frame = await peer.receive();
  expect(frame).toMatchObject({ op: "subscribe", id: "near", filters: [{ where: "n > 0" }] });
  peer.send({ op: "ok", ref: frame["ref"] });
  for (const [offset, n] of [
    [1, 1],
    [2, 2],
  ] as const) {
    const event = { type: "Feature", id: `e${n}`, geometry: { type: "Point", coordinates: [9, 45] }, properties: { n } };
    peer.send({ op: "event", offset, subscriptions: ["near"], cause: "published", event });
  }
  await shows("ready 1,2");

  root.render(createElement(Near, { where: "n >" }));
  // The old one ends, and the new one is refused, which the component shows.
  expect(await peer.receive()).toMatchObject({ op: "unsubscribe", id: "near" });
  const again = await peer.receive();
  expect(again).toMatchObject({ op: "subscribe", filters: [{ where: "n >" }] });
  peer.send({
    op: "problem",
    ref: again["ref"],
    problem: { type: "urn:nearcast:problem:invalid-document", title: "not valid", status: 400 },
  });
  await shows("not valid");

  root.unmount();
  expect(await within(peer.closed, "the close")).toBe(1000);
});
