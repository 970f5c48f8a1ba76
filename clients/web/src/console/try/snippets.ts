// A draft's subscription as somebody would write it in a program.

import type { AreaDocument, Subscription } from "nearcast";

export const LANGUAGES = ["curl", "Python", "TypeScript", "Rust", "JSON"] as const;
export type Language = (typeof LANGUAGES)[number];

/** The draft as it goes over the wire: one filter, and what is told of it. */
export interface DraftDocument {
  readonly filters: readonly [{ readonly area?: AreaDocument; readonly where?: string }];
  readonly on?: Subscription["on"];
  readonly dwell_s?: number;
}

interface Names {
  readonly client: string;
  readonly id: string;
}

/** The same subscription in a language. `url` is the broker's. */
export function snippet(language: Language, document: DraftDocument, { client, id }: Names, url: string): string {
  const text = (value: unknown): string => JSON.stringify(value);
  const [{ area, where }] = document.filters;
  const on = document.on === undefined ? undefined : [document.on].flat();
  switch (language) {
    case "JSON":
      return JSON.stringify(document, null, 2);
    case "curl": {
      const path = `${url}v1/clients/${encodeURIComponent(client)}/subscriptions/${encodeURIComponent(id)}`;
      // A single quote ends the shell's text, and is put between two of them.
      const body = JSON.stringify(document).replaceAll("'", `'\\''`);
      return `curl -X PUT ${path} \\\n  -H 'content-type: application/json' \\\n  -d '${body}'`;
    }
    case "Python": {
      const parts = [area === undefined ? undefined : areaCall(area, "python"), where === undefined ? undefined : `where=${text(where)}`];
      const options = [on === undefined ? "" : `, on=${text(on)}`, document.dwell_s === undefined ? "" : `, dwell_s=${document.dwell_s}`];
      const filter = `Filter(${parts.filter((part) => part !== undefined).join(", ")})`;
      const names = ["Filter", "connect", ...(area === undefined ? [] : [callOf(area)])].sort();
      return [
        "import asyncio",
        "",
        `from nearcast import ${names.join(", ")}`,
        "",
        "",
        "async def main() -> None:",
        `    async with connect(${text(url)}, ${text(client)}) as session:`,
        `        await session.subscribe(${text(id)}, ${filter}${options.join("")})`,
        "        async for message in session:",
        "            print(message)",
        "",
        "",
        "asyncio.run(main())",
      ].join("\n");
    }
    case "TypeScript": {
      const members = [
        area === undefined ? undefined : `area: ${areaCall(area, "typescript")}`,
        where === undefined ? undefined : `where: ${text(where)}`,
      ];
      const options = [on === undefined ? "" : `, on: ${text(on)}`, document.dwell_s === undefined ? "" : `, dwell_s: ${document.dwell_s}`];
      const names = ["connect", ...(area === undefined ? [] : [callOf(area)])].sort();
      return [
        `import { ${names.join(", ")} } from "nearcast";`,
        "",
        `const session = await connect({ url: ${text(url)}, client: ${text(client)} });`,
        `await session.subscribe(${text(id)}, { filters: [{ ${members.filter((part) => part !== undefined).join(", ")} }]${options.join("")} });`,
        "for await (const message of session) console.log(message);",
      ].join("\n");
    }
    case "Rust": {
      const filter = `${area === undefined ? "everywhere()" : areaCall(area, "rust")}${where === undefined ? "" : `.when(${text(where)})`}`;
      const names = [...(on === undefined ? [] : ["Subscription"]), area === undefined ? "everywhere" : callOf(area), "connect"].sort();
      const told = (on ?? []).map((transition) => (transition === "enter" ? ".enters()" : ".exits()")).join("");
      const dwell = document.dwell_s === undefined ? "" : `.dwell(std::time::Duration::from_secs_f64(${metresText(document.dwell_s)}))`;
      const subscription = on === undefined ? filter : `Subscription::from(${filter})${told}${dwell}`;
      return [
        `use nearcast_client::{${names.join(", ")}};`,
        "",
        `let (session, mut messages) = connect(${text(url)}, ${text(client)}).await?;`,
        `session.subscribe(${text(id)}, ${subscription}).await?;`,
        "while let Some(message) = messages.next().await {",
        '    println!("{:?}", message?);',
        "}",
      ].join("\n");
    }
  }
}

/** A number as Rust takes it for one with a fraction. */
function metresText(value: number): string {
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

function callOf(area: AreaDocument): string {
  if ("polygon" in area) return "polygon";
  if ("corridor" in area) return "corridor";
  if ("center" in area) return "circle";
  return "radius_m" in area ? "around" : "everywhere";
}

function areaCall(area: AreaDocument, language: "python" | "typescript" | "rust"): string {
  const metres = (value: number): string => (language === "rust" ? metresText(value) : String(value));
  const place = (position: readonly number[]): string =>
    `[${position.map((part) => (language === "rust" ? metres(part) : String(part))).join(", ")}]`;
  const list = (line: readonly (readonly number[])[]): string => `${language === "rust" ? "vec!" : ""}[${line.map(place).join(", ")}]`;
  const nearest = area.nearest === undefined ? "" : `.nearest(${area.nearest})`;
  if ("polygon" in area) {
    const rings = area.polygon.coordinates as unknown as readonly (readonly (readonly number[])[])[];
    return `polygon(${language === "rust" ? "vec!" : ""}[${rings.map(list).join(", ")}])${nearest}`;
  }
  if ("corridor" in area) return `corridor(${list(area.corridor.coordinates)}, ${metres(area.radius_m)})${nearest}`;
  if ("center" in area) return `circle(${place(area.center)}, ${metres(area.radius_m)})${nearest}`;
  return "radius_m" in area ? `around(${metres(area.radius_m)})${nearest}` : `everywhere()${nearest}`;
}
