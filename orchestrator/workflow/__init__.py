"""Phased workflows (contract 4): a domain's phases, one after another, over a state that survives."""

from __future__ import annotations

from orchestrator.workflow.cascade import CascadeRule
from orchestrator.workflow.components.bundle import Components
from orchestrator.workflow.decisions import ChoiceError, Decision, Policy
from orchestrator.workflow.domain import Domain, DomainError, Phase, load_domain
from orchestrator.workflow.engine import ParametersError, Workflow
from orchestrator.workflow.messages import lines_of
from orchestrator.workflow.outcome import (
    WorkflowAborted,
    WorkflowDone,
    WorkflowFailedError,
    WorkflowInterruptedError,
    WorkflowPaused,
)
from orchestrator.workflow.phases import PhaseOutcome
from orchestrator.workflow.statefile import StateFile
from orchestrator.workflow.todos import Todo, TodoView, todos_of

__all__ = [
    "CascadeRule",
    "ChoiceError",
    "Components",
    "Decision",
    "Domain",
    "DomainError",
    "ParametersError",
    "Phase",
    "PhaseOutcome",
    "Policy",
    "StateFile",
    "Todo",
    "TodoView",
    "Workflow",
    "WorkflowAborted",
    "WorkflowDone",
    "WorkflowFailedError",
    "WorkflowInterruptedError",
    "WorkflowPaused",
    "lines_of",
    "load_domain",
    "todos_of",
]
