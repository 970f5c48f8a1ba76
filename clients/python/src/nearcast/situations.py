"""The calls for checks, for rule sets and for group definitions, which are alike."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import httpx

from .checks import Check, CheckDocument, PutCheck, Violation, check_document
from .endpoint import segment
from .events import Feature
from .groups import (
    ExplainedObject,
    GroupDefinition,
    GroupDefinitionDocument,
    GroupFinding,
    PutGroupDefinition,
    group_definition_document,
)
from .requests import encode
from .rules import PutRuleSet, RuleSet, RuleSetDocument, rule_set_document


class SituationCalls(ABC):
    """The calls for checks, rule sets and group definitions. They need a token with the scope `admin`."""

    @abstractmethod
    async def _call(self, method: str, path: str, body: bytes | None = None) -> Any: ...

    @abstractmethod
    async def _answer(self, method: str, path: str, body: bytes | None = None) -> httpx.Response: ...

    async def _put(self, path: str, document: Mapping[str, Any]) -> tuple[Any, bool]:
        answer = await self._answer("PUT", path, encode(document).encode())
        return json.loads(answer.content), answer.status_code == 201

    async def checks(self) -> list[CheckDocument]:
        """All checks of the tenant, by name."""
        answer: list[CheckDocument] = await self._call("GET", "/v1/checks")
        return answer

    async def check(self, name: str) -> CheckDocument:
        """A check as the broker has it, with what it does.

        Raises:
            ProblemError: With the code `not-found` where there is none.
        """
        answer: CheckDocument = await self._call("GET", _check(name))
        return answer

    async def put_check(self, name: str, check: Check | CheckDocument | Mapping[str, Any]) -> PutCheck:
        """Puts a check in force, with empty sets, in the place of one of the same name.

        Raises:
            ProblemError: With what is wrong with the document.
        """
        return PutCheck(*await self._put(_check(name), check_document(check)))

    async def check_findings(self, name: str) -> list[Violation]:
        """The newest 1,000 events that a check published, or violations that it marked or dropped, the newest first."""
        answer: list[Violation] = await self._call("GET", f"{_check(name)}/findings")
        return answer

    async def delete_check(self, name: str) -> None:
        """Ends a check."""
        await self._call("DELETE", _check(name))

    async def pause_check(self, name: str) -> None:
        """Pauses a check; its inputs wait."""
        await self._call("POST", f"{_check(name)}/pause")

    async def resume_check(self, name: str) -> None:
        """Has a check go on with the inputs that have waited."""
        await self._call("POST", f"{_check(name)}/resume")

    async def rule_sets(self) -> list[RuleSetDocument]:
        """All rule sets of the tenant, by name."""
        answer: list[RuleSetDocument] = await self._call("GET", "/v1/rules")
        return answer

    async def rule_set(self, name: str) -> RuleSetDocument:
        """A rule set as the broker has it, with what it does.

        Raises:
            ProblemError: With the code `not-found` where there is none.
        """
        answer: RuleSetDocument = await self._call("GET", _rule_set(name))
        return answer

    async def put_rule_set(self, name: str, rule_set: RuleSet | RuleSetDocument | Mapping[str, Any]) -> PutRuleSet:
        """Puts a rule set in force, with an empty store, in the place of one of the same name.

        Raises:
            ProblemError: With what is wrong with the document.
        """
        return PutRuleSet(*await self._put(_rule_set(name), rule_set_document(rule_set)))

    async def rule_set_findings(self, name: str) -> list[Feature]:
        """The newest 1,000 events that a rule set published, the newest first."""
        answer: list[Feature] = await self._call("GET", f"{_rule_set(name)}/findings")
        return answer

    async def delete_rule_set(self, name: str) -> None:
        """Ends a rule set."""
        await self._call("DELETE", _rule_set(name))

    async def pause_rule_set(self, name: str) -> None:
        """Pauses a rule set; its inputs wait."""
        await self._call("POST", f"{_rule_set(name)}/pause")

    async def resume_rule_set(self, name: str) -> None:
        """Has a rule set go on with the inputs that have waited."""
        await self._call("POST", f"{_rule_set(name)}/resume")

    async def group_definitions(self) -> list[GroupDefinitionDocument]:
        """All group definitions of the tenant, by name."""
        answer: list[GroupDefinitionDocument] = await self._call("GET", "/v1/groups")
        return answer

    async def group_definition(self, name: str) -> GroupDefinitionDocument:
        """A group definition as the broker has it, with what it does and the groups that there are.

        Raises:
            ProblemError: With the code `not-found` where there is none.
        """
        answer: GroupDefinitionDocument = await self._call("GET", _group_definition(name))
        return answer

    async def put_group_definition(
        self, name: str, definition: GroupDefinition | GroupDefinitionDocument | Mapping[str, Any]
    ) -> PutGroupDefinition:
        """Puts a group definition in force, in the place of one of the same name; what is live comes to it again.

        Raises:
            ProblemError: With what is wrong with the document.
        """
        return PutGroupDefinition(*await self._put(_group_definition(name), group_definition_document(definition)))

    async def group_definition_findings(self, name: str) -> list[GroupFinding]:
        """The newest 1,000 events that a group definition published, the newest first."""
        answer: list[GroupFinding] = await self._call("GET", f"{_group_definition(name)}/findings")
        return answer

    async def explain_object(self, name: str, object: str) -> ExplainedObject:
        """Why a live object, by its key, else its id, is in groups of a definition or in none.

        Raises:
            ProblemError: With the code `not-found` where it is no candidate.
        """
        answer: ExplainedObject = await self._call("GET", f"{_group_definition(name)}/objects/{segment(object)}")
        return answer

    async def delete_group_definition(self, name: str) -> None:
        """Ends a group definition."""
        await self._call("DELETE", _group_definition(name))

    async def pause_group_definition(self, name: str) -> None:
        """Pauses a group definition; its inputs wait."""
        await self._call("POST", f"{_group_definition(name)}/pause")

    async def resume_group_definition(self, name: str) -> None:
        """Has a group definition go on with the inputs that have waited."""
        await self._call("POST", f"{_group_definition(name)}/resume")


def _check(name: str) -> str:
    return f"/v1/checks/{segment(name)}"


def _rule_set(name: str) -> str:
    return f"/v1/rules/{segment(name)}"


def _group_definition(name: str) -> str:
    return f"/v1/groups/{segment(name)}"
