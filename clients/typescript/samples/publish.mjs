// Publishes one event, and then many with back-pressure.

import { connect, event } from "nearcast";

const url = process.argv[2] ?? process.env.NEARCAST_URL ?? "http://127.0.0.1:7070";
const session = await connect({ url, client: "publisher-ts" });

const id = await session.publish(event([9.1901, 45.465], { type: "accident", severity: 3 }));
console.log("published", id);

function* readings() {
  for (let i = 0; i < 2000; i++) yield event([9.19 + i * 1e-5, 45.46], { type: "reading", value: i });
}
const { accepted, rejected } = await session.publishMany(readings());
console.log("accepted", accepted, "rejected", rejected.length);

await session.forget(); // closes the session, and leaves nothing at the broker
