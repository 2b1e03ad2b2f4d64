"""What the studio knows: state.json as a value, and STATE.md, which is written from it and never read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import attrs

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.exports.inertmarkdown import span
from orchestrator.faults import Fault
from orchestrator.plan.dumping import as_json
from orchestrator.plan.vocabulary import PlanState
from orchestrator.structuring import structure

__all__ = [
    "FORMAT",
    "Artifact",
    "Contract",
    "DecisionEntry",
    "StudioState",
    "StudioStateError",
    "read_state",
    "state_page",
]

FORMAT = "orchestrator.studio/1"


class StudioStateError(DocumentError):
    """state.json is damaged or of another form; `faults` says where. The version before it is kept beside it."""


@attrs.frozen(kw_only=True)
class Artifact:
    """An output of a step, where it lies and whether a reviewer has approved it."""

    path: str
    """Relative to the studio's root."""
    step: str
    run: str
    attempt: int
    sha256: str
    status: Literal["unreviewed", "reviewed"] = "unreviewed"


@attrs.frozen(kw_only=True)
class DecisionEntry:
    """A decision, and the record that tells it whole."""

    number: int
    title: str
    status: str
    path: str


@attrs.frozen(kw_only=True)
class Contract:
    """An interface definition, and what its check found."""

    sha256: str
    kind: str
    verdict: Literal["valid", "not validated"]


@attrs.frozen(kw_only=True)
class StudioState:
    """The Context Bus's state (contract 5); each write makes its revision one higher."""

    format: Literal["orchestrator.studio/1"] = "orchestrator.studio/1"
    revision: int = 0
    plan_id: str = ""
    plan_digest: str = ""
    lifecycle: Literal[PlanState, "idle"] = "idle"
    """`idle` where no plan is at work."""
    run_id: str = ""
    completed_steps: tuple[str, ...] = ()
    decisions: tuple[DecisionEntry, ...] = ()
    contracts: dict[str, Contract] = attrs.field(factory=dict)
    open_risks: tuple[str, ...] = ()
    failure_history: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    """By step, the reasons of its failures in order."""
    artifacts: dict[str, Artifact] = attrs.field(factory=dict)
    """By name, the newest."""

    def completing(self, step_id: str) -> StudioState:
        """The state once a step is completed."""
        if step_id in self.completed_steps:
            return self
        return attrs.evolve(self, completed_steps=(*self.completed_steps, step_id))

    def failing(self, step_id: str, reason: str) -> StudioState:
        """The state once an attempt at a step has failed."""
        failures = (*self.failure_history.get(step_id, ()), reason)
        return attrs.evolve(self, failure_history={**self.failure_history, step_id: failures})

    def as_json(self) -> dict[str, Any]:
        """The state as JSON data, which reads as an equal one."""
        return as_json(self)


def read_state(text: str, source: str) -> StudioState:
    """The state in the text of a state.json; raises StudioStateError with every fault."""
    try:
        return structure(parse_document(text, ".json", source), StudioState, source)
    except DocumentError as error:
        remedy = Fault("", "put the one before in its place, or remove it: it is written anew from the journal")
        raise StudioStateError(source, (*(error.faults or (Fault("", "cannot be read"),)), remedy)) from None


def state_page(state: StudioState) -> str:
    """STATE.md: what people want to know of the state. Texts of models stand in it as code, so they stay text."""
    return "\n".join(lines(state)) + "\n"


def lines(state: StudioState) -> Iterator[str]:
    """The lines of STATE.md."""
    yield from ("# State", "", "Written from state.json; changes made here are lost.", "")
    yield f"- Plan: {span(state.plan_id) or 'none'}"
    yield f"- Lifecycle: {state.lifecycle}"
    yield f"- Run: {span(state.run_id) or 'none'}"
    yield f"- Revision: {state.revision}"
    yield from section("Open risks", map(span, state.open_risks))
    decisions = (
        f"{each.number:04d} {span(each.title)}, {span(each.status)}: {span(each.path)}" for each in state.decisions
    )
    yield from section("Decisions", decisions)
    yield from section("Completed steps", map(span, state.completed_steps))
    contracts = (f"{span(name)}: {span(each.kind)}, {each.verdict}" for name, each in sorted(state.contracts.items()))
    yield from section("Contracts", contracts)
    yield from section("Artifacts", artifact_lines(state.artifacts))
    yield from section("Failures", failure_lines(state.failure_history))


def section(title: str, entries: Iterator[str]) -> Iterator[str]:
    """A heading and a list."""
    yield from ("", f"## {title}", "")
    found = [f"- {entry}" for entry in entries]
    yield from found or ["None."]


def artifact_lines(artifacts: Mapping[str, Artifact]) -> Iterator[str]:
    """A line for each artifact."""
    for name, each in sorted(artifacts.items()):
        yield f"{span(name)}: step {span(each.step)}, {each.status}"


def failure_lines(failures: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """A line for each step that failed."""
    for step_id, reasons in failures.items():
        yield f"{span(step_id)}: {len(reasons)}, last {span(reasons[-1]) if reasons else 'none'}"
