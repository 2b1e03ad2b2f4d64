"""Exit statuses: one for each way a command can end."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from orchestrator.adapter_errors import EvaluationError, GeneratorUnavailableError
from orchestrator.asking import NobodyToAskError
from orchestrator.assembly import ConfigurationError
from orchestrator.cleansing import kind_of
from orchestrator.engine import SpecTooLargeError
from orchestrator.errors import DocumentError, IsolationRefusedError
from orchestrator.exposure import SecretExposedError
from orchestrator.history import UnknownRunError
from orchestrator.outcome import Exhausted, Passed, RunInterruptedError, RunReport
from orchestrator.pins import PinsError
from orchestrator.plan.errors import (
    AmendmentError,
    CheckError,
    MissingArtifactsError,
    PlanChangedError,
    PlanNotReadyError,
    PlanStateError,
    RetryError,
    ReviewError,
    RootFileError,
    UnavailableError,
)
from orchestrator.redaction import UnfitSecretError
from orchestrator.resuming import ResumeRefusedError
from orchestrator_events.errors import JournalConflictError, JournalError, RunHeldError
from orchestrator_states.catalogue import UnknownLifecycleError
from orchestrator_states.run import RunState

__all__ = ["ExitCode", "RequestError", "code_of_error", "code_of_report"]


class ExitCode(IntEnum):
    """What a shell sees; 128 and the number of the signal when one ended the command."""

    CONFORMS = 0
    INTERNAL = 1
    USAGE = 2
    """Usage, configuration or spec not valid; nothing was spent."""
    EXHAUSTED = 3
    """No candidate conforms within the limits; the closest one is written."""
    GENERATOR_UNAVAILABLE = 4
    NO_VERDICT = 5
    DIFFERENCE = 6
    """An audit or a replay found a difference."""
    HELD = 7
    """A run is in use, or cannot be resumed as asked."""
    PAUSED = 8
    """A workflow waits for a person to decide."""
    ISOLATION_REFUSED = 9
    """Less holds the generator or the eval suite than is required; nothing was run."""


class RequestError(Exception):
    """What the command line asks for is not there, or cannot be done; the message names the remedy."""


CODES: Final[tuple[tuple[tuple[type[BaseException], ...], ExitCode], ...]] = (
    ((ReviewError,), ExitCode.NO_VERDICT),  # before the documents, of which it is one
    (
        (
            AmendmentError, ConfigurationError, DocumentError, MissingArtifactsError, PinsError, PlanNotReadyError,
            RequestError, RetryError, RootFileError, SecretExposedError, SpecTooLargeError, UnfitSecretError,
            UnknownLifecycleError, UnknownRunError,
        ),
        ExitCode.USAGE,
    ),
    ((IsolationRefusedError,), ExitCode.ISOLATION_REFUSED),
    ((PlanChangedError, PlanStateError, ResumeRefusedError, RunHeldError, JournalConflictError), ExitCode.HELD),
    ((GeneratorUnavailableError, UnavailableError), ExitCode.GENERATOR_UNAVAILABLE),
    ((CheckError, EvaluationError), ExitCode.NO_VERDICT),
    ((NobodyToAskError,), ExitCode.PAUSED),
)  # fmt: skip
"""Errors, or what interrupted a run, with their status; the first that fits."""


def code_of_report(report: RunReport) -> ExitCode:
    """The status of a run that has a result."""
    match report:
        case Passed():
            return ExitCode.CONFORMS
        case Exhausted():
            return ExitCode.EXHAUSTED
        case _:
            return ExitCode.INTERNAL


def code_of_error(error: BaseException) -> ExitCode:
    """The status of a command that an error ended."""
    cause = error.__cause__ if isinstance(error, RunInterruptedError) else error
    for kinds, code in CODES:
        told = error if code is ExitCode.USAGE else cause  # usage is what nothing was spent on
        if told is not None and issubclass(kind_of(told), kinds):
            return code
    is_without_verdict = isinstance(error, RunInterruptedError) and error.report.state == RunState.EVALUATING
    if is_without_verdict and not isinstance(cause, JournalError):
        return ExitCode.NO_VERDICT
    return ExitCode.INTERNAL
