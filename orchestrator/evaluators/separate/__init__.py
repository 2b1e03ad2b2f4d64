"""Judges candidates from another process than theirs: nothing that a candidate does can touch what judges it."""

from __future__ import annotations

from orchestrator.evaluators.separate.evaluator import SeparateEvaluator

__all__ = ["SeparateEvaluator"]
