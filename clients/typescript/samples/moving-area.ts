// A car drives, and hears of accidents within 500 m of wherever it is.

import { around, attr, connect, event } from "nearcast";

interface Incident {
  type: string;
  severity: number;
}

const url = process.env["NEARCAST_URL"] ?? "http://localhost:7070";
const car = await connect<Incident>({ url, client: "car-7" });
await car.subscribe("accidents", {
  filters: [{ area: around(500), where: attr("type").eq("accident").and(attr("severity").ge(2)) }],
});

const accidents = await connect({ url, client: "control-room" });
await accidents.publish(event([9.2, 45.46], { type: "accident", severity: 3 }, { ttl_s: 600 }));

// 2 km along the road, as a phone would tell it.
async function* drive() {
  for (let i = 0; i <= 100; i++) yield { coordinates: [9.18 + i * 2.6e-4, 45.46] as const, accuracy_m: 5 };
}
const driving = car.follow(drive(), { minDistance_m: 100, minInterval_s: 0 });

for await (const message of car) {
  if (message.kind === "gap") continue;
  console.log(`${message.feature.properties.type} of severity ${message.feature.properties.severity} ahead, because we ${message.cause}`);
  break;
}
await driving;
await accidents.close();
await car.close();
