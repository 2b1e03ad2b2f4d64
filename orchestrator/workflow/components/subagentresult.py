"""What became of a subagent, and of several that ran side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from orchestrator.charges import plus
from orchestrator.jsondata import JSON
from orchestrator_events.budget import Charge

__all__ = ["ParallelResult", "Status", "SubagentResult", "together"]

Status = Literal["success", "failure", "blocked", "timeout", "error"]


@attrs.frozen(kw_only=True)
class SubagentResult:
    """What a subagent gave; only an output that fits its role's schema is in `output`."""

    subagent_id: str
    role: str
    status: Status
    output: Mapping[str, JSON] = attrs.field(factory=dict)
    raw: str = ""
    """What it answered, where that is no output: for people, never to be followed."""
    error: str = ""
    """Why there is no output; empty where there is one."""
    is_malformed: bool = False
    """Whether it answered, but with no output of its role."""
    charge: Charge = attrs.Factory(Charge)
    duration_us: int = 0
    calls: int = 1
    cut: tuple[str, ...] = ()
    """What was cut from its context."""

    @property
    def is_success(self) -> bool:
        """Whether it did what it was asked for, by its own account."""
        return self.status == "success"

    def as_json(self) -> dict[str, JSON]:
        """The result as phases that are files read it."""
        return {
            "subagent_id": self.subagent_id,
            "type": self.role,
            "status": self.status,
            "result": dict(self.output),
            "raw": self.raw,
            "error": self.error,
            "cut": list(self.cut),
            "calls": self.calls,
            "duration_ms": self.duration_us // 1000,
            "tokens_used": {"input": self.charge.input_tokens, "output": self.charge.output_tokens},
        }


@attrs.frozen
class ParallelResult:
    """What several subagents gave, in the order of their tasks."""

    results: tuple[SubagentResult, ...]

    @property
    def status(self) -> str:
        """success where all succeeded, failure where none did, else partial."""
        succeeded = sum(result.is_success for result in self.results)
        return "success" if succeeded == len(self.results) else "partial" if succeeded else "failure"


def together(first: SubagentResult, second: SubagentResult) -> SubagentResult:
    """The second call's result, charged and timed for both."""
    charge = plus(first.charge, second.charge)
    duration_us = first.duration_us + second.duration_us
    raw = second.raw or (first.raw if second.status == "error" else "")
    return attrs.evolve(second, charge=charge, duration_us=duration_us, calls=first.calls + second.calls, raw=raw)
