"""What the mount plan may say about this orchestrator; a plan with a fault says all of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import attrs

from orchestrator.agent.limits import DEFAULT_ITERATIONS, AgentLimits
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.harness.harness import Harness
from orchestrator.sections.limits import RetriesSection
from orchestrator.structuring import structure
from orchestrator_events.budget import Budget

if TYPE_CHECKING:
    from orchestrator.journal.sqlite import SqliteJournal

__all__ = ["LoopConfig", "journal_of", "limits_of", "read_config"]

SOURCE = "loop-conformance config"


def above_zero(_instance: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
    """Refuse what would be no limit; the iteration limit, above all, cannot be switched off."""
    if value is not None and not (isfinite(value) and value > 0):
        raise ValueError(
            f"{attribute.name} must be a finite number above 0, found {value}: no limit is switched off so"
        )


@attrs.frozen(kw_only=True)
class LoopConfig:
    """The keys of `session.orchestrator.config`."""

    max_iterations: int = attrs.field(default=DEFAULT_ITERATIONS, validator=above_zero)
    """Turns of the model; then it gets one last call without tools for a closing answer."""
    max_tool_calls: int | None = attrs.field(default=None, validator=above_zero)
    """Tool calls of one prompt, with the same end."""
    seconds: float | None = attrs.field(default=None, validator=above_zero)
    """Active time of one prompt."""
    tokens: int | None = attrs.field(default=None, validator=above_zero)
    """Tokens of one prompt, input and output together."""
    default_provider: str = ""
    model: str = ""
    parameters: dict[str, Any] = attrs.Factory(dict[str, Any])
    """Other fields of each request, temperature for one."""
    tool_seconds: float | None = attrs.field(default=None, validator=above_zero)
    """Time that one tool call has."""
    retries: RetriesSection = attrs.field(factory=RetriesSection)
    harness: bool | str | dict[str, Any] = False
    """Rules for the tool calls (contract 3); true for the usual ones, none unless asked for."""
    journal: str = ""
    """SQLite file that every execution is recorded in; empty for none."""
    system: str = ""
    """Put before the conversation as a system message; empty where the context has one."""

    def budget(self) -> Budget | None:
        """The limits of time and tokens; None where neither is set."""
        if self.seconds is None and self.tokens is None:
            return None
        return Budget(seconds=self.seconds, tokens=self.tokens)


def read_config(config: object) -> tuple[LoopConfig, Harness]:
    """The configuration and its harness; raises DocumentError with every fault of both, each with its path."""
    stated = {} if config is None else config
    faults: list[Fault] = []
    found, harness = LoopConfig(), Harness(rules=(), auto_verify=False, finish_when_green=False)
    try:
        found = structure(stated, LoopConfig, SOURCE)
    except DocumentError as error:
        faults += error.faults
    rules = stated.get("harness", False) if isinstance(stated, Mapping) else False
    if rules is not False:
        from orchestrator.harness.configuring import harness_from

        try:
            harness = harness_from({"harness": rules}, workspace=None)
        except DocumentError as error:
            faults += error.faults
    if faults:
        raise DocumentError(SOURCE, tuple(faults))
    return found, harness


def limits_of(config: LoopConfig) -> AgentLimits:
    """How far one prompt may go."""
    limits = AgentLimits(iterations=config.max_iterations, tool_calls=config.max_tool_calls)
    return limits if config.tool_seconds is None else attrs.evolve(limits, tool_seconds=config.tool_seconds)


def journal_of(config: LoopConfig) -> SqliteJournal | None:
    """The journal that the plan names, opened; raises JournalError when it cannot be."""
    if not config.journal:
        return None
    from orchestrator.journal.sqlite import SqliteJournal

    return SqliteJournal(config.journal)
