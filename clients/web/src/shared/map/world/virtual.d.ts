/** Made by tools/world while the pages are built: a `World`. */
declare module "virtual:world" {
  const world: unknown;
  export default world;
}
