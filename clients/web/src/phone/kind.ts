// The kind of an event as an icon and a colour, so that a list is read at a glance. Words of the title and of its kind decide. An event without a known
// word has the first letter of its title.

import {
  Bus,
  CarFront,
  CircleParking,
  CloudRain,
  Construction,
  Flame,
  PawPrint,
  Siren,
  Store,
  TrainFront,
  TriangleAlert,
  Truck,
  Waves,
  type IconNode,
} from "lucide";

import type { Entry } from "./entry.js";

export interface Kind {
  /** One of the theme's classes of colours, `--map-c6` to `--map-c12`. */
  readonly colour: number;
  readonly icon?: IconNode;
  readonly letter: string;
  /** Somebody has it already, as a taxi that is hired: its sign is an outline. */
  readonly taken: boolean;
}

/** The first match counts. Urgent kinds have warm colours. */
const KINDS: readonly (readonly [words: RegExp, icon: IconNode, colour: number])[] = [
  [/\b(flood\w*|water|tsunami|tide)\b/i, Waves, 11],
  [/\b(fire|fires|burning|smoke|wildfire)\b/i, Flame, 7],
  [/\b(accident|crash|collision|emergency|police|ambulance)\b/i, Siren, 12],
  [/\b(road|street|lane|construction|works?|closed|closure|jam|traffic)\b/i, Construction, 10],
  [/\b(parking|park and ride)\b/i, CircleParking, 11],
  [/\b(market|shop|food|restaurant|caf\u00e9|sale)\b/i, Store, 9],
  [/\b(rain|storm|snow|weather|wind|hail)\b/i, CloudRain, 11],
  [/\b(bus|coach|shuttle)\b/i, Bus, 9],
  [/\b(train|tram|metro|subway)\b/i, TrainFront, 11],
  [/\b(truck|lorry|van|delivery)\b/i, Truck, 9],
  [/\b(taxi|taxis|car|cars|cab|vehicle)\b/i, CarFront, 6],
  [/\b(dog|cat|animal|pet)\b/i, PawPrint, 9],
  [/\b(warning|danger|hazard|alert|check)\b/i, TriangleAlert, 7],
];
/** For words that are not known. None is green: that is the person's own place. */
const COLOURS = [6, 7, 9, 10, 11, 12];

const TAKEN = /^(hired|busy|occupied|taken|reserved|full|in use|unavailable)$/i;

/** Names of properties that say what an event is of. */
const TOLD = /^(type|category|kind|event)$/;

export function kindOf({ title, pairs }: Pick<Entry, "title" | "pairs">): Kind {
  const told = [title, ...pairs.filter(([name]) => TOLD.test(name)).map(([, value]) => value)].join(" ");
  const known = KINDS.find(([words]) => words.test(told));
  const letter = /[\p{L}\p{N}]/u.exec(title)?.[0].toUpperCase() ?? "?";
  const taken = isTaken({ pairs });
  if (known !== undefined) return { icon: known[1], colour: known[2], letter, taken };
  // Titles that begin with the same word are of one colour.
  const [word = ""] = title.split(/\s/);
  const sum = Array.from(word.toLowerCase()).reduce((all, character) => (all * 31 + (character.codePointAt(0) ?? 0)) % 9973, 7);
  return { colour: COLOURS[sum % COLOURS.length] ?? 6, letter, taken };
}

/** Whether a value of an event says that somebody has it. */
export function isTaken({ pairs }: Pick<Entry, "pairs">): boolean {
  return pairs.some(([, value]) => TAKEN.test(value));
}
