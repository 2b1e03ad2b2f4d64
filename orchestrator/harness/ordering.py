"""Rules about what comes after what: verify after a write, no endless reading, no repetition."""

from __future__ import annotations

from typing import ClassVar

import attrs

from orchestrator.harness.actions import Action, ActionRecord, ToolRole
from orchestrator.harness.decisions import Denial, Warned
from orchestrator.harness.rule import Past, Rule, quoted, unverified_write
from orchestrator.harness.verification import Progress

__all__ = ["OverwriteWarning", "ReadLimit", "Repetition", "ToolSequence"]

_AT_LEAST_ONE = attrs.validators.ge(1)


@attrs.frozen
class ToolSequence(Rule):
    """No write after a successful write without a verification in between (contract 3, strategy 2, rule 1).

    A failed write changed nothing and may be tried again at once.
    """

    name: ClassVar[str] = "sequence"
    needs_verifier: ClassVar[bool] = True

    def check(self, action: Action, past: Past, progress: Progress) -> Denial | None:
        """Deny a second write."""
        written = unverified_write(past, progress) if action.role is ToolRole.WRITE else None
        if written is None:
            return None
        what = quoted(written.action.path or written.action.tool)
        return Denial(
            self.name, f"{what} was written and not verified since", "verify, read what fails, then write again"
        )


@attrs.frozen
class ReadLimit(Rule):
    """At most `limit` reads of one path, those of a missing file included (contract 3, strategy 2, rule 2).

    Only a successful write to that very path begins anew: there is something new to read then. The contract
    has no such reset; without it an agent could never read what it wrote.
    """

    name: ClassVar[str] = "read-limit"
    limit: int = attrs.field(default=2, validator=_AT_LEAST_ONE)

    def check(self, action: Action, past: Past, progress: Progress) -> Denial | None:  # noqa: ARG002
        """Deny one read too many."""
        if action.role is not ToolRole.READ or action.path is None or self._reads(action.path, past) < self.limit:
            return None
        return Denial(
            self.name,
            f"{quoted(action.path)} was read {self.limit} times already and not written since",
            "use what you read; when the file is missing, write it",
        )

    @staticmethod
    def _reads(path: str, past: Past) -> int:
        reads = 0
        for record in reversed(past):
            if record.action.path != path:
                continue
            if record.is_write:
                break
            reads += record.action.role is ToolRole.READ
        return reads


@attrs.frozen
class Repetition(Rule):
    """No call that equals `limit` of the last `window` actions, content included (by digest).

    The harness's own actions do not count. A successful write of something else begins anew: the same
    test command or read means something new after it.
    """

    name: ClassVar[str] = "repetition"
    limit: int = attrs.field(default=2, validator=_AT_LEAST_ONE)
    window: int = attrs.field(default=3, validator=_AT_LEAST_ONE)

    def __attrs_post_init__(self) -> None:
        if self.limit > self.window:
            raise ValueError(f"limit {self.limit} is above window {self.window}, so it would never hold: raise window")

    def check(self, action: Action, past: Past, progress: Progress) -> Denial | None:  # noqa: ARG002
        """Deny a repetition."""
        same = sum(record.action.digest == action.digest for record in self._recent(action, past))
        if same < self.limit:
            return None
        return Denial(
            self.name,
            f"this very call of {quoted(action.tool)} was made {same} times among the last {self.window} actions",
            "its result will be the same: try something else",
        )

    def _recent(self, action: Action, past: Past) -> list[ActionRecord]:
        recent: list[ActionRecord] = []
        for record in reversed(past):
            is_full = len(recent) == self.window
            if is_full or (record.is_write and record.action.digest != action.digest):
                break
            if not record.is_automatic:
                recent.append(record)
        return recent


@attrs.frozen
class OverwriteWarning(Rule):
    """Warns when a file is overwritten that was written before and for which no verdict is known since.

    Beside the sequence rule it speaks where a verification was tried and broke.
    """

    name: ClassVar[str] = "overwrite"

    def check(self, action: Action, past: Past, progress: Progress) -> Warned | None:
        """Warn of an overwrite."""
        if action.role is not ToolRole.WRITE or action.path is None:
            return None
        writes = [record.action.path for record in past if record.is_write]
        if action.path not in writes[progress.verified_writes :] or self._is_verified(action.path, past):
            return None
        return Warned(self.name, f"{quoted(action.path)} is overwritten although nothing is known of what it did")

    @staticmethod
    def _is_verified(path: str, past: Past) -> bool:
        for record in reversed(past):
            if record.action.role is ToolRole.VERIFY and record.is_success:
                return True
            if record.is_write and record.action.path == path:
                return False
        return False
