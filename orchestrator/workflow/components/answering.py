"""The output of a subagent: one JSON object that fits its role's schema, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import attrs

from orchestrator.adapter_errors import CandidateRefusedError
from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.excerpt import excerpt
from orchestrator.faults import Fault
from orchestrator.jsondata import JSON
from orchestrator.paths import refuse_unsafe_paths
from orchestrator.workflow.components.roles import Role
from orchestrator.workflow.jsonshape import value_faults
from orchestrator.workflow.phases import bare
from orchestrator_events.errors import OrchestratorError

__all__ = ["OutputError", "files_of", "output_of"]

MOST_FAULTS: Final = 20
"""How many faults of one output are told."""
LONGEST_REASON: Final = 4_000


class OutputError(OrchestratorError):
    """What a subagent answered is no output of its role; `faults` says why, the first twenty."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        super().__init__(excerpt("; ".join(str(fault) for fault in faults), LONGEST_REASON))


def output_of(role: Role, answer: str) -> dict[str, JSON]:
    """The output in an answer, which is one JSON object and nothing else; it may stand in one fenced block.

    Nothing is repaired. Raises OutputError with what is wrong.
    """
    try:
        output = parse_document(bare(answer), ".json", "the output")
    except DocumentError as error:
        faults = tuple(attrs.evolve(fault, message=f"not JSON: {fault.message}") for fault in error.faults)
        raise OutputError(faults[:MOST_FAULTS]) from None
    faults = tuple(islice(value_faults(output, role.output_schema), MOST_FAULTS)) or tuple(meaning_faults(role, output))
    if faults:
        raise OutputError(faults)
    assert isinstance(output, dict)  # every role's schema says so
    return output


def files_of(output: Mapping[str, JSON]) -> tuple[str, ...]:
    """The files that an output names as changed: what its fields named `files…` list, each once, in order.

    A list of paths, a list of objects with a `path`, or an object of path to content.
    """
    return tuple(
        dict.fromkeys(path for key, value in output.items() if key.startswith("files") for path in paths(value))
    )


def paths(value: JSON) -> Iterator[str]:
    """The paths in one such field."""
    for entry in value if isinstance(value, list | dict) else ():
        path = entry.get("path") if isinstance(entry, dict) else entry
        if isinstance(path, str):
            yield path


def meaning_faults(role: Role, output: Mapping[str, JSON]) -> Iterator[Fault]:
    """What no schema says: plain paths, counts, and an approval without anything that must be fixed."""
    try:
        refuse_unsafe_paths(files_of(output))
    except CandidateRefusedError as error:
        yield Fault("$.files", error.reason.replace("the candidate", "the output", 1))
    if role.name == "REVIEWER" and output.get("approved") is True and must_fix(output):
        yield Fault("$.approved", "true, though an issue must be fixed: approve without one, or do not approve")
    if role.name == "TESTER":
        for name in ("passed", "failed"):
            count = output.get(name)
            if isinstance(count, int) and count < 0:
                yield Fault(f"$.{name}", "a count is not negative")


def must_fix(output: Mapping[str, JSON]) -> bool:
    """Whether an issue must be fixed."""
    issues = output.get("issues")
    return isinstance(issues, list) and any(
        isinstance(issue, dict) and issue.get("severity") == "must_fix" for issue in issues
    )
