// Whether WebGL is drawn by the processor here: then there are cheaper ways to draw with it.

const NAMES = /swiftshader|llvmpipe|softpipe|software|basic render/i;
let known: boolean | undefined;

/** Asks the browser once. Where it does not tell, there is a graphics card. */
export function isSoftware(): boolean {
  return (known ??= NAMES.test(renderer()));
}

function renderer(): string {
  const gl = document.createElement("canvas").getContext("webgl2");
  const told = gl?.getExtension("WEBGL_debug_renderer_info");
  if (gl === null || told == null) return "";
  const name = String(gl.getParameter(told.UNMASKED_RENDERER_WEBGL));
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return name;
}
