"""The workflow engine: configure a domain once, run and resume any number of its workflows."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import attrs

from orchestrator.blocking import run_blocking
from orchestrator.discretion import discreet, wire
from orchestrator.errors import DocumentError
from orchestrator.generators.callable import GeneratorLike, as_generator
from orchestrator.isolating import isolation_of
from orchestrator.journal.memory import MemoryJournal
from orchestrator.jsondata import JSON, json_faults
from orchestrator.paths import refuse_unsafe_run_id
from orchestrator.ports import Approver, Generator
from orchestrator.recordedresult import UsageTotals
from orchestrator.retries import RetryPolicy
from orchestrator.supervision import Supervisor
from orchestrator.wording import describe
from orchestrator.workflow.comparing import is_changed_meanwhile
from orchestrator.workflow.components.settings import ComponentSettings
from orchestrator.workflow.deciding import decision_of, take
from orchestrator.workflow.decisions import KEEPING, PROVIDE, START_FRESH, ChoiceError, Decide, Policy
from orchestrator.workflow.domain import Domain
from orchestrator.workflow.domainfiles import phase_warnings
from orchestrator.workflow.driver import drive
from orchestrator.workflow.executors import executors_of
from orchestrator.workflow.filing import release_file
from orchestrator.workflow.folding import blank_workflow
from orchestrator.workflow.invocation import Invocation, Parts
from orchestrator.workflow.messages import told
from orchestrator.workflow.outcome import (
    WorkflowAborted,
    WorkflowDone,
    WorkflowFailedError,
    WorkflowInterruptedError,
    WorkflowPaused,
    WorkflowReport,
    WorkflowResult,
)
from orchestrator.workflow.phases import PhaseCall
from orchestrator.workflow.resuming import find_workflow, reopen
from orchestrator.workflow.running import WorkflowRun
from orchestrator.workflow.statefile import StateFile
from orchestrator.workflow.todos import todos_of
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Bus
from orchestrator_events.clock import Clock, SystemClock
from orchestrator_events.execution import ExecutionStart, IsolationEstablished
from orchestrator_events.isolation import IN_PROCESS, LEVELS
from orchestrator_events.journal import Journal
from orchestrator_states.workflow import WorkflowState

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets
    from orchestrator.workflow.components.learningstore import LearningStore
    from orchestrator.workflow.components.retry import Operation

__all__ = ["DEFAULT_BUDGET", "ParametersError", "Workflow"]

DEFAULT_BUDGET = Budget(attempts=500, repeats=None)
"""An execution of a phase is an attempt; five hundred of them end what goes round in circles."""
ANSWER_LIMIT = 1_000_000
DEFAULT = "default"
"""Name of the generator that is given without one."""


class ParametersError(DocumentError):
    """The parameters of a run are not what its domain declares; `faults` lists everything that is wrong with them."""


def new_run_id() -> str:
    """Twelve random hexadecimal digits."""
    return secrets.token_hex(6)


def journal_or_memory(journal: Journal | None) -> Journal:
    """The journal, or one that lives as long as the engine."""
    return MemoryJournal() if journal is None else journal


@attrs.define(eq=False, kw_only=True)
class Workflow:
    """Takes workflows of one domain through their phases (contract 4).

    It stays on a phase that fails until somebody decides, leaves a state file that is what the journal says, and
    never runs without a bound. Making one raises DomainError where a phase has nothing that executes it.
    """

    domain: Domain = attrs.field(kw_only=False)
    phases: Mapping[str, PhaseCall] = attrs.field(factory=dict)
    """Callables that execute phases, by the phase's id; they come before what the domain names."""
    generator: GeneratorLike | None = None
    """Executes phase files, and answers for subagents."""
    generators: Mapping[str, GeneratorLike] = attrs.field(factory=dict)
    """Further ones by name, for phases and subagents that ask for them."""
    components: ComponentSettings | None = None
    """Settings of the components; None: the domain's."""
    operations: Mapping[str, Operation] = attrs.field(factory=dict)
    """What the retry handler does for phases that ask for it as a tool, by the operation's name."""
    journal: Journal = attrs.field(default=None, converter=journal_or_memory)
    """Where runs are recorded; None keeps them in memory, for as long as this engine lives."""
    bus: Bus = attrs.field(factory=Bus)
    budget: Budget = DEFAULT_BUDGET
    clock: Clock = attrs.field(factory=SystemClock)
    decide: Decide | None = None
    """Decides what has to be decided; None, or an answer of None, leaves it to the policy and then to a person."""
    policy: Policy | None = None
    """What is chosen without asking anyone; None: the domain's."""
    approver: Approver | None = None
    retries: RetryPolicy = attrs.field(factory=RetryPolicy)
    """When a generator's call that failed in passing is made again."""
    require_isolation: str = attrs.field(default="none", validator=attrs.validators.in_(LEVELS))
    """Least isolation that every generator must have; phases that are callables run in this process."""
    secrets: Secrets | None = None
    """Values that no record may show; None where there are none."""
    learnings: LearningStore | None = None
    """Learning records of other workflows, which every run takes in before a phase is executed."""
    answer_limit: int = ANSWER_LIMIT
    """Longest answer of a generator, bytes."""
    new_id: Callable[[], str] = new_run_id
    parts: Parts = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        wire(self.bus, self.secrets)
        named: dict[str, Generator] = {name: as_generator(each) for name, each in self.generators.items()}
        if self.generator is not None:
            named.setdefault(DEFAULT, as_generator(self.generator))
        default = DEFAULT if DEFAULT in named else next(iter(named)) if len(named) == 1 else ""
        calls = executors_of(self.domain, self.phases, named, default)
        self.parts = Parts(
            domain=self.domain,
            calls=calls,
            generators=named,
            generator=default,
            components=self.components or self.domain.components,
            operations=dict(self.operations),
            bus=self.bus,
            approver=discreet(self.approver, self.secrets),
            retries=self.retries,
            decide=self.decide,
            policy=self.policy or self.domain.policy,
            learnings=self.learnings,
            answer_limit=self.answer_limit,
        )

    def run(self, params: Mapping[str, JSON] | None = None, *, run_id: str | None = None) -> WorkflowResult:
        """`arun` for callers without a loop of their own; blocks until the workflow is done or waits."""
        return run_blocking(self.arun(params, run_id=run_id))

    async def arun(self, params: Mapping[str, JSON] | None = None, *, run_id: str | None = None) -> WorkflowResult:
        """Begin a workflow and go on until it is done, aborted, or waits for a decision.

        Raises ParametersError, IsolationRefusedError and UnsafeRunIdError before anything is done,
        WorkflowInterruptedError when storage failed, and WorkflowFailedError for an error of the engine's.
        Cancelling the awaiting task ends the invocation in order and re-raises.
        """
        parameters = self.checked_parameters(params or {})
        run_id = run_id or self.new_id()
        refuse_unsafe_run_id(run_id)
        isolation = await self.isolation()
        with self.held(run_id):
            run = self.begin(run_id, parameters)
            run.fire(isolation)
            return await self.finish(run)

    def resume(
        self, workflow_id: str, choice: str | None = None, state: Mapping[str, JSON] | None = None
    ) -> WorkflowResult:
        """`aresume` for callers without a loop of their own; blocks until the workflow is done or waits."""
        return run_blocking(self.aresume(workflow_id, choice, state))

    async def aresume(
        self, workflow_id: str, choice: str | None = None, state: Mapping[str, JSON] | None = None
    ) -> WorkflowResult:
        """Go on with a workflow where it was left; `workflow_id` is its id, its run's, or `workflow-new`.

        `choice` is one of the options of the decision that it waits for, `state` a whole state to go on with; without
        either, a workflow that waits is put to `decide` and the policy again. Raises ChoiceError, UnknownRunError and
        ResumeRefusedError, with nothing written, when it cannot go on as asked, RunHeldError when another process has
        it, and otherwise as `arun` does.
        """
        run_id = await find_workflow(self.journal, workflow_id, self.domain.name)
        isolation = await self.isolation()
        with self.held(run_id):
            run = await reopen(self, run_id)
            run.fire(isolation)
            self.choose(run, choice, state)
            result = await self.finish(run)
        if choice == START_FRESH and state is None:
            return await self.arun(run.parameters)
        return result

    def choose(self, run: WorkflowRun, choice: str | None, state: Mapping[str, JSON] | None) -> None:
        """Fire what somebody chose; ChoiceError where it cannot be chosen, or nothing is to be.

        A choice that changes the state is not taken while the file is not what the journal says: that is asked first.
        """
        if choice is None and state is None:
            return
        waiting = decision_of(run)
        if waiting is None:
            raise ChoiceError(choice or PROVIDE, (), "the workflow waits for no decision: resume it without a choice")
        chosen = choice or (PROVIDE if PROVIDE in waiting.options else waiting.options[0])
        is_option = chosen in waiting.options and chosen not in KEEPING
        if is_option and is_changed_meanwhile(run, self.domain.state_directory):
            return
        take(run, self.domain, chosen, "person", state)

    async def isolation(self) -> IsolationEstablished:
        """What holds the generators in: of several, the one that is held least."""
        held = [
            await isolation_of(generator, f"the generator {name}", self.require_isolation)
            for name, generator in self.parts.generators.items()
        ]
        weakest = min(held, key=lambda each: LEVELS.index(each.level), default=IN_PROCESS)
        required = self.require_isolation if held else "none"
        return IsolationEstablished(required=required, generator=weakest, evaluator=weakest)

    def held(self, run_id: str) -> AbstractContextManager[None]:
        """The run, held against every other engine and process while it is worked on."""
        return self.journal.hold(run_id)

    def begin(self, run_id: str, parameters: dict[str, JSON]) -> WorkflowRun:
        """A new workflow, its first record not yet committed."""
        run = blank_workflow(run_id, self.domain.lifecycle, self.budget, self.clock, self.journal, parameters)
        run.secrets = self.secrets
        run.fire(
            ExecutionStart(
                table_digest=run.machine.table.digest,
                prompt=Blob(json.dumps(parameters, ensure_ascii=False, sort_keys=True)),
                identity=json.dumps(self.identity(), sort_keys=True, separators=(",", ":")),
                budget=self.budget,
            )
        )
        start = run.outbox[0].event
        assert isinstance(start, ExecutionStart)
        run.parameters = json.loads(start.prompt.text or "{}")  # as they are recorded: without secrets
        return run

    async def finish(self, run: WorkflowRun) -> WorkflowResult:
        """Drive a workflow to the end of its invocation."""
        run.secrets = self.secrets
        first = len(run.records)
        it = Invocation(run=run, parts=self.parts)
        supervisor = Supervisor(lambda its, is_overdue: drive(it, its, is_overdue))
        try:
            await supervisor.run()
            release_file(run, self.domain.state_directory)
        except Exception as error:  # noqa: BLE001 -- it is raised below, outside of this one's context
            broken = error
        else:
            return self.ending(run, first)
        kind = WorkflowFailedError if run.state == WorkflowState.FAILED else WorkflowInterruptedError
        raise kind(describe(broken), WorkflowReport(**self.report(run, first))) from broken

    def ending(self, run: WorkflowRun, first: int) -> WorkflowResult:
        """The result of a workflow that rests."""
        fields = self.report(run, first)
        decision = decision_of(run)
        if decision is not None:
            return WorkflowPaused(**fields, decision=decision)
        if run.state == WorkflowState.DONE:
            return WorkflowDone(**fields)
        return WorkflowAborted(**fields, reason=run.given_up)

    def report(self, run: WorkflowRun, first: int) -> dict[str, Any]:
        """What there is of a workflow; its lines are warnings, then those of the records from `first` on."""
        ledger, state = run.ledger, run.current
        return {
            "run_id": run.run_id,
            "workflow_id": run.taken_id,
            "domain": self.domain.name,
            "phase": run.phase,
            "state": state,
            "todos": todos_of(self.domain, state) if state else None,
            "usage": UsageTotals.of(ledger),
            "executions": dict(run.executions),
            "records": tuple(run.records),
            "lines": (*phase_warnings(self.domain), *told(run.records[first:])),
        }

    def identity(self) -> dict[str, JSON]:
        """What may not change over a resume: the domain, its phases' table, and the generators' names."""
        return {
            "domain": self.domain.name,
            "generators": {name: each.name for name, each in sorted(self.parts.generators.items())},
            "tables": [json.loads(json.dumps(self.domain.lifecycle.as_json()))],
        }

    def checked_parameters(self, parameters: Mapping[str, JSON]) -> dict[str, JSON]:
        """The parameters with their defaults; ParametersError with every fault."""
        given = dict(parameters)
        faults = (*json_faults(given), *self.domain.parameter_faults(given))
        if faults:
            raise ParametersError(f"the parameters of {self.domain.name}", faults)
        return self.domain.with_defaults(json.loads(json.dumps(given)))

    def state_file(self, workflow_id: str | None) -> StateFile:
        """Where the state of a workflow lies."""
        return StateFile(self.domain.state_directory, workflow_id)
