"""An explicit finite-state-machine engine with an event bus for generate, verify, refine work."""

from __future__ import annotations

import orchestrator_events as events
import orchestrator_states as states
from orchestrator.adapter_errors import (
    EvaluationError,
    GenerationError,
    GeneratorUnavailableError,
    TransientGenerationError,
)
from orchestrator.attempt import Attempt
from orchestrator.candidate import Candidate
from orchestrator.engine import Orchestrator, SpecTooLargeError
from orchestrator.errors import IsolationRefusedError
from orchestrator.exposure import SecretExposedError
from orchestrator.outcome import (
    Exhausted,
    Passed,
    RunCancelledError,
    RunFailedError,
    RunInterruptedError,
    RunReport,
)
from orchestrator.ports import (
    Approver,
    Evaluator,
    Generation,
    Generator,
    Refinement,
    Request,
    Strategy,
    Submission,
    Verdict,
)
from orchestrator.prompt import Augmentations, CodeSeed, PromptTemplate
from orchestrator.redaction import Secrets, UnfitSecretError
from orchestrator.retries import RetryPolicy
from orchestrator.spec import Constraint, EvalCase, EvalKind, Example, MergedSpec, load_spec
from orchestrator.strategies import Composition, FailureFeedback, NaiveRetry, ParameterVariation, SeedMixing
from orchestrator_events.budget import Budget, Usage
from orchestrator_events.bus import Bus
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.isolation import Isolation
from orchestrator_events.verdict import CaseResult, CaseStatus
from orchestrator_states.run import RunState

__version__ = "0.1.0"

__all__ = [
    "Approver",
    "Attempt",
    "Augmentations",
    "Budget",
    "Bus",
    "Candidate",
    "CaseResult",
    "CaseStatus",
    "CodeSeed",
    "Composition",
    "Constraint",
    "EvalCase",
    "EvalKind",
    "EvaluationError",
    "Evaluator",
    "Example",
    "Exhausted",
    "FailureFeedback",
    "Generation",
    "GenerationError",
    "Generator",
    "GeneratorUnavailableError",
    "Isolation",
    "IsolationRefusedError",
    "MergedSpec",
    "NaiveRetry",
    "Orchestrator",
    "OrchestratorError",
    "ParameterVariation",
    "Passed",
    "PromptTemplate",
    "Refinement",
    "Request",
    "RetryPolicy",
    "RunCancelledError",
    "RunFailedError",
    "RunInterruptedError",
    "RunReport",
    "RunState",
    "SecretExposedError",
    "Secrets",
    "SeedMixing",
    "SpecTooLargeError",
    "Strategy",
    "Submission",
    "TransientGenerationError",
    "UnfitSecretError",
    "Usage",
    "Verdict",
    "__version__",
    "events",
    "load_spec",
    "states",
]
