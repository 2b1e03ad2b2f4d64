"""The harness: rules in order around any agent, so that the workflow does not depend on the model."""

from __future__ import annotations

from typing import Final

import attrs

from orchestrator.excerpt import excerpt
from orchestrator.harness.actions import Action, ToolRoles
from orchestrator.harness.decisions import Allowed, Denial, Warned
from orchestrator.harness.rule import Past, Rule, unverified_write
from orchestrator.harness.rules import default_rules
from orchestrator.harness.verification import Progress, Verification
from orchestrator.wording import describe
from orchestrator_events.verdict import CaseResult

__all__ = ["AUTOMATIC_REASON", "WORKFLOW_HINTS", "Harness"]

AUTOMATIC_REASON: Final = "Automatic post-write verification"
"""Why the harness verifies on its own (contract 3, strategy 1)."""

WORKFLOW_HINTS: Final = (
    "Every successful write is verified at once; read what fails before you write again.",
    "Finish only when every case passes.",
)
"""Hints about the workflow that hold for any work."""

_SHOWN_CASES = 5
_SHOWN_CHARACTERS = 300


def _rules(rules: tuple[Rule, ...] | list[Rule]) -> tuple[Rule, ...]:
    return tuple(rules)


def _default_rules() -> tuple[Rule, ...]:
    return default_rules(None)


@attrs.frozen
class Harness:
    """Rules, in order, over the typed records of a run. Pure: what it answers follows from what it is given."""

    rules: tuple[Rule, ...] = attrs.field(factory=_default_rules, converter=_rules)
    roles: ToolRoles = attrs.field(factory=ToolRoles)
    auto_verify: bool = True
    """Whether every successful write is verified at once, which costs no turn."""
    finish_when_green: bool = True
    """Whether a green verification ends the run."""
    hints: tuple[str, ...] = attrs.field(default=(), converter=tuple[str, ...])
    """Sentences that every prompt ends with."""

    def without_verifier(self) -> Harness:
        """The same where neither a tool nor an evaluator verifies: without what would lock the agent out."""
        rules = tuple(rule for rule in self.rules if not rule.needs_verifier)
        return attrs.evolve(self, rules=rules, auto_verify=False)

    def check(self, action: Action, past: Past, progress: Progress) -> Allowed | Denial:
        """Whether the action may be executed: the first rule that denies wins, warnings are joined.

        A rule that raises denies, too.
        """
        warnings: list[str] = []
        for rule in self.rules:
            match _answer(rule, action, past, progress):
                case Denial() as denial:
                    return denial
                case Warned(warning=warning):
                    warnings.append(warning)
        return Allowed("; ".join(warnings))

    def wants_verification(self, past: Past, progress: Progress) -> bool:
        """Whether the harness is to verify now: it does so, and a write succeeded since it was done or tried."""
        return self.auto_verify and unverified_write(past, progress) is not None

    def may_finish(self, past: Past, progress: Progress) -> Denial | None:
        """The first rule's objection to finishing, or None."""
        return next((denial for rule in self.rules if (denial := _objection(rule, past, progress))), None)

    def is_done(self, progress: Progress) -> bool:
        """Whether a green verification that still holds ends the run now."""
        return self.finish_when_green and progress.is_green

    def prompt_notes(self, past: Past, progress: Progress) -> tuple[str, ...]:
        """What the next prompt says beside the work: the rules' notes, then the hints."""
        notes = (_note(rule, past, progress) for rule in self.rules)
        return (*filter(None, notes), *self.hints)

    def automatic_line(self, verification: Verification) -> str:
        """One line that tells of an automatic verification, with the counts it gave."""
        state = "OK" if verification.is_green else "FAILED"
        empty = " (there are no cases)" if verification.total == 0 else ""
        tool = self.roles.verify_tool or "verify_progress"
        return f"[AUTO] {tool}() -> {state}: {verification.passed}/{verification.total} passing{empty}"

    def automatic_text(self, verification: Verification) -> str:
        """What the model reads of an automatic verification: the line, the reason, and the first failing cases."""
        failing = verification.failing
        shown = [_told(case) for case in failing[:_SHOWN_CASES]]
        left = [f"- and {len(failing) - _SHOWN_CASES} more"] if len(failing) > _SHOWN_CASES else []
        return "\n".join([self.automatic_line(verification), f"({AUTOMATIC_REASON})", *shown, *left])


def _answer(rule: Rule, action: Action, past: Past, progress: Progress) -> Denial | Warned | None:
    try:
        return rule.check(action, past, progress)
    except Exception as error:  # noqa: BLE001 -- whatever a host's rule raises, what it did not judge is not executed
        return Denial(rule.name, f"the rule broke: {describe(error)}", "try another action")


def _objection(rule: Rule, past: Past, progress: Progress) -> Denial | None:
    try:
        return rule.check_finish(past, progress)
    except Exception as error:  # noqa: BLE001 -- as above
        return Denial(rule.name, f"the rule broke: {describe(error)}", "go on without finishing")


def _note(rule: Rule, past: Past, progress: Progress) -> str:
    try:
        return rule.note(past, progress)
    except Exception as error:  # noqa: BLE001 -- a note is not worth a run, and its lack is told where it is missed
        return f"(The rule {rule.name} has no note: {describe(error)})"


def _told(case: CaseResult) -> str:
    message = " ".join(excerpt(case.message, _SHOWN_CHARACTERS).split())
    return f"- {' '.join(excerpt(case.id, _SHOWN_CHARACTERS).split())} {case.status}" + (
        f": {message}" if message else ""
    )
