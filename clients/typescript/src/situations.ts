// Checks, rule sets and group definitions: what the broker does with events by itself. They have the same calls.

import type { Check, CheckDocument, PutCheck, Violation } from "./checks.js";
import { delivered, type DeliveredFeature, type Feature, type Properties } from "./events.js";
import type { ExplainedObject, GroupDefinition, GroupDefinitionDocument, GroupProperties, PutGroupDefinition } from "./groups.js";
import type { Http } from "./http.js";
import type { PutRuleSet, RuleSet, RuleSetDocument } from "./rules.js";

/** What a check, a rule set or a group definition does. */
export interface SituationActivity {
  /** Events that came to it. */
  readonly inputs: number;
  /** How often it was evaluated; of a rule set, the facts that were added; of a group definition, the changes of candidates. */
  readonly evaluations: number;
  /** Events that it published. */
  readonly published: number;
  /** Events that wait for it. */
  readonly queued: number;
  /** Microseconds for an event, on average. */
  readonly mean_us: number;
  /** Microseconds for an event, which 99 of 100 do not exceed. */
  readonly p99_us: number;
  /** The engine at work; empty before the first event. */
  readonly engine: string;
  /** Findings that were not published, events that were refused to their publishers, and facts that were undone. */
  readonly dropped: number;
  /** Events that were marked. */
  readonly marked: number;
  /** Events that were to be held until they were evaluated, and went on before. */
  readonly passed: number;
  /** Events whose `time` was more than a minute ahead of their arrival, so that a clock of events left them out. */
  readonly ahead: number;
  /** How often it began anew, for inputs were lost. */
  readonly restarts: number;
  /** Constraints in the store of a rule set. */
  readonly constraints?: number;
  /** Live objects that are candidates of each role of a group definition; absent before it has begun. */
  readonly candidates?: Readonly<Record<string, number>>;
  /**
   * Candidates of each role that satisfy the conditions over it alone and are supported: for each role that shares a condition with it there is such
   * a candidate with which all conditions over both are true. Absent as `candidates` are.
   */
  readonly consistent?: Readonly<Record<string, number>>;
  readonly paused: boolean;
  /** What last went wrong. */
  readonly problem?: string;
}

/** The calls of a kind, with its documents and the properties of what it finds. */
class Calls<Document, Found> {
  readonly #http: Http;
  readonly #all: string;

  constructor(http: Http, all: string) {
    this.#http = http;
    this.#all = all;
  }

  async list(): Promise<readonly Document[]> {
    return (await this.#http.call("GET", this.#all)) as readonly Document[];
  }

  async get(name: string): Promise<Document> {
    return (await this.#http.call("GET", this.#path(name))) as Document;
  }

  async put(name: string, document: object): Promise<{ readonly document: Document; readonly created: boolean }> {
    const { status, body } = await this.#http.answer("PUT", this.#path(name), { body: JSON.stringify(document) });
    return { document: body as Document, created: status === 201 };
  }

  async explainObject(name: string, object: string): Promise<ExplainedObject> {
    return (await this.#http.call("GET", `${this.#path(name)}/objects/${encodeURIComponent(object)}`)) as ExplainedObject;
  }

  async findings(name: string): Promise<readonly DeliveredFeature<Found>[]> {
    const found = (await this.#http.call("GET", `${this.#path(name)}/findings`)) as readonly Feature<Found>[];
    return found.map(delivered);
  }

  async delete(name: string): Promise<void> {
    await this.#http.call("DELETE", this.#path(name));
  }

  async pause(name: string): Promise<void> {
    await this.#http.call("POST", `${this.#path(name)}/pause`);
  }

  async resume(name: string): Promise<void> {
    await this.#http.call("POST", `${this.#path(name)}/resume`);
  }

  #path(name: string): string {
    return `${this.#all}/${encodeURIComponent(name)}`;
  }
}

/** The calls for checks, rule sets and group definitions. They take a token with the scope `admin`. */
export abstract class SituationCalls {
  readonly #checks: Calls<CheckDocument, Violation>;
  readonly #ruleSets: Calls<RuleSetDocument, Properties>;
  readonly #groupDefinitions: Calls<GroupDefinitionDocument, GroupProperties>;

  /** @internal */
  constructor(http: Http) {
    this.#checks = new Calls(http, "/v1/checks");
    this.#ruleSets = new Calls(http, "/v1/rules");
    this.#groupDefinitions = new Calls(http, "/v1/groups");
  }

  /** All checks of the tenant, by name. */
  async checks(): Promise<readonly CheckDocument[]> {
    return this.#checks.list();
  }

  /** A check as the broker has it, with what it does. */
  async check(name: string): Promise<CheckDocument> {
    return this.#checks.get(name);
  }

  /** Puts a check in force, with empty sets, in the place of one of the same name. */
  async putCheck(name: string, check: Check | CheckDocument): Promise<PutCheck> {
    const { document, created } = await this.#checks.put(name, check);
    return { check: document, created };
  }

  /** The newest 1,000 events that a check published, or violations that it marked or dropped, the newest first. */
  async checkFindings(name: string): Promise<readonly DeliveredFeature<Violation>[]> {
    return this.#checks.findings(name);
  }

  /** Ends a check. */
  async deleteCheck(name: string): Promise<void> {
    return this.#checks.delete(name);
  }

  /** Pauses a check; its inputs wait. */
  async pauseCheck(name: string): Promise<void> {
    return this.#checks.pause(name);
  }

  /** Has a check go on with the inputs that have waited. */
  async resumeCheck(name: string): Promise<void> {
    return this.#checks.resume(name);
  }

  /** All rule sets of the tenant, by name. */
  async ruleSets(): Promise<readonly RuleSetDocument[]> {
    return this.#ruleSets.list();
  }

  /** A rule set as the broker has it, with what it does. */
  async ruleSet(name: string): Promise<RuleSetDocument> {
    return this.#ruleSets.get(name);
  }

  /** Puts a rule set in force, with an empty store, in the place of one of the same name. */
  async putRuleSet(name: string, ruleSet: RuleSet | RuleSetDocument): Promise<PutRuleSet> {
    const { document, created } = await this.#ruleSets.put(name, ruleSet);
    return { ruleSet: document, created };
  }

  /** The newest 1,000 events that a rule set published, the newest first. */
  async ruleSetFindings(name: string): Promise<readonly DeliveredFeature[]> {
    return this.#ruleSets.findings(name);
  }

  /** Ends a rule set. */
  async deleteRuleSet(name: string): Promise<void> {
    return this.#ruleSets.delete(name);
  }

  /** Pauses a rule set; its inputs wait. */
  async pauseRuleSet(name: string): Promise<void> {
    return this.#ruleSets.pause(name);
  }

  /** Has a rule set go on with the inputs that have waited. */
  async resumeRuleSet(name: string): Promise<void> {
    return this.#ruleSets.resume(name);
  }

  /** All group definitions of the tenant, by name. */
  async groupDefinitions(): Promise<readonly GroupDefinitionDocument[]> {
    return this.#groupDefinitions.list();
  }

  /** A group definition as the broker has it, with what it does and the groups that there are. */
  async groupDefinition(name: string): Promise<GroupDefinitionDocument> {
    return this.#groupDefinitions.get(name);
  }

  /** Puts a group definition in force, in the place of one of the same name; what is live comes to it again. */
  async putGroupDefinition(name: string, definition: GroupDefinition | GroupDefinitionDocument): Promise<PutGroupDefinition> {
    const { document, created } = await this.#groupDefinitions.put(name, definition);
    return { groupDefinition: document, created };
  }

  /** The newest 1,000 events that a group definition published, the newest first. */
  async groupDefinitionFindings(name: string): Promise<readonly DeliveredFeature<GroupProperties>[]> {
    return this.#groupDefinitions.findings(name);
  }

  /** Why a live object, by its key, else its id, is in groups of a definition or in none. */
  async explainObject(name: string, object: string): Promise<ExplainedObject> {
    return this.#groupDefinitions.explainObject(name, object);
  }

  /** Ends a group definition. */
  async deleteGroupDefinition(name: string): Promise<void> {
    return this.#groupDefinitions.delete(name);
  }

  /** Pauses a group definition; its inputs wait. */
  async pauseGroupDefinition(name: string): Promise<void> {
    return this.#groupDefinitions.pause(name);
  }

  /** Has a group definition go on with the inputs that have waited. */
  async resumeGroupDefinition(name: string): Promise<void> {
    return this.#groupDefinitions.resume(name);
  }
}
