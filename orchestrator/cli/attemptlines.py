"""A run as lines: what was asked, one line an attempt with the reason on it, and how it ended."""

from __future__ import annotations

import json

from rich.text import Text

from orchestrator.attempt import Attempt
from orchestrator.cli.appearance import Marks
from orchestrator.cli.inert import one_line
from orchestrator.cli.wording import duration, limits, short_digest, tokens
from orchestrator.run import Run
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.run import AttemptFailed, AttemptPassed
from orchestrator_events.verdict import CaseResult

__all__ = ["attempt_line", "case_line", "changes", "header", "headline", "passed_of"]

REASON = 90
"""Longest reason on an attempt's line, characters."""
NAME = 60


def header(run: Run, start: ExecutionStart, marks: Marks) -> Text:
    """The run, its spec, its generator and its limits, as an invocation begins with them."""
    generator = str(json.loads(start.identity).get("generator", ""))
    return joined(
        Text(f"run {run.run_id}", "bold"),
        one_line(run.spec.name, NAME, marks.ellipsis),
        f"spec {short_digest(run.spec.digest)}",
        f"generator {one_line(generator, NAME, marks.ellipsis)}",
        f"limits {limits(start.budget)}",
    )


def attempt_line(run: Run, attempt: Attempt, marks: Marks) -> Text:
    """One attempt: what it took, what passed, what changed, and why it failed."""
    return joined(
        Text(f"#{attempt.number:<2}", "bold"),
        f"{generation(attempt):<31}",
        f"{evaluation(attempt):<14}",
        standing(attempt),
        changes(run, attempt),
        closeness(run, attempt),
        reason(attempt, marks),
    )


def case_line(case: CaseResult, marks: Marks, *, shows_message: bool = True) -> Text:
    """A case that did not pass, with the first line of its message."""
    message = one_line(case.message, 2 * REASON, marks.ellipsis) if shows_message else ""
    return joined(
        Text(f"  {one_line(str(case.status), NAME):<8}", "red"),
        one_line(case.id, NAME * 2, marks.ellipsis),
        message,
    )


def passed_of(attempt: Attempt) -> str:
    """`9/12`, or nothing for an attempt without a verdict."""
    total = len(attempt.passed) + len(attempt.failing)
    return f"{len(attempt.passed)}/{total}" if total else ""


def changes(run: Run, attempt: Attempt) -> str:
    """Which cases changed sides since the last attempt that was judged."""
    earlier = [each for each in run.attempts if each.number < attempt.number and each.outcome and passed_of(each)]
    if not earlier or not passed_of(attempt) or attempt.repeats:
        return ""
    before, now = set(earlier[-1].passed), set(attempt.passed)
    return f"fixed {len(now - before)}, broke {len(before - now)}"


def generation(attempt: Attempt) -> str:
    """Time and tokens of the call."""
    spent = "" if attempt.charge is None else tokens(attempt.charge)
    generated, outcome = attempt.generated, attempt.outcome
    if generated is not None:
        return f"generate {duration(generated.duration_us)} {spent}"
    took = duration(outcome.duration_us) if isinstance(outcome, AttemptFailed) else ""
    return f"generate {took} {spent}"


def evaluation(attempt: Attempt) -> str:
    """Time of the evaluation, if there was one."""
    if attempt.generated is None or attempt.outcome is None:
        return ""
    return (
        f"as #{reused_from(attempt)}" if reused_from(attempt) else f"evaluate {duration(attempt.outcome.duration_us)}"
    )


def standing(attempt: Attempt) -> Text:
    """How many cases passed."""
    if attempt.is_conforming:
        named = "" if is_pinned(attempt) else " (unpinned)"
        return Text(f"{passed_of(attempt)} passed, conforms{named}", "green")
    if attempt.error:
        return Text("no candidate", "red")
    return Text(f"{passed_of(attempt)} passed", "yellow")


def is_pinned(attempt: Attempt) -> bool:
    """Whether the cases that it passed were named beforehand."""
    return isinstance(attempt.outcome, AttemptPassed) and attempt.outcome.is_pinned


def closeness(run: Run, attempt: Attempt) -> str:
    """Whether this is the closest attempt, and its candidate."""
    digest = short_digest(attempt.generated.candidate.digest) if attempt.generated else ""
    if reused_from(attempt) and attempt.repeats:
        limit = run.ledger.budget.repeats
        return f"repeat {attempt.repeats}" + ("" if limit is None else f" of {limit}")
    return f"closest {digest}" if attempt is run.closest and not attempt.is_conforming else ""


def reason(attempt: Attempt, marks: Marks) -> Text:
    """Why it failed: the error, or the first failing case with its message."""
    if attempt.error:
        return Text(one_line(headline(attempt.error), REASON, marks.ellipsis), "dim")
    if not attempt.failing or reused_from(attempt):
        return Text("same candidate, verdict reused" if reused_from(attempt) else "", "dim")
    first = attempt.failing[0]
    return Text(one_line(f"{first.id}: {one_line(first.message, REASON)}", REASON, marks.ellipsis), "dim")


def headline(error: str) -> str:
    """The error on one line; where its first ends in a colon, with the last of what it announces."""
    first, *more = [line.strip() for line in error.splitlines() if line.strip()] or [""]
    if not first.endswith(":"):
        return first
    return first[:-1] if not more or more[-1] in first else f"{first} {more[-1]}"


def reused_from(attempt: Attempt) -> int:
    """The attempt whose verdict was reused; 0 for none."""
    return attempt.outcome.reused_from if isinstance(attempt.outcome, AttemptFailed) else 0


def joined(*parts: str | Text) -> Text:
    """The parts that say something, two spaces between them."""
    return Text("  ").join(part if isinstance(part, Text) else Text(part) for part in parts if part)
