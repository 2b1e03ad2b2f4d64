"""Going on with an agent run where it was left: fold its journal, refuse what differs, record what changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from orchestrator.agent.identity import REQUEST, identity_of
from orchestrator.agent.plainjson import written
from orchestrator.agent.recorded import load_agent_run
from orchestrator.agent.run import CALL_LIMIT, AgentRun
from orchestrator.reopening import ResumeRefusedError, begin_again, refuse_other_identity
from orchestrator_events.agent import MessageAdded, TurnAbandoned
from orchestrator_events.blob import Blob
from orchestrator_events.execution import ExecutionStart
from orchestrator_states.agent import AgentState

if TYPE_CHECKING:
    from orchestrator.agent.engine import Agent

__all__ = ["reopen", "request_of"]

GO_ON = "Go on: the run may take more turns now."


async def reopen(agent: Agent, run_id: str) -> AgentRun:
    """The run as its journal tells it, with the records that open a new invocation in its outbox.

    Raises ResumeRefusedError, UnknownRunError and JournalError (a damaged journal is never started afresh).
    """
    if agent.journal is None:
        raise ResumeRefusedError(run_id, "this agent has no journal: give it the one that recorded the run")
    run = await load_agent_run(agent.journal, run_id, agent.parts.harness)
    refuse_other_identity(run, identity_of(agent.parts), besides=frozenset({REQUEST}))
    if run.state == AgentState.COMPLETED:
        raise ResumeRefusedError(run_id, "it is completed: there is nothing left to do")
    was_over, into = run.exhausted if run.is_over else None, AgentState.PROMPTING if run.is_over else run.state
    begin_again(run, agent.clock, agent.budget_in_force, into)
    if was_over is not None:
        refuse_reached_limit(run, agent, was_over.limit)
    abandon_lost_call(run)
    ask_to_go_on(run)
    return run


def request_of(run: AgentRun) -> tuple[str, str]:
    """Provider and model that the run was asked to take."""
    start = run.records[0].event
    assert isinstance(start, ExecutionStart)
    request = json.loads(start.identity).get(REQUEST, {})
    return str(request.get("provider", "")), str(request.get("model", ""))


def refuse_reached_limit(run: AgentRun, agent: Agent, limit: str) -> None:
    """A run that a limit had ended must be able to go on with the limits of now."""
    limits, ledger = agent.limits, run.ledger
    refusal = ledger.refusal(min(run.turn + 1, limits.iterations), ledger.elapsed_us())
    is_reached = refusal is not None
    detail = refusal.detail if refusal is not None else ""
    if run.turn >= limits.iterations:
        is_reached, detail = True, f"{run.turn} turns taken, {limits.iterations} allowed"
    elif limit == CALL_LIMIT and limits.tool_calls is not None and run.tool_calls >= limits.tool_calls:
        is_reached, detail = True, f"{run.tool_calls} of {limits.tool_calls} made"
    if is_reached:
        raise ResumeRefusedError(run.run_id, f"the limit {limit!r} is still reached ({detail}): raise it")


def abandon_lost_call(run: AgentRun) -> None:
    """A call in flight at a crash: its outcome is unknown, it is charged whole and made again under the same key."""
    if run.is_in_flight and run.started is not None:
        key = run.started.reservation.key
        run.fire(
            TurnAbandoned(
                turn=run.started.turn,
                key=key,
                charge=run.ledger.worst_case(key),
                reason="outcome unknown: the call was in flight when the run was cut off",
            )
        )


def ask_to_go_on(run: AgentRun) -> None:
    """A conversation that ended with a closing answer needs a word before the model is called again."""
    last = run.written[-1].message if run.written else {}
    if run.state == AgentState.PROMPTING and last.get("role") == "assistant" and not last.get("tool_calls"):
        message = written({"role": "user", "content": GO_ON})
        run.fire(MessageAdded(role="user", message=Blob(message), origin="harness"))
