"""What is missing before a plan can be executed: all of it, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.plan.contractfiles import why_never_validated
from orchestrator.plan.errors import PlanNotReadyError
from orchestrator.plan.gates import Gate, required_gates
from orchestrator.plan.plan import Plan, Step
from orchestrator.plan.recorded import MOST_FIXES
from orchestrator.plan.routing import Mode, ReviewKind, Route, situation_of
from orchestrator.plan.studiopaths import CONTRACTS
from orchestrator.plan.vocabulary import Executor
from orchestrator.plan.workshop import Parts

__all__ = ["PlanNotReadyError", "readiness_faults"]

RESERVED = ("primary-", "secondary-", "post-pass-", "comparison-", "review-", "qa-", "security-", "plan-review-")
"""What the ids of runs inside a step go on with; a step id with such an ending could be taken for one of them."""

CANNOT = {
    Executor.GENERATOR: "cannot do: map it to a generator",
    Executor.AGENT: "cannot do: map it to an AgentModel, which takes Python: no configuration file describes one",
    Executor.CONFORMANCE: "cannot do: map it to a generator, since an agent conforms to no suite",
}
"""What is said of a model that cannot execute a step."""


def readiness_faults(plan: Plan, parts: Parts) -> Iterator[str]:
    """What is missing, in the plan's order."""
    unknown: dict[str, str] = {}
    if plan.lifecycle == "completed":
        yield "the plan says that it is completed, so nothing is left to execute: leave its lifecycle out to do it anew"
    for step in plan.steps:
        yield from id_faults(plan, step)
        for failures in range(MOST_FIXES + 1):
            route = parts.policy.route(situation_of(step, failures), step.model)
            for name in models_of(route):
                if name not in parts.models:
                    unknown.setdefault(name, f"step {step.id} ({route.rule})")
        first = parts.policy.route(situation_of(step), step.model)
        yield from step_faults(step, first, parts)
    for kind, name in parts.examiners.items():
        if name not in parts.models:
            unknown.setdefault(name, f"the {kind} agent")
    for name, where in unknown.items():
        yield f"the model {name!r}, which {where} goes to, is not mapped: add it to models"


def id_faults(plan: Plan, step: Step) -> Iterator[str]:
    """Ids of steps that a run inside another step could have."""
    for other in plan.steps:
        rest = step.id.removeprefix(f"{other.id}.")
        if rest != step.id and rest.startswith(RESERVED):
            yield f"step {step.id} has an id that a run inside step {other.id} could have: rename it"


def models_of(route: Route) -> Iterator[str]:
    """The models that a route needs."""
    yield route.primary
    yield route.reviewer
    if route.mode is not Mode.SINGLE and route.secondary:
        yield route.secondary


def executing_models(step: Step, route: Route, parts: Parts) -> set[str]:
    """The models that have to be able to execute a step as it says.

    A conformance run's suite is passed by at no turn: not by a secondary, nor by the model of an escalation.
    """
    names = {route.primary}
    if step.executor == "conformance":
        routes = [parts.policy.route(situation_of(step, failures), step.model) for failures in range(MOST_FIXES + 1)]
        names = {name for each in routes for name in (each.primary, each.secondary)}
    return names & parts.models.keys()


def step_faults(step: Step, route: Route, parts: Parts) -> Iterator[str]:
    """What a step lacks."""
    if not route.reviewer:
        yield f"step {step.id} has no reviewer: name one in the policy's defaults"
    for name in sorted(executing_models(step, route, parts)):
        if step.executor not in parts.models[name].executors:
            what = f"as {step.executor}, which the model {name!r} {CANNOT[step.executor]}"
            yield f"step {step.id} is to be executed {what}"
    if step.executor == "conformance" and step.id not in parts.suites:
        yield f"step {step.id} is a conformance run without an eval suite: add it to suites, by the id of the step"
    if step.executor == "agent" and parts.room.workspaces is None:
        yield f"step {step.id} is executed by an agent, whose workspace has no place: name one in workspaces"
    for gate in required_gates(step, route.reviews):
        if gate.kind is ReviewKind.MANUAL_APPROVAL:
            if parts.room.approver is None:
                remedy = "be at the terminal, or give an approver"
                yield f"step {step.id} needs a person's approval ({gate.reason}), and nobody is there: {remedy}"
            continue
        has_check = any(
            check.kind is gate.kind and (not check.steps or step.id in check.steps) for check in parts.checks
        )
        if not has_check:
            yield from evidence_faults(step, gate)


def evidence_faults(step: Step, gate: Gate) -> Iterator[str]:
    """What a gate that no check captures anything for lacks; contracts are their own evidence, where one is known."""
    contracts = [name for name in step.outputs if name.startswith(CONTRACTS)]
    obstacles = {name: why_never_validated(name) for name in contracts if gate.kind is ReviewKind.INTEGRATION}
    if not obstacles:
        yield f"step {step.id} needs {gate.kind} evidence ({gate.reason}), and no check captures any: add one"
    elif all(obstacles.values()):
        name, why = next(iter(obstacles.items()))
        yield f"step {step.id} makes {name}, which nothing here validates ({why}): add an integration check"
