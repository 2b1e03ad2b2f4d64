"""Reserve before a call, settle after it: the sums that no number of calls in flight can overspend."""

from __future__ import annotations

from threading import Lock

import attrs

from orchestrator_events.budget import Budget, Charge, Reservation, Usage
from orchestrator_events.clock import Clock

__all__ = ["Ledger", "Refusal", "estimate_tokens", "tokens_in"]

CHARACTERS_PER_TOKEN = 4
LARGEST_COUNT = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly; an absurder report counts as this."""
UNKNOWN = Usage()
MINIMUM_OUTPUT_TOKENS = 16
"""Below this no useful answer fits: the call is refused instead of bought."""


def estimate_tokens(text: str) -> int:
    """Tokens in a text, estimated at four characters each and rounded up; never 0, since no call is free."""
    return tokens_in(len(text))


def tokens_in(characters: int) -> int:
    """The same for a text of so many characters."""
    return max(1, -(-characters // CHARACTERS_PER_TOKEN))


@attrs.frozen
class Refusal:
    """Why the ledger reserves nothing: the limit that is reached, and the sums in words."""

    limit: str
    detail: str


@attrs.define(eq=False)
class Ledger:
    """The account of one root run. `reserve` is atomic under a lock; all else is driven by the run's fold."""

    _budget: Budget = attrs.field(alias="budget")
    clock: Clock
    attempts: int = 0
    calls: int = 0
    repeats: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    money_micro: int = 0
    has_estimates: bool = False
    overruns: tuple[str, ...] = ()
    carried_us: int = 0
    """Active time of earlier invocations, microseconds."""
    started_us: int | None = None
    """Monotonic start of this invocation, microseconds."""
    holds: dict[str, Reservation] = attrs.Factory(dict[str, Reservation])
    lock: Lock = attrs.Factory(Lock)
    is_metered: bool = attrs.field(init=False)
    limit_us: int | None = attrs.field(init=False)
    most_attempts: int | None = attrs.field(init=False)
    most_repeats: int | None = attrs.field(init=False)
    """The budget's own, at hand: an attribute of a class with cached properties costs ten times as much."""

    def __attrs_post_init__(self) -> None:
        self.budget = self._budget

    @property
    def budget(self) -> Budget:
        """The limits in force."""
        return self._budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        self._budget = budget
        self.is_metered, self.limit_us = budget.is_metered, budget.limit_us
        self.most_attempts, self.most_repeats = budget.attempts, budget.repeats

    def reserve(self, key: str, attempt: int, prompt: str, max_tokens: int | None) -> Reservation | Refusal:
        """Hold the worst case of a call that reads `prompt`, or say which limit forbids it.

        Raises ValueError for `max_tokens` below 1: a negative hold would raise what others may spend.
        """
        return self.reserve_tokens(key, attempt, estimate_tokens(prompt), max_tokens)

    def reserve_tokens(self, key: str, attempt: int, reads: int, max_tokens: int | None) -> Reservation | Refusal:
        """The same for a call that reads so many tokens."""
        if max_tokens is not None and max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1 or None, not {max_tokens!r}")
        with self.lock:
            elapsed_us = self.elapsed_us()
            refusal = self.refusal(attempt, elapsed_us)
            if refusal is not None:
                return refusal
            time_us = None if self.limit_us is None else self.limit_us - elapsed_us
            if not self.is_metered:
                reservation = Reservation(key=key, input_tokens=reads, output_tokens=max_tokens, time_us=time_us)
                self.holds[key] = reservation
                return reservation
            held = self.hold_tokens(key, reads, max_tokens, time_us)
            if isinstance(held, Reservation):
                self.holds[key] = held
            return held

    def release(self, key: str) -> None:
        """Give back a reservation whose call never started."""
        with self.lock:
            self.holds.pop(key, None)

    def refusal(self, attempt: int, elapsed_us: int) -> Refusal | None:
        """The limit that forbids another attempt with this number after this active time, or None."""
        if self.overruns:
            return Refusal(self.overruns[0], "an earlier call used more than it had reserved")
        if self.most_attempts is not None and attempt > self.most_attempts:
            return Refusal("attempts", f"{self.attempts} of {self.most_attempts} attempts used")
        if self.most_repeats is not None and self.repeats >= self.most_repeats:
            times = "once more" if self.repeats == 1 else f"{self.repeats} times more in a row"
            return Refusal("repeats", f"the same candidate came {times}")
        if self.limit_us is not None and elapsed_us >= self.limit_us:
            return Refusal("seconds", f"{elapsed_us / 1e6:.1f} of {self.budget.seconds:g} seconds used")
        if self.is_metered:
            for limit, spent, cap in self.sums():
                if cap is not None and spent >= cap:
                    return Refusal(limit, f"{told(limit, spent)} of {told(limit, cap)} used")
        return None

    def hold_tokens(self, key: str, reads: int, max_tokens: int | None, time_us: int | None) -> Reservation | Refusal:
        """The part of `reserve` for runs with token or money limits; the lock is held."""
        left = {name: cap - spent - self.held(name) for name, spent, cap in self.sums() if cap is not None}
        if left.get("input_tokens", reads) < reads:
            return Refusal("input_tokens", f"the prompt needs about {reads}, {left['input_tokens']} are left")
        writes = [max_tokens] if max_tokens is not None else []
        if "tokens" in left:
            writes.append(left["tokens"] - reads)
        if "output_tokens" in left:
            writes.append(left["output_tokens"])
        output = min(writes, default=None)
        floor = MINIMUM_OUTPUT_TOKENS if max_tokens is None else min(max_tokens, MINIMUM_OUTPUT_TOKENS)
        if output is not None and output < floor:
            limit = "output_tokens" if left.get("output_tokens", floor) < floor else "tokens"
            return Refusal(limit, f"a prompt of about {reads} tokens leaves {output} for an answer")
        money = left.get("money_micro")
        if money is not None and money <= 0:
            return Refusal("money_micro", "all money left is held by calls in flight")
        return Reservation(
            key=key,
            input_tokens=reads,
            output_tokens=output,
            money_micro=money,
            time_us=time_us,
            open_ended=max_tokens is None and output is not None,
        )

    def charge(self, key: str, usage: Usage | None, answer: str) -> Charge:
        """What a finished call costs: what was reported, else what was reserved, and never 0 for unknown.

        Where the reservation was open-ended (all that was left), unknown output is counted from the answer.
        A reported 0 for a prompt that was read or an answer that came is no report.
        """
        held = self.holds.get(key) or Reservation(key=key)
        if usage is None and held.output_tokens is None and held.money_micro is None:  # told as below, in one step
            return Charge(input_tokens=max(1, held.input_tokens), output_tokens=estimate_tokens(answer), estimated=True)
        reported = usage or UNKNOWN
        counts_answer = held.open_ended or held.output_tokens is None
        unknown_output = estimate_tokens(answer) if counts_answer else held.output_tokens or 1
        reads, reads_known = known(reported.input_tokens or None, max(1, held.input_tokens))
        writes, writes_known = known(
            (reported.output_tokens or None) if answer else reported.output_tokens, unknown_output
        )
        money, money_known = known(reported.money_micro, held.money_micro or 0)
        return Charge(
            input_tokens=reads,
            output_tokens=writes,
            money_micro=money,
            estimated=not (reads_known and writes_known and (money_known or self.budget.money_micro is None)),
        )

    def worst_case(self, key: str) -> Charge:
        """The whole reservation, for a call whose outcome is unknown."""
        held = self.holds.get(key) or Reservation(key=key)
        return Charge(
            input_tokens=max(1, held.input_tokens),
            output_tokens=held.output_tokens or 1,
            money_micro=held.money_micro or 0,
            estimated=True,
        )

    def overrun(self, key: str, charge: Charge) -> tuple[str, ...]:
        """The limits that this charge passes, be it the budget's own or the reservation's `max_tokens`."""
        if not self.is_metered:
            return ()
        parts = {
            "tokens": charge.input_tokens + charge.output_tokens,
            "input_tokens": charge.input_tokens,
            "output_tokens": charge.output_tokens,
            "money_micro": charge.money_micro,
        }
        over = [limit for limit, spent, cap in self.sums() if cap is not None and spent + parts[limit] > cap]
        held = self.holds.get(key)
        limited = "output_tokens" if self.budget.output_tokens is not None else "tokens"
        if held and held.output_tokens is not None and charge.output_tokens > held.output_tokens and not over:
            is_limited = self.budget.tokens is not None or self.budget.output_tokens is not None
            over.extend([limited] if is_limited else [])
        return tuple(over)

    def settle(self, key: str, charge: Charge) -> None:
        """Replace a hold by its charge (called by the fold)."""
        self.holds.pop(key, None)
        self.add(charge)

    def add(self, charge: Charge) -> None:
        """Count what a call was charged beside its hold, which stands: a try that failed and is made again."""
        with self.lock:
            self.input_tokens += charge.input_tokens
            self.output_tokens += charge.output_tokens
            self.money_micro += charge.money_micro
            self.has_estimates = self.has_estimates or charge.estimated

    def elapsed_us(self, now_us: int | None = None) -> int:
        """Active time so far, or up to a reading of the monotonic clock, microseconds.

        Time between invocations is not in it.
        """
        if self.started_us is None:
            return self.carried_us
        return self.carried_us - self.started_us + (self.clock.monotonic() if now_us is None else now_us)

    def sums(self) -> tuple[tuple[str, int, int | None], ...]:
        """`(limit, spent, cap)` for each metered limit."""
        budget = self.budget
        return (
            ("tokens", self.input_tokens + self.output_tokens, budget.tokens),
            ("input_tokens", self.input_tokens, budget.input_tokens),
            ("output_tokens", self.output_tokens, budget.output_tokens),
            ("money_micro", self.money_micro, budget.money_micro),
        )

    def held(self, limit: str) -> int:
        """How much of a metered limit calls in flight hold."""
        total = 0
        for hold in self.holds.values():
            match limit:
                case "tokens":
                    total += hold.input_tokens + (hold.output_tokens or 0)
                case "input_tokens":
                    total += hold.input_tokens
                case "output_tokens":
                    total += hold.output_tokens or 0
                case _:
                    total += hold.money_micro or 0
        return total


def told(limit: str, amount: int) -> str:
    """An amount as people count it: money in units of the currency, six places where it needs them."""
    if limit != "money_micro":
        return str(amount)
    whole, millionths = divmod(amount, 1_000_000)
    return f"{whole}.{millionths:06}".rstrip("0").rstrip(".")


def known(reported: int | None, fallback: int) -> tuple[int, bool]:
    """A reported figure when it is a sane count, else the fallback; and which of the two it was."""
    if type(reported) is not int or reported < 0:
        return fallback, False
    return min(reported, LARGEST_COUNT), True
