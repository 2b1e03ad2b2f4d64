"""Defects that harnesses of this kind are known for: each has a test, run through a whole loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from orchestrator.harness.actions import ActionRecord
from orchestrator.harness.configuring import harness_from
from orchestrator.harness.decisions import Allowed, Denial
from orchestrator.harness.harness import Harness
from orchestrator.harness.verification import Progress, Verification
from orchestrator_events.verdict import CaseResult, CaseStatus


def endless(passed: int, total: int) -> Iterator[tuple[int, int]]:
    """The same verdict for ever."""
    while True:
        yield passed, total


@attrs.define(eq=False)
class Loop:
    """An agent run as small as it can be: ask, execute, verify. Without a verdict the verifier is broken."""

    verdicts: Iterator[tuple[int, int]] = attrs.field(factory=lambda: iter(()))
    failing: frozenset[str] = frozenset()
    """Tools that do not work."""
    harness: Harness = attrs.Factory(lambda: harness_from({}, workspace="/app"))
    past: list[ActionRecord] = attrs.Factory(list[ActionRecord])
    progress: Progress = attrs.Factory(Progress)
    turn: int = 0
    lines: list[str] = attrs.Factory(list[str])

    def act(self, tool: str, **given: Any) -> str:
        """One turn; the rule that denied it, or done."""
        self.turn += 1
        action = self.harness.roles.action(f"c{self.turn}", tool, given, self.turn)
        decision = self.harness.check(action, self.past, self.progress)
        if isinstance(decision, Denial):
            return decision.rule
        self.executed(ActionRecord(action, tool not in self.failing))
        if self.harness.wants_verification(self.past, self.progress):
            self.verify()
        return "done"

    def write(self, path: str = "/app/regex.txt", content: str = "x") -> str:
        """One turn that writes."""
        return self.act("write_file", path=path, content=content)

    def executed(self, record: ActionRecord) -> None:
        """The action joins the history."""
        self.past.append(record)
        self.progress = self.progress.after_action(record)

    def verify(self) -> None:
        """The harness verifies on its own."""
        counts = next(self.verdicts, None)
        action = self.harness.roles.action("auto", "verify_progress", {}, self.turn)
        self.executed(ActionRecord(action, counts is not None, is_automatic=True))
        if counts is not None:
            verification = Verification(*counts, is_automatic=True, turn=self.turn)
            self.progress = self.progress.after_verification(verification)
            self.lines.append(self.harness.automatic_line(verification))


def test_counts_are_never_read_out_of_a_text() -> None:
    """9 failed and 12 passed is 12 of 21, whatever the messages say."""
    failing = [CaseResult(f"case-{number}", CaseStatus.FAILED, "12 passed, 0 failed") for number in range(9)]
    verification = Verification(12, 21, tuple(failing))
    assert Harness().automatic_line(verification) == "[AUTO] verify_progress() -> FAILED: 12/21 passing"


def test_repetition_is_seen_in_a_real_history() -> None:
    """The third identical write is denied, although each was verified."""
    loop = Loop(endless(0, 12))
    assert [loop.write() for _ in range(3)] == ["done", "done", "repetition"]


def test_a_denied_write_locks_nobody_out() -> None:
    """A denial is no action: the history is as it was, and the next write is judged for itself."""
    loop = Loop(endless(0, 12))
    outside = [loop.write("/etc/x") for _ in range(10)]
    assert (set(outside), len(loop.past), loop.write()) == ({"workspace-bounds"}, 0, "done")


def test_a_failed_write_may_be_tried_again() -> None:
    """Nothing was written, so there is nothing to verify."""
    loop = Loop(endless(0, 12), failing=frozenset({"write_file"}))
    first = [loop.write(), loop.write()]
    loop.failing = frozenset()
    assert (first, loop.write(content="y"), len(loop.lines)) == (["done", "done"], "done", 1)


def test_paths_that_begin_alike_are_different_paths() -> None:
    """Two reads of `a` say nothing about `a.txt`."""
    loop = Loop()
    acts = [loop.act("read_file", path=path) for path in ("a", "a", "a.txt", "aa", "a/b", "a")]
    assert acts == ["done", "done", "done", "done", "done", "read-limit"]


def test_denied_reads_do_not_count_and_a_write_resets() -> None:
    """However often it was denied, the file can be read again once it is written."""
    loop = Loop(endless(0, 1))
    before = [loop.act("read_file", path="a") for _ in range(5)]
    loop.write("a")
    after = [loop.act("read_file", path="a") for _ in range(3)]
    assert before == ["done", "done", "read-limit", "read-limit", "read-limit"]
    assert after == ["done", "done", "read-limit"]


@pytest.mark.parametrize(
    "command",
    ["rm -rf /", "rm -fr /etc", "rm -rf ~", "rm -r -f /etc", "rm -rf -- /etc", "rm -rf /app/../etc"],
)
def test_dangerous_commands_are_read_and_not_searched(command: str) -> None:
    """The ways around a pattern are denied, and a text that merely holds one is not."""
    loop = Loop()
    acts = [loop.act("run_command", command=text) for text in (command, f"echo '{command}'")]
    assert acts == ["dangerous-commands", "done"]


@pytest.mark.parametrize(
    ("path", "outcome"),
    [("/application/x", "workspace-bounds"), ("a..b.txt", "done"), ("/app/x", "done"), ("../x", "workspace-bounds")],
)
def test_paths_are_compared_by_whole_names(path: str, outcome: str) -> None:
    """`/application` is not in `/app`, and two dots within a name lead nowhere."""
    assert Loop(endless(0, 1)).write(path) == outcome


def test_contents_of_equal_length_are_different_contents() -> None:
    """A digest, not a length."""
    loop = Loop(endless(0, 12))
    acts = [loop.write("a", content) for content in ("aaa", "bbb", "ccc", "ddd", "ddd", "ddd")]
    assert acts == ["done", "done", "done", "done", "done", "repetition"]


def test_stagnation_reaches_the_prompt() -> None:
    """Detecting it without another prompt is no detection."""
    loop = Loop(endless(3, 12))
    notes = []
    for content in "abcdefg":
        loop.write("a", content)
        notes.append(bool(loop.harness.prompt_notes(loop.past, loop.progress)))
    assert notes == [False, False, False, False, False, True, True]


def test_the_best_verification_is_kept() -> None:
    """The last one is not what the run achieved."""
    loop = Loop(iter([(3, 12), (11, 12), (2, 12)]))
    for content in "abc":
        loop.write("a", content)
    kept = Progress(
        last=Verification(2, 12, is_automatic=True, turn=3),
        best=Verification(11, 12, is_automatic=True, turn=2),
        writes=3,
        verified_writes=3,
        tried_writes=3,
    )
    assert loop.progress == kept


def test_texts_are_cut_on_characters() -> None:
    """Whatever they hold."""
    loop = Loop()
    action = loop.harness.roles.action("c", "write_file", {"path": "/" + "é😀" * 5_000}, 1)
    denial = loop.harness.check(action, [], Progress())
    assert isinstance(denial, Denial)
    assert len(denial.text) < 500


def test_an_empty_suite_never_passes() -> None:
    """Zero failures of zero cases end no run."""
    loop = Loop(iter([(0, 0)]))
    loop.write()
    denial = loop.harness.may_finish(loop.past, loop.progress)
    assert (loop.harness.is_done(loop.progress), denial and denial.reason, loop.lines) == (
        False,
        "the last verification ran no case",
        ["[AUTO] verify_progress() -> FAILED: 0/0 passing (there are no cases)"],
    )


def test_a_verifier_that_breaks_locks_nobody_out() -> None:
    """The agent may write again, and is warned that it overwrites what it knows nothing of."""
    loop = Loop()
    loop.write()
    action = loop.harness.roles.action("c", "write_file", {"path": "/app/regex.txt", "content": "y"}, 2)
    assert loop.harness.check(action, loop.past, loop.progress) == Allowed(
        "'/app/regex.txt' is overwritten although nothing is known of what it did"
    )


def test_a_green_automatic_verification_ends_the_run_early() -> None:
    """It costs no turn."""
    loop = Loop(iter([(3, 12), (12, 12)]))
    states = []
    for content in "ab":
        loop.write("a", content)
        states.append(loop.harness.is_done(loop.progress))
    assert (states, loop.turn, loop.lines) == (
        [False, True],
        2,
        ["[AUTO] verify_progress() -> FAILED: 3/12 passing", "[AUTO] verify_progress() -> OK: 12/12 passing"],
    )
