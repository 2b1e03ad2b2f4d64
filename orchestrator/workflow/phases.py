"""What a phase returns: strictly checked, since nothing that leaves a phase is trusted."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.jsondata import JSON, json_faults
from orchestrator.workflow.statetext import LARGEST_STATE
from orchestrator_events.errors import OrchestratorError

__all__ = ["LONGEST_OUTPUT", "PhaseCall", "PhaseOutcome", "PhaseOutcomeError", "outcome_of", "outcome_of_answer"]

LONGEST_OUTPUT: Final = 100_000
"""Longest summary of a phase, characters."""
FIELDS: Final = ("next_phase", "state_updates", "output")


class PhaseOutcomeError(OrchestratorError):
    """What a phase returned is no outcome; `faults` lists everything that is wrong with it."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        super().__init__("; ".join(str(fault) for fault in faults))


@attrs.frozen
class PhaseOutcome:
    """What a phase returns (contract 4): where to go on, what changes in the state, what to tell people.

    An `error` in the updates that is not null says that the phase failed: the workflow stays on it.
    """

    next_phase: str
    state_updates: Mapping[str, JSON] = attrs.field(factory=dict)
    output: str = ""


PhaseCall: TypeAlias = Callable[..., PhaseOutcome | Mapping[str, JSON] | Awaitable[PhaseOutcome | Mapping[str, JSON]]]
"""A phase: `(state, components) -> PhaseOutcome`, plain or async. The state is the phase's own copy."""


def outcome_of(returned: object) -> PhaseOutcome:
    """What a callable returned, checked: a PhaseOutcome, or a mapping with the contract's three keys.

    Raises PhaseOutcomeError with every fault.
    """
    if isinstance(returned, PhaseOutcome):
        returned = {name: getattr(returned, name) for name in FIELDS}
    if not isinstance(returned, Mapping):
        message = f"the phase returned {type(returned).__name__}: return a PhaseOutcome"
        raise PhaseOutcomeError((Fault("", message),))
    data = dict(returned)
    if isinstance(data.get("state_updates"), Mapping):
        data["state_updates"] = dict(data["state_updates"])
    faults = tuple(faults_of(data))
    if faults:
        raise PhaseOutcomeError(faults)
    # Through text, so that nothing the phase still holds can change what it returned.
    return PhaseOutcome(**json.loads(json.dumps(data)))


def outcome_of_answer(text: str) -> PhaseOutcome:
    """The outcome that a generator wrote: one JSON object and nothing else.

    Raises PhaseOutcomeError with every fault.
    """
    return outcome_of(object_in(text))


def object_in(text: str) -> JSON:
    """The JSON value of an answer, which may stand in one fenced block."""
    try:
        return parse_document(bare(text), ".json", "the answer")
    except DocumentError as error:
        raise PhaseOutcomeError(
            tuple(attrs.evolve(fault, message=f"the answer is not JSON: {fault.message}") for fault in error.faults)
        ) from None


def bare(text: str) -> str:
    """The text without the fence around it, where all of it is one fenced block."""
    stripped = text.strip()
    lines = stripped.split("\n")
    if len(lines) > 2 and lines[0].strip() in ("```", "```json") and lines[-1].strip() == "```":  # noqa: PLR2004 -- two fences
        return "\n".join(lines[1:-1])
    return stripped


def faults_of(data: Mapping[str, JSON]) -> Iterator[Fault]:
    """Everything that is wrong with an outcome."""
    for key in data:
        if key not in FIELDS:
            yield Fault(f"$.{key!s:.80}", f"unknown key: give {', '.join(FIELDS)} and nothing else")
    for name, kind, words in (("next_phase", str, "a string"), ("output", str, "a string")):
        if name not in data:
            yield Fault(f"$.{name}", "required key is missing")
        elif not isinstance(data[name], kind):
            yield Fault(f"$.{name}", f"expected {words}, found {type(data[name]).__name__}")
    yield from updates_faults(data)
    output = data.get("output")
    if isinstance(output, str) and len(output) > LONGEST_OUTPUT:
        yield Fault("$.output", f"{len(output)} characters, at most {LONGEST_OUTPUT} are taken: write a summary")
    for name in ("next_phase", "output"):
        if isinstance(data.get(name), str):
            yield from json_faults(data[name], f"$.{name}")


def updates_faults(data: Mapping[str, JSON]) -> Iterator[Fault]:
    """What is wrong with the state updates."""
    if "state_updates" not in data:
        yield Fault("$.state_updates", "required key is missing")
        return
    updates = data["state_updates"]
    if not isinstance(updates, dict):
        yield Fault("$.state_updates", f"expected an object, found {type(updates).__name__}")
        return
    faults = tuple(json_faults(updates, "$.state_updates"))
    yield from faults
    error = updates.get("error")
    if error is not None and not isinstance(error, str):
        yield Fault("$.state_updates.error", f"expected a string or null, found {type(error).__name__}")
    if not faults and len(json.dumps(updates, ensure_ascii=False).encode()) > LARGEST_STATE:
        yield Fault("$.state_updates", f"more than {LARGEST_STATE} bytes: keep large things in files of their own")
