"""One invocation of a step: its run, what is configured, and the runs inside it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from orchestrator.asking import ask
from orchestrator.closing import commit
from orchestrator.excerpt import in_short
from orchestrator.execution import Execution
from orchestrator.nesting import Parent, charged_by, child_id_of, load_child
from orchestrator.plan.account import TURNS_HELD, Account, BudgetReachedError
from orchestrator.plan.checks import Check
from orchestrator.plan.executors import Assignment, Product, Workroom, perform
from orchestrator.plan.holds import Holds
from orchestrator.plan.models import Model
from orchestrator.plan.outputs import artifacts_of
from orchestrator.plan.plan import Plan
from orchestrator.plan.recorded import MAKING, lifecycle_of
from orchestrator.plan.routing import Policy, ReviewKind
from orchestrator.plan.steprompt import Input, StepPrompter
from orchestrator.plan.steprun import StepRun
from orchestrator.supervision import Supervisor
from orchestrator_events.blob import Blob
from orchestrator_events.decision import Ruling
from orchestrator_events.event import Event, Gate
from orchestrator_events.execution import ChildEnded, ChildStarted
from orchestrator_events.plan import WorkFinished, WorkStarted
from orchestrator_events.run import BudgetOverrun

if TYPE_CHECKING:
    from orchestrator.evaluators.callable import EvaluatorLike
    from orchestrator.plan.studio import Studio

__all__ = ["Parts", "Task", "Workshop", "end_of"]

AGAIN_CHARACTERS = 500
"""Longest reason for another attempt."""


@attrs.frozen(kw_only=True)
class Parts:
    """What is configured, for all steps of a plan."""

    models: Mapping[str, Model]
    policy: Policy
    prompter: StepPrompter
    checks: tuple[Check, ...]
    examiners: Mapping[ReviewKind, str]
    """Names of the models that act as QA and security agents."""
    suites: Mapping[str, EvaluatorLike]
    """Eval suites of the steps that are conformance runs, by step id."""
    room: Workroom
    holds: Holds = attrs.field(factory=Holds)
    """What holds in what a plan starts; found before it is executed."""


@attrs.frozen(kw_only=True)
class Task:
    """A piece of work for a model."""

    purpose: str
    model: str
    role: str
    prompt: str
    executor: str = "generator"
    attempt: int = 1
    """Number of the attempt at this very purpose, for answers that could not be read."""
    again: str = ""
    """Why there is another attempt."""
    files: Mapping[str, str] = attrs.field(factory=dict)


@attrs.define(eq=False, kw_only=True)
class Workshop:
    """A step while it is driven."""

    run: StepRun
    plan: Plan
    """With follow-up steps."""
    root_id: str
    parts: Parts
    account: Account
    studio: Studio
    supervisor: Supervisor = attrs.field(init=False)
    lock: asyncio.Lock = attrs.Factory(asyncio.Lock)
    """One commit at a time: the two of a dual run work side by side."""

    def fire(self, event: Event) -> None:
        """Fire an event of the step."""
        self.run.fire(event)

    async def commit(self) -> None:
        """Record and publish what happened, then lay it on the context bus."""
        async with self.lock:
            run = self.run
            before = len(run.records)
            await commit(self.parts.room.bus, run)
            self.studio.take(run, run.records[before:])

    async def asked(self, gate: Gate) -> Ruling:
        """Put a gate to those who answer it; they are shown no secret."""
        room, run = self.parts.room, self.run
        if run.secrets is not None:
            gate = run.secrets.cleansed(gate)
        return room.bus.unopposed(gate, run.ledger) or await ask(room.bus, room.approver, run, self.supervisor, gate)

    def inputs(self) -> tuple[Input, ...]:
        """The step's inputs from the context bus; MissingArtifactsError with all that are not there."""
        return self.studio.inputs(self.run.step)

    def files(self) -> Mapping[str, str]:
        """What earlier steps made, and over it what this one did."""
        return {**self.studio.files(), **artifacts_of(self.run)}

    def remaining_seconds(self) -> float | None:
        """Active time left to the plan, seconds; None without a time limit."""
        ledger = self.account.ledger
        return None if ledger.limit_us is None else max(0, ledger.limit_us - ledger.elapsed_us()) / 1_000_000

    async def worked(self, task: Task) -> WorkFinished:
        """Have a model do a piece of work in a run of its own, or what it gave before the step was cut off.

        Raises BudgetReachedError, UnavailableError, WorkDeniedError and JournalError; the work is then left open.
        """
        run = self.run
        suffix = f"-{task.attempt}" if task.attempt > 1 else ""
        child_id = child_id_of(f"{run.run_id}:{task.purpose}-{run.number}{suffix}")
        work = run.works.get(child_id)
        if work is None:
            work_started = await self.begun(task, child_id)
        elif work.finished is not None:
            return work.finished
        else:
            work_started = work.started
        return await self.done(task, work_started)

    async def begun(self, task: Task, child_id: str) -> WorkStarted:
        """Set aside what it may cost, and commit that it begins."""
        model = self.parts.models[task.model]
        tokens = model.parameters.get("max_tokens")
        held = await self.account.reserve(
            child_id,
            task.prompt,
            tokens if type(tokens) is int and task.executor == "generator" else None,
            1 if task.executor == "generator" else TURNS_HELD,
        )
        event = WorkStarted(
            step=self.run.step.id,
            child_id=child_id,
            purpose=task.purpose,
            number=self.run.number,
            model=task.model,
            role=task.role,
            executor=task.executor,
            prompt=Blob(task.prompt),
            reservation=held,
            again=in_short(task.again, AGAIN_CHARACTERS),
        )
        self.fire(event)
        self.fire(ChildStarted(child_id=child_id, lifecycle=lifecycle_of(task.executor)))
        await self.commit()
        return self.run.works[child_id].started  # as it is recorded: without secrets

    async def done(self, task: Task, started: WorkStarted) -> WorkFinished:
        """Have it done, and record what came of it and what it cost."""
        run, room, child_id = self.run, self.parts.room, started.child_id
        if self.account.ledger.limit_us is not None and not self.remaining_seconds():
            raise BudgetReachedError("seconds", "the plan's time is up")
        begun = run.clock.monotonic()
        assignment = Assignment(
            child_id=child_id,
            parent=Parent(root_id=self.root_id, run_id=run.run_id, sequence=run.children[child_id]),
            executor=started.executor,
            prompt=started.prompt.text or started.prompt.data.decode(),
            allotment=self.account.allotment(started.reservation),
            files=task.files,
            outputs=run.step.outputs,
            suite=self.parts.suites.get(run.step.id),
            is_candidate=started.purpose in MAKING,
        )
        try:
            product = await perform(room, self.parts.models[task.model], assignment)
        except BaseException:
            await self.tell_end(child_id)
            raise
        await self.tell_end(child_id)
        return await self.finished(started, product, run.clock.monotonic() - begun)

    async def given_up(self, purpose: str, reason: str) -> None:
        """Close a piece of work that another model takes over, with what it cost."""
        work = self.run.work_of(purpose, self.run.number)
        if work is not None and work.finished is None:
            child = await load_child(self.parts.room.journal, work.started.child_id)
            product = Product(output=None, error=reason, charge=charged_by(child))
            await self.finished(work.started, product, 0)

    async def tell_end(self, child_id: str) -> None:
        """Record how a run inside the step ended, or where it was left."""
        ending = await end_of(self.parts.room, child_id)
        if ending is not None:
            self.fire(ending)

    async def finished(self, started: WorkStarted, product: Product, duration_us: int) -> WorkFinished:
        """Record what it gave, charged to the plan."""
        key = started.reservation.key
        over = await self.account.settle(key, product.charge)
        event = WorkFinished(
            step=self.run.step.id,
            key=key,
            child_id=started.child_id,
            purpose=started.purpose,
            model=started.model,
            output=None if product.output is None else Blob(product.output),
            form=product.form,
            answer=Blob(product.answer) if product.answer else None,
            error=product.error,
            charge=product.charge,
            duration_us=max(0, duration_us),
        )
        self.fire(event)
        if over:
            self.fire(BudgetOverrun(attempt=started.number, limits=over))
        self.reveal(event)
        await self.commit()
        return self.run.works[started.child_id].finished or event  # as it is recorded

    def reveal(self, work: WorkFinished) -> None:
        """Fire which secrets stand in a candidate, which is kept as it is."""
        if self.run.secrets is not None:
            from orchestrator.plan.discretion import secrets_found

            for event in secrets_found(work, self.run.secrets, is_refused=self.parts.room.refuses_secrets):
                self.fire(event)


async def end_of(room: Workroom, child_id: str) -> ChildEnded | None:
    """Where a run's chain ends, and in which state; None for one that never began."""
    head = await room.journal.head(child_id)
    if not head.count:
        return None
    child: Execution = await load_child(room.journal, child_id)
    return ChildEnded(child_id=child_id, head=head.digest, count=head.count, status=str(child.state))
