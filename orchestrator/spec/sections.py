"""The sections of a spec as a generator reads them: titled texts, in the order of contract 1."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from orchestrator.spec.model import MergedSpec

__all__ = ["EMPTY", "Section", "sections_of"]

EMPTY: Final = "(none)"
"""The text of a section the spec says nothing in."""


@attrs.frozen
class Section:
    """One titled part of a spec; `text` is the author's, byte for byte, or `(none)`."""

    title: str
    text: str


def sections_of(spec: MergedSpec) -> tuple[Section, ...]:
    """All six sections of contract 1, also the empty ones; then references and properties, if any.

    Evals are left out: they judge the candidate and are shown to no generator.
    """
    return tuple(_sections(spec))


def _sections(spec: MergedSpec) -> Iterator[Section]:
    constraints = "\n".join(f"- {constraint.id}: {constraint.text}" for constraint in spec.constraints)
    examples = "\n\n".join(f"### {example.name}\n{example.text}" for example in spec.examples)
    yield Section("Intent", spec.intent or EMPTY)
    yield Section("Constraints", constraints or EMPTY)
    yield Section("Avoid", spec.avoid or EMPTY)
    yield Section("Interface", spec.interface or EMPTY)
    yield Section("Threat model", spec.threat_model or EMPTY)
    yield Section("Examples", examples or EMPTY)
    if spec.references:
        yield Section("References", spec.references)
    if spec.properties:
        yield Section("Properties", _property_lines(spec))


def _property_lines(spec: MergedSpec) -> str:
    return "\n".join(f"- {name}: {_as_text(value)}" for name, value in spec.properties.items())


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
