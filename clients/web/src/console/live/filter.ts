// Which events the list shows: those that have each word somewhere, `status=1` in an attribute of that name.

import type { DeliveredFeature } from "nearcast";

import { valueText } from "../words.js";
import { attributeOf } from "./objects.js";

/** Whether an event has each word of a filter in its key, its id or its properties; case makes no difference. */
export function holdsText(feature: DeliveredFeature, filter: string): boolean {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return true;
  const text = [feature.key ?? "", String(feature.id), JSON.stringify(feature.properties)].join(" ").toLowerCase();
  return words.every((word) => {
    const [name = "", value, ...more] = word.split("=");
    if (value === undefined || name === "" || more.length > 0) return text.includes(word);
    const names = Object.keys(feature.properties as object).filter((each) => each.toLowerCase() === name);
    return [name, ...names].some((each) => {
      const found = attributeOf(feature.properties, each);
      return found !== undefined && valueText(found).toLowerCase() === value;
    });
  });
}
