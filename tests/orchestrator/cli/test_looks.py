"""The small parts of the display: what is live, what is coloured, marks, words and inert text."""

from __future__ import annotations

import io
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator import Budget
from orchestrator.attempt import Attempt
from orchestrator.cli.appearance import ASCII, UNICODE, console_on, draws_live, is_coloured, marks_for
from orchestrator.cli.attemptlines import headline
from orchestrator.cli.casestrip import case_order, case_strip, group_size
from orchestrator.cli.choices import ColorChoice, DisplayChoice
from orchestrator.cli.failures import broken_between_words
from orchestrator.cli.inert import inert, one_line
from orchestrator.cli.wording import duration, limit_name, limits
from orchestrator_events.blob import Blob
from orchestrator_events.run import AttemptFailed, PromptReady
from orchestrator_events.verdict import CaseResult, CaseStatus


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


CAPABLE = {"TERM": "xterm-256color"}


@pytest.mark.parametrize(
    ("choice", "stream", "environment", "expected"),
    [
        (DisplayChoice.AUTO, Terminal(), CAPABLE, True),
        (DisplayChoice.AUTO, Terminal(), {**CAPABLE, "CI": ""}, True),
        (DisplayChoice.AUTO, Terminal(), {**CAPABLE, "CI": "true"}, False),
        (DisplayChoice.AUTO, Terminal(), {"TERM": "dumb"}, False),
        (DisplayChoice.AUTO, Terminal(), {}, False),
        (DisplayChoice.AUTO, io.StringIO(), CAPABLE, False),
        (DisplayChoice.AUTO, io.StringIO(), {**CAPABLE, "FORCE_COLOR": "1"}, False),
        (DisplayChoice.LIVE, Terminal(), {**CAPABLE, "CI": "true", "NO_COLOR": "1"}, True),
        (DisplayChoice.LIVE, io.StringIO(), CAPABLE, False),
        (DisplayChoice.PLAIN, Terminal(), CAPABLE, False),
        (DisplayChoice.QUIET, Terminal(), CAPABLE, False),
    ],
)
def test_what_is_live(choice: DisplayChoice, stream: Any, environment: dict[str, str], *, expected: bool) -> None:
    """Live needs a terminal; by itself also one that is not dumb and not CI. Colour has no say."""
    assert draws_live(choice, stream, environment) == expected


@pytest.mark.parametrize(
    ("choice", "stream", "environment", "expected"),
    [
        (ColorChoice.AUTO, Terminal(), CAPABLE, True),
        (ColorChoice.AUTO, Terminal(), {**CAPABLE, "NO_COLOR": "1"}, False),
        (ColorChoice.AUTO, Terminal(), {**CAPABLE, "NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (ColorChoice.AUTO, io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (ColorChoice.AUTO, io.StringIO(), {"FORCE_COLOR": "0"}, False),
        (ColorChoice.AUTO, io.StringIO(), CAPABLE, False),
        (ColorChoice.ALWAYS, io.StringIO(), {"NO_COLOR": "1"}, True),
        (ColorChoice.NEVER, Terminal(), {**CAPABLE, "FORCE_COLOR": "1"}, False),
    ],
)
def test_what_is_coloured(choice: ColorChoice, stream: Any, environment: dict[str, str], *, expected: bool) -> None:
    """What is asked for wins, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    assert is_coloured(choice, stream, by_itself=True, environment=environment) == expected


@pytest.mark.parametrize(
    ("encoding", "marks"), [("utf-8", UNICODE), ("UTF8", UNICODE), ("ascii", ASCII), ("cp1252", ASCII)]
)
def test_marks(encoding: str, marks: object) -> None:
    """Unicode marks where the stream can carry them, ASCII everywhere else."""
    assert marks_for(io.TextIOWrapper(io.BytesIO(), encoding=encoding)) is marks


def attempt(statuses: dict[str, CaseStatus]) -> Attempt:
    """An attempt whose cases came out like this."""
    failing = tuple(CaseResult(name, status) for name, status in statuses.items() if status is not CaseStatus.PASSED)
    passed = tuple(name for name, status in statuses.items() if status is CaseStatus.PASSED)
    ready = PromptReady(attempt=1, prompt=Blob("p"), strategy="s", parameters="{}")
    return Attempt(ready, None, None, AttemptFailed(attempt=1, stage="evaluation", failing=failing, passed=passed))


def test_strip() -> None:
    """One mark a case, in the order of the spec, then those that were only reported."""
    made = attempt({"extra": CaseStatus.UNEXPECTED, "b": CaseStatus.FAILED, "a": CaseStatus.PASSED,
                    "c": CaseStatus.ERROR, "d": CaseStatus.TIMED_OUT, "e": CaseStatus.MISSING})  # fmt: skip
    order = case_order(["a", "b", "c", "d", "e"], [made])
    assert order == ("a", "b", "c", "d", "e", "extra")
    assert case_strip(order, made, ASCII).plain == "+xET--"


def test_grouped_strip() -> None:
    """Beyond 60 cases a mark shows the worst of its group, so that no failure is hidden."""
    statuses = {f"case{number}": CaseStatus.PASSED for number in range(130)} | {"case4": CaseStatus.FAILED}
    made = attempt(statuses)
    assert group_size(130) == 3
    assert case_strip(tuple(statuses), made, ASCII).plain == "+x" + "+" * 42


def test_a_terminal_breaks_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too long for a line of a terminal goes on in the next, between words; a path stays whole."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    words = ["limits", "containment", "unprivileged"] * 9
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        console_on(stream, ColorChoice.NEVER).print(" ".join(words))
    told = broken_between_words(" ".join(["/" + "x" * 99, *words]))
    shown = [terminal.getvalue().splitlines(), told.splitlines()[1:]]
    assert [" ".join(lines).split() for lines in shown] == [words, words]
    assert [max(map(len, lines)) <= 80 for lines in shown] == [True, True]
    assert file.getvalue() == " ".join(words) + "\n"


@pytest.mark.parametrize(
    ("microseconds", "expected"),
    [(0, "0.0s"), (8_140_000, "8.1s"), (59_960_000, "1m 00s"), (125_000_000, "2m 05s"), (3_720_000_000, "1h 02m")],
)
def test_duration(microseconds: int, expected: str) -> None:
    """Times are as exact as anyone wants to read them."""
    assert duration(microseconds) == expected


def test_limits() -> None:
    """Every limit that holds is named, in the units people write."""
    budget = Budget(attempts=1, seconds=600, tokens=200_000, input_tokens=10, output_tokens=20, money_micro=500_000)
    assert (
        limits(budget) == "1 attempt, 10m, 200,000 tokens, 10 input tokens, 20 output tokens, 0.5 to spend, 3 repeats"
    )


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("attempts", "attempts"), ("seconds", "time"), ("money_micro", "money"), ("input_tokens", "input-tokens")],
)
def test_limit_name(limit: str, expected: str) -> None:
    """A limit is called what its option is called."""
    assert limit_name(limit) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("it broke", "it broke"),
        ("it ended with status 1:\n  Loading\n\nno key\n", "it ended with status 1: no key"),
        ("it failed: no key:\nTraceback\nno key", "it failed: no key"),
        ("it failed:", "it failed"),
        ("", ""),
    ],
)
def test_headline(error: str, expected: str) -> None:
    """An error of many lines is told with what it announces, not with an open colon."""
    assert headline(error) == expected


@given(some.text())
def test_inert(text: str) -> None:
    """Of control, format and separating characters nothing is left but line feeds and tabs."""
    shown = inert(text)
    kinds = {unicodedata.category(character) for character in shown if character not in "\n\t"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(some.text(), some.integers(min_value=5, max_value=50))
def test_one_line(text: str, limit: int) -> None:
    """A line is one line, and no longer than asked for."""
    line = one_line(text, limit)
    assert len(line.splitlines()) <= 1
    assert len(line) <= limit


def test_escape_sequences_go_whole() -> None:
    """A coloured message keeps its words and nothing else."""
    assert one_line("\n\x1b[1;31mE   assert\x1b[0m 1 == 2\nmore", 40) == "E assert 1 == 2"
