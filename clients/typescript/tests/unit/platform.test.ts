// What a platform keeps and tells: checkpoints, the place of a device, and a session for as long as a component is there.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { checkpointFile, checkpointStorage, geolocation, GeolocationError, type Fix } from "nearcast";

describe("a checkpoint", () => {
  const folder = mkdtempSync(join(tmpdir(), "nearcast-checkpoints-"));
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  test("is kept in a file, in the form of all languages", async () => {
    const path = join(folder, "checkpoint");
    expect(await checkpointFile(path).load()).toBeUndefined();
    const file = checkpointFile(path);
    await Promise.all([7, 8, 9].map((offset) => file.save({ epoch: "e:1", offset })));
    expect(await checkpointFile(path).load()).toEqual({ epoch: "e:1", offset: 9 });
    expect(readFileSync(path, "utf8")).toBe("e:1:9");
    expect(readdirSync(folder)).toEqual(["checkpoint"]);
    writeFileSync(path, "seven");
    await expect(checkpointFile(path).load()).rejects.toThrow("a checkpoint is <epoch>:<offset>");
  });

  test.each(["at once", "later"])("is kept in a storage that answers %s", async (when) => {
    const texts = new Map<string, string>();
    const now = { getItem: (key: string) => texts.get(key) ?? null, setItem: (key: string, text: string) => texts.set(key, text) };
    const later = {
      getItem: (key: string) => Promise.resolve(now.getItem(key)),
      setItem: (key: string, text: string) => Promise.resolve(now.setItem(key, text)),
    };
    const store = checkpointStorage(when === "later" ? later : now, "nearcast");
    expect(await store.load()).toBeUndefined();
    await store.save({ epoch: "e1", offset: 7 });
    expect(await store.load()).toEqual({ epoch: "e1", offset: 7 });
  });
});

describe("the place of a device", () => {
  let tell: { fix: PositionCallback; trouble: PositionErrorCallback };
  const cleared = vi.fn();
  beforeEach(() => {
    cleared.mockClear();
    vi.stubGlobal("isSecureContext", true);
    const watchPosition = (fix: PositionCallback, trouble: PositionErrorCallback): number => {
      tell = { fix, trouble };
      return 7;
    };
    vi.stubGlobal("navigator", { geolocation: { watchPosition, clearWatch: cleared } });
  });
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  const at = (longitude: number): void => {
    tell.fix({ coords: { longitude, latitude: 45, accuracy: 12 }, timestamp: 1_000 } as GeolocationPosition);
  };
  const fails = (code: number): void => {
    tell.trouble({ code, PERMISSION_DENIED: 1 } as GeolocationPositionError);
  };

  test("comes as fixes, the newest of those that wait, until the reader stops", async () => {
    const troubles: string[] = [];
    const fixes = geolocation({ onTrouble: (reason) => troubles.push(reason) });
    const first = fixes.next();
    at(9);
    expect((await first).value).toEqual({ coordinates: [9, 45], accuracy_m: 12, unix_s: 1 } satisfies Fix);
    at(9.1);
    fails(2);
    at(9.2);
    expect((await fixes.next()).value).toMatchObject({ coordinates: [9.2, 45] });
    await fixes.return();
    expect(cleared).toHaveBeenCalledWith(7);
    expect(troubles).toEqual(["unavailable"]);
  });

  test("is not to be had where the person does not permit it, or the page is not safe", async () => {
    const fixes = geolocation();
    const first = fixes.next();
    fails(1);
    await expect(first).rejects.toMatchObject({ name: "GeolocationError", reason: "denied" });
    expect(cleared).toHaveBeenCalled();
    vi.stubGlobal("isSecureContext", false);
    await expect(geolocation().next()).rejects.toEqual(new GeolocationError("insecure"));
  });
});
