"""A plan: its goal and its steps, read from a file with every fault at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256

import attrs

from orchestrator.documents import read_document
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.jsondata import JSON
from orchestrator.plan.checking import Sketch, check_sketches, head_faults, rule_faults, text_faults
from orchestrator.plan.dumping import dumped
from orchestrator.plan.misfits import misfits
from orchestrator.plan.vocabulary import Executor, PlanState, Risk, TaskType, as_executor, as_risk, as_task_type
from orchestrator.structuring import structure

__all__ = ["Plan", "PlanError", "ReviewGates", "Step", "load_plan", "read_plan"]


class PlanError(DocumentError):
    """A plan breaks a rule of its form; nothing was executed. `faults` lists everything that is wrong."""


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """A list as a tuple; anything else as it is, for the plan to complain of."""
    return tuple(texts) if isinstance(texts, list) else texts  # type: ignore[return-value]


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
    acceptance_criteria: tuple[str, ...] = attrs.field(converter=in_order)
    """At least one."""
    risk_level: Risk = attrs.field(converter=as_risk)
    title: str = ""
    task_type: TaskType | None = attrs.field(default=None, converter=attrs.converters.optional(as_task_type))
    depends_on: tuple[str, ...] = attrs.field(default=(), converter=in_order)
    """Ids of steps that must be completed before."""
    inputs: tuple[str, ...] = attrs.field(default=(), converter=in_order)
    """Names of outputs of steps it depends on, directly or not, or of the plan's context artifacts.

    A step that names no outputs has one all the same: `step_<id>_output.md`.
    """
    outputs: tuple[str, ...] = attrs.field(default=(), converter=in_order)
    """Names of the artifacts it makes: relative paths."""
    constraints: tuple[str, ...] = attrs.field(default=(), converter=in_order)
    checklist: tuple[str, ...] = attrs.field(default=(), converter=in_order)
    forbidden: tuple[str, ...] = attrs.field(default=(), converter=in_order)
    output_format: str = ""
    test_plan: tuple[str, ...] = attrs.field(default=(), converter=in_order)
    rollback_plan: str = ""
    review_gates: ReviewGates = attrs.field(factory=ReviewGates)
    ambiguity: bool = False
    """Whether the task can be understood in several ways: such tasks are done twice and compared."""
    doc_trigger: str = ""
    """What of the documentation the step makes stale; empty: nothing."""
    model: str = ""
    """A hint; the routing policy decides."""
    executor: Executor = attrs.field(default=Executor.GENERATOR, converter=as_executor)


def steps_in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """A list as a tuple; anything else as it is, for the plan to complain of."""
    return tuple(steps) if isinstance(steps, list) else steps  # type: ignore[return-value]


@attrs.frozen(kw_only=True)
class Plan:
    """A goal and the steps that reach it (contract 5). Making one raises PlanError with every fault.

    Ids differ also in lower case, since they become file names; dependencies are acyclic; every input is the
    output of a step it depends on, or a context artifact. Two steps may make the same output only if one
    depends on the other.
    """

    plan_id: str
    goal: str
    steps: tuple[Step, ...] = attrs.field(converter=steps_in_order)
    lifecycle: PlanState = "draft"
    context_requirements: tuple[str, ...] = attrs.field(default=(), converter=in_order)
    """Artifacts that must be in the studio before the plan starts: paths relative to its root."""
    constraints: tuple[str, ...] = attrs.field(default=(), converter=in_order)
    forbidden: tuple[str, ...] = attrs.field(default=(), converter=in_order)

    def __attrs_post_init__(self) -> None:
        faults = with_rules(tuple(misfits(self)), dumped(self)) or rules_broken(self)
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
        raise PlanError(source, with_rules(error.faults, data)) from None


def with_rules(misfit: tuple[Fault, ...], data: JSON) -> tuple[Fault, ...]:
    """The values of a wrong type and the broken rules: one run tells the author of both. None without the first."""
    told = {fault.path for fault in misfit}
    return (*misfit, *(fault for fault in rule_faults(data) if fault.path not in told)) if misfit else ()


def rules_broken(plan: Plan) -> tuple[Fault, ...]:
    """Every rule that a plan whose values have their types breaks."""
    sketches = [
        Sketch(each.id, each.depends_on, each.inputs, each.outputs, each.acceptance_criteria, each.role, each.task)
        for each in plan.steps
    ]
    faults = (*head_faults(plan.plan_id, plan.goal), *check_sketches(sketches, plan.context_requirements))
    return (*faults, *text_faults(dumped(plan)))
