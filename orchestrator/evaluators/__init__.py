"""Evaluators: eval suites run as programs, and callables, behind the one port."""

from __future__ import annotations

from orchestrator.evaluators.callable import CallableEvaluator, as_evaluator
from orchestrator.evaluators.command import CommandEvaluator

__all__ = ["CallableEvaluator", "CommandEvaluator", "as_evaluator"]
