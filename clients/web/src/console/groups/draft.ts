// A group definition as its form has it.

import type { Fault } from "nearcast";

export interface RoleDraft {
  readonly name: string;
  readonly where: string;
  /** Not in the form; it stays as it is. */
  readonly area?: unknown;
}

export interface Draft {
  readonly roles: readonly RoleDraft[];
  readonly where: readonly string[];
  readonly limit: string;
  readonly order: string;
}

/** As many as the broker takes. */
export const ROLES = 8;
export const CONDITIONS = 64;

export const RIDERS_AND_TAXIS: Draft = {
  roles: [
    { name: "taxi", where: "type = 'taxi' AND free = TRUE" },
    { name: "rider", where: "type = 'rider'" },
  ],
  where: ["DISTANCE(taxi, rider) <= 800", "taxi.seats >= rider.party"],
  limit: "100",
  order: "DISTANCE(taxi, rider)",
};

export const BLANK: Draft = {
  roles: [
    { name: "", where: "" },
    { name: "", where: "" },
  ],
  where: [""],
  limit: "100",
  order: "",
};

/** The document that a form stands for. Conditions that are empty are left out, and a limit that is no number is for the broker to refuse. */
export function documentOf({ roles, where, limit, order }: Draft): Record<string, unknown> {
  const number = Number(limit);
  return {
    roles: Object.fromEntries(
      roles.map(({ name, where: condition, area }) => [
        name.trim(),
        { ...(condition.trim() === "" ? {} : { where: condition.trim() }), ...(area === undefined ? {} : { area }) },
      ]),
    ),
    where: where.map((condition) => condition.trim()).filter((condition) => condition !== ""),
    ...(limit.trim() === "" ? {} : { limit: Number.isNaN(number) ? limit : number }),
    ...(order.trim() === "" ? {} : { order: order.trim() }),
  };
}

/** The form of a document; `undefined` where the form cannot show all of it. */
export function draftOf(document: unknown): Draft | undefined {
  if (!isObject(document) || !isObject(document["roles"])) return undefined;
  const { roles, where = [], limit = "", order = "", ...more } = document;
  if (!Array.isArray(where) || !where.every((condition) => typeof condition === "string") || typeof order !== "string") return undefined;
  if ((typeof limit !== "number" && limit !== "") || Object.keys(more).length > 0) return undefined;
  const drafts = Object.entries(roles as object).map(([name, role]: [string, unknown]): RoleDraft | undefined => {
    if (!isObject(role)) return undefined;
    const { where: condition = "", area, ...others } = role;
    if (typeof condition !== "string" || Object.keys(others).length > 0) return undefined;
    return { name, where: condition, ...(area === undefined ? {} : { area }) };
  });
  if (drafts.some((role) => role === undefined)) return undefined;
  return { roles: drafts.filter((role) => role !== undefined), where: where.length === 0 ? [""] : where, limit: String(limit), order };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a form alone can see: two roles of one name would be one in the document. */
export function draftFaults({ roles }: Draft): Fault[] {
  const names = roles.map(({ name }) => name.trim());
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  return twice === undefined ? [] : [{ pointer: "/roles", detail: `two roles are called ${twice === "" ? "nothing" : twice}` }];
}

/** Faults by the fields of the form, and those of none of them. */
export interface DraftFaults {
  readonly roles: readonly { readonly name: readonly string[]; readonly where: readonly string[] }[];
  readonly where: readonly (readonly string[])[];
  readonly limit: readonly string[];
  readonly order: readonly string[];
  readonly others: readonly Fault[];
}

export function faultsOf({ roles, where }: Draft, faults: readonly Fault[]): DraftFaults {
  const left = new Set(faults);
  const at = (pointer: string): string[] =>
    faults.flatMap((fault) => {
      if (fault.pointer !== pointer) return [];
      left.delete(fault);
      return [fault.detail];
    });
  let sent = 0;
  return {
    roles: roles.map(({ name }) => {
      const pointer = `/roles/${name.trim().replaceAll("~", "~0").replaceAll("/", "~1")}`;
      return { name: at(pointer), where: at(`${pointer}/where`) };
    }),
    where: where.map((condition) => (condition.trim() === "" ? [] : at(`/where/${sent++}`))),
    limit: at("/limit"),
    order: at("/order"),
    others: [...left],
  };
}
