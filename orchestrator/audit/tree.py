"""The tree: every child is the one that its parent announced, ended as its parent says, and paid for there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from orchestrator.audit.chain import head_of
from orchestrator.audit.report import Finding
from orchestrator.execution import Execution
from orchestrator.importing import Export
from orchestrator.nesting import Allotment, charged_by, child_id_of, plus
from orchestrator.run import Run
from orchestrator_events.budget import Budget, Charge, Reservation
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.execution import ChildEnded, ChildStarted, ExecutionStart
from orchestrator_events.record import GENESIS, Record, chain_digest
from orchestrator_events.run import (
    AttemptFailed,
    CandidateGenerated,
    GenerationAbandoned,
    GenerationRetried,
    GenerationStarted,
)

__all__ = ["TREE", "Followed", "tree_findings"]

TREE = "tree"
LIMITS = ("tokens", "input_tokens", "output_tokens", "money_micro")


@attrs.frozen
class Followed:
    """A run of an export as far as it could be followed, with the runs inside it."""

    export: Export
    root_id: str
    records: tuple[Record, ...]
    run: Execution | None
    """None where nothing could be followed."""
    inside: tuple[Followed, ...]
    findings: tuple[Finding, ...] = ()
    checks: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """The state of the run's own lifecycle after its last record."""
        own = self.records[0].lifecycle if self.records else ""
        return next((record.target for record in reversed(self.records) if record.lifecycle == own), "")

    @property
    def starts_children(self) -> bool:
        """Whether its records speak of runs inside it."""
        return any(isinstance(record.event, ChildStarted | ChildEnded) for record in self.records)


def tree_findings(parent: Followed) -> Iterator[Finding]:
    """What does not fit between a run and those inside it."""
    children = {child.export.run_id: child for child in parent.inside}
    if len(children) != len(parent.inside):
        yield Finding(TREE, 0, "a run is there twice")
    announced: dict[str, int] = {}
    for record in parent.records:
        event = record.event
        if isinstance(event, ChildStarted):
            yield from started(parent, record, event, announced, children.get(event.child_id))
        elif isinstance(event, ChildEnded):
            yield from ended(parent, record, event, announced, children.get(event.child_id))
    for child_id in children.keys() - announced.keys():
        yield Finding(TREE, 0, f"the run {child_id!r:.80} is there, but no record announced it")
    if isinstance(parent.run, Run):
        yield from paid(parent, children)
    elif parent.run is not None and parent.run.lifecycle == "workflow":
        from orchestrator.audit.workflowchildren import driven

        yield from (Finding(TREE, at, message) for at, message in driven(parent, children))
    elif parent.run is not None and parent.run.lifecycle in ("plan", "step"):
        from orchestrator.audit.planchildren import worked

        try:
            yield from [Finding(TREE, at, message) for at, message in worked(parent, children)]
        except (OrchestratorError, ValueError, KeyError, TypeError, AttributeError) as error:
            yield Finding(TREE, 0, f"the runs inside cannot be checked: {error}")


def started(
    parent: Followed, record: Record, event: ChildStarted, announced: dict[str, int], child: Followed | None
) -> Iterator[Finding]:
    """A child is announced once, is there, and names who announced it."""
    at = record.sequence
    if event.child_id in announced:
        yield Finding(TREE, at, f"the child {event.child_id!r:.80} was announced before")
        return
    announced[event.child_id] = at
    if child is None:
        if not never_began(parent, event.child_id):
            yield Finding(TREE, at, f"the child {event.child_id!r:.80} is not in the export")
        return
    for message in misplaced(parent, event, at, child):
        yield Finding(TREE, at, f"the child {event.child_id!r:.80} {message}")


def never_began(parent: Followed, child_id: str) -> bool:
    """Whether a workflow says that a child which it announced has no record."""
    if parent.run is None or parent.run.lifecycle != "workflow":
        return False
    from orchestrator.audit.workflowchildren import is_blank

    return is_blank([record.event for record in parent.records], child_id)


def misplaced(parent: Followed, event: ChildStarted, at: int, child: Followed) -> Iterator[str]:
    """What a child says of where it comes from, where that is not so."""
    if child.records and child.records[0].lifecycle != event.lifecycle:
        yield f"is of the lifecycle {child.records[0].lifecycle!r:.80}, announced was {event.lifecycle!r:.80}"
    for record in child.records:
        start = record.event
        if not isinstance(start, ExecutionStart):
            continue
        named = (start.root_id, start.parent_id, start.parent_sequence)
        if named != (parent.root_id, parent.export.run_id, at):
            root_id, parent_id, sequence = named
            below = f"{parent_id or 'nobody':.80} below {root_id or 'nobody':.80}"
            yield f"names record {sequence} of {below} as its parent"


def ended(
    parent: Followed, record: Record, event: ChildEnded, announced: Mapping[str, int], child: Followed | None
) -> Iterator[Finding]:
    """A child's end is where its parent says, and nothing came after it unless the call was made again."""
    at = record.sequence
    if event.child_id not in announced:
        yield Finding(TREE, at, f"tells the end of {event.child_id!r:.80}, which no record announced")
    if child is None:
        return
    links = child.export.links
    if digest_at(child.export, event.count) != event.head:
        found = head_of(child.export)
        told = f"{event.head:.80} of {event.count} records"
        yield Finding(
            TREE, at, f"the child {event.child_id!r:.80} ended at {told}, it has {found.digest} of {found.count}"
        )
        return
    state = child.records[event.count - 1].target if event.count <= len(child.records) else event.status
    if event.status != state:
        yield Finding(TREE, at, f"the child {event.child_id!r:.80} ended in {state!r:.80}, not {event.status!r:.80}")
    is_last = not any(
        isinstance(other.event, ChildEnded) and other.event.child_id == event.child_id for other in parent.records[at:]
    )
    if is_last and len(links) > event.count and not goes_on(parent, at, event.child_id):
        more = len(links) - event.count
        yield Finding(TREE, at, f"the child {event.child_id!r:.80} has {more} records after its end")


def goes_on(parent: Followed, at: int, child_id: str) -> bool:
    """Whether the parent made a call again after a record, so that its child may have gone on, too."""
    if parent.run is not None and parent.run.lifecycle == "workflow":
        from orchestrator.audit.workflowchildren import is_driven

        return any(is_driven(record.event, child_id) for record in parent.records[at:])
    again = (ExecutionStart, GenerationStarted, GenerationRetried)
    return any(isinstance(record.event, again) for record in parent.records[at:])


def digest_at(export: Export, count: int) -> str:
    """The head of a run's first records, computed from their bytes."""
    digest = GENESIS
    for link in export.links[:count]:
        digest = chain_digest(digest, link.body)
    return digest if 0 < count <= len(export.links) else ""


def paid(parent: Followed, children: Mapping[str, Followed]) -> Iterator[Finding]:
    """What the children were charged is in the parent's own sums, and within what was reserved there."""
    charges: dict[str, Charge] = {}
    for key, charge in charges_of(parent.records):
        charges[child_id_of(key)] = plus(charges.get(child_id_of(key), Charge()), charge)
    held = {child_id_of(key): worst for key, worst in outstanding(parent.run)}
    for child_id, child in children.items():
        if child.run is None:
            continue
        cost, told = charged_by(child.run), plus(charges.get(child_id, Charge()), held.get(child_id, Charge()))
        for name in ("input_tokens", "output_tokens", "money_micro"):
            if getattr(cost, name) > getattr(told, name):
                spent = f"{getattr(cost, name)} {name.replace('_', ' ')}"
                yield Finding(
                    TREE, 0, f"the child {child_id!r:.80} was charged {spent}, its parent {getattr(told, name)}"
                )
    yield from allotted(parent, children)


def charges_of(records: tuple[Record, ...]) -> Iterator[tuple[str, Charge]]:
    """What each call was charged, by its key."""
    for record in records:
        event = record.event
        if not isinstance(event, AttemptFailed | CandidateGenerated | GenerationAbandoned | GenerationRetried):
            continue
        if event.charge is not None:
            yield event.key, event.charge


def outstanding(run: Execution | None) -> Iterator[tuple[str, Charge]]:
    """What is still reserved: a call that no record settles."""
    for key in () if run is None else run.ledger.holds:
        yield key, run.ledger.worst_case(key) if run is not None else Charge()


def allotted(parent: Followed, children: Mapping[str, Followed]) -> Iterator[Finding]:
    """A child begins with no more than its parent had set aside for the call."""
    from orchestrator.audit.trail import begin

    run = begin(parent.records[0])
    held: Reservation | None = None
    for record in parent.records:
        run.apply(record)
        event = record.event
        if isinstance(event, GenerationStarted):
            held = event.reservation
        elif isinstance(event, ChildStarted) and held is not None and event.child_id in children:
            start = children[event.child_id].records[:1]
            if start and isinstance(start[0].event, ExecutionStart):
                most = Allotment.of(run.ledger, held)
                for message in beyond(start[0].event.budget, most, held):
                    yield Finding(TREE, record.sequence, f"the child {event.child_id!r:.80} {message}")


def beyond(budget: Budget, most: Allotment, held: Reservation) -> Iterator[str]:
    """Limits of a child that are wider than what was set aside."""
    for name in LIMITS:
        cap, limit = getattr(budget, name), getattr(most, name)
        if limit is not None and (cap is None or cap > max(1, limit)):
            yield f"may use {cap or 'any number of'} {name.replace('_', ' ')}, {limit} were set aside"
    if held.time_us is not None and (budget.limit_us is None or budget.limit_us > held.time_us):
        yield f"may take {budget.limit_us} microseconds, {held.time_us} were set aside"
