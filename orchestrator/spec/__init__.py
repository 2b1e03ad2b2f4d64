"""Specs: what a generator is told, what a candidate is judged by, and how both are read from files."""

from __future__ import annotations

from orchestrator.spec.loading import dump_spec, load_spec
from orchestrator.spec.model import Constraint, EvalCase, EvalKind, Example, MergedSpec
from orchestrator.spec.sections import Section

__all__ = [
    "Constraint",
    "EvalCase",
    "EvalKind",
    "Example",
    "MergedSpec",
    "Section",
    "dump_spec",
    "load_spec",
]
