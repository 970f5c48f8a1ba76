// The pages of each kind: its list, one of it, what it found, and its form.

import type { ComponentChildren, FunctionComponent } from "preact";

import { CheckDetail } from "../checks/check.js";
import { EditCheck } from "../checks/edit.js";
import { FindingDetail, FindingHeading } from "../checks/finding.js";
import { ChecksTab } from "../checks/tab.js";
import { ChangeDetail, GroupDefinitionDetail } from "../groups/detail.js";
import { EditGroups } from "../groups/edit.js";
import { GroupsTab } from "../groups/tab.js";
import { DerivedDetail, RuleSetDetail } from "../rules/detail.js";
import { EditRules } from "../rules/edit.js";
import { RulesTab } from "../rules/tab.js";
import { DerivedSign, GroupSign } from "../why/name.js";
import type { SituationKind } from "./list.js";

interface Pages {
  readonly title: string;
  readonly Tab: FunctionComponent;
  readonly Detail: FunctionComponent<{ readonly name: string }>;
  readonly Finding: FunctionComponent<{ readonly name: string; readonly id: string }>;
  readonly Edit: FunctionComponent<{ readonly name: string | undefined }>;
  /** The heading of a finding, by the name of what found it. */
  readonly found: (name: string) => ComponentChildren;
}

export const PAGES: Readonly<Record<SituationKind, Pages>> = {
  checks: {
    title: "Check",
    Tab: ChecksTab,
    Detail: CheckDetail,
    Finding: FindingDetail,
    Edit: EditCheck,
    found: (name) => <FindingHeading name={name} />,
  },
  rules: {
    title: "Rule set",
    Tab: RulesTab,
    Detail: RuleSetDetail,
    Finding: DerivedDetail,
    Edit: EditRules,
    found: (name) => (
      <>
        <DerivedSign /> Made by rules <bdi>{name}</bdi>
      </>
    ),
  },
  groups: {
    title: "Group definition",
    Tab: GroupsTab,
    Detail: GroupDefinitionDetail,
    Finding: ChangeDetail,
    Edit: EditGroups,
    found: (name) => (
      <>
        <GroupSign /> Group of <bdi>{name}</bdi>
      </>
    ),
  },
};
