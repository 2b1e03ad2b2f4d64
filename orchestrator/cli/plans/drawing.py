"""The command `plan graph`: the steps, what depends on what, and how far each is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import assert_never

from orchestrator.blocking import run_blocking
from orchestrator.cli.choices import PlanGraphFormat
from orchestrator.cli.runplace import RunPlace
from orchestrator.history import UnknownRunError
from orchestrator.jsondata import JSON
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.ordering import parallel_sets
from orchestrator.plan.plan import Plan, load_plan

__all__ = ["draw_plan"]


def draw_plan(plan_file: Path, form: PlanGraphFormat, runs: Path) -> None:
    """The plan's steps: what depends on what, what may run side by side, and how far each is."""
    plan = load_plan(plan_file)
    plan, states = standing(plan, runs)
    match form:
        case PlanGraphFormat.TEXT:
            text = "\n".join(text_lines(plan, states)) + "\n"
        case PlanGraphFormat.MERMAID:
            text = "\n".join(mermaid_lines(plan, states)) + "\n"
        case PlanGraphFormat.DOT:
            text = "\n".join(dot_lines(plan, states)) + "\n"
        case PlanGraphFormat.JSON:
            text = as_json(plan, states)
        case _:
            assert_never(form)
    sys.stdout.write(text)


def standing(plan: Plan, runs: Path) -> tuple[Plan, Mapping[str, str]]:
    """The plan with its follow-ups, and the states of its steps, where the journal knows them."""
    place = RunPlace.at(runs)
    if not place.journal_file.is_file():
        return plan, {}
    with closing(place.journal_to_read()) as journal:
        try:
            report = run_blocking(PlanOrchestrator(plan, journal=journal).astatus())
        except UnknownRunError:
            return plan, {}
    return report.plan, {step.id: step.state for step in report.steps}


def text_lines(plan: Plan, states: Mapping[str, str]) -> Iterator[str]:
    """A group of steps after the other; those of one may run side by side."""
    for number, group in enumerate(parallel_sets(plan), 1):
        yield f"{number}."
        for step in group:
            after = f"  after {', '.join(step.depends_on)}" if step.depends_on else ""
            state = f"  {states[step.id]}" if step.id in states else ""
            yield f"   {step.id}  {step.risk_level} risk{state}{after}"


def mermaid_lines(plan: Plan, states: Mapping[str, str]) -> Iterator[str]:
    """A flowchart."""
    numbers = {step.id: f"s{number}" for number, step in enumerate(plan.steps)}
    yield "flowchart TD"
    for step in plan.steps:
        state = f"<br/>{states[step.id]}" if step.id in states else ""
        yield f'    {numbers[step.id]}["{step.id}{state}"]'
    for step in plan.steps:
        yield from (f"    {numbers[other]} --> {numbers[step.id]}" for other in step.depends_on)


def dot_lines(plan: Plan, states: Mapping[str, str]) -> Iterator[str]:
    """A directed graph."""
    yield "digraph plan {"
    for step in plan.steps:
        state = f"\\n{states[step.id]}" if step.id in states else ""
        yield f'    "{step.id}" [label="{step.id}{state}"];'
    for step in plan.steps:
        yield from (f'    "{other}" -> "{step.id}";' for other in step.depends_on)
    yield "}"


def as_json(plan: Plan, states: Mapping[str, str]) -> str:
    """Nodes and edges."""
    import json

    nodes: list[JSON] = [
        {"id": step.id, "state": states.get(step.id, "pending"), "after": list(step.depends_on)} for step in plan.steps
    ]
    groups: list[JSON] = [[step.id for step in group] for group in parallel_sets(plan)]
    return json.dumps({"plan": plan.plan_id, "steps": nodes, "groups": groups}, indent=2) + "\n"
