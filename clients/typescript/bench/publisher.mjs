// Publishes as fast as the broker takes it, until it is killed: what bench.mjs receives.

import { connect, event } from "nearcast";

const session = await connect({ url: process.argv[2], client: "bench-source" });
function* events() {
  for (;;) yield event([9.19, 45.46], { type: "accident", severity: 3, road: { name: "A4" }, lanes: [1, 2] });
}
await session.publishMany(events());
