"""What the host gets of a run that was driven: its result, or the error that says why there is none."""

from __future__ import annotations

from orchestrator.agent.invocation import StoppedError
from orchestrator.agent.outcome import (
    AgentCancelledError,
    AgentCompleted,
    AgentFailedError,
    AgentIncomplete,
    AgentInterruptedError,
    AgentReport,
)
from orchestrator.agent.reporting import report_on
from orchestrator.agent.run import AgentRun
from orchestrator.wording import describe
from orchestrator_states.agent import AgentState

__all__ = ["ending_of", "error_of"]


def ending_of(run: AgentRun, name: str) -> AgentReport:
    """The result of a run that rests, or the error that says why there is none."""
    report = report_on(run, name)
    if isinstance(report, AgentCompleted | AgentIncomplete):
        return report
    raise AgentCancelledError(run.given_up, report, is_denial=run.is_denied)


def error_of(error: Exception, run: AgentRun, name: str) -> BaseException:
    """What the host is raised for what broke: the very error of a provider or a transcript."""
    cause: BaseException = error.error if isinstance(error, StoppedError) else error
    if run.secrets is not None:
        from orchestrator.cleansing import cleansed_error

        cause = cleansed_error(cause, run.secrets)
    if isinstance(error, StoppedError):
        return cause
    kind = AgentFailedError if run.state == AgentState.FAILED else AgentInterruptedError
    ended = kind(describe(cause), report_on(run, name))
    ended.__cause__ = cause
    return ended
