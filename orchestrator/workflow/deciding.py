"""Decisions, made: what a choice changes in the state, and what it may not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING

from orchestrator.callables import is_async
from orchestrator.faults import Fault, closest_name
from orchestrator.jsondata import JSON
from orchestrator.threads import call_in_thread
from orchestrator.workflow.comparing import is_changed_meanwhile
from orchestrator.workflow.decisions import (
    ABORT,
    GO_ON,
    PROVIDE,
    START_FRESH,
    USE_FILE,
    USE_JOURNAL,
    About,
    ChoiceError,
    Decision,
)
from orchestrator.workflow.domain import Domain
from orchestrator.workflow.merging import merged
from orchestrator.workflow.running import WorkflowRun
from orchestrator.workflow.statetext import StateDocumentError, metrics_faults, read_given_state, read_state, written
from orchestrator_events.blob import Blob
from orchestrator_events.workflow import DecisionTakenByUser, StateUnreadable

if TYPE_CHECKING:
    from orchestrator.workflow.invocation import Invocation

__all__ = ["decision_of", "take", "taken_by_callback_or_policy"]

FOR_PEOPLE = (About.HALTED, About.BUDGET)
"""What neither a callback nor a policy decides: they would go round in circles."""


def decision_of(run: WorkflowRun) -> Decision | None:
    """What has to be decided now; None when nothing has to be."""
    waiting = run.decision
    if waiting is None:
        return None
    about, message, options = waiting
    return Decision(
        about=about,
        message=message,
        options=options,
        phase=run.phase,
        run_id=run.run_id,
        workflow_id=run.taken_id,
        state=run.current,
    )


def take(
    run: WorkflowRun, domain: Domain, choice: str, by: str, provided: Mapping[str, JSON] | None = None
) -> DecisionTakenByUser:
    """Fire a choice and what it changes; `provided` is the state to go on with.

    Raises ChoiceError, with nothing fired, for what cannot be chosen.
    """
    decision = decision_of(run)
    options = decision.options if decision else ()
    if choice not in options:
        raise ChoiceError(choice, options)
    if choice in (ABORT, START_FRESH):
        event = DecisionTakenByUser(choice=choice, goes_on=False, by=by)
        run.fire(event)
        return event
    state = checked(run, domain, choice, options, chosen_state(run, domain, choice, options, provided))
    phase = str(state.get("phase", run.phase))
    is_told = choice in (USE_FILE, USE_JOURNAL, PROVIDE) or provided is not None
    is_changed = is_told or state != run.current
    event = DecisionTakenByUser(
        choice=PROVIDE if provided is not None else choice,
        goes_on=True,
        by=by,
        phase=phase,
        state=Blob(written(state)) if is_changed else None,
    )
    was_in = run.phase
    run.fire(event)
    if phase != was_in and was_in in domain.ids:
        run.enter(phase)
    return event


def chosen_state(
    run: WorkflowRun, domain: Domain, choice: str, options: tuple[str, ...], provided: Mapping[str, JSON] | None
) -> dict[str, JSON]:
    """The state to go on with."""
    if provided is not None:
        text = written_or_refused(provided, choice, options)
        given = read_chosen(text, choice, options, read_given_state)
        return given if {"error", "last_updated"} <= given.keys() else merged(given, {}, run.clock.now()).state
    if choice == PROVIDE:
        raise ChoiceError(choice, options, "no state came with it: give the whole state")
    if choice == USE_FILE:
        raw = run.trouble.raw.text if isinstance(run.trouble, StateUnreadable) else ""
        return read_chosen(raw or "", choice, options, read_state)
    state = run.current
    updates: dict[str, JSON] = {}
    if run.is_alerted and state.get("cascade_detected"):
        updates["cascade_detected"] = False
    if choice == "skip":
        updates |= {"phase": domain.skipped_to(run.phase), "error": None, "retry_count": 0}
    return merged(state, updates, run.clock.now()).state if updates else state


def written_or_refused(provided: Mapping[str, JSON], choice: str, options: tuple[str, ...]) -> str:
    """A provided state as text; ChoiceError for what is no JSON."""
    try:
        return json.dumps(dict(provided), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ChoiceError(choice, options, f"the state that came with it is no JSON object: {error}") from None


def read_chosen(
    text: str, choice: str, options: tuple[str, ...], read: Callable[[str, str], dict[str, JSON]]
) -> dict[str, JSON]:
    """A state that somebody gave; ChoiceError with every fault for what is none."""
    try:
        return read(text, "the state")
    except StateDocumentError as error:
        raise ChoiceError(choice, options, str(error)) from None


def checked(
    run: WorkflowRun, domain: Domain, choice: str, options: tuple[str, ...], state: dict[str, JSON]
) -> dict[str, JSON]:
    """The state, when the workflow can go on with it; ChoiceError with every fault otherwise."""
    if not state:
        return state
    faults = [*domain.state_faults(state), *metrics_faults(state.get("metrics"), "$.metrics")]
    phase, allowed = state["phase"], {run.phase, *(domain.choices_after(run.phase) if run.phase in domain.ids else ())}
    if phase not in domain.ids:
        message = f"there is no phase {phase!r:.80}: there are {', '.join(domain.ids)}"
        faults.append(Fault("$.phase", message, closest_name(str(phase), domain.ids)))
    elif run.phase in domain.ids and phase not in allowed:
        message = f"{phase!r} may not follow {run.phase!r}: choose one of {', '.join(sorted(allowed))}"
        faults.append(Fault("$.phase", message))
    if run.workflow_id is not None and state["workflow_id"] != run.workflow_id:
        faults.append(Fault("$.workflow_id", f"this workflow is {run.workflow_id!r}, which does not change"))
    if faults:
        raise ChoiceError(choice, options, "; ".join(map(str, faults)))
    return state


async def taken_by_callback_or_policy(it: Invocation) -> bool:
    """Have the callback decide, else the policy; whether the workflow goes on.

    It goes on, too, when its file changed while it waited: to what has to be decided about that first.
    """
    run, parts = it.run, it.parts
    decision = decision_of(run)
    if decision is not None and is_changed_meanwhile(run, parts.domain.state_directory):
        return True
    if decision is None or decision.about in FOR_PEOPLE:
        return False
    await it.commit()
    for by, choice in (("callback", await asked(it, decision)), ("policy", parts.policy.choice(decision.about))):
        if choice in decision.options and choice not in (PROVIDE, START_FRESH, GO_ON):
            try:
                take(run, parts.domain, choice, by)
            except ChoiceError:
                continue
            return not run.is_over
    return False


async def asked(it: Invocation, decision: Decision) -> str:
    """What the callback chooses; empty where it chooses nothing, fails, or is silent until the time is up."""
    decide = it.parts.decide
    if decide is None:
        return ""
    call = decide(decision) if is_async(decide) else call_in_thread(decide, decision)
    try:
        choice = await it.supervisor.effect(call, it.remaining_seconds())  # type: ignore[arg-type]  # an awaitable
        choice = await it.supervisor.effect(choice, it.remaining_seconds()) if isawaitable(choice) else choice
    except Exception:  # noqa: BLE001 -- a callback that fails has not decided
        return ""
    return choice if isinstance(choice, str) else ""
