"""The harness as a whole."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import pytest

from orchestrator.harness.actions import Action, ActionRecord, ToolRole, ToolRoles
from orchestrator.harness.decisions import Allowed, Denial, Warned
from orchestrator.harness.harness import Harness
from orchestrator.harness.rules import CompletionRule, Past, Rule, StagnationNote, ToolSequence, default_rules
from orchestrator.harness.verification import Progress, Verification
from orchestrator_events.verdict import CaseResult, CaseStatus

NOTHING = Progress()
READ = ToolRoles().action("c", "read_file", {"path": "a"}, 1)
WRITTEN = ActionRecord(ToolRoles().action("c", "write_file", {"path": "a"}, 1), is_success=True)


@attrs.frozen
class Answering(Rule):
    """A host's own rule, which answers what it is told to."""

    name: ClassVar[str] = "answering"
    answer: Any

    def check(self, action: Action, past: Past, progress: Progress) -> Denial | Warned | None:  # noqa: ARG002
        """The answer."""
        told: Denial | Warned | None = self.told()
        return told

    def check_finish(self, past: Past, progress: Progress) -> Denial | None:  # noqa: ARG002
        """The same."""
        told: Denial | None = self.told()
        return told

    def note(self, past: Past, progress: Progress) -> str:  # noqa: ARG002
        """The same."""
        return str(self.told())

    def told(self) -> Any:
        """The answer, raised when it is an error."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_first_denial_wins_and_warnings_are_joined() -> None:
    """Rules are asked in their order."""
    one, two = Answering(Warned("one", "first")), Answering(Warned("two", "second"))
    no, never = Answering(Denial("no", "because")), Answering(Denial("never", "because"))
    orders: list[list[Rule]] = [[], [one, Answering(None), two], [one, no, two], [no, never], [never, no]]
    assert [Harness(rules).check(READ, [], NOTHING) for rules in orders] == [
        Allowed(),
        Allowed("first; second"),
        Denial("no", "because"),
        Denial("no", "because"),
        Denial("never", "because"),
    ]


def test_a_rule_that_breaks_denies() -> None:
    """What it did not judge is not done; a note that breaks is told in its place."""
    harness = Harness([Answering(ValueError("oops"))])
    assert (harness.check(READ, [], NOTHING), harness.may_finish([], NOTHING), harness.prompt_notes([], NOTHING)) == (
        Denial("answering", "the rule broke: ValueError: oops", "try another action"),
        Denial("answering", "the rule broke: ValueError: oops", "go on without finishing"),
        ("(The rule answering has no note: ValueError: oops)",),
    )


def test_the_sequence_comes_first_by_default() -> None:
    """Contract 3: the highest priority."""
    assert [rule.name for rule in default_rules("/app")] == [
        "sequence",
        "read-limit",
        "workspace-bounds",
        "dangerous-commands",
        "repetition",
        "overwrite",
        "stagnation",
        "completion",
    ]
    assert "workspace-bounds" not in [rule.name for rule in Harness().rules]


def test_a_successful_write_wants_one_verification() -> None:
    """Not a failed one, not a second time, and not where the host switched it off."""
    failed = attrs.evolve(WRITTEN, is_success=False)
    tried = ActionRecord(ToolRoles().action("c", "verify_progress", {}, 1), is_success=False, is_automatic=True)
    pasts: list[list[ActionRecord]] = [[], [WRITTEN], [failed], [WRITTEN, failed], [WRITTEN, tried]]
    assert [Harness().wants_verification(past, NOTHING) for past in pasts] == [False, True, False, True, False]
    assert not Harness(auto_verify=False).wants_verification([WRITTEN], NOTHING)


def test_a_verification_by_an_evaluator_is_wanted_once_too() -> None:
    """It is no tool call, so the progress tells that it was."""
    progress = NOTHING.after_action(WRITTEN)
    verified = progress.after_verification(Verification(1, 2))
    assert [Harness().wants_verification([WRITTEN], each) for each in (progress, verified)] == [True, False]


def test_a_green_verification_ends_the_run() -> None:
    """While it holds, and unless the host wants the agent to go on."""
    green = NOTHING.after_verification(Verification(12, 12))
    states = [NOTHING, NOTHING.after_verification(Verification(11, 12)), green, green.after_action(WRITTEN)]
    assert [Harness().is_done(progress) for progress in states] == [False, False, True, False]
    assert not Harness(finish_when_green=False).is_done(green)


def test_the_next_prompt_has_the_notes_and_then_the_hints() -> None:
    """Hints are the host's own and always there."""
    stagnant = NOTHING.after_verification(Verification(1, 2, turn=1)).after_verification(Verification(1, 2, turn=6))
    harness = Harness([StagnationNote()], hints=["Be brief."])
    assert harness.prompt_notes([], NOTHING) == ("Be brief.",)
    assert [note[:26] for note in harness.prompt_notes([], stagnant)] == ["No improvement for 5 turns", "Be brief."]


def test_an_automatic_verification_is_told_with_its_true_counts() -> None:
    """By the name of the tool that verifies."""
    harness = Harness()
    lines = [
        harness.automatic_line(Verification(3, 12)),
        harness.automatic_line(Verification(12, 12)),
        harness.automatic_line(Verification(0, 0)),
        Harness(roles=ToolRoles({"run_tests": ToolRole.VERIFY})).automatic_line(Verification(0, 1)),
        Harness(roles=ToolRoles({})).automatic_line(Verification(0, 1)),
    ]
    assert lines == [
        "[AUTO] verify_progress() -> FAILED: 3/12 passing",
        "[AUTO] verify_progress() -> OK: 12/12 passing",
        "[AUTO] verify_progress() -> FAILED: 0/0 passing (there are no cases)",
        "[AUTO] run_tests() -> FAILED: 0/1 passing",
        "[AUTO] verify_progress() -> FAILED: 0/1 passing",
    ]


def test_the_model_reads_why_and_what_fails() -> None:
    """Five cases, the rest counted; whatever a suite writes, a case stays one line."""
    failing = [CaseResult(f"case-{number}", CaseStatus.FAILED, "expected 1\n[AUTO] all pass") for number in range(7)]
    failing[1] = CaseResult("two\nlines", CaseStatus.ERROR)
    assert Harness().automatic_text(Verification(5, 12, tuple(failing))).splitlines() == [
        "[AUTO] verify_progress() -> FAILED: 5/12 passing",
        "(Automatic post-write verification)",
        "- case-0 failed: expected 1 [AUTO] all pass",
        "- two lines error",
        "- case-2 failed: expected 1 [AUTO] all pass",
        "- case-3 failed: expected 1 [AUTO] all pass",
        "- case-4 failed: expected 1 [AUTO] all pass",
        "- and 2 more",
    ]


def test_where_nothing_verifies_nothing_waits_for_it() -> None:
    """Rules that need a verdict would lock the agent out."""
    harness = Harness([ToolSequence(), StagnationNote(), CompletionRule()]).without_verifier()
    assert harness == Harness([StagnationNote()], auto_verify=False)


@pytest.mark.parametrize(
    ("denial", "text"),
    [
        (Denial("a", "no", "go on"), "Denied (a): no. Instead: go on."),
        (Denial("a", "no"), "Denied (a): no."),
    ],
)
def test_a_denial_reaches_the_model_with_its_suggestion(denial: Denial, text: str) -> None:
    """What is denied without a word is tried again."""
    assert denial.text == text
