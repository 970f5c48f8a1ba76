// What is published while nobody reads is kept for a durable subscription. The next process goes on where the last one was.

import { attr, connect, event } from "nearcast";

const url = process.argv[2] ?? process.env.NEARCAST_URL ?? "http://127.0.0.1:7070";
const client = "phone-ts";
await (await connect({ url, client })).forget(); // what a run that was broken off has left

const before = await connect({ url, client });
await before.subscribe("fires", { filters: [{ where: attr("type").eq("fire") }], durable: true });
await before.publish(event([9.19, 45.46], { type: "fire", n: 1 }));
for await (const message of before) {
  if (message.kind === "event") console.log("before", message.feature.properties.n);
  break;
}
const { checkpoint } = before; // An application writes it to disk, together with what it made of the event.
await before.close({ processed: true }); // The event at which the loop was left is done with.

const elsewhere = await connect({ url, client: "alarm-ts" });
await elsewhere.publish(event([9.19, 45.46], { type: "fire", n: 2 }));
await elsewhere.forget();

const after = await connect({ url, client, resume: checkpoint });
for await (const message of after) {
  if (message.kind === "gap") console.log("lost", message.count, "because of", message.reason);
  else console.log("after", message.feature.properties.n);
  break;
}
await after.forget(); // A durable subscription would go on to keep what matches.
