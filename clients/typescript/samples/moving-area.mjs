// A car drives, and hears of accidents within 500 m of wherever it is.

import { around, attr, connect, event } from "nearcast";

const url = process.argv[2] ?? process.env.NEARCAST_URL ?? "http://127.0.0.1:7070";
const car = await connect({ url, client: "car-ts" });
await car.move([9.18, 45.46], { confirm: true });
await car.subscribe("accidents", {
  filters: [{ area: around(500), where: attr("type").eq("accident").and(attr("severity").ge(2)) }],
});

// It lives for a minute: who comes near until then hears of it.
const controlRoom = await connect({ url, client: "control-room-ts" });
const accident = await controlRoom.publish(event([9.2, 45.46], { type: "accident", severity: 3 }, { key: "accident-ts", ttl_s: 60 }));

// 2 km along the road, as a phone would tell it.
async function* drive() {
  for (let i = 0; i <= 100; i++) yield { coordinates: [9.18 + i * 2.6e-4, 45.46], accuracy_m: 5 };
}
const driving = car.follow(drive(), { minDistance_m: 100, minInterval_s: 0 });

for await (const message of car) {
  if (message.kind === "gap") continue;
  const { type, severity } = message.feature.properties;
  console.log(`${type} of severity ${severity} ahead, because we ${message.cause}`);
  break;
}
await driving;

// Nothing of this is left at the broker.
await controlRoom.revoke(accident);
await controlRoom.forget();
await car.forget();
