"""The runs inside a plan and its steps: the steps that were locked, paid for to the last token, within one budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from orchestrator.agent.run import AgentRun
from orchestrator.nesting import charged_by
from orchestrator.plan.measuring import measured_us
from orchestrator.plan.planrun import PlanRun, read_step, recorded_plan, written_step
from orchestrator.plan.recorded import lifecycle_of, review_in, step_run_id
from orchestrator.plan.steprun import StepRun
from orchestrator.run import Run
from orchestrator_events.budget import Budget, Charge
from orchestrator_events.execution import BudgetRaised, ChildEnded, ExecutionEnd, ExecutionInterrupted, ExecutionStart
from orchestrator_events.plan import (
    FollowUpAdded,
    PlanAmended,
    PlanDrafted,
    PlanLocked,
    StepReviewed,
    StepSettled,
    StepUnblocked,
    WorkFinished,
    WorkStarted,
)
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetOverrun

if TYPE_CHECKING:
    from orchestrator.audit.tree import Followed

__all__ = ["worked"]

FIGURES: Final = ("input_tokens", "output_tokens", "money_micro")


def worked(parent: Followed, children: Mapping[str, Followed]) -> Iterator[tuple[int, str]]:
    """What does not fit between a plan or a step and the runs inside it; of a plan also the sums over all of them."""
    yield from paid(parent, children)
    if isinstance(parent.run, PlanRun):
        steps = {child_id: child for child_id, child in children.items() if isinstance(child.run, StepRun)}
        yield from settled(parent, steps)
        yield from locked(parent, steps)
        yield from followed(parent, steps)
        yield from within(parent, steps)
        yield from timed(parent, steps)


def paid(parent: Followed, children: Mapping[str, Followed]) -> Iterator[tuple[int, str]]:
    """Every run of a model was begun as work, had its prompt, gave what is recorded of it, and cost that much."""
    begun = {record.event.child_id: record.event for record in parent.records if isinstance(record.event, WorkStarted)}
    for child_id, child in children.items():
        if child.run is None or isinstance(child.run, StepRun):
            continue
        work = begun.get(child_id)
        if work is None:
            yield 0, f"no work was begun for the child {child_id!r:.80}"
            continue
        if child.run.lifecycle != lifecycle_of(work.executor):
            yield 0, f"the child {child_id!r:.80} is no run of a {work.executor:.40}"
        first = child.records[0].event
        is_asked = isinstance(child.run, AgentRun) and isinstance(first, ExecutionStart)
        if is_asked and isinstance(first, ExecutionStart) and first.prompt.digest != work.prompt.digest:
            yield 0, f"the child {child_id!r:.80} has another prompt than the work"
        yield from beyond(parent, child, work)
    for record in parent.records:
        event = record.event
        if isinstance(event, WorkFinished) and (found := children.get(event.child_id)) is not None:
            yield from ((record.sequence, message) for message in costs(event, found))


def costs(work: WorkFinished, child: Followed) -> Iterator[str]:
    """What a run cost is what its parent was charged, and what it gave is what its parent has."""
    if child.run is None:
        return
    cost = charged_by(child.run)
    for name in FIGURES:
        spent, told = getattr(cost, name), getattr(work.charge, name)
        if spent != told:
            words = name.replace("_", " ")
            yield f"the child {work.child_id!r:.80} was charged {spent} {words}, its parent {told}"
    if work.output is None:
        return
    text = work.output.data.decode()
    if isinstance(child.run, Run):
        last = child.run.last
        given = None if last is None or last.candidate is None else last.candidate.blob.text
    elif isinstance(child.run, AgentRun) and work.answer is None:
        given = child.run.final
    else:
        return
    if given != text:
        yield f"the child {work.child_id!r:.80} gave another output"


def beyond(parent: Followed, child: Followed, work: WorkStarted) -> Iterator[tuple[int, str]]:
    """Limits of a run that are wider than what was set aside for it, where the plan has such a limit."""
    held = work.reservation
    both = None if held.output_tokens is None else held.input_tokens + held.output_tokens
    most = {
        "tokens": both,
        "input_tokens": held.input_tokens,
        "output_tokens": held.output_tokens,
        "money_micro": held.money_micro,
    }
    limited = {name for name in most if all(getattr(each, name) is not None for each in budgets_of(parent))}
    for budget in budgets_of(child):
        for name in sorted(limited):
            cap, limit = getattr(budget, name), most[name]
            if limit is not None and (cap is None or cap > max(1, limit)):
                words = f"may use {cap or 'any number of'} {name.replace('_', ' ')}, {limit} were set aside"
                yield 0, f"the child {child.export.run_id!r:.80} {words}"


def budgets_of(run: Followed) -> list[Budget]:
    """The budgets that a run ever had."""
    return [each.event.budget for each in run.records if isinstance(each.event, ExecutionStart | BudgetRaised)]


def settled(parent: Followed, steps: Mapping[str, Followed]) -> Iterator[tuple[int, str]]:
    """A step came to rest in the state, and at the cost, that its own records lead to."""
    by_step = {child.run.step.id: child for child in steps.values() if isinstance(child.run, StepRun)}
    counts: dict[str, int] = {}
    for record in parent.records:
        event = record.event
        if isinstance(event, ChildEnded):
            counts[event.child_id] = event.count
        elif isinstance(event, StepSettled):
            child = by_step.get(event.step)
            if child is None or not (count := counts.get(child.export.run_id, 0)):
                yield record.sequence, f"settles step {event.step!r:.80}, whose run is not there"
                continue
            then = as_of(child, count)
            if event.state != then.state:
                yield record.sequence, f"step {event.step} is {then.state}, settled as {event.state!r:.40}"
            if event.charge != then.charge:
                yield record.sequence, f"step {event.step} was charged {then.charge}, settled with {event.charge}"


def as_of(child: Followed, count: int) -> StepRun:
    """A step as its first records lead to it."""
    from orchestrator.audit.trail import begin

    run = begin(child.records[0])
    for record in child.records[:count]:
        run.apply(record)
    assert isinstance(run, StepRun)
    return run


def locked(parent: Followed, steps: Mapping[str, Followed]) -> Iterator[tuple[int, str]]:
    """Every step that is executed stands like that in a plan that was locked, or is a follow-up."""
    definitions, digests = locks_of(parent)
    for child_id, child in steps.items():
        for record in child.records:
            event = record.event
            if isinstance(event, ExecutionStart) and event.prompt.digest not in definitions:
                yield (
                    0,
                    f"the child {child_id!r:.80} executes, at its record {record.sequence}, what no locked plan says",
                )
            if isinstance(event, StepUnblocked):
                yield from (
                    (0, f"the child {child_id!r:.80} {why}") for why in unblocked(parent, record, event, digests)
                )


def unblocked(parent: Followed, record: Record, event: StepUnblocked, digests: set[str]) -> Iterator[str]:
    """A step begins anew under a plan that was amended since, or because somebody says what was mended."""
    if event.digest not in digests:
        yield f"was unblocked by {event.digest:.80}, which was never locked"
    if bool(event.reason.strip()) != bool(event.by):
        yield "begins anew for no reason, or by nobody"
    last = [digest for count, digest in ends_of(parent, record.run_id) if count < record.sequence][-1:]
    if not event.reason and event.digest in last:
        yield "begins anew under the plan that it ended under, for no reason"


def ends_of(parent: Followed, child_id: str) -> list[tuple[int, str]]:
    """How many records a step had each time that it came to rest, and the digest of the plan locked then."""
    found: list[tuple[int, str]] = []
    count, digest = 0, ""
    for record in parent.records:
        match record.event:
            case ChildEnded() as event if event.child_id == child_id:
                count = event.count
            case PlanLocked() as event:
                digest = event.digest
            case StepSettled() as event if step_run_id(parent.export.run_id, event.step) == child_id:
                found.append((count, digest))
            case _:
                pass
    return found


def locks_of(parent: Followed) -> tuple[set[str], set[str]]:
    """Digests of the definitions of all steps of the plans that were locked, and of those plans."""
    definitions: set[str] = set()
    digests: set[str] = set()
    plan = None
    for record in parent.records:
        match record.event:
            case PlanDrafted() | PlanAmended() as event:
                plan = recorded_plan(event.plan)
            case PlanLocked() if plan is not None:
                digests.add(plan.digest)
                definitions |= {written_step(step).digest for step in plan.steps}
            case FollowUpAdded() as event:
                definitions.add(event.definition.digest)
            case _:
                pass
    return definitions, digests


def followed(parent: Followed, steps: Mapping[str, Followed]) -> Iterator[tuple[int, str]]:
    """A follow-up carries the conditions of the approval it is of."""
    by_step = {child.run.step.id: child for child in steps.values() if isinstance(child.run, StepRun)}
    for record in parent.records:
        event = record.event
        if not isinstance(event, FollowUpAdded) or event.step not in by_step:
            continue
        reviews = [each.event for each in by_step[event.step].records if isinstance(each.event, StepReviewed)]
        conditions = review_in(reviews[-1].review).conditions if reviews else ()
        if read_step(event.definition).acceptance_criteria != conditions:
            yield (
                record.sequence,
                f"step {event.followup!r:.80} has other criteria than step {event.step} was approved with",
            )


def within(parent: Followed, steps: Mapping[str, Followed]) -> Iterator[tuple[int, str]]:
    """All runs of models together are within the plan's budget, the widest it had, unless an overrun is noted."""
    records = [record for each in (parent, *steps.values()) for record in each.records]
    begun = sum(isinstance(record.event, WorkStarted) for record in records)
    charges = [record.event.charge for record in records if isinstance(record.event, WorkFinished)]
    noted = {limit for record in records if isinstance(record.event, BudgetOverrun) for limit in record.event.limits}
    for name, spent in (("attempts", begun), *sums(charges).items()):
        caps = [getattr(budget, name) for budget in budgets_of(parent)]
        if None not in caps and spent > max(caps) and name not in noted:
            yield 0, f"the plan used {spent} {name.replace('_', ' ')}, its budget is {max(caps)}"


def timed(parent: Followed, steps: Mapping[str, Followed]) -> Iterator[tuple[int, str]]:
    """An invocation that was cut off is charged at least the time that the work finished in it took."""
    carried_us, began, before = 0, 0, 0
    for record in parent.records:
        match record.event:
            case ExecutionStart():
                before, began = began, record.at
            case ExecutionInterrupted() as event:
                done = [each for child in steps.values() for each in until_resumed(child, record.at)]
                least_us = carried_us + measured_us(done, before, record.at)
                if event.active_us < least_us:
                    yield record.sequence, f"charges {event.active_us} microseconds, the steps' records show {least_us}"
                carried_us = event.active_us
            case ExecutionEnd() as event:
                carried_us = event.active_us
            case _:
                pass


def until_resumed(child: Followed, at: int) -> Iterator[Record]:
    """A step's records up to where it was taken up again after a time; its stamps may go back, as clocks do."""
    return takewhile(lambda each: each.at <= at or not isinstance(each.event, ExecutionStart), child.records)


def sums(charges: Sequence[Charge]) -> dict[str, int]:
    """What was charged, by limit."""
    found = {name: sum(getattr(each, name) for each in charges) for name in FIGURES}
    return {**found, "tokens": found["input_tokens"] + found["output_tokens"]}
