// Publishes one event, and then many with back-pressure.

import { connect, event } from "nearcast";

const session = await connect({ url: process.env["NEARCAST_URL"] ?? "http://localhost:7070", client: "publisher" });

const id = await session.publish(event([9.1901, 45.465], { type: "accident", severity: 3 }));
console.log("published", id);

function* readings() {
  for (let i = 0; i < 2000; i++)
    yield event([9.19 + i * 1e-5, 45.46], { type: "reading", value: i }, { key: `sensor-${i % 100}`, ttl_s: 60 });
}
const { accepted, rejected } = await session.publishMany(readings());
console.log("accepted", accepted, "rejected", rejected.length);

await session.close();
