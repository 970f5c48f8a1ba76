"""The calls for checks, for rule sets and for group definitions without asyncio."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from .background import background
from .checks import Check, CheckDocument, PutCheck, Violation
from .events import Feature
from .groups import ExplainedObject, GroupDefinition, GroupDefinitionDocument, GroupFinding, PutGroupDefinition
from .rules import PutRuleSet, RuleSet, RuleSetDocument
from .situations import SituationCalls


class SyncSituationCalls(ABC):
    """The calls for checks, rule sets and group definitions. They need a token with the scope `admin`."""

    @abstractmethod
    def _calls(self) -> SituationCalls: ...

    def checks(self) -> list[CheckDocument]:
        """All checks of the tenant, by name."""
        return background.call(self._calls().checks)

    def check(self, name: str) -> CheckDocument:
        """A check as the broker has it, with what it does."""
        return background.call(self._calls().check, name)

    def put_check(self, name: str, check: Check | CheckDocument | Mapping[str, Any]) -> PutCheck:
        """Puts a check in force: see `nearcast.Api.put_check`."""
        return background.call(self._calls().put_check, name, check)

    def check_findings(self, name: str) -> list[Violation]:
        """The newest 1,000 events that a check published, or violations that it marked or dropped, the newest first."""
        return background.call(self._calls().check_findings, name)

    def delete_check(self, name: str) -> None:
        """Ends a check."""
        background.call(self._calls().delete_check, name)

    def pause_check(self, name: str) -> None:
        """Pauses a check; its inputs wait."""
        background.call(self._calls().pause_check, name)

    def resume_check(self, name: str) -> None:
        """Has a check go on with the inputs that have waited."""
        background.call(self._calls().resume_check, name)

    def rule_sets(self) -> list[RuleSetDocument]:
        """All rule sets of the tenant, by name."""
        return background.call(self._calls().rule_sets)

    def rule_set(self, name: str) -> RuleSetDocument:
        """A rule set as the broker has it, with what it does."""
        return background.call(self._calls().rule_set, name)

    def put_rule_set(self, name: str, rule_set: RuleSet | RuleSetDocument | Mapping[str, Any]) -> PutRuleSet:
        """Puts a rule set in force: see `nearcast.Api.put_rule_set`."""
        return background.call(self._calls().put_rule_set, name, rule_set)

    def rule_set_findings(self, name: str) -> list[Feature]:
        """The newest 1,000 events that a rule set published, the newest first."""
        return background.call(self._calls().rule_set_findings, name)

    def delete_rule_set(self, name: str) -> None:
        """Ends a rule set."""
        background.call(self._calls().delete_rule_set, name)

    def pause_rule_set(self, name: str) -> None:
        """Pauses a rule set; its inputs wait."""
        background.call(self._calls().pause_rule_set, name)

    def resume_rule_set(self, name: str) -> None:
        """Has a rule set go on with the inputs that have waited."""
        background.call(self._calls().resume_rule_set, name)

    def group_definitions(self) -> list[GroupDefinitionDocument]:
        """All group definitions of the tenant, by name."""
        return background.call(self._calls().group_definitions)

    def group_definition(self, name: str) -> GroupDefinitionDocument:
        """A group definition as the broker has it, with what it does and the groups that there are."""
        return background.call(self._calls().group_definition, name)

    def put_group_definition(
        self, name: str, definition: GroupDefinition | GroupDefinitionDocument | Mapping[str, Any]
    ) -> PutGroupDefinition:
        """Puts a group definition in force: see `nearcast.Api.put_group_definition`."""
        return background.call(self._calls().put_group_definition, name, definition)

    def group_definition_findings(self, name: str) -> list[GroupFinding]:
        """The newest 1,000 events that a group definition published, the newest first."""
        return background.call(self._calls().group_definition_findings, name)

    def explain_object(self, name: str, object: str) -> ExplainedObject:
        """Why a live object is in groups or in none: see `nearcast.Api.explain_object`."""
        return background.call(self._calls().explain_object, name, object)

    def delete_group_definition(self, name: str) -> None:
        """Ends a group definition."""
        background.call(self._calls().delete_group_definition, name)

    def pause_group_definition(self, name: str) -> None:
        """Pauses a group definition; its inputs wait."""
        background.call(self._calls().pause_group_definition, name)

    def resume_group_definition(self, name: str) -> None:
        """Has a group definition go on with the inputs that have waited."""
        background.call(self._calls().resume_group_definition, name)
