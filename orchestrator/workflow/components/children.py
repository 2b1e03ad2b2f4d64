"""Runs inside a phase: children of the workflow's run, under its one budget, found again after a crash.

A child's id follows from the workflow's run, the phase and the name or number that the phase gives the child, so that
a phase which is executed again finds it: one that was cut off goes on, one that has its result is not run again. What
a child may use at worst is held in the workflow's ledger before it is driven, what it was charged settles that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

import attrs

from orchestrator.execution import Execution
from orchestrator.nesting import Parent, charged_by, child_id_of, less, load_child
from orchestrator.wording import describe
from orchestrator.workflow.components.allotting import allotted, set_aside
from orchestrator.workflow.components.childrecords import Drive, drives_of, used_by
from orchestrator.workflow.components.childwork import AgentWork, ConformanceWork
from orchestrator.workflow.components.port import BudgetReachedError, ComponentHost, PhaseClosedError, call_key
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget, Charge
from orchestrator_events.errors import JournalError, OrchestratorError, RunHeldError
from orchestrator_events.event import Event
from orchestrator_events.execution import ChildEnded
from orchestrator_events.ledger import Refusal
from orchestrator_events.run import BudgetOverrun
from orchestrator_events.workflow import PhaseFinished, SubagentFinished, SubagentSpawned

if TYPE_CHECKING:
    from orchestrator.agent.engine import Agent
    from orchestrator.agent.outcome import AgentReport
    from orchestrator.engine import Orchestrator
    from orchestrator.outcome import Exhausted, Passed
    from orchestrator.spec import MergedSpec

__all__ = ["ChildWork", "Children", "ForeignRunError", "PhaseTooShortError", "lost_children"]

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class ForeignRunError(OrchestratorError):
    """The journal has a run of a child's id that is no child of the workflow; `run_id` is that id."""

    def __init__(self, run_id: str, parent_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"there is a run {run_id!r} already, which is no child of {parent_id}: name the child otherwise"
        )


class PhaseTooShortError(OrchestratorError):
    """A child did not end in the time that its phase has; it goes on when the phase is executed once more."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"the run {run_id} did not end in the phase's time: retry to go on with it, or give it more")


class ChildWork(Protocol[Result_co]):
    """What a child does."""

    @property
    def lifecycle(self) -> str:
        """Name of the child's lifecycle."""
        ...

    @property
    def budget(self) -> Budget:
        """What it may use as far as it goes by itself; the workflow may have less left."""
        ...

    def has_result(self, child: Execution) -> bool:
        """Whether nothing more is to be done."""
        ...

    async def drive(self, host: ComponentHost, child_id: str, budget: Budget, parent: Parent, known: bool) -> None:  # noqa: FBT001 -- whether it goes on
        """Begin the child, or go on with it, on the host's journal and bus, until it rests."""
        ...

    def result(self, child: Execution) -> Result_co:
        """What a child came to that has a result."""
        ...


@attrs.define(eq=False)
class Children:
    """Starts runs inside one execution of a phase."""

    host: ComponentHost
    unnamed: int = attrs.field(default=0, init=False)
    """Children of this execution that were given no name."""
    flying: set[str] = attrs.field(factory=set, init=False)
    """Ids of those under way."""

    async def conform(self, spec: MergedSpec, orchestrator: Orchestrator, *, part: str = "") -> Passed | Exhausted:
        """A conformance run as `orchestrator` is configured, on the workflow's journal, bus, clock and budget.

        `part` names the child within the phase: the same part is the same child, also when the phase is executed once
        more. Raises BudgetReachedError where the workflow's budget ends it or leaves nothing for it, and what
        `Orchestrator.arun` and `aresume` raise.
        """
        return await self.run(ConformanceWork(spec, orchestrator), part=part)

    async def agent(self, prompt: str, agent: Agent, *, part: str = "") -> AgentReport:
        """An agent run as `agent` is configured; otherwise as `conform`, raising what `Agent.arun` does."""
        return await self.run(AgentWork(prompt, agent), part=part)

    async def run(self, work: ChildWork[Result], *, part: str = "") -> Result:
        """Have a child do its work, or go on with it; what has a result is not done again."""
        child_id = self.id_of(part)
        if child_id in self.flying:
            raise ValueError(f"the child {child_id} is under way: give each of them a part of its own")
        self.flying.add(child_id)
        try:
            with self.host.driving():
                known = await self.done(work, child_id)
        finally:
            self.flying.discard(child_id)
        limit = cut_limit(work, known)
        if limit == "seconds" and is_phase_shorter(self.host):
            raise PhaseTooShortError(child_id)
        if limit:
            raise BudgetReachedError(limit, f"the run {child_id} inside the phase has used what was left for it")
        return work.result(known)

    async def done(self, work: ChildWork[Result], child_id: str) -> Execution:
        """The child with its result, driven as far as it was not."""
        known = await recorded(self.host, child_id)
        if known is None or not self.is_over(work, known):
            return await self.driven(work, child_id, known)
        if any(drive.finished is None for drive in drives_of(self.host.history, child_id)):
            await tell_end(self.host, child_id, is_success=True)
        return known

    def id_of(self, part: str) -> str:
        """The run id of a child; unnamed ones are numbered within the visit of the phase."""
        host = self.host
        if not part:
            self.unnamed += 1
            visits = sum(isinstance(each, PhaseFinished) and each.phase == host.phase for each in host.history)
            part = f"{visits + 1}-{self.unnamed}"
        return child_id_of(f"{host.run_id}:{host.phase}:{part}")

    def is_over(self, work: ChildWork[object], child: Execution) -> bool:
        """Whether a child has come to its end, by itself or because nothing more is left for it."""
        return work.has_result(child) and (not cut_limit(work, child) or not self.has_more(child))

    def has_more(self, child: Execution) -> bool:
        """Whether there is more of the limit that ended a child by now."""
        drives = drives_of(self.host.history, child.run_id)
        if any(drive.finished is None for drive in drives):
            return False  # it has only now come to its end: that is told first
        return not self.host.ledger.refusal(self.host.ledger.attempts, self.host.ledger.elapsed_us())

    async def driven(self, work: ChildWork[Result], child_id: str, known: Execution | None) -> Execution:
        """Hold what it may use, announce it, drive it, and tell its end on every way out."""
        host = self.host
        drives = drives_of(host.history, child_id)
        used = used_by(drives)
        held = drives[-1] if drives and drives[-1].finished is None else await self.intended(work, child_id, drives)
        parent = await host.begin(child_id, work.lifecycle)
        seconds = host.remaining_seconds()
        before = 0.0 if known is None else known.ledger.elapsed_us() / 1_000_000
        budget = allotted(host.ledger, work.budget, held.reservation, used, seconds, before)
        begun = host.clock.monotonic()
        try:
            await work.drive(host, child_id, budget, parent, known is not None)
        except (JournalError, RunHeldError):
            raise
        except BaseException as error:
            if isinstance(error.__cause__, JournalError):
                raise error.__cause__ from error
            with suppress(PhaseClosedError):  # the driver tells it then
                await tell_end(host, child_id, error=describe(error), begun=begun)
            raise
        child = await load_child(host.journal, child_id)
        await tell_end(host, child_id, begun=begun, is_success=work.has_result(child))
        return child

    async def intended(self, work: ChildWork[Result], child_id: str, drives: Sequence[Drive]) -> Drive:
        """Hold the worst case, announce the child, and commit that it is about to be driven."""
        host = self.host
        subagent_id = f"{child_id}:{len(drives) + 1}"
        key = call_key(host.run_id, subagent_id)
        held = set_aside(host.ledger, key, work.budget, used_by(drives), host.remaining_seconds())
        if isinstance(held, Refusal):
            raise BudgetReachedError(held.limit, held.detail)
        context = Blob(json.dumps({"run": child_id}))
        spawned = SubagentSpawned(subagent_id=subagent_id, role=work.lifecycle, context=context, reservation=held)
        try:
            await host.begin(child_id, work.lifecycle, spawned)
        except BaseException:
            host.ledger.release(key)
            raise
        return Drive(child_id, subagent_id, held)


def is_phase_shorter(host: ComponentHost) -> bool:
    """Whether it is the phase's own time that is about to be over, and not that of the budget."""
    limit_us, left = host.ledger.limit_us, host.remaining_seconds()
    return limit_us is None or (left is not None and (limit_us - host.ledger.elapsed_us()) / 1_000_000 - left > CLOSE)


async def recorded(host: ComponentHost, child_id: str) -> Execution | None:
    """A child as far as it came; None where it is yet to begin. ForeignRunError where the run is another's."""
    if (await host.journal.head(child_id)).count == 0:
        return None
    child = await load_child(host.journal, child_id)
    if getattr(child.records[0].event, "parent_id", "") != host.run_id:
        raise ForeignRunError(child_id, host.run_id)
    return child


def cut_limit(work: ChildWork[object], child: Execution) -> str:
    """The limit that ended a child before its own budget did; empty where none did."""
    exhausted = getattr(child, "exhausted", None)
    if exhausted is None or not work.has_result(child):
        return ""
    limit = str(exhausted.limit)
    given, wanted = (getattr(budget, limit, None) for budget in (child.ledger.budget, work.budget))
    return limit if given is not None and (wanted is None or given < wanted) else ""


async def tell_end(
    host: ComponentHost, child_id: str, *, error: str = "", begun: int | None = None, is_success: bool = False
) -> None:
    """Commit how far a child came, and what it was charged since it was last told."""
    for drive in drives_of(host.history, child_id):
        if drive.finished is None:
            duration = 0 if begun is None else host.clock.monotonic() - begun
            await host.record(*await ends(host, drive, error, duration, is_success=is_success))


async def lost_children(host: ComponentHost, reason: str, drives: Sequence[Drive]) -> list[Event]:
    """The ends of children that are under way and that nobody waits for any more."""
    found: list[Event] = []
    for drive in drives:
        try:
            found += await ends(host, drive, reason, 0)
        except OrchestratorError as error:  # a child that cannot be read: nothing is known, so all of it
            key = call_key(host.run_id, drive.subagent_id)
            found.append(finished(drive, "", host.ledger.worst_case(key), f"{reason}; {describe(error)}", 0))
    return found


async def ends(
    host: ComponentHost, drive: Drive, error: str, duration_us: int, *, is_success: bool = False
) -> tuple[Event, ...]:
    """What is recorded at the end of a drive: where the child's chain stands, what it cost, a limit that it passed."""
    head = await host.journal.head(drive.child_id)
    if head.count == 0:  # it never began
        return (finished(drive, "", Charge(), error, duration_us),)
    child = await load_child(host.journal, drive.child_id)
    charge = less(charged_by(child), used_by(drives_of(host.history, drive.child_id)))
    end = ChildEnded(child_id=drive.child_id, head=head.digest, count=head.count, status=child.state)
    told = finished(drive, child.state, charge, error, duration_us, is_success=is_success)
    over = host.ledger.overrun(call_key(host.run_id, drive.subagent_id), charge)
    overrun = (BudgetOverrun(attempt=host.ledger.attempts, limits=over),) if over else ()
    return (end, told, *overrun)


def finished(
    drive: Drive, state: str, charge: Charge, error: str, duration_us: int, *, is_success: bool = False
) -> SubagentFinished:
    """The event of a drive's end; its status is that of the work as a whole, its result the child's state."""
    status = "error"
    if is_success:
        status = "success" if state in SUCCEEDED else "failure"
    return SubagentFinished(
        subagent_id=drive.subagent_id,
        status=status,
        result=Blob(json.dumps({"run": drive.child_id, "state": state})),
        charge=charge,
        duration_us=duration_us,
        error=error,
    )


CLOSE = 0.01
"""Two readings of the time left that differ by less are one, seconds."""
SUCCEEDED = ("passed", "completed")
"""States in which a child's work is done as it should be."""
