// A taxi reports places that it cannot have driven between.

import { attr, connect, event } from "nearcast";

const url = process.argv[2] ?? process.env.NEARCAST_URL ?? "http://127.0.0.1:7070";
const watch = await connect({ url, client: "watch-ts" });

// No taxi is faster than 55 m/s between two of its reports of a minute.
await watch.putCheck("jump-ts", { preset: "speed", object: "taxi", max_m_per_s: 55, clock: "event" });
await watch.subscribe("jumps", { filters: [{ where: attr("check").eq("jump-ts") }] });

// The last report places it 30 km further on after 20 s.
for (const [id, lon, time] of [
  ["r1", 114.0, "2026-03-01T08:00:00Z"],
  ["r2", 114.005, "2026-03-01T08:00:30Z"],
  ["r3", 114.305, "2026-03-01T08:00:50Z"],
]) {
  await watch.publish(event([lon, 22.5], { taxi: "t1" }, { id, time }));
}

let told = 0;
for await (const message of watch) {
  if (message.kind === "gap") continue;
  const { a, b } = message.feature.properties.bindings;
  console.log(`${a} does not fit ${b}`);
  if (++told === 2) break;
}

// Nothing of this is left at the broker.
await watch.deleteCheck("jump-ts");
await watch.forget();
