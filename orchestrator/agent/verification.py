"""The automatic verification: what the harness has verified once something was written (contract 3, strategy 1)."""

from __future__ import annotations

from orchestrator.agent.admission import admitted
from orchestrator.agent.answers import Call
from orchestrator.agent.invocation import Invocation
from orchestrator.agent.outcomes import ended, finished, flown
from orchestrator.agent.verdicts import no_verdict, reported
from orchestrator.agent.verifiers import VerifyRequest
from orchestrator.agent.waiting import Flight, landed, launched
from orchestrator.harness.actions import ToolRole
from orchestrator.wording import describe
from orchestrator_events.agent import ActionStarted, VerificationFinished
from orchestrator_events.blob import Blob
from orchestrator_events.decision import DecisionTaken

__all__ = ["verify_now", "wants_verification"]


def wants_verification(it: Invocation) -> bool:
    """Whether the harness is to verify now, and there is anything to verify with, and time for it."""
    if not it.parts.harness.wants_verification(it.run.past, it.run.progress):
        return False
    left = it.remaining_seconds()
    return (verify_tool(it) is not None or it.parts.verifier is not None) and (left is None or left > 0)


async def verify_now(it: Invocation) -> None:
    """Verify without a turn and without a call of the model's (contract 3); the model reads it behind the results."""
    run, harness = it.run, it.parts.harness
    call_id = f"auto_{run.turn}_{sum(each.is_automatic for each in run.intents.values()) + 1}"
    name = verify_tool(it)
    if name is not None:
        verdict = await by_tool(it, name, call_id)
    else:
        verdict = await by_verifier(it, harness.roles.verify_tool or "verify_progress", call_id)
    it.fire(verdict)


def verify_tool(it: Invocation) -> str | None:
    """The tool that verifies."""
    roles = it.parts.harness.roles
    return next((name for name in it.parts.tools if roles.role_of(name) is ToolRole.VERIFY), None)


async def by_tool(it: Invocation, name: str, call_id: str) -> VerificationFinished:
    """Have the tool verify; its gates are asked as for any other call."""
    turn = it.run.turn
    admission = await admitted(it, Call(id=call_id, tool=name, arguments={}))
    if admission.denial is not None:
        return no_verdict(turn, f"refused: {admission.denial.reason}", 0, is_automatic=True)
    await intend(it, name, call_id, admission.text, admission.taken)
    flight = await landed(it, flown(it, it.run.intents[call_id]))
    result = await ended(it, flight)
    duration_us = it.run.clock.monotonic() - flight.began_us
    if result.data is None and not result.is_success:
        return no_verdict(turn, result.output, duration_us, is_automatic=True)
    return reported(turn, result.data, duration_us, is_automatic=True)


async def by_verifier(it: Invocation, name: str, call_id: str) -> VerificationFinished:
    """Have the host's verifier do it."""
    verifier, run = it.parts.verifier, it.run
    assert verifier is not None
    await intend(it, name, call_id, "{}", ())
    seconds = it.seconds_for(it.parts.limits.seconds_of(name))
    request = VerifyRequest(run_id=run.run_id, turn=run.turn, seconds=seconds)

    async def called() -> object:
        return await verifier.verify(request)

    flight = await landed(it, launched(it, call_id, name, called, seconds))
    verdict = judged(it, flight)
    output = verdict.error or f"{verdict.passed}/{verdict.total}"
    outcome = "interrupted" if flight.is_late else "failed" if verdict.error else "done"
    finished(it, call_id, name, outcome, output, is_success=not verdict.error, duration_us=verdict.duration_us)
    return verdict


def judged(it: Invocation, flight: Flight) -> VerificationFinished:
    """What the host's verifier said."""
    turn, duration_us = it.run.turn, it.run.clock.monotonic() - flight.began_us
    if flight.is_late:
        return no_verdict(turn, f"no verdict within {flight.seconds:g} s", duration_us, is_automatic=True)
    error = flight.error
    if error is not None:
        return no_verdict(turn, describe(error), duration_us, is_automatic=True)
    return reported(turn, flight.task.result(), duration_us, is_automatic=True)


async def intend(it: Invocation, name: str, call_id: str, arguments: str, taken: tuple[DecisionTaken, ...]) -> None:
    """Commit the intent to verify."""
    it.fire(
        ActionStarted(
            turn=it.run.turn,
            call_id=call_id,
            tool=name,
            input=Blob(arguments),
            is_idempotent=True,
            is_automatic=True,
            decisions=taken,
        )
    )
    await it.commit()
