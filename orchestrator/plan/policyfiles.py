"""Routing policies as files, in two forms: `strategies` with conditions, `routing_rules` with if and then."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import attrs

from orchestrator.documents import parse_document, read_document
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, closest_name, relocated, step
from orchestrator.jsondata import JSON
from orchestrator.plan.conditionreader import parse_condition
from orchestrator.plan.conditions import Condition, ConditionError, Every, Test, checked, fields_of
from orchestrator.plan.policyentries import (
    Conditions,
    Defaults,
    EscalationEntry,
    PolicyFile,
    RoutingRule,
    Strategy,
    Then,
)
from orchestrator.plan.routing import STRONGEST, Escalation, Mode, Policy, ReviewKind, Rule, Treatment
from orchestrator.plan.salvaging import salvaged
from orchestrator.structuring import structure

__all__ = ["PolicyError", "default_policy", "load_policy", "parse_policy", "read_policy"]

REVIEWS: Final[Mapping[str, ReviewKind]] = MappingProxyType(
    {
        **{kind.value: kind for kind in ReviewKind},
        "manual-approval": ReviewKind.MANUAL_APPROVAL,
        "security_agent": ReviewKind.SECURITY,
        "security_audit": ReviewKind.SECURITY,
        "security_checklist": ReviewKind.SECURITY,
        "qa_agent": ReviewKind.QA,
        "qa_verification": ReviewKind.QA,
        "integration_review": ReviewKind.INTEGRATION,
    }
)
"""What the known files call a review."""
REFACTOR: Final = ("escalate_and_refactor", "refactor", "escalate")


class PolicyError(DocumentError):
    """A routing policy is malformed; `faults` lists everything that is wrong with it."""


def default_policy() -> Policy:
    """The policy that comes with the package: contract 5's examples."""
    text = files("orchestrator.plan").joinpath("policies/default.yaml").read_text(encoding="utf-8")
    return parse_policy(text, ".yaml", "policies/default.yaml")


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """The policy in a .yaml, .yml, .json or .toml file; raises PolicyError with every fault."""
    try:
        data = read_document(path)
    except DocumentError as error:
        raise PolicyError(error.source, error.faults) from None
    return read_policy(data, os.fspath(path))


def parse_policy(text: str, suffix: str, source: str) -> Policy:
    """The policy in a text of the format of `suffix`, such as `.yaml`; raises PolicyError with every fault."""
    try:
        data = parse_document(text, suffix, source)
    except DocumentError as error:
        raise PolicyError(error.source, error.faults) from None
    return read_policy(data, source)


def read_policy(data: JSON, source: str) -> Policy:
    """The policy that plain data describes, in either form; raises PolicyError with every fault.

    A file without an escalation has the contract's: after two failures, StrongReasoningModel refactors.
    """
    readable = without_keywords(data)
    try:
        entry = structure(readable, PolicyFile, source)
    except DocumentError as error:
        # The types stop the reading before the rules are looked at; the author wants to hear of both.
        told = with_keywords(error.faults, data)
        raise PolicyError(source, (*told, *rules_broken(readable, [fault.path for fault in told]))) from None
    making = _Making()
    policy = making.policy(entry)
    if making.faults:
        raise PolicyError(source, tuple(making.faults))
    return policy


def with_keywords(faults: tuple[Fault, ...], data: JSON) -> tuple[Fault, ...]:
    """The faults with `if` for what the fields call `if_`."""
    rows = data.get("routing_rules") if isinstance(data, Mapping) else None
    paths = [step("$.routing_rules", index) for index in range(len(rows) if isinstance(rows, list) else 0)]
    placed = relocated(faults, {f"{path}.if_": f"{path}.if" for path in paths})
    return tuple(
        attrs.evolve(each, message=each.message.replace("there are if_,", "there are if,"), hint=each.hint.rstrip("_"))
        for each in placed
    )


def rules_broken(data: JSON, told: Collection[str]) -> Iterator[Fault]:
    """What a file whose types are wrong has wrong besides, but for what was told of the same places."""
    making = _Making(is_whole=False)
    making.policy(salvaged(data, PolicyFile))
    for fault in making.faults:
        if not any(fault.path == path or fault.path.startswith((f"{path}.", f"{path}[")) for path in told):
            yield fault


class _Making:
    """Makes a policy of a file's entries and gathers what is wrong with them."""

    def __init__(self, *, is_whole: bool = True) -> None:
        self.is_whole = is_whole
        """Whether the entries are all that the file says; if not, two that look alike may differ."""
        self.faults: list[Fault] = []

    def policy(self, entry: PolicyFile) -> Policy:
        if (entry.strategies is None) == (entry.routing_rules is None):
            self.faults.append(Fault("$", "give strategies or routing_rules, one of them"))
        rules = [self.strategy(row, step("$.strategies", index)) for index, row in enumerate(entry.strategies or ())]
        escalations: list[Escalation] = []
        for index, row in enumerate(entry.routing_rules or ()):
            made = self.routing_rule(row, index)
            if isinstance(made, Rule):
                rules.append(made)
            else:
                escalations.append(made)
        if entry.escalation is not None:
            escalations.append(self.escalation(entry.escalation))
        if self.is_whole and not self.faults:
            self.check_names(rules, "$.strategies" if entry.strategies is not None else "$.routing_rules")
        default = self.treatment(entry.defaults, entry.defaults.require, "$.defaults", "require")
        return Policy(default=default, rules=tuple(rules), escalations=tuple(escalations) or (Escalation(),))

    def strategy(self, row: Strategy, path: str) -> Rule:
        then = Then(
            primary=row.primary_model, secondary=row.secondary_model, reviewer=row.reviewer_model, mode=row.mode
        )
        treatment = self.treatment(then, row.review_requirements, path, "review_requirements")
        condition = self.tried(lambda: condition_of(row.conditions), step(path, "conditions"))
        return Rule(
            name=row.name or str(condition),
            condition=condition,
            treatment=attrs.evolve(treatment, escalation=row.escalation_model or ""),
            reason=row.reason,
        )

    def routing_rule(self, row: RoutingRule, index: int) -> Rule | Escalation:
        path = step("$.routing_rules", index)
        condition = self.tried(lambda: parse_condition(row.condition), step(path, "if"))
        name, then = row.name or str(condition), row.then
        if then.action and then.action not in REFACTOR:
            message = f"{then.action!r:.80} is no action: there is {REFACTOR[0]}"
            self.faults.append(Fault(f"{path}.then.action", message, closest_name(then.action, REFACTOR)))
        if not then.primary and (then.escalate_to or then.action):
            if "failure_count" not in fields_of(condition):
                message = "escalates without asking about failure_count, so it would from the start: add it"
                self.faults.append(Fault(step(path, "if"), message))
            return Escalation(condition=condition, model=then.escalate_to or STRONGEST, name=name)
        treatment = self.treatment(then, then.require, step(path, "then"), "require")
        treatment = attrs.evolve(treatment, escalation=then.escalate_to)
        return Rule(name=name, condition=condition, treatment=treatment, reason=then.reason)

    def treatment(self, entry: Then | Defaults, required: tuple[str, ...], path: str, key: str) -> Treatment:
        if not entry.primary.strip():
            self.faults.append(Fault(path, "names no primary model"))
        if entry.mode is not Mode.SINGLE and not entry.secondary:
            self.faults.append(Fault(path, f"{entry.mode} needs a second model: name the secondary"))
        reviews: set[ReviewKind] = set()
        for index, name in enumerate(required):
            if name in REVIEWS:
                reviews.add(REVIEWS[name])
            else:
                message = f"{name!r:.80} is no review: there are {', '.join(ReviewKind)}"
                self.faults.append(Fault(step(step(path, key), index), message, closest_name(name, REVIEWS)))
        return Treatment(
            primary=entry.primary,
            secondary=entry.secondary or "",
            reviewer=entry.reviewer or "",
            mode=entry.mode,
            reviews=frozenset(reviews),
        )

    def escalation(self, entry: EscalationEntry) -> Escalation:
        if entry.failures < 1:
            self.faults.append(Fault("$.escalation.failures", "must be 1 or more: there is nothing to escalate before"))
        if not entry.model.strip():
            self.faults.append(Fault("$.escalation.model", "names no model"))
        return Escalation(condition=Test("failure_count", ">=", (entry.failures,)), model=entry.model)

    def check_names(self, rules: list[Rule], path: str) -> None:
        seen: set[str] = set()
        for index, rule in enumerate(rules):
            if rule.name in seen or rule.name == "default":
                message = f"{rule.name!r:.120} names or asks what an earlier rule does, or is reserved: rename it"
                self.faults.append(Fault(step(path, index), message))
            seen.add(rule.name)

    def tried(self, make: Callable[[], Condition], path: str) -> Condition:
        try:
            return make()
        except ConditionError as error:
            self.faults.append(Fault(path, str(error), error.hint))
            return Escalation().condition


def without_keywords(data: JSON) -> JSON:
    """The data with `if_` for `if`, which no field can be called."""
    rows = data.get("routing_rules") if isinstance(data, Mapping) else None
    if not isinstance(rows, list):
        return data
    renamed = [
        {"if_" if key == "if" else key: value for key, value in row.items()} if isinstance(row, Mapping) else row
        for row in rows
    ]
    return {**data, "routing_rules": renamed}


def condition_of(entry: Conditions) -> Condition:
    """The conditions of a strategy as one; raises ConditionError."""
    parts: list[Test] = []
    for field in attrs.fields(Conditions):
        value: Any = getattr(entry, field.name)
        if value is None:
            continue
        if field.name == "failure_count":
            parts.append(checked(field.name, ">=", [value]))
        elif isinstance(value, tuple):
            if not value:
                raise ConditionError(f"{field.name} is an empty list, which nothing fits: remove it or fill it")
            parts.append(checked(field.name, "in", [str(each) for each in value]))
        else:
            parts.append(checked(field.name, "==", [value if isinstance(value, bool) else str(value)]))
    return parts[0] if len(parts) == 1 else Every(tuple(parts))
