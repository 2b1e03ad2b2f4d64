"""Properties of the harness: denials leave no trace, order decides, and nobody is locked out."""

from __future__ import annotations

import shlex
from typing import Any, ClassVar

import attrs
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.harness.actions import Action, ActionRecord, ToolRoles
from orchestrator.harness.commands import judge_command
from orchestrator.harness.decisions import Allowed, Denial, Warned
from orchestrator.harness.harness import Harness
from orchestrator.harness.rules import Past, ReadLimit, Rule, ToolSequence, default_rules
from orchestrator.harness.verification import Progress, Verification

PATHS = st.sampled_from(["a", "./a", "a.txt", "ab", "a/b", "../a", "/app/a", "/application/a", "~"])
CALLS: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.sampled_from(["write_file", "edit_file"]), st.fixed_dictionaries({"path": PATHS, "content": PATHS})),
    st.tuples(st.just("read_file"), st.fixed_dictionaries({"path": PATHS})),
    st.tuples(st.sampled_from(["verify_progress", "think"]), st.just({})),
    st.tuples(st.just("run_command"), st.fixed_dictionaries({"command": st.sampled_from(["ls", "rm -rf /", "'"])})),
)
Step = tuple[tuple[str, dict[str, Any]], bool, tuple[int, int] | None]
COUNTS = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda pair: (min(pair), max(pair)))
STEPS = st.lists(st.tuples(CALLS, st.booleans(), st.none() | COUNTS), max_size=25)
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)


@attrs.define(eq=False)
class Loop:
    """An agent run as small as it can be; a step without counts has a verifier that breaks."""

    harness: Harness = attrs.Factory(lambda: Harness(default_rules("/app"), ToolRoles(root="/app")))
    past: list[ActionRecord] = attrs.Factory(list[ActionRecord])
    progress: Progress = attrs.Factory(Progress)
    decisions: list[Allowed | Denial] = attrs.Factory(list[Allowed | Denial])

    def take(self, step: Step, turn: int) -> bool:
        """One turn: judge, execute, verify. Whether it was allowed."""
        (tool, arguments), is_success, counts = step
        action = self.harness.roles.action("c", tool, arguments, turn)
        decision = self.harness.check(action, self.past, self.progress)
        self.decisions.append(decision)
        if isinstance(decision, Denial):
            return False
        self.execute(ActionRecord(action, is_success))
        if self.harness.wants_verification(self.past, self.progress):
            verify = self.harness.roles.action("auto", "verify_progress", {}, turn)
            self.execute(ActionRecord(verify, counts is not None, is_automatic=True))
            if counts is not None:
                self.progress = self.progress.after_verification(Verification(*counts, turn=turn))
        return True

    def execute(self, record: ActionRecord) -> None:
        """The action joins the history."""
        self.past.append(record)
        self.progress = self.progress.after_action(record)


@given(STEPS)
def test_denied_actions_never_change_a_later_decision(steps: list[Step]) -> None:
    """A run in which they were never tried decides everything else alike."""
    first, second = Loop(), Loop()
    allowed = [(step, turn) for turn, step in enumerate(steps, 1) if first.take(step, turn)]
    for step, turn in allowed:
        second.take(step, turn)
    assert second.decisions == [each for each in first.decisions if isinstance(each, Allowed)]
    assert (second.past, second.progress) == (first.past, first.progress)


@given(STEPS)
def test_decisions_follow_from_the_records(steps: list[Step]) -> None:
    """The same run is judged alike when it is replayed."""
    first, second = Loop(), Loop()
    for turn, step in enumerate(steps, 1):
        first.take(step, turn)
        second.take(step, turn)
    assert first.decisions == second.decisions


@given(STEPS)
def test_a_write_is_allowed_again_whatever_happened(steps: list[Step]) -> None:
    """After an automatic verification the sequence rule locks nobody out, even where the verifier broke."""
    loop = Loop()
    write = loop.harness.roles.action("c", "write_file", {"path": "new"}, 99)
    for turn, step in enumerate(steps, 1):
        loop.take(step, turn)
        assert ToolSequence().check(write, loop.past, loop.progress) is None
        assert loop.harness.check(write, loop.past, loop.progress) == Allowed()


@attrs.frozen
class Answering(Rule):
    """A rule that always answers the same."""

    name: ClassVar[str] = "answering"
    answer: Denial | Warned | None

    def check(self, action: Action, past: Past, progress: Progress) -> Denial | Warned | None:  # noqa: ARG002
        """The answer."""
        return self.answer


KINDS: dict[str, Denial | Warned | None] = {"d": Denial("d", "x"), "w": Warned("w", "y"), "n": None}


@given(st.text("dwn", max_size=6), st.text("dwn", max_size=6))
def test_the_first_denial_wins_whatever_follows(before: str, after: str) -> None:
    """Later rules change nothing; without a denial all warnings are told."""
    action = ToolRoles().action("c", "think", {}, 1)
    first = Denial("first", "x")
    rules = [*(KINDS[kind] for kind in before), first, *(KINDS[kind] for kind in after)]
    decision = Harness([Answering(answer) for answer in rules]).check(action, [], Progress())
    mild = Harness([Answering(KINDS[kind]) for kind in before if kind != "d"]).check(action, [], Progress())
    assert decision == (KINDS["d"] if "d" in before else first)
    assert mild == Allowed("; ".join("y" for kind in before if kind == "w"))


@given(st.lists(st.sampled_from(["a", "a.txt", "ab", "a/b", "a/b/c", "b"]), max_size=20), st.integers(1, 4))
def test_reads_of_different_paths_never_count_together(paths: list[str], limit: int) -> None:
    """Each path has its own count, whatever the others begin with."""
    roles, past = ToolRoles(), list[ActionRecord]()
    for path in paths:
        action = roles.action("c", "read_file", {"path": path}, 1)
        is_denied = ReadLimit(limit).check(action, past, Progress()) is not None
        assert is_denied == (sum(record.action.path == path for record in past) >= limit)
        if not is_denied:
            past.append(ActionRecord(action, is_success=True))


@given(WORDS)
def test_every_text_is_judged_and_quoted_text_is_harmless(text: str) -> None:
    """No text breaks the reader, and as the argument of echo none is a danger."""
    judge_command(text, "/app")
    assert judge_command(f"echo {shlex.quote(text)}", "/app") is None


@given(st.text("ab ;&|<>()$`'\"\\\n{}#*~!=-/[]", max_size=30))
def test_whatever_a_shell_might_read_has_a_verdict(text: str) -> None:
    """Also what no shell would accept; and a removal of the root before it is never overlooked."""
    judge_command(text, "/app")
    assert judge_command(f"rm -rf / ; {text}", "/app") is not None
