"""A plan: its goal and its steps, read from a file with every fault at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256

import attrs

from orchestrator.documents import read_document
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.jsondata import JSON
from orchestrator.plan.checking import Sketch, check_sketches, sketches_of, text_faults
from orchestrator.plan.dumping import dumped
from orchestrator.plan.vocabulary import IDENTIFIER, Executor, PlanState, Risk, TaskType, is_identifier
from orchestrator.structuring import structure

__all__ = ["Plan", "PlanError", "ReviewGates", "Step", "load_plan", "read_plan"]


class PlanError(DocumentError):
    """A plan breaks a rule of its form; nothing was executed. `faults` lists everything that is wrong."""


@attrs.frozen(kw_only=True)
class ReviewGates:
    """Gates that a step asks for; what its risk asks for anyway cannot be switched off here."""

    must_run_security: bool = False
    must_run_integration: bool = False


@attrs.frozen(kw_only=True)
class Step:
    """One step of a plan; `risk_level` has no default, so that nothing is harmless by omission."""

    id: str
    role: str
    """Who does it, such as `Implementer`."""
    task: str
    acceptance_criteria: tuple[str, ...]
    """At least one."""
    risk_level: Risk
    title: str = ""
    task_type: TaskType | None = None
    depends_on: tuple[str, ...] = ()
    """Ids of steps that must be completed before."""
    inputs: tuple[str, ...] = ()
    """Names of outputs of steps it depends on, directly or not, or of the plan's context artifacts."""
    outputs: tuple[str, ...] = ()
    """Names of the artifacts it makes: relative paths."""
    constraints: tuple[str, ...] = ()
    checklist: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    output_format: str = ""
    test_plan: tuple[str, ...] = ()
    rollback_plan: str = ""
    review_gates: ReviewGates = attrs.field(factory=ReviewGates)
    ambiguity: bool = False
    """Whether the task can be understood in several ways: such tasks are done twice and compared."""
    doc_trigger: str = ""
    """What of the documentation the step makes stale; empty: nothing."""
    model: str = ""
    """A hint; the routing policy decides."""
    executor: Executor = Executor.GENERATOR


@attrs.frozen(kw_only=True)
class Plan:
    """A goal and the steps that reach it (contract 5). Making one raises PlanError with every fault.

    Ids differ also in lower case, since they become file names; dependencies are acyclic; every input is the
    output of a step it depends on, or a context artifact. Two steps may make the same output only if one
    depends on the other.
    """

    plan_id: str
    goal: str
    steps: tuple[Step, ...]
    lifecycle: PlanState = "draft"
    context_requirements: tuple[str, ...] = ()
    """Artifacts that must be in the studio before the plan starts: paths relative to its root."""
    constraints: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        faults = (*own_faults(self), *check_sketches([sketch(step) for step in self.steps], self.context_requirements))
        if faults:
            raise PlanError(f"plan {self.plan_id!a:.120}", faults)

    def step(self, step_id: str) -> Step:
        """The step of this id; KeyError without one."""
        return self.by_id[step_id]

    @cached_property
    def by_id(self) -> Mapping[str, Step]:
        """The steps by their ids."""
        return {step.id: step for step in self.steps}

    @cached_property
    def canonical(self) -> str:
        """The plan as RFC 8785 JSON without its lifecycle, parts left empty absent."""
        from rfc8785 import dumps

        return dumps({key: value for key, value in dumped(self).items() if key != "lifecycle"}).decode()

    @cached_property
    def digest(self) -> str:
        """`sha256:` and 64 hexadecimal digits over `canonical`: it changes with every word but the lifecycle."""
        return f"sha256:{sha256(self.canonical.encode()).hexdigest()}"


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """The plan in a .json, .toml, .yaml or .yml file; raises PlanError with every fault."""
    source = os.fspath(path)
    try:
        data = read_document(path)
    except DocumentError as error:
        raise PlanError(error.source, error.faults) from None
    return read_plan(data, source)


def read_plan(data: JSON, source: str) -> Plan:
    """The plan that plain data describes; `source` is the name that errors give it. Raises PlanError."""
    try:
        return structure(data, Plan, source)
    except DocumentError as error:
        # The types stop the reading before the rules are looked at; the author wants to hear of both.
        told = {fault.path for fault in error.faults}
        more = [fault for fault in check_sketches(*sketches_of(data)) if fault.path not in told]
        raise PlanError(source, (*error.faults, *more)) from None


def sketch(step: Step) -> Sketch:
    """What the rules between steps look at."""
    return Sketch(step.id, step.depends_on, step.inputs, step.outputs, step.acceptance_criteria)


def own_faults(plan: Plan) -> list[Fault]:
    """What is wrong with the plan beside the rules between its steps."""
    faults: list[Fault] = []
    if not is_identifier(plan.plan_id):
        faults.append(Fault("$.plan_id", f"{plan.plan_id!a:.120} is no plan id: use {IDENTIFIER}"))
    if not plan.goal.strip():
        faults.append(Fault("$.goal", "is empty: say what the plan is to reach"))
    faults += [
        Fault(f"$.steps[{index}].{name}", "is empty: every step needs one")
        for index, step in enumerate(plan.steps)
        for name in ("role", "task")
        if not getattr(step, name).strip()
    ]
    return [*faults, *text_faults(dumped(plan))]
