"""After a turn: the harness verifies what was written, and the run is done, or the model is called again."""

from __future__ import annotations

from orchestrator.agent.answering import give, propose
from orchestrator.agent.invocation import Invocation
from orchestrator.agent.transcript import tell_answer, tell_injections, tell_verdicts
from orchestrator.agent.verification import verify_now, wants_verification
from orchestrator_events.agent import TurnEnded

__all__ = ["verify"]

GREEN = "Done: {} of {} cases pass."


async def verify(it: Invocation) -> None:
    """Verify where the harness wants it, then finish, or go on to the next turn."""
    run, harness = it.run, it.parts.harness
    await it.refuse_stop()
    await tell_answer(it)
    if run.answer is None or not run.answer.calls:
        return await propose(it)
    await tell_verdicts(it)
    if wants_verification(it):
        await verify_now(it)
        await tell_verdicts(it)
        await tell_injections(it)
        await it.commit()
        await it.refuse_stop()
    last = run.progress.last
    if harness.auto_verify and last is not None and harness.is_done(run.progress):
        return await give(it, run.text or GREEN.format(last.passed, last.total))
    return it.fire(TurnEnded(turn=run.turn, reason="tools answered"))
