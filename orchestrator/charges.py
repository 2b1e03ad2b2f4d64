"""What runs and calls were charged, and sums of that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING

from orchestrator_events.budget import Charge
from orchestrator_events.event import Event
from orchestrator_events.ledger import Ledger

if TYPE_CHECKING:
    from orchestrator.execution import Execution

__all__ = ["charged_before", "charged_by", "less", "plus", "spent", "total"]


def charged_by(run: Execution) -> Charge:
    """What a run was charged, its calls without a known outcome in full."""
    ledger = run.ledger
    return total([spent(ledger), *map(ledger.worst_case, ledger.holds)])


def spent(ledger: Ledger) -> Charge:
    """What a ledger has settled."""
    return Charge(
        input_tokens=ledger.input_tokens,
        output_tokens=ledger.output_tokens,
        money_micro=ledger.money_micro,
        estimated=ledger.has_estimates,
    )


def total(charges: Iterable[Charge]) -> Charge:
    """The sum of charges."""
    return reduce(plus, charges, Charge())


def charged_before(events: Iterable[Event], key: str) -> Charge:
    """What earlier tries of a call were charged, be they abandoned or made again."""
    from orchestrator_events.run import GenerationAbandoned, GenerationRetried

    tries = (event for event in events if isinstance(event, GenerationAbandoned | GenerationRetried))
    return total(each.charge for each in tries if each.key == key)


def plus(one: Charge, other: Charge) -> Charge:
    """The sum of two charges."""
    return combined(one, other, lambda mine, others: mine + others)


def less(one: Charge, other: Charge) -> Charge:
    """What one charge is above another; never below nothing."""
    return combined(one, other, lambda mine, others: max(0, mine - others))


def combined(one: Charge, other: Charge, by: Callable[[int, int], int]) -> Charge:
    """Two charges, figure by figure."""
    return Charge(
        input_tokens=by(one.input_tokens, other.input_tokens),
        output_tokens=by(one.output_tokens, other.output_tokens),
        money_micro=by(one.money_micro, other.money_micro),
        estimated=one.estimated or other.estimated,
    )
