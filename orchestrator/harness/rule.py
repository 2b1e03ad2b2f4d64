"""The rule: one concern, judged by typed records alone, so that a run can be replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

import attrs

from orchestrator.excerpt import excerpt
from orchestrator.harness.actions import Action, ActionRecord, ToolRole
from orchestrator.harness.decisions import Denial, Warned
from orchestrator.harness.verification import Progress

__all__ = ["Past", "Rule", "quoted", "unverified_write"]

Past: TypeAlias = Sequence[ActionRecord]
"""Every action that was executed, in order. What was denied is not in it."""


@attrs.frozen
class Rule:
    """A rule that never objects; a real one overrides what it is about.

    Rules are pure: the same action, past and progress give the same answer, whenever they are asked.
    """

    name: ClassVar[str]
    """What denials, warnings and mount plans call it."""
    needs_verifier: ClassVar[bool] = False
    """Whether it would lock an agent out where nothing can verify."""

    def check(self, action: Action, past: Past, progress: Progress) -> Denial | Warned | None:  # noqa: ARG002
        """Whether the action may be executed."""
        return None

    def check_finish(self, past: Past, progress: Progress) -> Denial | None:  # noqa: ARG002
        """Whether the agent may finish."""
        return None

    def note(self, past: Past, progress: Progress) -> str:  # noqa: ARG002
        """What the next prompt says; empty for nothing."""
        return ""


def unverified_write(past: Past, progress: Progress) -> ActionRecord | None:
    """The last successful write, unless it was verified or that was tried; None when there is none.

    An attempt counts as well, since a verifier that broke, or was refused, must not lock the agent out.
    """
    for record in reversed(past):
        if record.action.role is ToolRole.VERIFY:
            return None
        if record.is_write:
            # One by an evaluator is no tool call, one that was refused no action: the fold alone knows of it.
            writes = sum(1 for each in past if each.is_write)
            return record if writes > max(progress.verified_writes, progress.tried_writes) else None
    return None


def quoted(text: str) -> str:
    """Text of a model's within a sentence: one line, bounded, between quotes."""
    return repr(excerpt(text, 200))
