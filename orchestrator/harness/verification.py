"""What verifications said, and how far the work has come by them."""

from __future__ import annotations

import attrs

from orchestrator.harness.actions import ActionRecord
from orchestrator_events.verdict import CaseResult

__all__ = ["Progress", "Verification"]


@attrs.frozen
class Verification:
    """The counts of one verification, as the verifier gave them; never read out of a text."""

    passed: int
    total: int
    failing: tuple[CaseResult, ...] = attrs.field(default=(), converter=tuple[CaseResult, ...])
    """Every case that did not pass, where the verifier names them."""
    is_automatic: bool = False
    turn: int = 0
    """Number of the turn, from 1."""

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.passed <= self.total:
            raise ValueError(f"{self.passed} of {self.total} cases cannot have passed: give 0 <= passed <= total")

    @property
    def is_green(self) -> bool:
        """Whether there are cases and all passed; an empty suite is never green."""
        return self.total > 0 and self.passed == self.total and not self.failing

    @property
    def progress(self) -> float:
        """The share of cases that passed, from 0 to 1; 0 for an empty suite."""
        return self.passed / self.total if self.total else 0.0

    def is_better_than(self, other: Verification) -> bool:
        """Whether a strictly greater share of cases passed."""
        return self.passed * max(other.total, 1) > other.passed * max(self.total, 1)


@attrs.frozen(kw_only=True)
class Progress:
    """The fold of a run's writes and verifications, in their order."""

    last: Verification | None = None
    best: Verification | None = None
    """The first one that no other has bettered."""
    writes: int = 0
    """Successful writes so far."""
    verified_writes: int = 0
    """How many of them came before the last verification."""
    tried_writes: int = 0
    """How many of them came before the last attempt at one, whatever came of it."""

    def after_action(self, record: ActionRecord) -> Progress:
        """The progress once this action was executed; only a successful write changes it."""
        return attrs.evolve(self, writes=self.writes + 1) if record.is_write else self

    def after_verification(self, verification: Verification) -> Progress:
        """The progress once this verdict is known; the best one changes only for a strictly better one."""
        is_best = self.best is None or verification.is_better_than(self.best)
        best = verification if is_best else self.best
        writes = self.writes
        return attrs.evolve(self, last=verification, best=best, verified_writes=writes, tried_writes=writes)

    def after_attempt(self) -> Progress:
        """The progress once a verification came to no verdict: what was written is still not verified."""
        return attrs.evolve(self, tried_writes=self.writes)

    @property
    def is_stale(self) -> bool:
        """Whether something was written since the last verification."""
        return self.writes > self.verified_writes

    @property
    def is_green(self) -> bool:
        """Whether the last verification was green and still holds."""
        return self.last is not None and self.last.is_green and not self.is_stale

    @property
    def turns_since_improvement(self) -> int:
        """Turns from the best verification to the last; 0 before the first."""
        return self.last.turn - self.best.turn if self.last and self.best else 0
