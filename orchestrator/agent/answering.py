"""The end of a run: an answer is proposed, refused or given; at a limit the model is asked for a closing one."""

from __future__ import annotations

from orchestrator.agent.calling import generate
from orchestrator.agent.injecting import remind, take_injections
from orchestrator.agent.invocation import Invocation
from orchestrator.agent.plainjson import clean
from orchestrator.agent.prompting import begin_turn
from orchestrator.agent.run import CALL_LIMIT
from orchestrator.agent.transcript import add, close_conversation, tell_injections
from orchestrator.harness.decisions import Denial
from orchestrator_events.agent import AnswerGiven, AnswerProposed, TurnEnded
from orchestrator_events.blob import Blob
from orchestrator_events.decision import DecisionTaken

__all__ = ["conclude", "give", "propose"]

MOST_EMPTY = 2
"""How many empty answers in a row are sent back."""
EMPTY = "Your last answer was empty. Answer the prompt, or call a tool."
NO_ANSWER = "(The model gave no answer.)"
CUT_SHORT = "The run reached its limit of {} before it was finished."
CLOSING_LIMITS = frozenset({"iterations", CALL_LIMIT})
"""Limits that leave room for one more call."""


async def propose(it: Invocation) -> None:
    """A turn asked for no tool: its text is the answer, unless it is empty, the harness objects, or a gate does."""
    run = it.run
    text = "" if run.answer is None else run.answer.text
    if (run.answer is None or run.answer.is_empty) and run.empties <= MOST_EMPTY:
        remind(it, EMPTY)
        return it.fire(TurnEnded(turn=run.turn, reason="the answer was empty"))
    denial = it.parts.harness.may_finish(run.past, run.progress)
    if denial is not None:
        return await refuse(it, denial)
    gate = AnswerProposed(turn=run.turn, answer=text)
    ruling = await it.asked(gate)
    take_injections(it, gate, ruling)
    if ruling.deny is not None:
        source = next((each.subscriber for each in ruling.taken if each.action == "deny"), "approval")
        return await refuse(it, Denial(clean(source), clean(ruling.deny.reason)))
    return await give(it, text, ruling.taken)


async def refuse(it: Invocation, denial: Denial) -> None:
    """The model has to go on, and reads why."""
    await tell_injections(it)
    await add(it, {"role": "user", "content": denial.text, "metadata": {"source": denial.rule}}, "harness")
    it.fire(TurnEnded(turn=it.run.turn, reason=f"the answer was refused: {denial.reason}"))


async def give(it: Invocation, text: str, taken: tuple[DecisionTaken, ...] = ()) -> None:
    """This is the answer; the conversation ends with it."""
    await tell_injections(it)
    await close_conversation(it, text.strip() or NO_ANSWER)
    it.fire(AnswerGiven(answer=Blob(text), decisions=taken))


async def conclude(it: Invocation) -> None:
    """A limit is reached: one last call without tools where the limit leaves room for it, then whatever there is."""
    run = it.run
    await it.refuse_stop()
    if not run.is_closed and CLOSING_LIMITS.issuperset(run.limits_reached):
        await begin_turn(it, is_closing=True)
        if run.is_in_flight:
            await generate(it)
        return
    limit = run.exhausted.limit.replace("_", " ") if run.exhausted else "turns"
    said = CUT_SHORT.format(limit)
    await tell_injections(it)
    await close_conversation(it, said)
    it.fire(AnswerGiven(answer=Blob(run.text if run.text.strip() else said)))
