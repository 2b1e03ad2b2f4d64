"""The orchestrator: configure it once, run any number of specs with it, one after another or at once."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import attrs

from orchestrator.blocking import run_blocking
from orchestrator.discretion import discreet, wire
from orchestrator.driver import ConformanceDriver
from orchestrator.evaluators.callable import EvaluatorLike, as_evaluator
from orchestrator.generating import InterruptionError
from orchestrator.generators.callable import GeneratorLike, as_generator
from orchestrator.isolating import established
from orchestrator.journal.memory import MemoryJournal
from orchestrator.outcome import (
    Exhausted,
    Passed,
    RunCancelledError,
    RunEndedError,
    RunFailedError,
    RunInterruptedError,
    RunReport,
)
from orchestrator.parameters import write_parameters
from orchestrator.paths import refuse_unsafe_run_id
from orchestrator.ports import Approver, Strategy
from orchestrator.prompt import Augmentations, Prompter, PromptTemplate, answered_as
from orchestrator.promptfences import size_of
from orchestrator.reporting import report_on
from orchestrator.retries import RetryPolicy
from orchestrator.run import Run
from orchestrator.strategies import FailureFeedback
from orchestrator.supervision import Supervisor
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Bus
from orchestrator_events.clock import Clock, SystemClock
from orchestrator_events.execution import ExecutionStart, IsolationEstablished
from orchestrator_events.journal import Journal
from orchestrator_states.run import RUN, RunState

if TYPE_CHECKING:
    from orchestrator.nesting import Parent
    from orchestrator.pins import Pins
    from orchestrator.redaction import Secrets
    from orchestrator.spec import MergedSpec

__all__ = ["Orchestrator", "SpecTooLargeError"]

CANDIDATE_LIMIT = 1_000_000


class SpecTooLargeError(ValueError):
    """The spec does not fit the generator; no section is ever cut, so nothing is spent."""


def new_run_id() -> str:
    """Twelve random hexadecimal digits."""
    return secrets.token_hex(6)


@attrs.define(eq=False, kw_only=True)
class Orchestrator:
    """Turns specs into conforming candidates, or says honestly why not (contract 1).

    It never chooses a generator, never mixes two in one run, never alters a candidate and never runs without a
    bound. Everything it does is published on `bus` and recorded in `journal` before anyone sees it.
    """

    generator: GeneratorLike = attrs.field()
    """A Generator, or a sync or async callable from Request to text, Candidate or Generation."""
    evaluator: EvaluatorLike = attrs.field()
    """An Evaluator, or a sync or async callable from Submission to Verdict or a mapping of case to outcome."""
    budget: Budget = attrs.field(factory=Budget)
    strategy: Strategy = attrs.field(factory=FailureFeedback)
    language: str = "python"
    """Target language; part of every prompt, of the result and of the run's identity."""
    parameters: Mapping[str, Any] = attrs.field(factory=dict)
    """Base generation parameters; `max_tokens` among them is what a call may write."""
    augmentations: Augmentations = attrs.field(factory=Augmentations)
    template: PromptTemplate = attrs.field(factory=PromptTemplate)
    candidate_limit: int = CANDIDATE_LIMIT
    """Largest candidate, bytes; a larger one is a failed generation."""
    journal: Journal | None = None
    """Where runs are recorded; None keeps each in memory, for as long as its result lives."""
    bus: Bus = attrs.field(factory=Bus)
    approver: Approver | None = None
    pins: Pins | None = None
    """Case ids that a trusted run pinned: exactly these must pass, by the suite they were pinned with."""
    controls: tuple[str, ...] = ()
    """Ids of cases that must be reported failed, or the judge was tampered with; no candidate is judged by them."""
    require_isolation: str = "none"
    """Least isolation that generator and evaluation must have: none, basic or strong; less refuses to run."""
    retries: RetryPolicy = attrs.field(factory=RetryPolicy)
    """When a call that failed in passing (a busy server, a cut connection) is made again, within the budget."""
    secrets: Secrets | None = None
    """Values that no record, prompt, message or error may show; None where there are none."""
    refuse_secrets: bool = False
    """Whether a candidate that holds one of them fails; otherwise that is only recorded."""
    clock: Clock = attrs.field(factory=SystemClock)
    new_id: Callable[[], str] = new_run_id
    driver: ConformanceDriver = attrs.field(init=False)
    known_identity: str = attrs.field(init=False, default="")
    known_isolation: IsolationEstablished | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        wire(self.bus, self.secrets)
        generator = as_generator(self.generator)
        self.driver = ConformanceDriver(
            generator=generator,
            evaluator=as_evaluator(self.evaluator),
            strategy=self.strategy,
            prompter=Prompter(
                template=answered_as(self.template, generator),
                augmentations=self.augmentations,
                language=self.language,
                room=generator.max_prompt_characters,
            ),
            parameters=write_parameters(self.parameters),
            language=self.language,
            candidate_limit=self.candidate_limit,
            bus=self.bus,
            approver=discreet(self.approver, self.secrets),
            retries=self.retries,
            refuses_secrets=self.refuse_secrets,
        )

    def run(self, spec: MergedSpec, *, run_id: str | None = None) -> Passed | Exhausted:
        """`arun` for callers without a loop of their own; blocks until the run is over.

        Called inside a running loop it blocks that loop and works in a thread with a loop of its own, so
        callables bound to the caller's loop (clients, locks) need `arun`.
        """
        return run_blocking(self.arun(spec, run_id=run_id))

    async def arun(
        self, spec: MergedSpec, *, run_id: str | None = None, parent: Parent | None = None
    ) -> Passed | Exhausted:
        """Run until every expected case passes or a limit of the budget is reached.

        With `parent`, as a child of the run that announced it.

        Raises SpecTooLargeError, PinsError, IsolationRefusedError, SecretExposedError (in spec or configuration) and
        UnsafeRunIdError before anything is spent, RunInterruptedError when the run cannot go on now (no verdict,
        generator unavailable, storage failed), RunCancelledError when a gate denied it, and RunFailedError for an
        error in the configuration's own code; the last three carry the report so far.
        Cancelling the awaiting task ends the invocation in order and re-raises.
        """
        run_id = run_id or self.new_id()
        refuse_unsafe_run_id(run_id)
        with self.held(run_id):
            isolation = await self.isolation()
            run = self.begin(spec, run_id, parent)
            run.fire(isolation)
            self.pin_cases(run)
            return await self.finish(run)

    def resume(self, run_id: str) -> Passed | Exhausted:
        """`aresume` for callers without a loop of their own; blocks until the run is over."""
        return run_blocking(self.aresume(run_id))

    async def aresume(self, run_id: str) -> Passed | Exhausted:
        """Go on with a run in this orchestrator's journal, where it was left; nothing is bought twice.

        The orchestrator's budget holds from here; where it differs from the recorded one, that is recorded.
        Raises ResumeRefusedError when the run cannot go on as asked (it passed, its identity differs, a limit
        is still reached), RunHeldError when another process has it, and otherwise as `arun` does.
        """
        from orchestrator.resuming import reopen

        with self.held(run_id):
            isolation = await self.isolation()
            run = await reopen(self, run_id)
            self.keep_secrets(run)
            run.fire(isolation)
            self.pin_cases(run)
            return await self.finish(run)

    async def isolation(self) -> IsolationEstablished:
        """What holds generator and evaluation in; found once. IsolationRefusedError when that is too little."""
        if self.known_isolation is None:
            driver = self.driver
            self.known_isolation = await established(driver.generator, driver.evaluator, self.require_isolation)
        return self.known_isolation

    def held(self, run_id: str) -> AbstractContextManager[None]:
        """The run, held against every other orchestrator and process while it is worked on."""
        return nullcontext() if self.journal is None else self.journal.hold(run_id)

    async def finish(self, run: Run) -> Passed | Exhausted:
        """Drive a run to the end of its invocation."""
        supervisor = Supervisor(lambda it, is_overdue: self.driver.drive(run, it, is_overdue))
        try:
            await supervisor.run()
        except Exception as error:  # noqa: BLE001 -- it is raised below, outside of this one's context
            broken = error
        else:
            return self.ending(run)
        raise self.ended_by(broken, run)

    def ended_by(self, error: Exception, run: Run) -> RunEndedError:
        """What the host is told of what broke; it and its cause show no secret."""
        is_ours = isinstance(error, InterruptionError)
        cause = error.__cause__ if is_ours else error
        reason = str(error) if is_ours else f"{type(error).__name__}: {error}"
        if self.secrets is not None:
            from orchestrator.cleansing import cleansed_error

            reason = self.secrets.redact_pieces(reason)
            cause = None if cause is None else cleansed_error(cause, self.secrets)
        kind = RunFailedError if run.state == RunState.FAILED and not is_ours else RunInterruptedError
        ended = kind(reason, self.report(run))
        ended.__cause__ = cause
        return ended

    def first_prompt(self, spec: MergedSpec) -> str:
        """The prompt of attempt 1, without calling anything."""
        run = self.begin(spec, "dry-run")
        self.pin_cases(run)
        self.driver.prompt(run)
        return "" if run.ready is None else run.ready.prompt.data.decode()

    def begin(self, spec: MergedSpec, run_id: str, parent: Parent | None = None) -> Run:
        """A new run, its first record not yet committed."""
        journal, opening = self.journal or MemoryJournal(), self.driver.prompter.opening(spec)
        run = Run.blank(run_id, RUN, self.budget, self.clock, journal, spec=spec, opening=opening)
        self.keep_secrets(run)
        limit = self.driver.generator.max_prompt_characters
        if limit is not None:
            seed = self.strategy.refine(run, None).seed
            needed = len(run.opening) + size_of(self.driver.prompter.seeds(seed))
            if needed > limit:
                raise SpecTooLargeError(
                    f"the spec needs {needed} characters of prompt, {self.driver.generator.name} takes {limit}: "
                    "shorten the spec, its examples, style or seeds, or use a generator with a larger context"
                )
        run.fire(
            ExecutionStart(
                table_digest=run.machine.table.digest,
                prompt=Blob(spec.canonical),
                identity=self.identity(),
                budget=self.budget,
                **({} if parent is None else parent.named),
            )
        )
        return run

    def keep_secrets(self, run: Run) -> None:
        """Keep secrets out of the run's records from here; SecretExposedError where one is in what is never altered."""
        if self.secrets is not None:
            from orchestrator.exposure import refuse_exposure, texts_of

            refuse_exposure(
                self.secrets, texts_of(run, self.identity(), (seed.text for seed in self.augmentations.seeds))
            )
            run.secrets = self.secrets

    def identity(self) -> str:
        """JSON object of what may not change over a resume; made once."""
        if not self.known_identity:
            self.known_identity = self.written_identity()
        return self.known_identity

    def pin_cases(self, run: Run) -> None:
        """Record which cases must pass and fail; PinsError when pins or controls do not fit the spec or the suite."""
        if self.pins is None and not self.controls:
            return
        from orchestrator.pins import cases_pinned

        pinned = cases_pinned(run.spec, self.driver.evaluator, self.pins, self.controls)
        if pinned is not None and pinned != run.pinned:
            run.fire(pinned)

    def written_identity(self) -> str:
        """The identity of what is configured."""
        fields = {
            "evaluator": self.driver.evaluator.name,
            "generator": self.driver.generator.name,
            "language": self.language,
            "parameters": dict(self.parameters),
            "strategy": self.strategy.name,
        }
        if self.pins is not None:
            fields["pins"] = {"cases": sorted(self.pins.cases), "suite": self.pins.suite_digest}
        if self.controls:
            fields["controls"] = sorted(self.controls)
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def ending(self, run: Run) -> Passed | Exhausted:
        """The result of a run that rests, or the error that says why there is none."""
        report = self.report(run)
        if isinstance(report, Passed | Exhausted):
            return report
        raise RunCancelledError(run.given_up, report)

    def report(self, run: Run) -> RunReport:
        """What there is of a run."""
        identity = {
            "language": self.language,
            "generator": self.driver.generator.name,
            "evaluator": self.driver.evaluator.name,
            "strategy": self.strategy.name,
        }
        return report_on(run, identity)
