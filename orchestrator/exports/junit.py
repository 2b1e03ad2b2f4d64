"""A run as JUnit XML: a test suite for every attempt, which is what most build servers read."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from xml.etree import ElementTree as ET

from orchestrator.attempt import Attempt
from orchestrator.excerpt import excerpt, inert
from orchestrator.exports.decisive import identity_of, stamp
from orchestrator.outcome import DISCLAIMER
from orchestrator.run import Run
from orchestrator_events.record import Record
from orchestrator_events.run import AttemptFailed, AttemptPassed
from orchestrator_events.verdict import CaseResult, CaseStatus

__all__ = ["export_junit"]

GENERATION = "generation"
"""The one case of an attempt that no candidate came from."""
ERRORS = frozenset({CaseStatus.ERROR, CaseStatus.TIMED_OUT})
NOT_XML = str.maketrans({"\ufffe": None, "\uffff": None})


def export_junit(run: Run) -> str:
    """A loaded run as JUnit XML with a final newline; a suite is named after its attempt.

    Whatever did not pass is a failure or an error, skipped cases too, so that a reader who counts those two sees
    what the run saw. Times are seconds. Texts are bounded and hold nothing that XML forbids.
    """
    suites = ET.Element("testsuites", name=text_of(run.spec.name))
    totals = {"tests": 0, "failures": 0, "errors": 0}
    for attempt, record in judged(run):
        suite = suite_of(run, attempt, record)
        suites.append(suite)
        for name in totals:
            totals[name] += int(suite.attrib[name])
    suites.attrib |= {name: str(total) for name, total in totals.items()}
    ET.indent(suites)
    written = BytesIO()
    ET.ElementTree(suites).write(written, encoding="utf-8", xml_declaration=True)
    return written.getvalue().decode() + "\n"


def judged(run: Run) -> Iterator[tuple[Attempt, Record]]:
    """Every judged attempt, with the record of its verdict."""
    verdicts = [record for record in run.records if isinstance(record.event, AttemptPassed | AttemptFailed)]
    yield from zip(run.attempts, verdicts, strict=True)


def suite_of(run: Run, attempt: Attempt, record: Record) -> ET.Element:
    """The suite of one attempt."""
    cases = list(cases_of(attempt))
    generated = attempt.generated
    duration_us = (0 if generated is None else generated.duration_us) + duration_of(attempt)
    suite = ET.Element(
        "testsuite",
        name=f"attempt {attempt.number}",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped="0",
        time=f"{duration_us / 1_000_000:.6f}",
        timestamp=stamp(record.at),
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in properties_of(run, attempt).items():
        if value:
            ET.SubElement(properties, "property", name=name, value=text_of(value))
    suite.extend(cases)
    return suite


def properties_of(run: Run, attempt: Attempt) -> dict[str, str]:
    """What the attempt was made of, texts by their SHA-256."""
    identity = identity_of(run)
    sent = attempt.started.prompt if attempt.started is not None else None
    return {
        "kind": DISCLAIMER,
        "run": run.run_id,
        "spec": run.spec.name,
        "spec_digest": run.spec.digest,
        "prompt_sha256": (sent or attempt.ready.prompt).digest,
        "candidate_sha256": "" if attempt.generated is None else attempt.generated.candidate.digest,
        "generator": str(identity.get("generator", "")),
        "evaluator": str(identity.get("evaluator", "")),
        "language": str(identity.get("language", "")),
        "strategy": attempt.ready.strategy,
        "parameters": (attempt.started or attempt.ready).parameters,
        "seed": attempt.seed,
        "reused_from_attempt": str(getattr(attempt.outcome, "reused_from", 0) or ""),
        "integrity": attempt.integrity,
        **isolation_of(run, attempt),
    }


def isolation_of(run: Run, attempt: Attempt) -> dict[str, str]:
    """What held the attempt's generation and evaluation in, what was probed, and what nothing held."""
    labels = {"generator": attempt.generator_isolation, "evaluator": attempt.evaluator_isolation}
    told = {f"{role}_isolation": label for role, label in labels.items()}
    if run.isolation is None:
        return told
    for role, found in (("generator", run.isolation.generator), ("evaluator", run.isolation.evaluator)):
        if found.label == labels[role]:  # an earlier invocation may have found something else
            told[f"{role}_probes"] = ", ".join(f"{probe.name} {probe.outcome}" for probe in found.probes)
            told[f"{role}_not_enforced"] = ", ".join(found.not_enforced)
    return told


def cases_of(attempt: Attempt) -> Iterator[ET.Element]:
    """The cases of an attempt: those that passed, then the others; a failed generation is one case."""
    if attempt.error:
        case = ET.Element("testcase", classname="", name=GENERATION, time="0")
        add_fault(case, "error", "generation failed", "\n".join(filter(None, (attempt.error, attempt.remedy))))
        yield case
        return
    for name in attempt.passed:
        yield case_called(name)
    for result in attempt.failing:
        yield failing_case(result)


def failing_case(result: CaseResult) -> ET.Element:
    """A case that did not pass, with why."""
    case = case_called(result.id)
    word = str(result.status) if not result.severity else f"{result.status}, {result.severity}"
    add_fault(case, "error" if result.status in ERRORS else "failure", word, result.message)
    return case


def case_called(name: str) -> ET.Element:
    """A case; what stands before its last `::` is its class, as runners write it."""
    classname, _, short = text_of(name).rpartition("::")
    is_split = bool(classname and short)
    return ET.Element(
        "testcase", classname=classname if is_split else "", name=short if is_split else text_of(name), time="0"
    )


def add_fault(case: ET.Element, tag: str, kind: str, message: str) -> None:
    """Why a case did not pass: the first line as an attribute, the others as text."""
    first, _, rest = text_of(message).strip().partition("\n")
    fault = ET.SubElement(case, tag, type=kind, message=first or kind)
    if rest:
        fault.text = rest


def duration_of(attempt: Attempt) -> int:
    """Time of the verdict, microseconds."""
    return 0 if attempt.outcome is None else attempt.outcome.duration_us


def text_of(text: str) -> str:
    """A text, bounded, with nothing in it that XML forbids or a terminal would act on."""
    return inert(excerpt(text)).translate(NOT_XML)
