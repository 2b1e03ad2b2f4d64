"""Which models do a step, how, and who looks at it: an ordered list of rules, the first that fits wins."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import attrs

from orchestrator.plan.conditions import Condition, Every, Literal, Test, fields_of
from orchestrator.plan.vocabulary import Risk, TaskType

if TYPE_CHECKING:
    from orchestrator.plan.plan import Step

__all__ = ["Escalation", "Mode", "Policy", "ReviewKind", "Route", "Rule", "Situation", "Treatment", "situation_of"]

STRONGEST: Final = "StrongReasoningModel"
"""Where a step goes whose implementer failed twice (contract 5)."""
AFTER_TWO: Final = Test("failure_count", ">=", (2,))


class Mode(StrEnum):
    """How the models work together."""

    SINGLE = "single"
    """The primary alone; the secondary takes its place when it cannot be had."""
    DUAL_RUN = "dual-run"
    """Both do the task, and the outputs are compared."""
    POST_PASS = "post-pass"  # noqa: S105  # no password
    """The secondary refactors what the primary drafted."""


class ReviewKind(StrEnum):
    """A look at a step's output beside the reviewer's."""

    QA = "qa"
    SECURITY = "security"
    INTEGRATION = "integration"
    MANUAL_APPROVAL = "manual_approval"


@attrs.frozen(kw_only=True)
class Situation:
    """What a rule can ask about a step.

    `failure_count` counts attempts at this step, by whatever model did them, that ended without usable work: the
    generation failed or gave nothing, a gate failed on captured output, or the reviewer requested changes. A
    blocked plan, a reviewer's unreadable answer, a gate that could not run and an interruption are no failures
    of the implementer.
    """

    risk_level: Risk
    task_type: TaskType | None = None
    role: str = ""
    failure_count: int = 0
    is_ambiguous: bool = False
    doc_trigger: str = ""

    def value_of(self, field: str) -> Literal:
        """The value of a field as conditions name it."""
        values: dict[str, Literal] = {
            "risk_level": self.risk_level.value,
            "task_type": self.task_type.value if self.task_type else "",
            "role": self.role,
            "failure_count": self.failure_count,
            "ambiguous": self.is_ambiguous,
            "doc_trigger": self.doc_trigger,
        }
        return values[field]


@attrs.frozen(kw_only=True)
class Treatment:
    """Models, by names that the consumer maps, how they work together, and the reviews there must be."""

    primary: str
    secondary: str = ""
    reviewer: str = ""
    """Empty: the policy's default reviewer."""
    mode: Mode = Mode.SINGLE
    reviews: frozenset[ReviewKind] = frozenset()
    escalation: str = ""
    """Where a step goes that failed too often; empty: where the policy says."""


@attrs.frozen(kw_only=True)
class Rule:
    """A treatment and when it is given."""

    name: str
    condition: Condition
    treatment: Treatment
    reason: str = ""


@attrs.frozen(kw_only=True)
class Escalation:
    """After how many failures a stronger model refactors; it comes on top of the rule that fits."""

    condition: Condition = AFTER_TWO
    model: str = STRONGEST
    name: str = "escalation"


@attrs.frozen(kw_only=True)
class Route:
    """Who does a step and how, and in words why."""

    rule: str
    """The name of the rule; `default` when none fits."""
    reason: str
    primary: str
    secondary: str
    reviewer: str
    mode: Mode
    reviews: tuple[ReviewKind, ...]
    """In the order of ReviewKind."""
    escalation: str
    """Where it goes when it fails too often."""
    is_escalated: bool = False
    """Whether it did: the primary then gets a refactor task (contract 5)."""


@attrs.frozen(kw_only=True)
class Policy:
    """Rules in order, and what happens where none fits."""

    default: Treatment
    rules: tuple[Rule, ...] = ()
    escalations: tuple[Escalation, ...] = (Escalation(),)
    """The first that fits counts."""

    def route(self, situation: Situation, hint: str = "") -> Route:
        """The route of a step; every situation has one.

        A risk that no rule speaks of is treated as the next lower level that one does (critical as high), unless
        that rule holds for low risk as well and has no stronger mode. Reviews only add up: a level has all those
        of the levels below it, and high and critical risk always have security. `hint` is a model that is taken
        where no rule fits, the risk is not high and nothing has failed.
        """
        rule, note = self.fitting(situation)
        treatment = rule.treatment
        route = Route(
            rule=rule.name,
            reason=" ".join(filter(None, [why(rule, situation), note])),
            primary=treatment.primary,
            secondary=treatment.secondary,
            reviewer=treatment.reviewer or self.default.reviewer,
            mode=treatment.mode,
            reviews=self.reviews(situation),
            escalation=treatment.escalation or self.escalations_to,
        )
        for escalation in self.escalations:
            if escalation.condition.holds(situation):
                return escalated(route, treatment.escalation or escalation.model, escalation, situation)
        is_open = rule.name == DEFAULT and not situation.risk_level.needs_security
        if hint and is_open and treatment.mode is Mode.SINGLE:
            return attrs.evolve(route, primary=hint, reason=f"{route.reason} The plan's hint names {hint}.")
        return route

    @property
    def escalations_to(self) -> str:
        """The model of the first escalation; empty without one."""
        return next((escalation.model for escalation in self.escalations), "")

    def fitting(self, situation: Situation) -> tuple[Rule, str]:
        """The rule for a situation, and a sentence when it is the rule of a lower risk."""
        rule = self.first(situation)
        if names_risk(rule):
            return rule, ""
        for level in levels_below(situation.risk_level):
            other = self.first(attrs.evolve(situation, risk_level=level))
            holds_at_low = other.condition.holds(attrs.evolve(situation, risk_level=Risk.LOW))
            is_stronger = STRENGTH[other.treatment.mode] > STRENGTH[rule.treatment.mode]
            if names_risk(other) and (is_stronger or not holds_at_low):
                return other, f"No rule speaks of {situation.risk_level} risk here, so it is treated as {level}."
        return rule, ""

    def first(self, situation: Situation) -> Rule:
        """The first rule that fits, or the default."""
        last = Rule(name=DEFAULT, condition=Every(), treatment=self.default)
        return next((rule for rule in self.rules if rule.condition.holds(situation)), last)

    def reviews(self, situation: Situation) -> tuple[ReviewKind, ...]:
        """All reviews that a situation, or the same at a lower risk, must have."""
        levels = [level for level in Risk if level.rank <= situation.risk_level.rank]
        found = {
            kind
            for level in levels
            for kind in self.fitting(attrs.evolve(situation, risk_level=level))[0].treatment.reviews
        }
        if situation.risk_level.needs_security:
            found.add(ReviewKind.SECURITY)
        return tuple(kind for kind in ReviewKind if kind in found)

    @property
    def models(self) -> frozenset[str]:
        """All names of models, for a consumer to check that each is mapped."""
        treatments = [self.default, *(rule.treatment for rule in self.rules)]
        names = {name for each in treatments for name in (each.primary, each.secondary, each.reviewer, each.escalation)}
        return frozenset({*names, *(escalation.model for escalation in self.escalations)} - {""})


DEFAULT: Final = "default"
STRENGTH: Final = {Mode.SINGLE: 0, Mode.POST_PASS: 1, Mode.DUAL_RUN: 2}
"""How much a mode asks for: one answer, one that is gone over, two that are compared."""


def situation_of(step: Step, failure_count: int = 0) -> Situation:
    """The situation of a plan's step after so many failures."""
    return Situation(
        risk_level=step.risk_level,
        task_type=step.task_type,
        role=step.role,
        failure_count=failure_count,
        is_ambiguous=step.ambiguity,
        doc_trigger=step.doc_trigger,
    )


def names_risk(rule: Rule) -> bool:
    """Whether a rule's condition asks about the risk."""
    return "risk_level" in fields_of(rule.condition)


def levels_below(risk: Risk) -> Iterable[Risk]:
    """The levels below one, the highest first."""
    return [level for level in reversed(Risk) if level.rank < risk.rank]


def why(rule: Rule, situation: Situation) -> str:
    """A sentence on why a rule was taken."""
    if rule.name == DEFAULT:
        kind = f", {situation.task_type} task" if situation.task_type else ""
        return f"No rule fits {situation.risk_level} risk{kind}: the default."
    return f"Rule {rule.name}: {(rule.reason or str(rule.condition)).rstrip('.')}."


def escalated(route: Route, model: str, escalation: Escalation, situation: Situation) -> Route:
    """The route after too many failures: one strong model, with a refactor task."""
    times = situation.failure_count
    reason = f"{route.reason} Failed {times} times ({escalation.name}): {model} refactors."
    return attrs.evolve(
        route, primary=model, secondary="", mode=Mode.SINGLE, escalation=model, is_escalated=True, reason=reason
    )
