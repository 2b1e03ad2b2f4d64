"""What somebody has to decide, what can be chosen, and who decides: a callback, a policy, or a person later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import attrs

from orchestrator.jsondata import JSON
from orchestrator_events.errors import OrchestratorError

__all__ = [
    "ABORT",
    "GO_ON",
    "KEEPING",
    "OPTIONS",
    "PROVIDE",
    "SOURCES",
    "START_FRESH",
    "USE_FILE",
    "USE_JOURNAL",
    "About",
    "ChoiceError",
    "Decide",
    "Decision",
    "Policy",
]


class About(StrEnum):
    """What a decision is about."""

    PHASE_ERROR = "phase error"
    CASCADE = "cascade"
    HALTED = "halted"
    NOT_FOUND = "state not found"
    CORRUPT = "state corrupt"
    MISMATCH = "state mismatch"
    WRITE_FAILED = "write failed"
    BUDGET = "budget"


ABORT: Final = "abort"
GO_ON: Final = "go on"
START_FRESH: Final = "start fresh"
PROVIDE: Final = "provide state"
USE_FILE: Final = "use file"
USE_JOURNAL: Final = "use journal"

OPTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        About.PHASE_ERROR: ("retry", "skip", ABORT),
        About.CASCADE: ("fix", "skip", ABORT),
        About.HALTED: ("retry", "skip", ABORT),
        About.NOT_FOUND: (START_FRESH, PROVIDE, USE_JOURNAL, ABORT),
        About.CORRUPT: (START_FRESH, PROVIDE, USE_JOURNAL, ABORT),
        About.MISMATCH: (USE_FILE, USE_JOURNAL, PROVIDE, ABORT),
        About.WRITE_FAILED: ("retry", ABORT),
        About.BUDGET: (GO_ON, ABORT),
    }
)
"""What can be chosen (contract 4: retry, skip, abort; fix root cause, skip, abort; start fresh, provide state)."""

KEEPING: Final = ("retry", ABORT)
"""Choices that leave the state as it is, and can be taken before the file is looked at."""

SOURCES: Final[Mapping[str, str]] = MappingProxyType(
    {USE_FILE: "edited by a person", PROVIDE: "provided", USE_JOURNAL: "derived from the journal"}
)
"""Choices that say which state holds, whatever the file has; and where that state comes from then."""


class ChoiceError(OrchestratorError, ValueError):
    """What was chosen cannot be; nothing was written. `options` lists what can."""

    def __init__(self, choice: str, options: tuple[str, ...], reason: str = "") -> None:
        self.choice = choice
        self.options = options
        detail = reason or "it is not one of the options"
        super().__init__(f"{choice!r:.80} cannot be chosen: {detail}; choose one of {', '.join(options)}")


@attrs.frozen(kw_only=True)
class Decision:
    """What has to be decided: `about` names the kind of it, `message` says what happened."""

    about: str
    message: str
    options: tuple[str, ...]
    phase: str
    run_id: str
    workflow_id: str | None
    state: Mapping[str, JSON] = attrs.field(repr=False)
    """The workflow's state, a copy."""


Decide: TypeAlias = Callable[[Decision], Awaitable[str | None] | str | None]
"""Chooses one of a decision's options; None leaves it to a person, and the workflow pauses."""


@attrs.frozen(kw_only=True)
class Policy:
    """What is chosen without asking anyone; empty: nothing is, and the workflow pauses.

    A phase that has failed more than five times in a row halts whatever the policy says.
    """

    phase_error: Literal["retry", "skip", "abort", ""] = ""
    cascade: Literal["skip", "abort", ""] = ""

    def choice(self, about: str) -> str:
        """What it chooses; empty for what it says nothing of."""
        choices = {About.PHASE_ERROR: self.phase_error, About.CASCADE: self.cascade}
        return choices.get(About(about), "")
