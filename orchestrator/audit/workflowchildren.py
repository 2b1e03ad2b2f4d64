"""The runs inside a workflow's phases: paid for by the workflow to the last token, within what it had set aside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.nesting import charged_by
from orchestrator.workflow.components.allotting import LIMITS, widest
from orchestrator.workflow.components.childrecords import Drive, child_in, drives_of, used_by
from orchestrator_events.budget import Budget, Charge
from orchestrator_events.event import Event
from orchestrator_events.execution import BudgetRaised, ChildEnded, ExecutionStart
from orchestrator_events.workflow import SubagentSpawned

if TYPE_CHECKING:
    from orchestrator.audit.tree import Followed

__all__ = ["driven", "is_blank", "is_driven"]


def is_driven(event: Event, child_id: str) -> bool:
    """Whether an event says that a child is driven from here."""
    return isinstance(event, SubagentSpawned) and child_in(event.subagent_id) == child_id


def is_blank(history: Sequence[Event], child_id: str) -> bool:
    """Whether a child was announced, cost nothing, and ended without a record of its own."""
    drives = drives_of(history, child_id)
    has_end = any(isinstance(event, ChildEnded) and event.child_id == child_id for event in history)
    return not has_end and all(each.finished is not None and each.finished.charge == Charge() for each in drives)


def driven(parent: Followed, children: Mapping[str, Followed]) -> Iterator[tuple[int, str]]:
    """What does not fit between what a workflow held and paid for its children, and what they may use and did."""
    history = [record.event for record in parent.records]
    for child_id, child in children.items():
        drives = drives_of(history, child_id)
        if child.run is None:
            continue
        if not drives:
            yield 0, f"nothing was set aside for the child {child_id!r:.80}"
        cost, told = charged_by(child.run), used_by(drives)
        if drives and drives[-1].finished is not None:  # one that is under way is settled when it ends
            for name in ("input_tokens", "output_tokens", "money_micro"):
                spent, paid = getattr(cost, name), getattr(told, name)
                if spent != paid:
                    words = name.replace("_", " ")
                    yield 0, f"the child {child_id!r:.80} was charged {spent} {words}, its parent {paid}"
        yield from beyond(parent, child_id, child, drives)


def beyond(parent: Followed, child_id: str, child: Followed, drives: Sequence[Drive]) -> Iterator[tuple[int, str]]:
    """Limits of a child that are wider than all that was ever set aside for it."""
    budgets = [each.event.budget for each in parent.records if isinstance(each.event, ExecutionStart | BudgetRaised)]
    most = widest_of(budgets, drives)
    for record in child.records:
        if not isinstance(record.event, ExecutionStart | BudgetRaised):
            continue
        for name, limit in most.items():
            cap = getattr(record.event.budget, name)
            if limit is not None and (cap is None or cap > max(1, limit)):
                words = f"may use {cap or 'any number of'} {name.replace('_', ' ')}, {limit} were set aside"
                yield 0, f"the child {child_id!r:.80} {words}"


def widest_of(budgets: Sequence[Budget], drives: Sequence[Drive]) -> dict[str, int | None]:
    """The widest limits that a child ever had, by name; None where the workflow had at some time no such limit."""
    found: dict[str, int | None] = dict.fromkeys(LIMITS, 0)
    for place, drive in enumerate(drives):
        used = used_by(drives[:place])
        for name in LIMITS:
            here = [widest(budget, drive.reservation, used)[name] for budget in budgets]
            before = found[name]
            limits = [each for each in here if each is not None]
            found[name] = None if before is None or len(limits) < len(here) else max(before, *limits)
    return found
