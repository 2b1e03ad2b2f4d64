"""What a workflow's budget sets aside for a run inside a phase, and the budget that this gives the run.

The whole of what is set aside is held from before the run begins until it is settled, so that the workflow and its
children together never spend more than the one budget allows. A child's own limits count from its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from orchestrator_events.budget import Budget, Charge, Reservation
from orchestrator_events.ledger import Ledger, Refusal

__all__ = ["LIMITS", "allotted", "set_aside", "total", "widest"]

LIMITS = ("tokens", "input_tokens", "output_tokens", "money_micro")


def set_aside(
    ledger: Ledger, key: str, wanted: Budget, used: Charge, seconds: float | None = None
) -> Reservation | Refusal:
    """Hold the worst case of a child that wants a budget and has used some of it, or say what forbids it."""
    with ledger.lock:
        refusal = ledger.refusal(ledger.attempts, ledger.elapsed_us())
        if refusal is not None:
            return refusal
        left = {name: cap - spent - ledger.held(name) for name, spent, cap in ledger.sums() if cap is not None}
        most = {name: smaller(each, rest(wanted, used, name)) for name, each in left.items()}
        for name, each in most.items():
            if each < 1:
                return Refusal(name, f"nothing is left of it for a run inside the phase, {ledger.held(name)} are held")
        reads, writes = tokens_of(most)
        held = Reservation(
            key=key,
            input_tokens=reads,
            output_tokens=writes,
            money_micro=most.get("money_micro"),
            time_us=None if seconds is None else round(seconds * 1_000_000),
        )
        ledger.holds[key] = held
        return held


def allotted(
    ledger: Ledger, wanted: Budget, held: Reservation, used: Charge, seconds: float | None, before: float
) -> Budget:
    """The budget of a child: what it wants, within what is held and what it had used before.

    `seconds` are left to the phase, `before` is the child's active time so far; a child ends a little earlier than its
    phase, so that it can conclude.
    """
    limits: dict[str, int | None] = {
        name: None if most is None else max(1, smaller(most, getattr(wanted, name)))
        for name, most in widest(ledger.budget, held, used).items()
    }
    given = {name: getattr(wanted, name) if most is None else most for name, most in limits.items()}
    if seconds is not None:
        most_seconds = max(0.001, before + seconds - min(1.0, seconds / 10))
        given["seconds"] = most_seconds if wanted.seconds is None else min(most_seconds, wanted.seconds)
    return attrs.evolve(wanted, **given)


def widest(budget: Budget, held: Reservation, used: Charge) -> dict[str, int | None]:
    """The widest limits that a child may have, by name; None where the workflow has no such limit."""
    reads, writes = held.input_tokens, held.output_tokens or 0
    sums = {
        "tokens": reads + writes,
        "input_tokens": reads,
        "output_tokens": writes,
        "money_micro": held.money_micro or 0,
    }
    return {name: None if getattr(budget, name) is None else sums[name] + total(used, name) for name in LIMITS}


def total(charge: Charge, name: str) -> int:
    """What a charge counts towards a limit."""
    return charge.input_tokens + charge.output_tokens if name == "tokens" else int(getattr(charge, name))


def tokens_of(most: Mapping[str, int]) -> tuple[int, int | None]:
    """Tokens to read and to write, such that every limit there is holds for their hold."""
    every, reads, writes = (most.get(name) for name in ("tokens", "input_tokens", "output_tokens"))
    if writes is None:  # what is read and what is written is not told apart
        return min((each for each in (every, reads) if each is not None), default=0), None
    if every is None:
        return reads or 0, writes
    writes = min(writes, every // 2) if every > 1 else 0
    return smaller(every - writes, reads), writes


def rest(wanted: Budget, used: Charge, name: str) -> int | None:
    """What a child still wants of a limit; None where it wants all there is."""
    cap = getattr(wanted, name)
    return None if cap is None else cap - total(used, name)


def smaller(most: int, wanted: int | None) -> int:
    """The smaller of two limits, where None is none."""
    return most if wanted is None else min(most, wanted)
