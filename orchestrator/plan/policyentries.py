"""The keys of a routing policy's file, in both of its forms."""

from __future__ import annotations

import attrs

from orchestrator.plan.routing import STRONGEST, Mode
from orchestrator.plan.vocabulary import Risk, TaskType

__all__ = ["Conditions", "Defaults", "EscalationEntry", "PolicyFile", "RoutingRule", "Strategy", "Then"]


@attrs.frozen(kw_only=True)
class Conditions:
    """`conditions` of a strategy, all of which must hold; a list means any of its values."""

    risk_level: Risk | tuple[Risk, ...] | None = None
    task_type: TaskType | tuple[TaskType, ...] | None = None
    role: str | tuple[str, ...] | None = None
    failure_count: int | None = None
    """So many failures, or more."""
    ambiguous: bool | None = None
    doc_trigger: bool | str | tuple[str, ...] | None = None


@attrs.frozen(kw_only=True)
class Strategy:
    """One row of `strategies`."""

    primary_model: str
    conditions: Conditions = attrs.field(factory=Conditions)
    name: str = ""
    secondary_model: str | None = None
    reviewer_model: str | None = None
    mode: Mode = Mode.SINGLE
    escalation_model: str | None = None
    review_requirements: tuple[str, ...] = ()
    reason: str = ""


@attrs.frozen(kw_only=True)
class Then:
    """`then` of a row of `routing_rules`."""

    primary: str = ""
    secondary: str | None = None
    reviewer: str | None = None
    mode: Mode = Mode.SINGLE
    require: tuple[str, ...] = ()
    escalate_to: str = ""
    action: str = ""
    reason: str = ""


@attrs.frozen(kw_only=True)
class RoutingRule:
    """One row of `routing_rules`."""

    condition: str = attrs.field(alias="if_")
    then: Then
    name: str = ""


@attrs.frozen(kw_only=True)
class Defaults:
    """What holds where no row fits."""

    primary: str
    secondary: str | None = None
    reviewer: str | None = None
    mode: Mode = Mode.SINGLE
    require: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class EscalationEntry:
    """When a stronger model takes over."""

    failures: int = 2
    model: str = STRONGEST


@attrs.frozen(kw_only=True)
class PolicyFile:
    """The keys of a policy file."""

    defaults: Defaults
    strategies: tuple[Strategy, ...] | None = None
    routing_rules: tuple[RoutingRule, ...] | None = None
    escalation: EscalationEntry | None = None
    version: str | int | float = ""
    description: str = ""
