"""What makes an agent the one it is: its parts by name, and what of them a resume may not change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.agent.invocation import Parts
from orchestrator.agent.plainjson import read_object
from orchestrator.agent.ports import Tool
from orchestrator.agent.verifiers import Verifier
from orchestrator.harness.actions import ToolRole
from orchestrator.harness.harness import Harness
from orchestrator.jsondata import JSON

__all__ = ["REQUEST", "by_name", "fitting", "identity_of"]

REQUEST: Final = "request"
"""What a run was asked beside its prompt: recorded in its identity, and taken from there on a resume."""


def by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    """The tools by their names; ValueError where two have the same."""
    named = {tool.name: tool for tool in tools}
    if len(named) != len(tools):
        names = [tool.name for tool in tools]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two tools are called {twice!r}: a call could not tell them apart")
    return named


def fitting(harness: Harness, tools: Mapping[str, Tool], verifier: Verifier | None) -> Harness:
    """The harness; where nothing verifies, without the rules that would wait for that."""
    verifies = any(harness.roles.role_of(name) is ToolRole.VERIFY for name in tools)
    return harness if verifies or verifier is not None else harness.without_verifier()


def identity_of(parts: Parts) -> dict[str, JSON]:
    """What may not change over a resume."""
    harness = parts.harness
    return {
        "default_provider": parts.default_provider,
        "harness": {
            "rules": [repr(rule) for rule in harness.rules],
            "roles": {tool: str(role) for tool, role in sorted(harness.roles.roles.items())},
            "auto_verify": harness.auto_verify,
            "finish_when_green": harness.finish_when_green,
            "hints": list(harness.hints),
        },
        "model": parts.model,
        "name": parts.name,
        "parameters": read_object(parts.parameters),
        "providers": sorted(parts.providers),
        "system": parts.system,
        "tools": sorted(parts.tools),
    }
