// What WCAG 2.2 AA asks of colours, checked on the theme itself.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { parts } from "../../src/shared/map/colour.js";

const css = readFileSync(new URL("../../src/shared/theme.css", import.meta.url), "utf8");
const themes = css
  .split(/@media \(prefers-color-scheme: dark\)|:root\[data-theme="dark"\]/)
  .slice(0, 3)
  .map((part) => new Map([...part.matchAll(/(--[a-z0-9-]+): (#[0-9a-f]{6});/g)].map(([, name = "", colour = ""]) => [name, colour])));

function luminance(colour: string): number {
  const [red, green, blue] = parts(colour).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0);
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const surfaces = ["--ground", "--surface", "--surface-2"];
const pairs = [
  ...["--text", "--text-2", "--accent", "--good", "--warn", "--bad"].flatMap((text) =>
    surfaces.map((surface) => [text, surface, 4.5] as const),
  ),
  ...["--text", "--accent"].map((text) => [text, "--accent-soft", 4.5] as const),
  ...["--text", "--bad"].map((text) => [text, "--bad-soft", 4.5] as const),
  ["--on-accent", "--accent", 4.5] as const,
  ...["--map-violation", "--map-derived", "--map-group"].flatMap((text) => surfaces.map((surface) => [text, surface, 4.5] as const)),
  ...surfaces.map((surface) => ["--line-strong", surface, 3] as const),
  ...[0, 1].map((line) => [`--chart-${line}`, "--surface", 4.5] as const),
  ...[
    "--map-object",
    "--map-client",
    "--map-delivery",
    "--map-match",
    "--map-violation",
    "--map-derived",
    "--map-group",
    "--map-area",
    ...Array.from({ length: 14 }, (_, at) => `--map-c${at}`),
  ].map((shape) => [shape, "--map-ground", 3] as const),
];

test("dark is the same whether the system or somebody has chosen it", () => {
  expect(themes[2]).toEqual(themes[1]);
});

test.each(pairs)("%s on %s reaches %d:1, light and dark", (text, surface, least) => {
  expect(themes).toHaveLength(3);
  for (const theme of themes) {
    const [above, below] = [theme.get(text), theme.get(surface)];
    if (above === undefined || below === undefined) throw new Error(`${text} or ${surface} is not a colour of the theme`);
    expect(contrast(above, below)).toBeGreaterThanOrEqual(least);
  }
});

/** How far apart two colours are in CIELAB. */
function apart(one: readonly number[], other: readonly number[]): number {
  const [[l1 = 0, a1 = 0, b1 = 0], [l2 = 0, a2 = 0, b2 = 0]] = [lab(one), lab(other)];
  return Math.hypot(l1 - l2, a1 - a2, b1 - b2);
}

function lab([red = 0, green = 0, blue = 0]: readonly number[]): readonly number[] {
  const root = (part: number): number => (part > 0.008856 ? Math.cbrt(part) : 7.787 * part + 16 / 116);
  const x = root((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505);
  const y = root(0.2126 * red + 0.7152 * green + 0.0722 * blue);
  const z = root((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** What people see that lack one sort of cones, after Viénot, Brettel and Mollon (1999); the last sees all. */
const SIGHTS: readonly (readonly (readonly [number, number, number])[])[] = [
  [
    [0.1124, 0.8876, 0],
    [0.1124, 0.8876, 0],
    [0.004, -0.004, 1],
  ],
  [
    [0.2928, 0.7072, 0],
    [0.2928, 0.7072, 0],
    [-0.0223, 0.0223, 1],
  ],
  [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
];

test.each(["--map-violation", "--map-object", "--map-c7", "--map-client", "--map-group"])(
  "deliveries differ from %s, with any sight",
  (other) => {
    for (const theme of themes)
      for (const sight of SIGHTS) {
        const seen = [theme.get("--map-delivery"), theme.get(other)].map((colour = "") => {
          const linear = parts(colour).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
          return sight.map((row) => row.reduce((sum, weight, at) => sum + weight * (linear[at] ?? 0), 0));
        });
        expect(apart(seen[0] ?? [], seen[1] ?? [])).toBeGreaterThan(15);
      }
  },
);
