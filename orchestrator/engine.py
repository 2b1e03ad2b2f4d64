"""The orchestrator: configure it once, run any number of specs with it, one after another or at once."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import attrs

from orchestrator.blocking import run_blocking
from orchestrator.driver import ConformanceDriver
from orchestrator.evaluators.callable import EvaluatorLike, as_evaluator
from orchestrator.generating import InterruptionError
from orchestrator.generators.callable import GeneratorLike, as_generator
from orchestrator.journal.memory import MemoryJournal
from orchestrator.outcome import (
    Exhausted,
    Passed,
    RunCancelledError,
    RunFailedError,
    RunInterruptedError,
    RunReport,
)
from orchestrator.parameters import write_parameters
from orchestrator.ports import Approver, Strategy
from orchestrator.prompt import Augmentations, Prompter, PromptTemplate
from orchestrator.reporting import report_on
from orchestrator.run import Run
from orchestrator.strategies import FailureFeedback
from orchestrator.supervision import Supervisor
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Bus
from orchestrator_events.clock import Clock, SystemClock
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.journal import Journal
from orchestrator_events.ledger import Ledger
from orchestrator_events.subscribers.guard import guard_budget
from orchestrator_events.subscribers.history import record_history
from orchestrator_states.machine import machine_of
from orchestrator_states.run import RUN, RunState

if TYPE_CHECKING:
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
    clock: Clock = attrs.field(factory=SystemClock)
    new_id: Callable[[], str] = new_run_id
    driver: ConformanceDriver = attrs.field(init=False)
    known_identity: str = attrs.field(init=False, default="")

    def __attrs_post_init__(self) -> None:
        self.bus.recorder = self.bus.recorder or record_history
        self.bus.guard = self.bus.guard or guard_budget
        generator = as_generator(self.generator)
        self.driver = ConformanceDriver(
            generator=generator,
            evaluator=as_evaluator(self.evaluator),
            strategy=self.strategy,
            prompter=Prompter(
                template=self.template,
                augmentations=self.augmentations,
                language=self.language,
                room=generator.max_prompt_characters,
            ),
            parameters=write_parameters(self.parameters),
            language=self.language,
            candidate_limit=self.candidate_limit,
            bus=self.bus,
            approver=self.approver,
        )

    def run(self, spec: MergedSpec, *, run_id: str | None = None) -> Passed | Exhausted:
        """`arun` for callers without a loop of their own; blocks until the run is over.

        Called inside a running loop it blocks that loop and works in a thread with a loop of its own, so
        callables bound to the caller's loop (clients, locks) need `arun`.
        """
        return run_blocking(self.arun(spec, run_id=run_id))

    async def arun(self, spec: MergedSpec, *, run_id: str | None = None) -> Passed | Exhausted:
        """Run until every expected case passes or a limit of the budget is reached.

        Raises SpecTooLargeError before anything is spent, RunInterruptedError when the run cannot go on now
        (no verdict, generator unavailable, storage failed), RunCancelledError when a gate denied it, and
        RunFailedError for an error in the configuration's own code; the last three carry the report so far.
        Cancelling the awaiting task ends the invocation in order and re-raises.
        """
        with self.held(run_id := run_id or self.new_id()):
            return await self.finish(self.begin(spec, run_id))

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
            return await self.finish(await reopen(self, run_id))

    def held(self, run_id: str) -> AbstractContextManager[None]:
        """The run, held against every other orchestrator and process while it is worked on."""
        return nullcontext() if self.journal is None else self.journal.hold(run_id)

    async def finish(self, run: Run) -> Passed | Exhausted:
        """Drive a run to the end of its invocation."""
        supervisor = Supervisor(lambda it, is_overdue: self.driver.drive(run, it, is_overdue))
        try:
            await supervisor.run()
        except InterruptionError as error:
            raise RunInterruptedError(str(error), self.report(run)) from error.__cause__
        except Exception as error:
            if run.state == RunState.FAILED:
                raise RunFailedError(f"{type(error).__name__}: {error}", self.report(run)) from error
            raise RunInterruptedError(f"{type(error).__name__}: {error}", self.report(run)) from error
        return self.ending(run)

    def first_prompt(self, spec: MergedSpec) -> str:
        """The prompt of attempt 1, without calling anything."""
        run = self.begin(spec, "dry-run")
        self.driver.prompt(run)
        return "" if run.ready is None else run.ready.prompt.data.decode()

    def begin(self, spec: MergedSpec, run_id: str) -> Run:
        """A new run, its first record not yet committed."""
        machine = machine_of(RUN)
        run = Run(
            run_id=run_id,
            spec=spec,
            machine=machine,
            ledger=Ledger(self.budget, self.clock),
            clock=self.clock,
            journal=self.journal or MemoryJournal(),
            state=machine.table.initial,
            lifecycle=machine.table.name,
            opening=self.driver.prompter.opening(spec),
        )
        limit = self.driver.generator.max_prompt_characters
        if limit is not None:
            seed = self.strategy.refine(run, None).seed
            needed = len(run.opening) + len(self.driver.prompter.seeds(seed))
            if needed > limit:
                raise SpecTooLargeError(
                    f"the spec needs {needed} characters of prompt, {self.driver.generator.name} takes {limit}: "
                    "shorten the spec, its examples, style or seeds, or use a generator with a larger context"
                )
        run.fire(
            ExecutionStart(
                table_digest=machine.table.digest,
                prompt=Blob(spec.canonical),
                identity=self.identity(),
                budget=self.budget,
            )
        )
        return run

    def identity(self) -> str:
        """JSON object of what may not change over a resume; made once."""
        if not self.known_identity:
            self.known_identity = self.written_identity()
        return self.known_identity

    def written_identity(self) -> str:
        """The identity of what is configured."""
        fields = {
            "evaluator": self.driver.evaluator.name,
            "generator": self.driver.generator.name,
            "language": self.language,
            "parameters": dict(self.parameters),
            "strategy": self.strategy.name,
        }
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
