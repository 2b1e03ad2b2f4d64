"""The plan orchestrator: coordinates models and roles to execute a plan reliably (contract 5)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from orchestrator.blocking import run_blocking
from orchestrator.closing import conclude
from orchestrator.discretion import discreet, wire
from orchestrator.errors import DocumentError
from orchestrator.generating import InterruptionError
from orchestrator.journal.memory import MemoryJournal
from orchestrator.paths import refuse_unsafe_run_id
from orchestrator.plan.account import Account
from orchestrator.plan.amending import amended
from orchestrator.plan.checks import Check
from orchestrator.plan.claims import refuse_claim
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.discretion import candidate_secrets, texts_of_plan
from orchestrator.plan.driver import Conductor, drive_plan
from orchestrator.plan.errors import AmendmentError, PlanChangedError, PlanStateError
from orchestrator.plan.executors import Workroom
from orchestrator.plan.filing import file_run
from orchestrator.plan.holds import found_holds
from orchestrator.plan.models import Model, ModelLike, as_model
from orchestrator.plan.outcome import PlanEndedError, PlanFailedError, PlanInterruptedError, PlanReport, PlanResult
from orchestrator.plan.plan import Plan, load_plan
from orchestrator.plan.planreview import reviewed_by_model
from orchestrator.plan.planrun import PlanRun
from orchestrator.plan.policyfiles import default_policy, load_policy
from orchestrator.plan.readiness import PlanNotReadyError, readiness_faults
from orchestrator.plan.reporting import next_command, report_on
from orchestrator.plan.resuming import load_recorded_plan, reopen
from orchestrator.plan.retrying import Retry, require_retriable
from orchestrator.plan.review import Review, ReviewStatus
from orchestrator.plan.routing import Policy, ReviewKind
from orchestrator.plan.settling import settled, untold
from orchestrator.plan.steprompt import StepPrompter
from orchestrator.plan.steprun import StepRun
from orchestrator.plan.studio import Studio
from orchestrator.plan.workshop import Parts
from orchestrator.ports import Approver
from orchestrator.retries import RetryPolicy
from orchestrator.supervision import Supervisor
from orchestrator.wording import describe
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Bus
from orchestrator_events.clock import Clock, SystemClock
from orchestrator_events.errors import JournalError, OrchestratorError
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionFailed, ExecutionStart, OrchestratorComplete
from orchestrator_events.isolation import LEVELS
from orchestrator_events.journal import Journal
from orchestrator_events.plan import (
    PlanAbandoned,
    PlanDrafted,
    PlanLocked,
    PlanRejected,
    PlanReviewed,
    PlanStarted,
)
from orchestrator_states.plan import PLAN, PlanState

if TYPE_CHECKING:
    from orchestrator.evaluators.callable import EvaluatorLike
    from orchestrator.redaction import Secrets

__all__ = ["PlanChangedError", "PlanOrchestrator", "PlanStateError"]

P = PlanState
BOUND = Budget(attempts=1_000, repeats=None)
"""The budget of a plan for which none is given: runs of models, all steps together."""
NO_RETRY = Retry()
SOMEBODY = "somebody"
"""Who reviewed, locked, amended or abandoned a plan where nobody said it."""


def read_plan_or_path(plan: Plan | str | os.PathLike[str]) -> Plan:
    """A plan, or the one in a file; PlanError with every fault."""
    return plan if isinstance(plan, Plan) else load_plan(plan)


def read_policy_or_path(policy: Policy | str | os.PathLike[str] | None) -> Policy:
    """A policy, or the one in a file, or the one that comes with this; PolicyError with every fault."""
    if policy is None:
        return default_policy()
    return policy if isinstance(policy, Policy) else load_policy(policy)


def own_models(models: Mapping[str, ModelLike]) -> Mapping[str, Model]:
    """The models by name, each as one."""
    return {name: as_model(model) for name, model in models.items()}


@attrs.define(eq=False)
class PlanOrchestrator:
    """Executes plans reliably: lifecycle, routing policy, correction loop, context bus (contract 5).

    The plan is one run, and each step, and all that a model does in it, is a run inside it: one budget, one audit.
    What the journal holds is the truth; the studio is written from it. A plan is executed as it was locked.
    """

    plan: Plan = attrs.field(converter=read_plan_or_path)
    models: Mapping[str, Model] = attrs.field(factory=dict, converter=own_models, kw_only=True)
    """What each name of the policy stands for: a generator, a callable, an AgentModel; reviewers among them."""
    studio: ContextBus = attrs.field(factory=ContextBus, kw_only=True)
    """The context bus: where it lies and which paths it has; by default `studio/`, with STATE/STATE.md."""
    policy: Policy = attrs.field(
        default=attrs.Factory(lambda self: self.studio.policy(), takes_self=True),
        converter=read_policy_or_path,
        kw_only=True,
    )
    """Or the file of one, or None for the one that comes with this; by default the studio's own, where it has one."""
    journal: Journal = attrs.field(factory=MemoryJournal, kw_only=True)
    bus: Bus = attrs.field(factory=Bus, kw_only=True)
    budget: Budget = attrs.field(default=BOUND, kw_only=True)
    """Of the whole plan, all invocations; a run of a model counts as an attempt."""
    checks: Sequence[Check] = attrs.field(default=(), converter=tuple[Check, ...], kw_only=True)
    """What QA, security and integration run; no gate opens without the output that one of them captured."""
    examiners: Mapping[ReviewKind, str] = attrs.field(factory=dict, kw_only=True)
    """Models that act as QA and security agents: what they say goes to the reviewer."""
    suites: Mapping[str, EvaluatorLike] = attrs.field(factory=dict, kw_only=True)
    """Eval suites of steps that are conformance runs, by step id."""
    plan_reviewer: str = attrs.field(default="", kw_only=True)
    """Model that reviews the plan itself, where no person does."""
    has_release_manager: bool = attrs.field(default=True, kw_only=True)
    """Whether the release manager works in a step of his own once all others are completed."""
    prompter: StepPrompter = attrs.field(factory=StepPrompter, kw_only=True)
    approver: Approver | None = attrs.field(default=None, kw_only=True)
    most_at_once: int = attrs.field(default=4, validator=attrs.validators.ge(1), kw_only=True)
    """Steps that may run side by side."""
    workspaces: Path | None = attrs.field(default=None, kw_only=True)
    """Directory for the workspaces of agents; by default the studio's own."""
    retries: RetryPolicy = attrs.field(factory=RetryPolicy, kw_only=True)
    secrets: Secrets | None = attrs.field(default=None, kw_only=True)
    """Values that no record, prompt or file may show; a candidate is never altered, one with a secret is reported."""
    refuse_secrets: bool = attrs.field(default=False, kw_only=True)
    """Whether an output with a secret in it is a failure of the implementer's."""
    require_isolation: str = attrs.field(default="none", validator=attrs.validators.in_(LEVELS), kw_only=True)
    """Least isolation of what is started: models' programs, agents' tools, suites, and the checks of the gates."""
    clock: Clock = attrs.field(factory=SystemClock, kw_only=True)
    run_id: str = attrs.field(default="", kw_only=True)
    """By default the plan's id."""
    parts: Parts = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        wire(self.bus, self.secrets)
        self.run_id = self.run_id or self.plan.plan_id
        refuse_unsafe_run_id(self.run_id)
        room = Workroom(
            journal=self.journal,
            bus=self.bus,
            clock=self.clock,
            approver=discreet(self.approver, self.secrets),
            retries=self.retries,
            secrets=self.secrets,
            refuses_secrets=self.refuse_secrets,
            require_isolation=self.require_isolation,
            workspaces=self.workspaces or (self.studio.root / self.studio.workspaces_path).absolute(),
        )
        self.parts = Parts(
            models=self.models,
            policy=self.policy,
            prompter=self.prompter,
            checks=tuple(self.checks),
            examiners={ReviewKind(kind): name for kind, name in self.examiners.items()},
            suites=self.suites,
            room=room,
        )

    def check(self) -> tuple[str, ...]:
        """What is missing before the plan can be executed as configured; empty when nothing is."""
        return tuple(readiness_faults(self.plan, self.parts))

    def review(self, review: Review | None = None, by: str = "") -> PlanReport:
        """`areview` for callers without a loop of their own."""
        return run_blocking(self.areview(review, by))

    def lock(self, by: str = "") -> PlanReport:
        """`alock` for callers without a loop of their own."""
        return run_blocking(self.alock(by))

    def run(self) -> PlanResult:
        """`arun` for callers without a loop of their own; blocks until no step can go on."""
        return run_blocking(self.arun())

    def resume(self, retry: Iterable[str] = (), reason: str = "", by: str = "") -> PlanResult:
        """`aresume` for callers without a loop of their own; blocks until no step can go on."""
        return run_blocking(self.aresume(retry, reason, by))

    def amend(self, plan: Plan | str | os.PathLike[str], reason: str, by: str = "") -> PlanReport:
        """`aamend` for callers without a loop of their own."""
        return run_blocking(self.aamend(plan, reason, by))

    def abandon(self, reason: str, by: str = "") -> PlanReport:
        """`aabandon` for callers without a loop of their own."""
        return run_blocking(self.aabandon(reason, by))

    def status(self) -> PlanReport:
        """`astatus` for callers without a loop of their own."""
        return run_blocking(self.astatus())

    async def areview(self, review: Review | None = None, by: str = "") -> PlanReport:
        """Record a review of the plan: a person's, or the one that the model `plan_reviewer` gives.

        Approval makes it reviewed; anything else leaves it as it is, with what to change. Raises PlanStateError,
        PlanChangedError, ReviewError for a model's answer that is no review, and ValueError for no reviewer at all.
        """
        if review is None and self.plan_reviewer not in self.models:
            raise ValueError("nobody reviews the plan: give a review, or map the model named as plan_reviewer")
        with self.journal.hold(self.run_id):
            run, steps = await self.opened("plan review", (P.DRAFT, P.AMENDED))
            return await self.brief(run, steps, self.reviewing(run, steps, review, by))

    async def reviewing(self, run: PlanRun, steps: dict[str, StepRun], review: Review | None, by: str) -> None:
        """Fire what the review came to."""
        if review is None:
            account = Account.of(run, list(steps.values()), self.budget, self.clock)
            name = by = self.plan_reviewer
            review = await reviewed_by_model(run, self.parts.room, account, name, self.models[name])
        told = Blob(json.dumps(review.as_json(), ensure_ascii=False, sort_keys=True))
        is_approved = review.status is ReviewStatus.APPROVED
        run.fire((PlanReviewed if is_approved else PlanRejected)(review=told, reviewer=by or SOMEBODY))

    async def alock(self, by: str = "") -> PlanReport:
        """Lock the reviewed plan: from here on its digest says whether it is the same. Raises as `areview` does."""
        who = by or SOMEBODY
        return await self.simple("plan lock", (P.REVIEWED,), lambda run: PlanLocked(digest=run.current.digest, by=who))

    async def aabandon(self, reason: str, by: str = "") -> PlanReport:
        """Give the plan up for good."""
        given_up = PlanAbandoned(reason=reason, by=by or SOMEBODY)
        states = (P.DRAFT, P.REVIEWED, P.LOCKED, P.EXECUTING, P.AMENDED)
        return await self.simple("plan abandon", states, lambda _: given_up, is_strict=False)

    async def aamend(self, plan: Plan | str | os.PathLike[str], reason: str, by: str = "") -> PlanReport:
        """Change the plan and record the difference; it has to be reviewed and locked again before it goes on.

        Raises AmendmentError for a change of what is completed or under way, or for none at all.
        """
        new = read_plan_or_path(plan)
        self.refuse_exposure(new)
        with self.journal.hold(self.run_id):
            states = (P.REVIEWED, P.LOCKED, P.EXECUTING, P.AMENDED)
            run, steps = await self.opened("plan amend", states, is_strict=False)

            async def act() -> None:
                for step in tuple(untold(run, steps)):
                    for event in await settled(self.parts.room, run, step):
                        run.fire(event)
                for event in tuple(amended(run, steps, new, reason, by or SOMEBODY, self.laid_out(run, steps))):
                    run.fire(event)

            report = await self.brief(run, steps, act())
        self.plan = new
        return report

    async def arun(self) -> PlanResult:
        """Execute the locked plan, or go on with it, until it is completed or waits for an amendment.

        Raises PlanStateError for a plan that is not locked, PlanChangedError for one that is another than was locked,
        PlanNotReadyError and MissingArtifactsError with all that is missing, SecretExposedError and
        IsolationRefusedError, before anything is spent; PlanInterruptedError when a model cannot be had, a check cannot
        be run or storage failed; PlanFailedError for an error in the configuration's own code. Cancelling the awaiting
        task ends the invocation in order and re-raises.
        """
        return await self.executed("plan run", (P.LOCKED, P.EXECUTING))

    async def aresume(self, retry: Iterable[str] = (), reason: str = "", by: str = "") -> PlanResult:
        """Go on with a plan whose execution began: finished steps stay, one in flight goes on where it was.

        The steps in `retry`, blocked or failed, begin anew though the plan is as it was, since what stood in their way
        is mended; who says so and why is recorded. Raises RetryError for any other, and for those a reviewer blocked.
        Of a plan that is completed nothing is left to do but to lay out its studio, where a kill came before that.
        """
        given = Retry(steps=frozenset(retry), reason=reason, by=by or SOMEBODY)
        try:
            return await self.executed("plan resume", (P.EXECUTING, P.LOCKED), given)
        except PlanStateError as error:
            if error.state != P.COMPLETED or given.steps:
                raise
        return await self.completed()

    async def completed(self) -> PlanResult:
        """What a completed plan came to, with its studio as the journal tells it."""
        with self.journal.hold(self.run_id):
            run, steps = await self.loaded()
            self.laid_out(run, steps).write()
            await file_run(self.journal, self.studio, run, steps)
            return report_on(run, steps)  # type: ignore[return-value]  # a completed plan has a result

    async def astatus(self) -> PlanReport:
        """Where the plan is; UnknownRunError for one that was never drafted."""
        return report_on(*await self.loaded())

    async def executed(self, command: str, states: tuple[PlanState, ...], retry: Retry = NO_RETRY) -> PlanResult:
        """Drive the plan's steps."""
        with self.journal.hold(self.run_id):
            if not (await self.journal.head(self.run_id)).count:
                refuse_claim(self.plan, None)
                raise PlanStateError(self.plan.plan_id, "not drafted", command, "plan review")
            run, steps = await self.opened(command, states)
            require_retriable(retry, run, steps)
            faults = self.check()
            if faults:
                raise PlanNotReadyError(self.plan.plan_id, faults)
            self.studio.require(self.plan.context_requirements)
            self.parts = attrs.evolve(self.parts, holds=await found_holds(self.parts))
            if run.state == P.LOCKED:
                run.fire(PlanStarted(digest=run.locked_digest))
            conductor = Conductor(
                run=run,
                parts=self.parts,
                account=Account.of(run, list(steps.values()), self.budget, self.clock),
                studio=self.laid_out(run, steps),
                steps=steps,
                most_at_once=self.most_at_once,
                has_release_manager=self.has_release_manager,
                retry=retry,
            )
            return await self.finish(conductor)

    async def finish(self, it: Conductor) -> PlanResult:
        """Drive to the end of the invocation, and file the journal's export and the trace beside the outputs."""
        supervisor = Supervisor(lambda its, is_overdue: drive_plan(it, its, is_overdue))
        try:
            await supervisor.run()
        except asyncio.CancelledError:
            await self.file_what_there_is(it)
            raise
        except Exception as error:  # noqa: BLE001 -- it is raised below, outside of this one's context
            broken = error
        else:
            await file_run(self.journal, self.studio, it.run, it.steps)
            return report_on(it.run, it.steps)  # type: ignore[return-value]  # a plan that was driven has a result
        await self.file_what_there_is(it)
        raise self.ended_by(broken, it)

    async def file_what_there_is(self, it: Conductor) -> None:
        """File an invocation that broke; the host is told what broke it, whatever becomes of this."""
        with suppress(Exception):
            await file_run(self.journal, self.studio, it.run, it.steps)

    def ended_by(self, error: Exception, it: Conductor) -> PlanEndedError:
        """What the host is told of what broke."""
        is_open = isinstance(error, InterruptionError | JournalError)
        kind = PlanInterruptedError if is_open else PlanFailedError
        reason, cause = str(error) if is_open else describe(error), self.discreet_error(error)
        if self.secrets is not None:
            reason = self.secrets.redact_pieces(reason)
        ended = kind(reason, report_on(it.run, it.steps))
        ended.__cause__ = cause.__cause__ if isinstance(error, InterruptionError) and cause.__cause__ else cause
        return ended

    async def opened(
        self, command: str, states: tuple[PlanState, ...], *, is_strict: bool = True
    ) -> tuple[PlanRun, dict[str, StepRun]]:
        """The plan with the records that open an invocation in its outbox, and its steps.

        Raises PlanStateError outside of `states`, and, if it is strict, PlanChangedError for a plan that is another
        than the recorded one, and PlanError for one that claims another lifecycle; a draft may change.
        """
        self.refuse_exposure(self.plan)
        self.studio.files.require_writable()  # before anything is recorded that could not be laid out
        self.studio.read_state()
        if not (await self.journal.head(self.run_id)).count:
            refuse_claim(self.plan, None)
            run = self.begin()
            steps: dict[str, StepRun] = {}
        else:
            run, steps = await self.loaded()
            if run.state not in states:
                raise PlanStateError(self.plan.plan_id, run.state, command, next_command(run))
            recorded = run.current.digest
            if is_strict and run.state != P.DRAFT and recorded != self.plan.digest:
                raise PlanChangedError(self.plan.plan_id, run.state, recorded, self.plan.digest)
            if is_strict:
                refuse_claim(self.plan, run)
            reopen(run, self.clock, self.budget, run.state)
            if run.state == P.DRAFT and recorded != self.plan.digest:
                run.fire(self.draft())
        if run.state not in states:
            raise PlanStateError(self.plan.plan_id, run.state, command, next_command(run))
        return run, steps

    def begin(self) -> PlanRun:
        """A new run with a draft in it, nothing of it committed."""
        run = PlanRun.blank(self.run_id, PLAN, self.budget, self.clock, self.journal)
        run.secrets = candidate_secrets(self.secrets)
        identity = json.dumps({"plan": self.plan.plan_id}, separators=(",", ":"))
        run.fire(
            ExecutionStart(
                table_digest=run.machine.table.digest,
                prompt=Blob(self.plan.canonical),
                identity=identity,
                budget=self.budget,
            )
        )
        run.fire(self.draft())
        return run

    def draft(self) -> PlanDrafted:
        """The plan as a draft."""
        return PlanDrafted(plan_id=self.plan.plan_id, plan=Blob(self.plan.canonical))

    async def loaded(self) -> tuple[PlanRun, dict[str, StepRun]]:
        """The plan and the steps that ever began, by id, as their records tell them."""
        return await load_recorded_plan(self.journal, self.run_id, candidate_secrets(self.secrets))

    def refuse_exposure(self, plan: Plan) -> None:
        """Raise SecretExposedError for a plan that holds a secret: a plan is never altered, for its digest is kept."""
        if self.secrets is not None:
            from orchestrator.exposure import refuse_exposure

            refuse_exposure(self.secrets, texts_of_plan(plan, self.run_id))

    def discreet_error(self, error: BaseException) -> BaseException:
        """The error as the host is shown it: without any secret."""
        if self.secrets is None:
            return error
        from orchestrator.cleansing import cleansed_error

        return cleansed_error(error, self.secrets)

    def laid_out(self, run: PlanRun, steps: Mapping[str, StepRun]) -> Studio:
        """The studio with every file that the journal tells of."""
        studio = Studio(self.studio, run)
        studio.rebuild(steps.values())
        return studio

    async def simple(
        self, command: str, states: tuple[PlanState, ...], event_of: Any, *, is_strict: bool = True
    ) -> PlanReport:
        """An invocation of one event."""
        with self.journal.hold(self.run_id):
            run, steps = await self.opened(command, states, is_strict=is_strict)

            async def act() -> None:
                event: Event = event_of(run)
                run.fire(event)

            return await self.brief(run, steps, act())

    async def brief(self, run: PlanRun, steps: dict[str, StepRun], work: Any) -> PlanReport:
        """An invocation that executes no step: do its work and close it, on every way out.

        Of one that was refused before anything was recorded, nothing is.
        """
        before = len(run.records)
        try:
            await work
        except BaseException as error:
            is_refused = isinstance(error, AmendmentError | DocumentError) and len(run.records) == before
            if isinstance(error, Exception) and not isinstance(error, OrchestratorError):
                run.fire(ExecutionFailed(reason=describe(error)))
            if not is_refused and (run.records or isinstance(error, Exception)):
                await self.close(run, "error", describe(error))
            if self.discreet_error(error) is not error:
                raise self.discreet_error(error) from None
            raise
        await self.close(run)
        studio = self.laid_out(run, steps)
        studio.write()
        await file_run(self.journal, self.studio, run, steps)
        return report_on(run, steps)

    async def close(self, run: PlanRun, status: str = "completed", reason: str = "") -> None:
        """Fire and commit the end markers of an invocation that executes no step."""
        complete = OrchestratorComplete(
            orchestrator="plan", turn_count=0, status="success" if status == "completed" else "incomplete"
        )
        await conclude(self.bus, run, complete, "", status, reason, is_broken=status == "error")
