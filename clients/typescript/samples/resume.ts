// What is published while nobody reads is kept for a durable subscription. The next process goes on where the last one was.

import { attr, connect, event } from "nearcast";

const url = process.env["NEARCAST_URL"] ?? "http://localhost:7070";
const publisher = await connect({ url, client: "publisher" });

const before = await connect<{ n: number }>({ url, client: "ann" });
await before.subscribe("fires", { filters: [{ where: attr("type").eq("fire") }], durable: true });
await publisher.publish(event([9.19, 45.46], { type: "fire", n: 1 }));
for await (const message of before) {
  if (message.kind === "event") console.log("before", message.feature.properties.n);
  break;
}
const { checkpoint } = before; // An application writes it to disk, together with what it made of the event.
await before.close();

await publisher.publish(event([9.19, 45.46], { type: "fire", n: 2 }));

const after = await connect<{ n: number }>({ url, client: "ann", resume: checkpoint });
for await (const message of after) {
  if (message.kind === "gap") console.log("lost", message.count, "because of", message.reason);
  else console.log("after", message.feature.properties.n);
  break;
}
await after.close();
await publisher.close();
