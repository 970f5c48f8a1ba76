// Uses what openapi-typescript made, so that it is known to be of use.
import type { components, operations } from "./api.js";

type Frame = components["schemas"]["ClientFrame"];

export const frames: Frame[] = [
  { op: "subscribe", id: "near", ref: 1, filters: [{ area: { radius_m: 500 }, where: "severity >= 3" }] },
  { op: "unsubscribe", id: "near" },
  { op: "ping" },
];

// @ts-expect-error A subscription has filters.
export const refused: Frame = { op: "subscribe", id: "near" };

export type Listed = operations["list_clients"]["responses"][200]["content"]["application/json"];
export type Held = operations["list_subscriptions"]["responses"][200]["content"]["application/json"][number]["filters"];
