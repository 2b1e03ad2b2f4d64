"""Answers to a gate, and the one ruling they fold into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType, UnionType
from typing import Annotated, get_args, get_origin, get_type_hints

import attrs

from orchestrator_events.budget import Reservation
from orchestrator_events.event import Gate

__all__ = [
    "AskUser",
    "Decision",
    "DecisionTaken",
    "Deny",
    "Inject",
    "Modify",
    "Proceed",
    "Ruling",
    "fold",
    "lawful",
]


@attrs.frozen
class Proceed:
    """Go ahead."""


@attrs.frozen
class Modify:
    """Go ahead with these of the gate's `modifiable` fields replaced (field name to new value)."""

    data: Mapping[str, object]


@attrs.frozen
class Inject:
    """Go ahead, and add this text to what the generator reads, under this role."""

    text: str
    role: str = "system"
    is_ephemeral: bool = False
    """In an agent's conversation: whether exactly one request carries it; else it joins the transcript."""
    is_appended: bool = False
    """Whether an ephemeral one is put at the end of the last tool result rather than after it."""


@attrs.frozen
class AskUser:
    """Go ahead only when the approver, asked with this prompt, says yes."""

    prompt: str


@attrs.frozen
class Deny:
    """Do not act, or do not use the result. `limit` names the budget limit when the budget denies."""

    reason: str
    limit: str = ""


Decision = Proceed | Modify | Inject | AskUser | Deny


@attrs.frozen
class DecisionTaken:
    """Who answered a gate with anything but a plain yes, as it is recorded."""

    subscriber: Annotated[str, "Name of the subscriber that decided."]
    action: Annotated[str, "modify, inject, ask_user or deny."]
    detail: Annotated[str, "The reason, the prompt, the injected text or the names of the changed fields."]


NOTHING_CHANGED: Mapping[str, object] = MappingProxyType({})


@attrs.define
class Ruling:
    """All answers to one gate, folded: deny > ask_user > inject > modify > proceed.

    A modification is never lost because another subscriber injected; injections stay apart, in order.
    """

    deny: Deny | None = None
    ask_user: tuple[AskUser, ...] = ()
    injections: tuple[Inject, ...] = ()
    changes: Mapping[str, object] = NOTHING_CHANGED
    taken: tuple[DecisionTaken, ...] = ()
    reservation: Reservation | None = None
    """What the budget guard holds for the act."""
    gate: Gate | None = None
    """The request as the subscribers changed it; None where none did."""


PLAIN_YES = Ruling()


def fold(answers: Iterable[tuple[str, Decision]]) -> Ruling:
    """Fold `(subscriber, decision)` pairs, in order of asking, into one ruling; the first denial wins."""
    deny: Deny | None = None
    asks: list[AskUser] = []
    injections: list[Inject] = []
    changes: dict[str, object] = {}
    taken: list[DecisionTaken] = []
    for subscriber, decision in answers:
        match decision:
            case Proceed():
                continue
            case Modify(data):
                changes.update(data)
                taken.append(DecisionTaken(subscriber, "modify", ", ".join(sorted(data))))
            case Inject(text):
                injections.append(decision)
                taken.append(DecisionTaken(subscriber, "inject", text))
            case AskUser(prompt):
                asks.append(decision)
                taken.append(DecisionTaken(subscriber, "ask_user", prompt))
            case Deny(reason):
                deny = deny or decision
                taken.append(DecisionTaken(subscriber, "deny", reason))
    if not taken:
        return PLAIN_YES
    return Ruling(deny, tuple(asks), tuple(injections), changes, tuple(taken))


def lawful(answer: object, gate: Gate, subscriber: str) -> Decision:
    """The answer, if it is a decision this gate takes; else a denial that says what is wrong with it."""
    if isinstance(answer, Modify):
        fault = modification_fault(answer, gate)
        return Deny(f"{subscriber} {fault}") if fault else answer
    if isinstance(answer, Decision):
        return answer
    return Deny(f"{subscriber} answered {answer!r:.80} at {gate.name}: return Proceed() for a plain yes")


def modification_fault(modification: Modify, gate: Gate) -> str:
    """What is wrong with a modification: a field that may not change, or a value of another type."""
    for name, value in modification.data.items():
        if name not in gate.modifiable:
            allowed = ", ".join(gate.modifiable) or "nothing"
            return f"may not change {name!r} at {gate.name}; modifiable: {allowed}"
        if not fits(value, get_type_hints(type(gate))[name]):
            return f"gave {name!r} at {gate.name} a value of type {type(value).__name__}"
    return ""


def fits(value: object, hint: object) -> bool:
    """Whether a value has the outer type of a field; a bool is no number."""
    choices = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    types = tuple(get_origin(choice) or choice for choice in choices)
    return isinstance(value, types) and (not isinstance(value, bool) or bool in types)
