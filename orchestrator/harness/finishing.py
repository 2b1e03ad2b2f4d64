"""Rules about the end: no finish without a green verification, and a word where nothing gets better."""

from __future__ import annotations

from typing import ClassVar

import attrs

from orchestrator.harness.decisions import Denial
from orchestrator.harness.rule import Past, Rule, unverified_write
from orchestrator.harness.verification import Progress, Verification

__all__ = ["CompletionRule", "StagnationNote"]


@attrs.frozen
class CompletionRule(Rule):
    """No finish without a green verification of what was written last."""

    name: ClassVar[str] = "completion"
    needs_verifier: ClassVar[bool] = True

    def check_finish(self, past: Past, progress: Progress) -> Denial | None:
        """Deny an early end."""
        if progress.last is None:
            return Denial(self.name, "nothing was verified yet", "verify the work, then finish")
        if progress.is_stale or unverified_write(past, progress) is not None:
            return Denial(self.name, "something was written since the last verification", "verify again, then finish")
        if progress.last.is_green:
            return None
        return Denial(self.name, _what_is_wrong(progress.last), "fix what fails, and verify again")


@attrs.frozen
class StagnationNote(Rule):
    """Changes the next prompt once no verification was better than the best for `turns` turns."""

    name: ClassVar[str] = "stagnation"
    turns: int = attrs.field(default=5, validator=attrs.validators.ge(1))

    def note(self, past: Past, progress: Progress) -> str:
        """Say so, and ask for something else."""
        best, last = progress.best, progress.last
        if best is None or last is None or progress.is_green:
            return ""
        latest = max(last.turn, past[-1].action.turn if past else 0)
        idle = latest - best.turn
        if idle < self.turns:
            return ""
        worse = f"; the last one passed {last.passed}" if best.is_better_than(last) else ""
        return (
            f"No improvement for {idle} turns: the best verification passed {best.passed} of {best.total} cases{worse}."
            " What you are doing does not work. Take a different approach: question what you assume, begin with "
            "one failing case, and change something you have not changed yet."
        )


def _what_is_wrong(verification: Verification) -> str:
    if verification.total == 0:
        return "the last verification ran no case"
    return f"the last verification passed {verification.passed} of {verification.total} cases"
