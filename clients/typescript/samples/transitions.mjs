// A bus comes near and drives off again.

import { around, attr, connect, event } from "nearcast";

const url = process.argv[2] ?? process.env.NEARCAST_URL ?? "http://127.0.0.1:7070";
const stop = await connect({ url, client: "stop-ts" });

// One object that moves: a newer event of the same key takes the place of the one before.
function drive(lon) {
  return stop.publish(event([lon, 45.4642], { type: "bus", line: "94" }, { key: "bus-ts", ttl_s: 60 }));
}
await drive(9.19);

await stop.move([9.1985, 45.4642], { confirm: true });
await stop.subscribe("buses", {
  filters: [{ area: around(300), where: attr("type").eq("bus") }],
  on: ["enter", "exit"],
  hysteresis_m: 20,
});
await drive(9.198);
await drive(9.199);
const last = await drive(9.207);

for await (const message of stop) {
  if (message.kind === "gap") continue;
  console.log(message.transition, message.feature.key, message.feature.geometry.coordinates[0]);
  if (message.transition === "exit") break;
}

// Nothing of this is left at the broker.
await stop.revoke(last);
await stop.forget();
