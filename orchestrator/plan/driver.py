"""Executing a plan: in dependency order, independent steps side by side, each in a stream of its own (contract 5)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import attrs

from orchestrator.asking import NobodyToAskError
from orchestrator.closing import commit, conclude
from orchestrator.generating import InterruptionError
from orchestrator.plan.account import Account, BudgetReachedError
from orchestrator.plan.errors import RootFileError
from orchestrator.plan.filing import file_run
from orchestrator.plan.plan import Step
from orchestrator.plan.planrun import PlanRun, awaited, written_step
from orchestrator.plan.recorded import step_run_id
from orchestrator.plan.releasing import RELEASE_MANAGER, release, release_step
from orchestrator.plan.resuming import reopen
from orchestrator.plan.retrying import Retry
from orchestrator.plan.settling import UNSUCCESSFUL, has_ended_under, is_untold, settled
from orchestrator.plan.stepdriver import drive_step
from orchestrator.plan.steprun import StepRun
from orchestrator.plan.studio import Studio
from orchestrator.plan.workshop import Parts, Workshop, end_of
from orchestrator.supervision import Supervisor
from orchestrator.wording import describe
from orchestrator_events.errors import JournalError
from orchestrator_events.event import Event
from orchestrator_events.execution import ChildStarted, ExecutionFailed, ExecutionStart, OrchestratorComplete
from orchestrator_events.plan import StepUnblocked
from orchestrator_events.run import BudgetExhausted
from orchestrator_states.plan import STEP, PlanState, StepState

__all__ = [
    "Conductor",
    "conclude_plan",
    "drive_plan",
]

S = StepState


@attrs.define(eq=False, kw_only=True)
class Conductor:
    """A plan while its steps are executed."""

    run: PlanRun
    parts: Parts
    account: Account
    studio: Studio
    steps: dict[str, StepRun]
    """Runs of the steps that ever began, by step id."""
    most_at_once: int
    has_release_manager: bool
    supervisor: Supervisor = attrs.field(init=False)
    lock: asyncio.Lock = attrs.Factory(asyncio.Lock)
    filing: asyncio.Lock = attrs.Factory(asyncio.Lock)
    """One at a time, so that no older state replaces a newer one."""
    under_way: dict[str, asyncio.Task[None]] = attrs.Factory(dict[str, "asyncio.Task[None]"])
    visited: set[str] = attrs.Factory(set[str])
    """Steps that came to rest in this invocation."""
    broken: Exception | None = None
    """What made the plan stop beginning steps."""
    unasked: NobodyToAskError | None = None
    """That a step waits for somebody to approve it; others go on."""
    retry: Retry = attrs.field(factory=Retry)
    """Steps that begin anew though the plan is as it was."""
    is_releasing: bool = False
    """Whether the release manager may work: all others are completed, and what he is shown tells of them."""

    async def tell(self, *events: Event) -> None:
        """Fire events of the plan and commit them."""
        async with self.lock:
            for event in events:
                self.run.fire(event)
            before = len(self.run.records)
            await commit(self.parts.room.bus, self.run)
            self.studio.take_plan(self.run.records[before:])

    async def file(self) -> None:
        """Bring the run's folder up to date: whoever kills the plan from here on leaves it as it is now."""
        async with self.filing:
            with suppress(RootFileError):  # the journal has it all; the end of the invocation says what is wrong
                await file_run(self.parts.room.journal, self.studio.bus, self.run, self.steps)

    @property
    def is_done(self) -> bool:
        """Whether every step is completed."""
        return self.broken is None and all(step.id in self.run.completed for step in self.run.effective.steps)

    @property
    def is_built(self) -> bool:
        """Whether every step is completed but the release manager's."""
        steps = {step.id for step in self.run.effective.steps} - self.held_back
        return self.broken is None and steps.issubset(self.run.completed)

    @property
    def held_back(self) -> frozenset[str]:
        """The release manager's step, whatever else it depends on: an amendment may have added others since."""
        return frozenset({RELEASE_MANAGER} & self.run.followups.keys())

    def ready(self) -> list[Step]:
        """Steps that may begin now, in the plan's order."""
        done = set(self.run.completed)
        taken = done | self.visited | self.under_way.keys() | (frozenset() if self.is_releasing else self.held_back)
        run = self.run
        found = [each for each in run.effective.steps if each.id not in taken and done.issuperset(awaited(run, each))]
        return sorted(found, key=lambda step: step.id not in self.steps)  # what was cut off goes on first


async def drive_plan(it: Conductor, supervisor: Supervisor, is_overdue: bool) -> None:  # noqa: ARG001, FBT001 -- the supervisor's callback
    """Execute steps until none can begin; close the invocation exactly once, on every way out."""
    it.supervisor = supervisor
    run = it.run
    try:
        await it.tell()
        await it.file()
        await conduct(it)
        if it.is_built and await release_step(it):
            it.is_releasing = True
            await conduct(it)
        if it.is_done:
            return await release(it)  # which closes the invocation in the same transaction
    except asyncio.CancelledError:
        await stop(it)
        return await conclude_plan(it, "cancelled", "the task that awaited the plan was cancelled")
    except JournalError as error:
        await stop(it)
        await conclude_plan(it, "error", str(error))
        raise
    except (InterruptionError, BudgetReachedError) as error:
        it.broken = error
    except Exception as error:
        await stop(it)
        run.fire(ExecutionFailed(reason=describe(error)))
        await conclude_plan(it, "error", describe(error))
        raise
    return await ended(it)


async def ended(it: Conductor) -> None:
    """Close an invocation that left the plan open."""
    error = it.broken or it.unasked
    if isinstance(error, BudgetReachedError):
        it.run.fire(BudgetExhausted(limit=error.limit, detail=error.detail))
        return await conclude_plan(it, "", str(error))
    if error is not None:
        await conclude_plan(it, "error", str(error))
        raise error
    return await conclude_plan(it, "", "steps wait for the plan to be amended")


async def conduct(it: Conductor) -> None:
    """Begin steps as they become ready, at most so many at once, until none is under way and none can begin."""
    while True:
        if it.broken is None:
            for step in it.ready():
                known = it.steps.get(step.id)
                if known is not None and has_ended_under(it.run, known) and is_untold(it.run, known):
                    await settle(it, known)  # it was cut off before it said so
                if known is not None and has_ended_under(it.run, known) and step.id not in it.retry.steps:
                    it.visited.add(step.id)
                elif len(it.under_way) < it.most_at_once:
                    it.under_way[step.id] = asyncio.ensure_future(stepped(it, step))
        if not it.under_way:
            return
        await it.supervisor.effect(asyncio.wait(it.under_way.values(), return_when=asyncio.FIRST_COMPLETED), None)
        for step_id, task in list(it.under_way.items()):
            if task.done():
                del it.under_way[step_id]
                it.visited.add(step_id)
                await took(it, task)


async def took(it: Conductor, task: asyncio.Task[None]) -> None:
    """See how a step's task ended: an interruption keeps others from beginning, anything else is raised."""
    try:
        task.result()
    except NobodyToAskError as error:
        it.unasked = error
    except (InterruptionError, BudgetReachedError) as error:
        it.broken = it.broken or error
        await it.account.close()


async def stop(it: Conductor) -> None:
    """Cancel the steps under way and wait until they have ended in order."""
    tasks = list(it.under_way.values())
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
    it.under_way.clear()


async def stepped(it: Conductor, step: Step) -> None:
    """Execute one step, or go on with it, and record in the plan how that ended."""
    run = await opened(it, step)
    shop = Workshop(
        run=run,
        plan=it.run.effective,
        root_id=it.run.run_id,
        parts=it.parts,
        account=it.account,
        studio=it.studio,
    )
    if run.state == S.COMPLETED:  # the plan was cut off before it could say so
        return await settle(it, run)
    supervisor = Supervisor(lambda its, is_overdue: drive_step(shop, its, is_overdue))
    try:
        await supervisor.run()
    finally:
        await tell_end(it, run)
    return await settle(it, run)


async def opened(it: Conductor, step: Step) -> StepRun:
    """The run of a step: a new one, announced and begun, or the one that was left."""
    run_id = step_run_id(it.run.run_id, step.id)
    known = it.steps.get(step.id)
    if known is not None and known.state == S.COMPLETED:
        return known
    if run_id not in it.run.children:
        await it.tell(ChildStarted(child_id=run_id, lifecycle=STEP.name))
    room, budget = it.parts.room, it.run.ledger.budget
    if known is None:
        run = StepRun.blank(run_id, STEP, budget, room.clock, room.journal, step=step)
        run.secrets = it.run.secrets
        run.fire(
            ExecutionStart(
                table_digest=run.machine.table.digest,
                prompt=written_step(step),
                identity=identity_of(it.run.current.plan_id, step.id),
                budget=budget,
                root_id=it.run.run_id,
                parent_id=it.run.run_id,
                parent_sequence=it.run.children[run_id],
            )
        )
        run.fire(it.parts.holds.of_step(step.id))
        it.steps[step.id] = run
        return run
    begins_anew = known.state in UNSUCCESSFUL
    into = S.PENDING.value if begins_anew else known.state
    reopen(known, room.clock, budget, into, written_step(step))
    known.fire(it.parts.holds.of_step(step.id))
    if begins_anew:
        retry = it.retry if step.id in it.retry.steps else Retry()
        known.fire(StepUnblocked(step=step.id, digest=it.run.locked_digest, reason=retry.reason, by=retry.by))
    return known


def identity_of(plan_id: str, step_id: str) -> str:
    """What a resume of a step may not change."""
    import json

    return json.dumps({"plan": plan_id, "step": step_id}, sort_keys=True, separators=(",", ":"))


async def tell_end(it: Conductor, run: StepRun) -> None:
    """Record how the step's invocation ended, if it began."""
    ending = await end_of(it.parts.room, run.run_id)
    if ending is not None:
        async with it.lock:
            it.run.fire(ending)


async def settle(it: Conductor, step: StepRun) -> None:
    """Record that a step rests, if it does."""
    events = await settled(it.parts.room, it.run, step)
    if events:
        await it.tell(*events)
        await it.file()


async def conclude_plan(it: Conductor, status: str = "", reason: str = "") -> None:
    """Fire and commit the end markers of the plan's invocation."""
    run = it.run
    completion, ending = ("success", "completed") if run.state == PlanState.COMPLETED else ("incomplete", "completed")
    if status:
        completion, ending = ("cancelled", "cancelled") if status == "cancelled" else ("incomplete", "error")
    complete = OrchestratorComplete(orchestrator="plan", turn_count=turns(it.steps), status=completion)
    response = run.locked_digest if run.state == PlanState.COMPLETED else ""
    async with it.lock:
        before = len(run.records)
        await conclude(it.parts.room.bus, run, complete, response, ending, reason, is_broken=status == "error")
        if status != "error":
            it.studio.take_plan(run.records[before:])


def turns(steps: Mapping[str, StepRun]) -> int:
    """Runs of models that are over, in all steps."""
    return sum(work.finished is not None for step in steps.values() for work in step.works.values())
