import { around, attr, connect, event } from "nearcast";

const url = process.argv[2] ?? process.env.NEARCAST_URL ?? "http://127.0.0.1:7070";
const ann = await connect({ url, client: "ann-ts" });
await ann.move([9.1895, 45.4642]);
await ann.subscribe("accidents", {
  filters: [{ area: around(500), where: attr("type").eq("accident").and(attr("severity").ge(2)) }],
});

await ann.publish(event([9.1901, 45.465], { type: "accident", severity: 3 }));

for await (const message of ann) {
  console.log(message.kind, message.feature.properties); // event { type: 'accident', severity: 3 }
  break;
}
await ann.forget(); // closes the session, and leaves nothing at the broker
