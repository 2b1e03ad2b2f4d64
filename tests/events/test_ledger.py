"""The ledger: reserve before a call, settle after it, and overspend never."""

from __future__ import annotations

from collections.abc import ValuesView
from threading import Barrier, Thread
from time import sleep
from typing import Protocol

import pytest

from orchestrator_events import Budget, Charge, Clock, Ledger, Refusal, Reservation, Usage
from orchestrator_events.ledger import estimate_tokens

LEAVES = "a prompt of about 100 tokens leaves {} for an answer"
SAME_AGAIN = "the same candidate came 2 times more in a row"
AS_RESERVED = Charge(input_tokens=100, output_tokens=300, estimated=True)


class YieldingHolds(dict[str, Reservation]):
    """Holds that let another thread run after every look at them, where a race would show."""

    def values(self) -> ValuesView[Reservation]:  # type: ignore[override]  # typeshed names a private class
        """The holds as they are now, handed out after the other threads had their turn."""
        seen = dict(self)
        sleep(0)
        return seen.values()


class MovableClock(Clock, Protocol):
    """The shared fake: its reading can be set."""

    reading: int


def no_limit_but(**limits: float | None) -> Budget:
    """A budget in which no other limit is ever near; money alone would be refused."""
    return Budget(**{"attempts": 10**9, "repeats": None, **limits})  # type: ignore[arg-type]


def test_tokens_are_estimated_at_four_characters_rounded_up_and_never_zero() -> None:
    """No text is free, the empty one included."""
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "x" * 400)] == [1, 1, 1, 2, 100]


def test_a_reservation_holds_the_worst_case_until_it_is_settled(clock: Clock) -> None:
    """The hold counts against the next call; the charge replaces it."""
    ledger = Ledger(no_limit_but(tokens=1000), clock)
    held = ledger.reserve("k1", 1, "x" * 400, 300)
    during = ledger.held("tokens")
    charge = ledger.charge("k1", Usage(input_tokens=90, output_tokens=50), "answer")
    ledger.settle("k1", charge)
    assert held == Reservation(key="k1", input_tokens=100, output_tokens=300)
    assert (during, ledger.held("tokens"), ledger.sums()[0]) == (400, 0, ("tokens", 140, 1000))
    assert not ledger.has_estimates


def test_a_released_reservation_is_as_if_it_never_was(clock: Clock) -> None:
    """A call that did not start costs nothing; releasing twice does nothing."""
    ledger = Ledger(no_limit_but(tokens=400), clock)
    first = ledger.reserve("k1", 1, "x" * 400, 300)
    ledger.release("k1")
    ledger.release("k1")
    assert ledger.reserve("k1", 1, "x" * 400, 300) == first


@pytest.mark.parametrize(
    ("limits", "spent", "refusal"),
    [
        ({"attempts": 2}, {"attempts": 2}, Refusal("attempts", "2 of 2 attempts used")),
        ({"tokens": 9, "repeats": 2}, {"repeats": 2}, Refusal("repeats", SAME_AGAIN)),
        ({"seconds": 1.5}, {"carried_us": 1_500_000}, Refusal("seconds", "1.5 of 1.5 seconds used")),
        ({"tokens": 90}, {"input_tokens": 40, "output_tokens": 50}, Refusal("tokens", "90 of 90 used")),
        ({"input_tokens": 40}, {"input_tokens": 40}, Refusal("input_tokens", "40 of 40 used")),
        ({"output_tokens": 50}, {"output_tokens": 60}, Refusal("output_tokens", "60 of 50 used")),
        ({"money_micro": 7}, {"money_micro": 7}, Refusal("money_micro", "0.000007 of 0.000007 used")),
        (
            {"tokens": 900},
            {"overruns": ("tokens",)},
            Refusal("tokens", "an earlier call used more than it had reserved"),
        ),
    ],
)
def test_each_limit_refuses_by_name_when_it_is_reached(
    limits: dict[str, float], spent: dict[str, int], refusal: Refusal, clock: Clock
) -> None:
    """The refusal names the limit as the budget does, with the sums; nothing is held."""
    ledger = Ledger(no_limit_but(**limits), clock, **spent)  # type: ignore[arg-type]  # one field each
    answer = ledger.reserve("k1", 3, "prompt", None)
    assert (answer, ledger.holds) == (refusal, {})


@pytest.mark.parametrize(
    ("limits", "max_tokens", "refusal"),
    [
        ({"input_tokens": 99}, None, Refusal("input_tokens", "the prompt needs about 100, 99 are left")),
        ({"tokens": 110}, None, Refusal("tokens", LEAVES.format(10))),
        ({"output_tokens": 15}, None, Refusal("output_tokens", LEAVES.format(15))),
        ({"output_tokens": 4}, 5, Refusal("output_tokens", LEAVES.format(4))),
    ],
)
def test_a_call_that_does_not_fit_is_not_bought(
    limits: dict[str, int], max_tokens: int | None, refusal: Refusal, clock: Clock
) -> None:
    """What is left must hold the prompt and a useful answer."""
    assert Ledger(no_limit_but(**limits), clock).reserve("k1", 1, "x" * 400, max_tokens) == refusal


@pytest.mark.parametrize(
    ("limits", "max_tokens", "output", "is_open"),
    [
        ({"tokens": 1000}, None, 900, True),
        ({"tokens": 1000}, 300, 300, False),
        ({"tokens": 1000}, 5000, 900, False),
        ({"output_tokens": 500, "tokens": 1000}, None, 500, True),
        ({"attempts": 5}, 300, 300, False),
        ({"attempts": 5}, None, None, False),
        ({"input_tokens": 1000}, None, None, False),
    ],
)
def test_the_answer_is_held_at_the_least_that_anything_allows(
    limits: dict[str, int], max_tokens: int | None, output: int | None, is_open: bool, clock: Clock
) -> None:
    """max_tokens and what is left decide; without either nothing is held for the answer."""
    held = Ledger(no_limit_but(**limits), clock).reserve("k1", 1, "x" * 400, max_tokens)
    assert held == Reservation(key="k1", input_tokens=100, output_tokens=output, open_ended=is_open)


def test_money_left_is_held_by_one_call_at_a_time(clock: Clock) -> None:
    """What a call will cost is unknown, so all that is left is its worst case."""
    ledger = Ledger(no_limit_but(money_micro=700), clock, money_micro=100)
    first, second = ledger.reserve("k1", 1, "x", None), ledger.reserve("k2", 1, "x", None)
    assert first == Reservation(key="k1", input_tokens=1, money_micro=600)
    assert second == Refusal("money_micro", "all money left is held by calls in flight")


def test_the_time_left_goes_into_the_reservation(clock: MovableClock) -> None:
    """Active time is that of earlier invocations and of this one; the rest is the call's deadline."""
    ledger = Ledger(no_limit_but(seconds=10), clock, carried_us=2_000_000, started_us=0)
    clock.reading = 3_000_000
    held = ledger.reserve("k1", 1, "x", None)
    assert (ledger.elapsed_us(), held) == (
        5_000_000,
        Reservation(key="k1", input_tokens=1, time_us=5_000_000),
    )


def test_max_tokens_below_one_is_refused(clock: Clock) -> None:
    """A negative hold would raise what others may spend."""
    with pytest.raises(ValueError, match="max_tokens must be at least 1 or None, not 0"):
        Ledger(Budget(), clock).reserve("k1", 1, "x", 0)


@pytest.mark.parametrize(
    ("usage", "charge"),
    [
        (
            Usage(input_tokens=7, output_tokens=8, money_micro=9),
            Charge(input_tokens=7, output_tokens=8, money_micro=9),
        ),
        (Usage(input_tokens=7, output_tokens=8), Charge(input_tokens=7, output_tokens=8)),
        (Usage(input_tokens=7), Charge(input_tokens=7, output_tokens=300, estimated=True)),
        (Usage(output_tokens=8), Charge(input_tokens=100, output_tokens=8, estimated=True)),
        (Usage(input_tokens=0, output_tokens=0), AS_RESERVED),
        (Usage(input_tokens=-5, output_tokens=True), AS_RESERVED),
        (None, AS_RESERVED),
    ],
)
def test_missing_use_is_charged_as_reserved_and_marked(usage: Usage | None, charge: Charge, clock: Clock) -> None:
    """A reported figure counts; a missing, zero, negative or false one settles at the reservation."""
    ledger = Ledger(no_limit_but(tokens=1000), clock)
    ledger.reserve("k1", 1, "x" * 400, 300)
    assert ledger.charge("k1", usage, "answer") == charge


@pytest.mark.parametrize("limits", [{"attempts": 5}, {"tokens": 1000}, {"input_tokens": 1000}])
def test_an_estimate_is_never_zero(limits: dict[str, int], clock: Clock) -> None:
    """Under whatever limits, a call that reports nothing costs both input and output."""
    ledger = Ledger(no_limit_but(**limits), clock)
    ledger.reserve("k1", 1, "x" * 400, None)
    expected = Charge(input_tokens=100, output_tokens=25, estimated=True)
    assert ledger.charge("k1", None, "y" * 100) == expected
    worst = ledger.worst_case("k1")
    assert (worst.input_tokens, worst.output_tokens > 0, worst.estimated) == (100, True, True)


def test_a_call_of_unknown_outcome_is_charged_in_full(clock: Clock) -> None:
    """The whole reservation is what a lost call may have used."""
    ledger = Ledger(no_limit_but(tokens=1000, money_micro=50), clock)
    ledger.reserve("k1", 1, "x" * 400, 300)
    expected = Charge(input_tokens=100, output_tokens=300, money_micro=50, estimated=True)
    assert ledger.worst_case("k1") == expected


@pytest.mark.parametrize(
    ("limits", "used", "over"),
    [
        ({"tokens": 1000}, Charge(input_tokens=100, output_tokens=300), ()),
        ({"tokens": 1000}, Charge(input_tokens=100, output_tokens=301), ("tokens",)),
        ({"tokens": 1000}, Charge(input_tokens=900, output_tokens=300), ("tokens",)),
        (
            {"tokens": 1000, "output_tokens": 900},
            Charge(input_tokens=100, output_tokens=301),
            ("output_tokens",),
        ),
        (
            {"tokens": 500, "money_micro": 9},
            Charge(input_tokens=600, money_micro=10),
            ("tokens", "money_micro"),
        ),
        ({"attempts": 5}, Charge(input_tokens=100, output_tokens=9999), ()),
    ],
)
def test_use_above_the_reservation_is_an_overrun(
    limits: dict[str, int], used: Charge, over: tuple[str, ...], clock: Clock
) -> None:
    """Every limit that is passed is named; without a limit on tokens there is none to pass."""
    ledger = Ledger(no_limit_but(**limits), clock)
    ledger.reserve("k1", 1, "x" * 400, 300)
    assert ledger.overrun("k1", used) == over


def test_threads_that_reserve_at_once_never_overspend(clock: Clock) -> None:
    """Of 64 threads, as many get a call as the budget holds, and the sum of the worst cases stays in it."""
    ledger = Ledger(no_limit_but(tokens=1000), clock, holds=YieldingHolds())
    start = Barrier(64)
    answers: list[Reservation | Refusal] = []

    def call(number: int) -> None:
        start.wait()
        answers.append(ledger.reserve(f"k{number}", 1, "x" * 40, 40))

    threads = [Thread(target=call, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = [answer for answer in answers if isinstance(answer, Reservation)]
    worst = sum(each.input_tokens + (each.output_tokens or 0) for each in held)
    assert (len(answers), len(held), worst, ledger.held("tokens")) == (64, 20, 1000, 1000)


def test_an_absurd_report_counts_as_the_largest_exact_number(clock: Clock) -> None:
    """Records hold no number that a JSON reader could round."""
    ledger = Ledger(Budget(), clock)
    ledger.reserve("k", 1, "prompt", None)
    charge = ledger.charge("k", Usage(input_tokens=2**70, output_tokens=2**53, money_micro=2**99), "x")
    largest = 2**53 - 1
    assert charge == Charge(input_tokens=largest, output_tokens=largest, money_micro=largest)
