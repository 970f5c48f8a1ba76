// Colours as the graphics card wants them.

/** A colour as parts of 1: red, green, blue, opacity. */
export type Colour = readonly [red: number, green: number, blue: number, opacity: number];

/** Of `#rrggbb`, or `#rgb`, which a build makes of it where it can. */
export function parts(colour: string): Colour {
  const long = colour.length === 4 ? colour.replace(/[\da-f]/gi, "$&$&") : colour;
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => Number.parseInt(long.slice(at, at + 2), 16) / 255);
  return [red, green, blue, 1];
}
