"""A run as a Markdown report: outcome, budget, attempts, what failed, the candidate, and how to check it."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.attempt import Attempt
from orchestrator.candidate import Candidate
from orchestrator.exports.decisive import decisive, identity_of, stamp, start_of
from orchestrator.exports.inertmarkdown import block, span
from orchestrator.history import report_of
from orchestrator.outcome import DISCLAIMER
from orchestrator.run import Run
from orchestrator_events.execution import ExecutionEnd, SecretFound
from orchestrator_events.isolation import Isolation
from orchestrator_events.verdict import CaseResult
from orchestrator_states.path import span as time_span
from orchestrator_states.run import RunState

__all__ = ["export_markdown"]

SHORT_DIGEST = 12
INTEGRITY = {
    "separate": "separate; the judge ran in a process that the candidate was not in.",
    "cooperative": "cooperative; the candidate shared the judge's process, and could have forged its verdict.",
    "host": "host; the evaluator does not say who held the judge.",
}


UNPINNED = (
    "Unpinned: nobody named the cases beforehand, they are taken from the report itself; `orchestrator pin` does.\n"
)


def export_markdown(run: Run) -> str:
    """A loaded run as Markdown for people, with a final newline.

    Everything that a spec, a generator or a suite wrote stands in code spans and fenced blocks, where no
    renderer takes it for HTML, a link or a heading.
    """
    chosen = decisive(run)
    parts = [
        f"# Run {span(run.run_id)}: {run.state}\n",
        f"This is a {DISCLAIMER}.\n",
        *facts(run),
        "## Outcome\n",
        *outcome(run),
        "## Isolation\n",
        *isolation(run),
        "## Budget\n",
        "\n".join(budget_table(run)) + "\n",
        "## Attempts\n",
        "\n".join(attempts_table(run)) + "\n",
        *reasons(run),
    ]
    if chosen is not None:
        parts += [*failing(chosen), *candidate(run, chosen)]
    return "\n".join([*parts, *record(run)])


def facts(run: Run) -> Iterator[str]:
    """What was run, with what."""
    identity = identity_of(run)
    lines = [f"- Spec: {span(run.spec.name)}, {span(run.spec.digest)}"]
    for name in ("generator", "evaluator", "strategy", "language"):
        value = span(str(identity.get(name, "")))
        lines += [f"- {name.capitalize()}: {value}"] if value else []
    lines.append(f"- Started {stamp(run.records[0].at)}, last record {stamp(run.records[-1].at)}")
    yield "\n".join(lines) + "\n"


def outcome(run: Run) -> Iterator[str]:
    """How it ended, in a sentence, and why."""
    after = f"after {counted(run.ledger.attempts, 'attempt')}"
    is_pinned = run.expectation.expected is not None
    match run.state:
        case RunState.PASSED:
            yield f"A candidate passed every {'expected' if is_pinned else 'reported'} case {after}.\n"
            if not is_pinned:
                yield UNPINNED
        case RunState.EXHAUSTED if run.exhausted is not None:
            yield f"The limit {span(run.exhausted.limit)} was reached {after}: {span(run.exhausted.detail)}\n"
        case _:
            reasons = [each.event.reason for each in run.records if isinstance(each.event, ExecutionEnd)]
            why = span(reasons[-1]) if reasons else ""
            yield f"It has no result {after}; it is {run.state}{': ' + why if why else ''}.\n"


def isolation(run: Run) -> Iterator[str]:
    """What held generator and evaluation in, and who held the judge; no option leaves it out."""
    found = run.isolation
    if found is None:
        yield "Nobody found out what held generator and evaluator in.\n"
        return
    required = f"- Required: {span(found.required)}"
    yield "\n".join([required, *held("Generator", found.generator), *held("Evaluator", found.evaluator)]) + "\n"
    if integrity := report_of(run).integrity:
        yield f"Integrity: {INTEGRITY.get(integrity, span(integrity))}\n"


def held(role: str, found: Isolation) -> Iterator[str]:
    """What holds one of the two, whole."""
    yield f"- {role}: {span(found.label)}" + ("; nothing holds it" if found.level == "none" else "")
    lists = {"Limits": found.limits, "Not enforced": found.not_enforced}
    for name, values in lists.items():
        if values:
            yield f"  - {name}: {', '.join(span(value) for value in values)}"
    if found.probes:
        yield f"  - Probes: {', '.join(f'{span(probe.name)} {span(probe.outcome)}' for probe in found.probes)}"


def budget_table(run: Run) -> Iterator[str]:
    """Every limit and what was used of it; money where there is any."""
    ledger, budget = run.ledger, run.ledger.budget
    spent = ledger.input_tokens + ledger.output_tokens
    mark = " (partly estimated)" if ledger.has_estimates else ""
    time_limit = "" if budget.limit_us is None else time_span(budget.limit_us)
    yield "| limit | used | of |"
    yield "| --- | ---: | ---: |"
    yield f"| attempts | {ledger.attempts:,} | {amount(budget.attempts)} |"
    yield f"| active time | {time_span(ledger.elapsed_us())} | {time_limit or 'unlimited'} |"
    yield f"| tokens | {spent:,}{mark} | {amount(budget.tokens)} |"
    yield f"| input tokens | {ledger.input_tokens:,}{mark} | {amount(budget.input_tokens)} |"
    yield f"| output tokens | {ledger.output_tokens:,}{mark} | {amount(budget.output_tokens)} |"
    if ledger.money_micro or budget.money_micro is not None:
        money_limit = "unlimited" if budget.money_micro is None else money(budget.money_micro)
        yield f"| money | {money(ledger.money_micro)}{mark} | {money_limit} |"
    yield f"| repeats in a row | {max((each.repeats for each in run.attempts), default=0)} | {amount(budget.repeats)} |"


def attempts_table(run: Run) -> Iterator[str]:
    """One line an attempt: digests, times and counts, nothing that others wrote."""
    closest = run.closest
    yield "| attempt | prompt | answer | candidate | generation | evaluation | passed | not passed | integrity | |"
    yield "| ---: | --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- |"
    for each in run.attempts:
        generated = each.generated
        made = "" if generated is None else short(generated.candidate.digest)
        took = "" if generated is None else time_span(generated.duration_us)
        judged = "" if generated is None or each.outcome is None else time_span(each.outcome.duration_us)
        counts = ["", ""] if generated is None else [str(len(each.passed)), str(len(each.failing))]
        answer = "" if each.answer is None else short(each.answer.answer.digest)
        integrity = each.integrity if each.integrity in INTEGRITY else ""
        cells = [str(each.number), short(each.ready.prompt.digest), answer, made, took, judged, *counts, integrity]
        yield f"| {' | '.join([*cells, remark(each, is_closest=each is closest)])} |"


def remark(attempt: Attempt, *, is_closest: bool) -> str:
    """What is special about an attempt, in our own words."""
    reused = getattr(attempt.outcome, "reused_from", 0)
    words = [
        "conforms" if attempt.is_conforming else "closest" if is_closest else "",
        "generation failed" if attempt.error else "",
        f"same as attempt {reused}" if reused else "",
    ]
    return ", ".join(filter(None, words))


def reasons(run: Run) -> Iterator[str]:
    """Why attempts brought no candidate."""
    lines = [
        f"- Attempt {each.number}: {span(each.error)}" + (f" {span(each.remedy)}" if each.remedy else "")
        for each in run.attempts
        if each.error
    ]
    if lines:
        yield "\n".join(lines) + "\n"


def failing(attempt: Attempt) -> Iterator[str]:
    """Every case that the candidate did not pass, with its message."""
    if not attempt.failing:
        return
    yield f"## Cases that attempt {attempt.number} did not pass\n"
    for case in attempt.failing:
        yield "\n".join(case_lines(case))


def case_lines(case: CaseResult) -> Iterator[str]:
    """A case with its status; a long message in a block of its own."""
    word = f"{case.status}, {span(case.severity)}" if case.severity else str(case.status)
    message = case.message.strip()
    if "\n" in message:
        yield f"- {span(case.id)} {word}:\n"
        yield block(message)
    else:
        yield f"- {span(case.id)} {word}{': ' + span(message, len(message)) if message else ''}\n"


def candidate(run: Run, attempt: Attempt) -> Iterator[str]:
    """The candidate, whole."""
    made: Candidate | None = attempt.candidate
    if made is None:
        return
    yield f"## Candidate of attempt {attempt.number}\n"
    yield f"SHA-256 {span(made.digest)}\n"
    if names := secrets_in(run, made):
        yield f"Not shown here: it holds {', '.join(map(span, names))}, which must stay secret.\n"
        return
    language = str(identity_of(run).get("language", ""))
    if not made.files:
        yield block(made.text, language)
    for path, text in made.files.items():
        yield f"{span(path)}\n"
        yield block(text, language)


def secrets_in(run: Run, made: Candidate) -> list[str]:
    """Names of the secrets that were found in a candidate; what they are is nowhere recorded."""
    found = [each.event for each in run.records if isinstance(each.event, SecretFound)]
    return list(dict.fromkeys(event.secret for event in found if event.place.startswith(made.digest)))


def record(run: Run) -> Iterator[str]:
    """What to keep so that the record can be checked later."""
    head = report_of(run).journal_head
    yield "## Record\n"
    yield (
        f"- {head.count} records, the last with digest {span(head.digest)}\n"
        f"- Lifecycle {span(run.lifecycle)}, table digest {span(start_of(run).table_digest)}\n"
    )
    yield "Keep number and digest: whoever holds them can tell whether the record was cut or rewritten.\n"


def amount(limit: int | None) -> str:
    """A limit in digits."""
    return "unlimited" if limit is None else f"{limit:,}"


def money(micro: int) -> str:
    """Units of the currency that the generator reports."""
    return f"{micro / 1_000_000:,.6f}"


def counted(number: int, noun: str) -> str:
    """`1 attempt`, `2 attempts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short(digest: str) -> str:
    """The beginning of a digest."""
    return f"`{digest[:SHORT_DIGEST]}`"
