// Buses come near and drive off again.

import { around, attr, connect, event } from "nearcast";

const session = await connect({ url: process.env["NEARCAST_URL"] ?? "http://localhost:7070", client: "stop-12" });
await session.move([9.1985, 45.4642], { confirm: true });
await session.subscribe("buses", {
  filters: [{ area: around(300), where: attr("type").eq("bus") }],
  on: ["enter", "exit"],
  hysteresis_m: 20,
});

// One object that moves: a newer event of the same key takes the place of the one before.
for (const lon of [9.19, 9.198, 9.199, 9.207]) {
  await session.publish(event([lon, 45.4642], { type: "bus", line: "94" }, { key: "bus-7", ttl_s: 600 }));
}

for await (const message of session) {
  if (message.kind === "gap") continue;
  console.log(message.transition, message.feature.key, message.feature.geometry.coordinates[0]);
  if (message.transition === "exit") break;
}
await session.close();
