"""Specs: what a generator is told, what a candidate is judged by, and how both are read from files."""

from __future__ import annotations

import os

from orchestrator.spec.model import Constraint, EvalCase, EvalKind, Example, MergedSpec
from orchestrator.spec.sections import Section

__all__ = [
    "Constraint",
    "EvalCase",
    "EvalKind",
    "Example",
    "MergedSpec",
    "Section",
    "load_spec",
]


def load_spec(path: str | os.PathLike[str]) -> MergedSpec:
    """The spec at `path`: a module directory, or a merged spec as .json, .toml, .yaml or .yml.

    Raises SpecError with every fault, UnmergedSpecError for a module that is not closed.
    """
    from orchestrator.spec.loading import load_spec as load

    return load(path)
