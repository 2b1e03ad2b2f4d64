"""Multi-generator conformance: one run per generator, their outcomes in a lockfile (contract 1).

A layer above the orchestrator, which sees one generator at a time. The lockfile's layout is ours: the text of the
format's own section on lockfiles (§14) is not public, so none of its structure is claimed here.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

import attrs

from orchestrator.blocking import run_blocking
from orchestrator.documents import read_document
from orchestrator.engine import Orchestrator
from orchestrator.outcome import DISCLAIMER, Exhausted, Passed, RunEndedError, RunReport
from orchestrator.spec import MergedSpec
from orchestrator.structuring import structure

__all__ = ["GeneratorOutcome", "Lockfile", "aconform", "conform", "read_lockfile", "write_lockfile"]

FORMAT = "orchestrator.lock/1"


@attrs.frozen(kw_only=True)
class GeneratorOutcome:
    """How one generator's run ended."""

    generator: str
    """Identity of the generator, as its runs record it."""
    run: str
    """Run id."""
    outcome: str
    """passed, exhausted, interrupted, cancelled or failed."""
    detail: str = ""
    """The limit that ended the run, or why there is no result; empty when it passed."""
    candidate: str = ""
    """SHA-256 of the conforming candidate, or of the closest one; empty when there is none."""
    attempts: int
    journal_head: str
    """Digest of the run's last record."""
    journal_count: int
    """Number of the run's records."""


@attrs.frozen(kw_only=True)
class Lockfile:
    """Outcomes of several generators on one spec; workflow results, no verification for deployment."""

    kind: str = DISCLAIMER
    format: str = FORMAT
    spec: str
    """Name of the spec."""
    spec_digest: str
    language: str
    generators: tuple[GeneratorOutcome, ...]

    @property
    def is_conforming(self) -> bool:
        """Whether every generator produced a conforming candidate."""
        return bool(self.generators) and all(each.outcome == "passed" for each in self.generators)


def conform(orchestrators: Sequence[Orchestrator], spec: MergedSpec, *, at_once: int = 1) -> Lockfile:
    """`aconform` for callers without a loop of their own."""
    return run_blocking(aconform(orchestrators, spec, at_once=at_once))


async def aconform(orchestrators: Sequence[Orchestrator], spec: MergedSpec, *, at_once: int = 1) -> Lockfile:
    """Run the spec once with each orchestrator, `at_once` at a time, and gather the outcomes in order.

    Raises ValueError when two share a generator identity or differ in language. A run without a result is an
    outcome too, and stops none of the others.
    """
    names = [each.driver.generator.name for each in orchestrators]
    languages = {each.language for each in orchestrators}
    if not names or len(set(names)) != len(names) or len(languages) != 1:
        raise ValueError(f"conform needs generators of different names and one language: {names}, {sorted(languages)}")
    turn = asyncio.Semaphore(at_once)

    async def one(orchestrator: Orchestrator) -> GeneratorOutcome:
        async with turn:
            try:
                report: RunReport = await orchestrator.arun(spec)
            except RunEndedError as error:
                return outcome_of(error.report, error.outcome, error.reason)
            if isinstance(report, Exhausted):
                return outcome_of(report, "exhausted", f"{report.limit}: {report.detail}")
            return outcome_of(report, "passed", "")

    outcomes = await asyncio.gather(*[one(each) for each in orchestrators])
    return Lockfile(spec=spec.name, spec_digest=spec.digest, language=languages.pop(), generators=tuple(outcomes))


def outcome_of(report: RunReport, outcome: str, detail: str) -> GeneratorOutcome:
    """A report in a line of the lockfile."""
    candidate = report.candidate if isinstance(report, Passed | Exhausted) else None
    head = report.journal_head
    return GeneratorOutcome(
        generator=report.generator,
        run=report.run_id,
        outcome=outcome,
        detail=detail,
        candidate="" if candidate is None else candidate.digest,
        attempts=report.attempts,
        journal_head=head.digest,
        journal_count=head.count,
    )


def write_lockfile(lockfile: Lockfile, path: Path) -> None:
    """Write the lockfile as JSON, whole or not at all."""
    text = json.dumps(attrs.asdict(lockfile), indent=2, ensure_ascii=False) + "\n"
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def read_lockfile(path: Path) -> Lockfile:
    """Read a lockfile; DocumentError lists every fault of a damaged one."""
    return structure(read_document(path), Lockfile, str(path))
