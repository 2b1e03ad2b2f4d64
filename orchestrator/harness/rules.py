"""The rules a harness is made of, and the order they stand in unless another is given."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from orchestrator.harness.bounds import DangerousCommands, WorkspaceBounds
from orchestrator.harness.finishing import CompletionRule, StagnationNote
from orchestrator.harness.ordering import OverwriteWarning, ReadLimit, Repetition, ToolSequence
from orchestrator.harness.rule import Past, Rule

__all__ = [
    "RULES",
    "CompletionRule",
    "DangerousCommands",
    "OverwriteWarning",
    "Past",
    "ReadLimit",
    "Repetition",
    "Rule",
    "StagnationNote",
    "ToolSequence",
    "WorkspaceBounds",
    "default_rules",
]

RULES: Final[Mapping[str, type[Rule]]] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            ToolSequence,
            ReadLimit,
            WorkspaceBounds,
            DangerousCommands,
            Repetition,
            OverwriteWarning,
            StagnationNote,
            CompletionRule,
        )
    }
)
"""Every rule by its name, in the default order: the sequence comes first."""


def default_rules(workspace: str | None) -> tuple[Rule, ...]:
    """All rules in the default order; without a workspace there are no bounds to keep to."""
    return (
        ToolSequence(),
        ReadLimit(),
        *([] if workspace is None else [WorkspaceBounds(root=workspace)]),
        DangerousCommands(workspace=workspace),
        Repetition(),
        OverwriteWarning(),
        StagnationNote(),
        CompletionRule(),
    )
