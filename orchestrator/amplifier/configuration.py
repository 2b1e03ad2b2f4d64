"""What the mount plan may say about this orchestrator; a plan with a fault says all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os.path import isdir, realpath
from typing import TYPE_CHECKING, Any

import attrs

from orchestrator.agent.limits import DEFAULT_ITERATIONS, MOST_COUNT, MOST_SECONDS, AgentLimits, shown_number
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.harness.harness import Harness
from orchestrator.parameters import write_parameters
from orchestrator.sections.limits import RetriesSection
from orchestrator.structuring import structure
from orchestrator_events.budget import Budget

if TYPE_CHECKING:
    from orchestrator.journal.sqlite import SqliteJournal

__all__ = ["LoopConfig", "journal_of", "limits_of", "read_config"]

SOURCE = "loop-conformance config"
MOST_TOKENS = 10**12
MOST_RETRIES = 1_000


def within(most: float) -> Callable[[object, attrs.Attribute[Any], float | None], None]:
    """Refuse what would be no limit; the iteration limit, above all, cannot be switched off."""

    def check(_instance: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
        if value is not None and not 0 < value <= most:
            raise ValueError(
                f"{attribute.name} must be a number above 0 and at most {most:.0f}, found {shown_number(value)}: "
                "no limit is switched off so"
            )

    return check


def are_sendable(_instance: object, _attribute: object, value: dict[str, Any]) -> None:
    """Refuse parameters that no request can carry, before any prompt."""
    write_parameters(value)
    tokens = value.get("max_tokens")
    if tokens is not None and not (type(tokens) is int and 0 < tokens <= MOST_TOKENS):
        raise ValueError(f"max_tokens must be a whole number from 1 to {MOST_TOKENS}, not {shown_number(tokens)}")


@attrs.frozen(kw_only=True)
class LoopConfig:
    """The keys of `session.orchestrator.config`."""

    max_iterations: int = attrs.field(default=DEFAULT_ITERATIONS, validator=within(MOST_COUNT))
    """Turns of the model; then it gets one last call without tools for a closing answer."""
    max_tool_calls: int | None = attrs.field(default=None, validator=within(MOST_COUNT))
    """Tool calls of one prompt, with the same end."""
    seconds: float | None = attrs.field(default=None, validator=within(MOST_SECONDS))
    """Active time of one prompt."""
    tokens: int | None = attrs.field(default=None, validator=within(MOST_TOKENS))
    """Tokens of one prompt, input and output together."""
    default_provider: str = ""
    model: str = ""
    parameters: dict[str, Any] = attrs.field(factory=dict[str, Any], validator=are_sendable)
    """Other fields of each request, temperature for one."""
    tool_seconds: float | None = attrs.field(default=None, validator=within(MOST_SECONDS))
    """Time that one tool call has."""
    retries: RetriesSection = attrs.field(factory=RetriesSection)
    harness: bool | str | dict[str, Any] = False
    """Rules for the tool calls (contract 3); true for the usual ones, none unless asked for.

    They hold in its `workspace`, by default the session's working directory.
    """
    journal: str = ""
    """SQLite file that every execution is recorded in; empty for none."""
    system: str = ""
    """Put before the conversation as a system message; empty where the context has one."""

    def budget(self) -> Budget | None:
        """The limits of time and tokens; None where neither is set."""
        if self.seconds is None and self.tokens is None:
            return None
        return Budget(seconds=self.seconds, tokens=self.tokens)


def read_config(config: object, directory: str) -> tuple[LoopConfig, Harness]:
    """The configuration and its harness, by default in `directory`, the session's own.

    Raises DocumentError with every fault of both, each with its path.
    """
    stated = {} if config is None else config
    faults: list[Fault] = []
    found, harness = LoopConfig(), Harness(rules=(), auto_verify=False, finish_when_green=False)
    try:
        found = structure(stated, LoopConfig, SOURCE)
        faults += endless(found.retries)
    except DocumentError as error:
        faults += error.faults
    rules = stated.get("harness", False) if isinstance(stated, Mapping) else False
    if rules is None or rules is True or isinstance(rules, str | Mapping):  # what else it is, is a fault by now
        from orchestrator.harness.configuring import harness_from

        try:
            harness = harness_from({"harness": rules}, workspace=directory, resolve=realpath)
            faults += missing(rules, harness.roles.root)
        except DocumentError as error:
            faults += error.faults
    if faults:
        raise DocumentError(SOURCE, tuple(faults))
    return found, harness


def endless(retries: RetriesSection) -> list[Fault]:
    """What is wrong with retries beyond their single fields."""
    if retries.retries > MOST_RETRIES:
        found = shown_number(retries.retries)
        return [Fault("$.retries.retries", f"must be at most {MOST_RETRIES}, found {found}: no end is in sight so")]
    try:
        retries.policy()
    except ValueError as error:
        return [Fault("$.retries", str(error))]
    return []


def missing(rules: object, workspace: str | None) -> list[Fault]:
    """The fault of a workspace that the plan names and that is no directory."""
    if not (isinstance(rules, Mapping) and rules.get("workspace") and workspace) or isdir(workspace):
        return []
    message = f"there is no directory {workspace!r}: make it, name another, or leave workspace out"
    return [Fault("$.harness.workspace", message)]


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
