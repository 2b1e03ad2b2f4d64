"""The command `pin`: the case ids that a trusted candidate passes, for later runs to be held to."""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.adapter_errors import CandidateRefusedError, EvaluationError, GenerationError
from orchestrator.assembly import made_evaluator
from orchestrator.blocking import run_blocking
from orchestrator.candidate import Candidate
from orchestrator.cli.exitcodes import RequestError
from orchestrator.cli.failures import requirement_named
from orchestrator.cli.inert import inert, one_line
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.wording import count_of
from orchestrator.configuration import Configuration, load_configuration
from orchestrator.documents import read_text
from orchestrator.history import load_run
from orchestrator.isolating import isolation_of
from orchestrator.pins import Pins, digest_of_suite, save_pins
from orchestrator.ports import Evaluator, Submission
from orchestrator.spec import MergedSpec, load_spec
from orchestrator.verdicts import checked_verdict
from orchestrator.workspace import read_files
from orchestrator_events.run import AttemptPassed
from orchestrator_events.verdict import CaseResult, CaseStatus
from orchestrator_states.run import RunState

__all__ = ["pin_candidate", "pin_run"]

LARGEST_CANDIDATE = 1_000_000
SHOWN_CASES = 10
REASON = 200


def pin_candidate(spec_path: Path | None, candidate_path: Path | None, config: Path | None, output: Path) -> None:
    """Run the configured suite on a trusted candidate and pin what it passes.

    Raises RequestError, having written nothing, when any case fails or a control does not, and
    IsolationRefusedError when the suite would be held by less than is required.
    """
    if spec_path is None or candidate_path is None:
        raise RequestError("name a spec and a trusted --candidate, or a --run that passed")
    configuration = Configuration() if config is None else load_configuration(config)
    spec, candidate = load_spec(spec_path), read_candidate(candidate_path)
    evaluator = made_evaluator(configuration.evaluator, configuration.sandbox, may_lack_file=bool(candidate.files))
    with requirement_named("require-isolation in its configuration"):
        run_blocking(isolation_of(evaluator, "the evaluator", configuration.require_isolation))
    controls = frozenset(configuration.evaluator.controls)
    before = suite_digest(configuration)
    passed = trusted_cases(results_on(candidate, spec, evaluator, configuration.language), spec, controls)
    if suite_digest(configuration) != before:
        raise RequestError("the suite was changed while it ran: pin its cases again")
    save(Pins(spec_digest=spec.digest, cases=passed, suite_digest=before, made_from=str(candidate_path)), output)


def pin_run(
    place: RunPlace,
    name: str,
    spec_path: Path | None,
    candidate_path: Path | None,
    config: Path | None,
    output: Path,
) -> None:
    """Pin what the last attempt of a run passed; the suite is the one configured, as it is now."""
    if spec_path is not None or candidate_path is not None:
        raise RequestError("--run pins what a run passed: name no spec and no candidate beside it")
    journal = place.journal_to_read()
    try:
        run = run_blocking(load_run(journal, place.found(journal, name)))
    finally:
        journal.close()
    outcome = None if run.last is None else run.last.outcome
    if run.state != RunState.PASSED or not isinstance(outcome, AttemptPassed):
        raise RequestError(f"run {run.run_id} did not pass: only what passed can be pinned")
    configuration = place.kept_configuration(run.run_id) if config is None else load_configuration(config)
    digest = suite_digest(configuration)
    if run.pinned is not None and run.pinned.suite_digest not in ("", digest):
        raise RequestError(
            f"the suite was changed: run {run.run_id} was judged by {run.pinned.suite_digest}, not {digest}"
        )
    made_from = f"run {run.run_id}, candidate {'' if run.generated is None else run.generated.candidate.digest}"
    save(Pins(spec_digest=run.spec.digest, cases=outcome.passed, suite_digest=digest, made_from=made_from), output)


def read_candidate(path: Path) -> Candidate:
    """One text, or the files of a directory, which have to be such as a generator may leave."""
    if not path.is_dir():
        return Candidate(read_text(path))
    try:
        files = read_files(path, LARGEST_CANDIDATE)
    except GenerationError as error:
        raise RequestError(str(error).replace("the generator left", f"{path} holds")) from None
    if not files:
        raise RequestError(f"{path} holds no file")
    return Candidate(files=files)


def results_on(candidate: Candidate, spec: MergedSpec, evaluator: Evaluator, language: str) -> tuple[CaseResult, ...]:
    """What the suite reports."""
    submission = Submission(run_id="pin", attempt=1, candidate=candidate, spec=spec, language=language, seconds=None)
    try:
        return checked_verdict(run_blocking(evaluator.evaluate(submission)), spec.expected_cases).results
    except CandidateRefusedError as error:
        raise RequestError(f"the candidate cannot be laid beside the suite: {error}") from None
    except OSError as error:
        raise EvaluationError(f"the suite cannot be run: {error}") from error


def trusted_cases(results: tuple[CaseResult, ...], spec: MergedSpec, controls: frozenset[str]) -> tuple[str, ...]:
    """The ids that passed; RequestError when the candidate or the suite is not to be trusted."""
    cases = [result for result in results if result.id not in controls]
    failing = [result for result in cases if result.status not in (CaseStatus.PASSED, CaseStatus.SKIPPED)]
    if failing:
        raise RequestError(f"the candidate fails {count_of(len(failing), 'case')}, nothing is pinned:\n{told(failing)}")
    found = {result.id: result.status for result in results}
    wrong = sorted(control for control in controls if found.get(control) is not CaseStatus.FAILED)
    if wrong:
        raise RequestError(f"controls must be reported failed, and these are not: {', '.join(wrong)}")
    passed = tuple(result.id for result in cases if result.status is CaseStatus.PASSED)
    if not passed or len(set(passed)) != len(passed):
        raise RequestError("no case passed, or one was reported twice: nothing is pinned")
    if spec.expected_cases is not None and spec.expected_cases != set(passed):
        differing = sorted(spec.expected_cases ^ set(passed))
        raise RequestError(f"the spec names its cases, and what passed differs in: {', '.join(differing)}")
    return passed


def told(failing: list[CaseResult]) -> str:
    """The failing cases, a line each, as far as they fit."""
    lines = [f"  {one_line(case.id, REASON)}  {one_line(case.message, REASON)}" for case in failing[:SHOWN_CASES]]
    more = len(failing) - SHOWN_CASES
    return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])


def suite_digest(configuration: Configuration) -> str:
    """The digest of the configured suite as it is now; empty where none is configured."""
    suite = configuration.evaluator.suite
    return "" if suite is None else digest_of_suite(suite)


def save(pins: Pins, output: Path) -> None:
    """Write the pins, and say so."""
    save_pins(pins, output)
    sys.stdout.write(inert(f"pinned {count_of(len(pins.cases), 'case')} in {output}, from {pins.made_from}\n"))
    sys.stdout.write(f"spec   {pins.spec_digest}\nsuite  {pins.suite_digest or 'unknown'}\n")
