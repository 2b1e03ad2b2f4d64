"""How a model does a piece of work: in a run of its own inside the step, by one call, as an agent, or conforming."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError
from orchestrator.agent.engine import NO_HARNESS, Agent
from orchestrator.agent.limits import AgentLimits
from orchestrator.agent.outcome import AgentCancelledError, AgentEndedError
from orchestrator.agent.run import AgentRun
from orchestrator.agent.workspace import Workspace, candidate_in
from orchestrator.candidate import FILES, TEXT, Candidate
from orchestrator.cleansing import kind_of
from orchestrator.engine import Orchestrator
from orchestrator.execution import Execution
from orchestrator.generating import InterruptionError
from orchestrator.nesting import Allotment, Parent, charged_by, load_child
from orchestrator.outcome import RunEndedError
from orchestrator.plan.errors import UnavailableError
from orchestrator.plan.models import AgentModel, GeneratorModel, Model
from orchestrator.ports import Approver
from orchestrator.resuming import ResumeRefusedError
from orchestrator.retries import RetryPolicy
from orchestrator.run import Run
from orchestrator.spec import MergedSpec
from orchestrator.wording import describe
from orchestrator.workspace import write_files
from orchestrator_events.budget import Charge
from orchestrator_events.bus import Bus
from orchestrator_events.clock import Clock
from orchestrator_events.errors import JournalError, RunHeldError
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.journal import Journal
from orchestrator_states.agent import AgentState
from orchestrator_states.run import RunState

if TYPE_CHECKING:
    from orchestrator.evaluators.callable import EvaluatorLike
    from orchestrator.outcome import Exhausted, Passed
    from orchestrator.redaction import Secrets

__all__ = [
    "Assignment",
    "Product",
    "UnavailableError",
    "WorkDeniedError",
    "Workroom",
    "perform",
]

UNAVAILABLE: Final = frozenset({401, 403, 404})
"""HTTP statuses with which trying again is pointless."""
ANSWERS: Final = AgentLimits(iterations=1)


class WorkDeniedError(Exception):
    """A gate denied the work."""


@attrs.frozen(kw_only=True)
class Assignment:
    """What a model is to do."""

    child_id: str
    parent: Parent
    executor: str
    prompt: str
    allotment: Allotment
    files: Mapping[str, str] = attrs.field(factory=dict)
    """What an agent's workspace holds at first."""
    outputs: tuple[str, ...] = ()
    """Files that the work is to make."""
    suite: EvaluatorLike | None = None
    """What judges a conformance run."""
    is_candidate: bool = False
    """Whether what it gives is a step's output, which nobody alters, and no word on one."""


@attrs.frozen(kw_only=True)
class Product:
    """What came of it: an output, or why there is none; and what it cost."""

    output: str | None
    form: str = TEXT
    answer: str = ""
    """What an agent said of its files."""
    error: str = ""
    charge: Charge


@attrs.frozen(kw_only=True)
class Workroom:
    """What all work of a plan shares."""

    journal: Journal
    bus: Bus
    clock: Clock
    approver: Approver | None
    retries: RetryPolicy
    workspaces: Path | None
    """Where agents' workspaces stay, so that they can go on after a crash."""
    attempts: int = 5
    """Of a conformance run."""
    secrets: Secrets | None = None
    """Values that no record may show; None where there are none."""
    refuses_secrets: bool = False
    """Whether a candidate with one is a failure of the implementer's; otherwise it is kept, and that recorded."""
    require_isolation: str = "none"
    """Least isolation of whatever is started."""


class Worker(Protocol):
    """Begins or goes on with the run that does the work."""

    async def work(self, known: Execution | None) -> None:
        """Drive the run to its end."""
        ...


async def perform(room: Workroom, model: Model, assignment: Assignment) -> Product:
    """Do the work, or go on with it where it was cut off; what a model answered is never asked for again.

    Raises UnavailableError when the model cannot be had, WorkDeniedError when a gate denied it, JournalError when
    nothing more can be recorded. Everything else that a model does is a product without an output.
    """
    known = await recorded(room, assignment)
    error = ""
    if known is None or not is_done(known):
        try:
            await worker(room, model, assignment).work(known)
        except (JournalError, RunHeldError):
            raise
        except ResumeRefusedError as refusal:
            if "limit" not in refusal.reason:
                raise InterruptionError(str(refusal)) from refusal
            error = describe(refusal)
        except Exception as failure:  # noqa: BLE001 -- a model is untrusted: whatever it raises is its failure
            error = failed(failure)
    child = await load_child(room.journal, assignment.child_id)
    return product_of(room, model, assignment, child, error)


async def recorded(room: Workroom, assignment: Assignment) -> Execution | None:
    """The run as far as it came; None where it is yet to begin."""
    if (await room.journal.head(assignment.child_id)).count == 0:
        return None
    child = await load_child(room.journal, assignment.child_id)
    start = child.records[0].event
    if getattr(start, "parent_id", "") != assignment.parent.run_id:
        message = f"there is a run {assignment.child_id!r} already, which is no child of {assignment.parent.run_id}"
        raise InterruptionError(f"{message}: rename the step, or use another journal")
    return child


def is_done(child: Execution) -> bool:
    """Whether a run has come to what it comes to."""
    if isinstance(child, AgentRun):
        return child.state in (AgentState.COMPLETED, AgentState.INCOMPLETE)
    return child.state in (RunState.PASSED, RunState.EXHAUSTED)


def worker(room: Workroom, model: Model, assignment: Assignment) -> Worker:
    """What does the work."""
    if assignment.executor == "conformance":
        if not isinstance(model, GeneratorModel) or assignment.suite is None:
            raise InterruptionError(f"{model.name} has no eval suite to conform to: give `suites` one for the step")
        return Conforming(room, model, assignment)
    return Answering(room, model, assignment)


def failed(error: Exception) -> str:
    """Why there is no output; raises what is no failure of the work."""
    if isinstance(error, AgentEndedError | RunEndedError) and isinstance(error.__cause__, JournalError):
        raise error.__cause__ from error
    if isinstance(error, AgentCancelledError) and error.is_denial:
        raise WorkDeniedError(error.reason) from error
    is_refused = getattr(error, "status_code", None) in UNAVAILABLE
    cause = error.__cause__
    if issubclass(kind_of(error), GeneratorUnavailableError) or is_refused:
        raise UnavailableError(describe(error)) from error
    if isinstance(error, RunEndedError):
        if cause is not None and issubclass(kind_of(cause), GeneratorUnavailableError):
            raise UnavailableError(describe(cause)) from error
        raise InterruptionError(describe(error)) from error
    if isinstance(error, InterruptionError):
        raise error
    return describe(error)


def product_of(room: Workroom, model: Model, assignment: Assignment, child: Execution, error: str) -> Product:
    """What the run came to."""
    charge = charged_by(child)
    if isinstance(child, Run):
        return conformed(child, charge, error)
    assert isinstance(child, AgentRun)
    if error or child.state != AgentState.COMPLETED or not child.final:
        limit = child.exhausted.detail if child.exhausted is not None else ""
        return Product(output=None, error=error or limit or "it gave no answer", charge=charge)
    if assignment.executor == "agent" and assignment.outputs:
        return from_files(room, model, assignment, child, charge)
    said = child.messages[-1].get("metadata") if child.messages else None
    form = FILES if isinstance(said, dict) and said.get("form") == FILES else TEXT
    return Product(output=child.final, form=form, charge=charge)


def conformed(child: Run, charge: Charge, error: str) -> Product:
    """The candidate of a conformance run that passed."""
    if child.state == RunState.PASSED and child.last is not None and child.last.candidate is not None:
        candidate = child.last.candidate
        return Product(output=candidate.blob.text or "", form=candidate.form, charge=charge)
    failing = [] if child.closest is None else [case.id for case in child.closest.failing]
    said = f"no candidate conforms; the closest fails {', '.join(failing[:20])}" if failing else "no candidate came"
    return Product(output=None, error=error or said, charge=charge)


def from_files(room: Workroom, model: Model, assignment: Assignment, child: AgentRun, charge: Charge) -> Product:
    """The files that an agent's step is to make, as the workspace holds them."""
    directory = place_of(room, assignment)
    try:
        limit = model.output_limit
        found = candidate_in(Workspace(directory, file_limit=limit), "", limit)
    except (GenerationError, OSError) as error:
        return Product(output=None, error=describe(error), charge=charge)
    files = {name: found.files[name] for name in assignment.outputs if name in found.files}
    candidate = Candidate(files=files) if files else Candidate(child.final or "")
    return Product(output=candidate.blob.text or "", form=candidate.form, answer=child.final or "", charge=charge)


def place_of(room: Workroom, assignment: Assignment) -> Path:
    """The directory of an agent's workspace."""
    assert room.workspaces is not None
    return room.workspaces / assignment.child_id


@attrs.define(eq=False)
class Answering:
    """An agent's run: with tools in a workspace, or of one turn that answers."""

    room: Workroom
    model: Model
    assignment: Assignment

    async def work(self, known: Execution | None) -> None:
        """Answer."""
        assignment = self.assignment
        if assignment.executor != "agent" or not isinstance(self.model, AgentModel):
            return await self.drive(self.agent(known, ANSWERS, None), known)
        if self.room.workspaces is None:
            raise InterruptionError("agents need a directory for their workspaces: give `workspaces`")
        directory = place_of(self.room, assignment)
        if known is None or not directory.is_dir():
            lay_out(directory, assignment.files)
        workspace = Workspace(directory, file_limit=self.model.output_limit)
        return await self.drive(self.agent(known, self.model.limits, workspace), known)

    async def drive(self, agent: Agent, known: Execution | None) -> None:
        """Begin, or go on."""
        if known is None:
            await agent.arun(self.assignment.prompt, run_id=self.assignment.child_id, parent=self.assignment.parent)
        else:
            await agent.aresume(self.assignment.child_id)

    def agent(self, known: Execution | None, limits: AgentLimits, workspace: Workspace | None) -> Agent:
        """The agent that does it, on the plan's bus and journal, within what is set aside."""
        room, model = self.room, self.model
        tooled = model if workspace is not None and isinstance(model, AgentModel) else None
        provider = model.provider
        is_held = tooled is not None or isinstance(model, GeneratorModel)  # of a provider, nobody can say what holds it
        return Agent(
            providers={provider.name: provider},
            default_provider=provider.name,
            model=model.model if isinstance(model, AgentModel) else "",
            tools=tuple(tooled.tools(workspace)) if tooled is not None and workspace is not None else (),
            parameters=model.parameters,
            limits=limits,
            budget=allotted(self.assignment, known).budget(limits.iterations + 1),
            harness=NO_HARNESS if tooled is None else tooled.harness,
            journal=room.journal,
            bus=room.bus,
            approver=room.approver,
            clock=room.clock,
            retries=room.retries,
            require_isolation=room.require_isolation if is_held else "none",
            secrets=self.secrets(is_tooled=tooled is not None),
            system=model.system if isinstance(model, AgentModel) else "",
            name=model.name,
        )

    def secrets(self, *, is_tooled: bool) -> Secrets | None:
        """What no record may show: of an answer that is itself the step's output, not even that is altered."""
        if is_tooled or not self.assignment.is_candidate:
            return self.room.secrets
        from orchestrator.plan.discretion import candidate_secrets

        return candidate_secrets(self.room.secrets)


def allotted(assignment: Assignment, known: Execution | None) -> Allotment:
    """What the run may use; its time counts from its beginning, the plan's goes on."""
    given = assignment.allotment
    if given.seconds is None or known is None:
        return given
    return attrs.evolve(given, seconds=given.seconds + known.ledger.elapsed_us() / 1_000_000)


def lay_out(directory: Path, files: Mapping[str, str]) -> None:
    """A fresh workspace with these files."""
    from shutil import rmtree

    rmtree(directory, ignore_errors=True)  # what lies there belongs to no run that began
    directory.mkdir(mode=0o700, parents=True)
    write_files(files, directory)


@attrs.define(eq=False)
class Conforming:
    """A conformance run: the step prompt is the spec's intent, a suite of the host's is the judge."""

    room: Workroom
    model: GeneratorModel
    assignment: Assignment

    async def work(self, known: Execution | None) -> None:
        """Generate until the suite passes, or the attempts are used."""
        room, assignment = self.room, self.assignment
        assert assignment.suite is not None
        engine = NestedOrchestrator(
            generator=self.model.generator,
            evaluator=assignment.suite,
            budget=allotted(assignment, known).budget(room.attempts),
            parameters=self.model.parameters,
            journal=room.journal,
            bus=room.bus,
            approver=room.approver,
            clock=room.clock,
            retries=room.retries,
            candidate_limit=self.model.output_limit,
            require_isolation=room.require_isolation,
            secrets=room.secrets,
            refuse_secrets=room.refuses_secrets,
            parent=assignment.parent,
        )
        if known is None:
            spec = MergedSpec(name=assignment.child_id.replace(".", "-"), intent=assignment.prompt)
            await engine.arun(spec, run_id=assignment.child_id)
        else:
            await engine.aresume(assignment.child_id)


@attrs.define(eq=False, kw_only=True)
class NestedOrchestrator(Orchestrator):
    """An orchestrator whose runs are children of another run."""

    parent: Parent

    async def finish(self, run: Run) -> Passed | Exhausted:
        """Drive a run to the end of its invocation; its beginning names where it comes from."""
        for place, record in enumerate(run.outbox):
            if isinstance(record.event, ExecutionStart):
                parent = self.parent
                event = attrs.evolve(
                    record.event,
                    root_id=parent.root_id,
                    parent_id=parent.run_id,
                    parent_sequence=parent.sequence,
                )
                run.outbox[place] = record._replace(event=event)
        return await super().finish(run)
