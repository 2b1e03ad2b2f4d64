"""A run read back from its journal is the run as it was; an export of it loses nothing."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from orchestrator import (
    Budget,
    Candidate,
    EvalCase,
    Exhausted,
    Generation,
    GeneratorUnavailableError,
    MergedSpec,
    Orchestrator,
    Passed,
    Request,
    RunInterruptedError,
    RunReport,
    Submission,
    Usage,
    Verdict,
)
from orchestrator.export import EXPORT_FORMAT, export_json, export_lines
from orchestrator.history import UnknownRunError, find_run, load_run, report_of
from orchestrator.journal.memory import MemoryJournal
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.testing import ManualClock
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ExecutionEnd
from orchestrator_events.journal import Batch, Journal
from orchestrator_events.record import GENESIS, Record
from orchestrator_states.run import RUN

SPEC = MergedSpec(
    name="colours",
    intent="Name the colours — all of them.\r\n",
    evals=(EvalCase(name="red", severity="critical"), EvalCase(name="green")),
)


def generator_of(*answers: str) -> Any:
    """A generator that gives these answers, an error where one is empty, and then is gone."""

    def generate(request: Request) -> Generation:
        if request.attempt > len(answers):
            raise GeneratorUnavailableError("no more answers")
        text = answers[request.attempt - 1]
        if not text:
            raise ValueError("nothing came")
        candidate = Candidate(files={"a.txt": text, "b/c.txt": "é"}) if text == "files" else Candidate(text)
        return Generation(candidate=candidate, usage=Usage(input_tokens=11, output_tokens=7, money_micro=3))

    return generate


def judged(submission: Submission) -> Verdict:
    """A case passes when the candidate names it."""
    text = submission.candidate.text
    return Verdict.of({case.name: case.name in text or f"no {case.name}" for case in submission.spec.evals})


def ran(journal: Journal, run_id: str, *answers: str, attempts: int = 4) -> RunReport:
    """A run that is recorded in a journal; its report, whatever it came to."""
    clock = ManualClock()

    def generate(request: Request) -> Generation:
        clock.advance(2)
        return generator_of(*answers)(request)  # type: ignore[no-any-return]  # a callable of our own

    orchestrator = Orchestrator(
        generator=generate, evaluator=judged, budget=Budget(attempts=attempts), journal=journal, clock=clock,
        parameters={"temperature": 0.5},
    )  # fmt: skip
    try:
        return orchestrator.run(SPEC, run_id=run_id)
    except RunInterruptedError as error:
        return error.report


ENDINGS = {
    "passed": ("", "red", "red", "red green"),
    "exhausted": ("files", "red", "green", "blue"),
    "interrupted": ("red",),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_loaded_run_is_the_run(tmp_path: Path, ending: str, store: str) -> None:
    """The report of a run folded from its records says everything the run's own report said."""
    journal: Journal = MemoryJournal() if store == "memory" else SqliteJournal(tmp_path / "journal.sqlite")
    report = ran(journal, "7f3a", *ENDINGS[ending])
    loaded = report_of(asyncio.run(load_run(journal, "7f3a")))
    assert type(loaded) is type(report)
    assert loaded.as_json() == report.as_json()
    assert loaded.records == report.records
    assert loaded.closest == report.closest
    if isinstance(loaded, Passed | Exhausted) and isinstance(report, Passed | Exhausted):
        assert loaded.candidate == report.candidate
    if isinstance(journal, SqliteJournal):
        journal.close()


def test_spec_is_read_back() -> None:
    """A loaded run has the spec it was started with, to the byte."""
    journal = MemoryJournal()
    ran(journal, "7f3a", "red green")
    assert asyncio.run(load_run(journal, "7f3a")).spec == SPEC


@pytest.mark.parametrize(("text", "found"), [("7f3a", "7f3a"), ("7f", "7f3a"), ("last", "81bc"), ("81bc", "81bc")])
def test_finding_a_run(text: str, found: str) -> None:
    """A run is named whole, by a beginning that no other has, or as the last."""
    journal = MemoryJournal()
    for run_id in ("7f3a", "80bb", "81bc"):
        ran(journal, run_id, "red green")
    assert asyncio.run(find_run(journal, text)) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("7f3b", "no run '7f3b' in the journal: did you mean '7f3a'?"),
        ("zzz", "no run 'zzz' in the journal: list the runs to see their ids"),
        ("8", "'8' begins the ids of several runs: 80bb, 81bc"),
        ("", "no run '' in the journal: list the runs to see their ids"),
    ],
)
def test_not_finding_a_run(text: str, told: str) -> None:
    """A name of no run, or of several, is refused with the one that was probably meant."""
    journal = MemoryJournal()
    for run_id in ("7f3a", "80bb", "81bc"):
        ran(journal, run_id, "red green")
    with pytest.raises(UnknownRunError) as caught:
        asyncio.run(find_run(journal, text))
    assert str(caught.value) == told


def test_a_run_without_records() -> None:
    """There is nothing to load or to export of a run nobody recorded."""
    with pytest.raises(UnknownRunError):
        asyncio.run(load_run(MemoryJournal(), "7f3a"))
    with pytest.raises(UnknownRunError):
        asyncio.run(export_json(MemoryJournal(), "7f3a"))


def test_a_stream_that_is_no_run() -> None:
    """A stream that begins with anything but `execution:start` is refused."""
    journal = MemoryJournal()
    record = Record("7f3a", 1, 0, "run", "ready", "ready", ExecutionEnd(response="", status="error"))
    asyncio.run(journal.append(Batch("7f3a", (record,))))
    with pytest.raises(JournalError, match="begins with execution:end"):
        asyncio.run(load_run(journal, "7f3a"))


async def lines_of(journal: Journal, run_id: str) -> list[dict[str, Any]]:
    """The lines of an export, decoded."""
    return [json.loads(line) async for line in export_lines(journal, run_id)]


def test_export_can_be_checked_without_us() -> None:
    """The chain, the texts and the head of an export follow from its own bytes, as its description says."""
    journal = MemoryJournal()
    report = ran(journal, "7f3a", "", "files", "red green")
    document = json.loads(asyncio.run(export_json(journal, "7f3a")))
    previous = GENESIS
    for number, record in enumerate(document["records"], start=1):
        body = json.dumps(record["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        framed = b"orchestrator.record.v1\0" + previous.encode() + str(len(body)).encode() + b"\0" + body
        assert (record["sequence"], record["previous"]) == (number, previous)
        assert record["digest"] == sha256(framed).hexdigest()
        previous = record["digest"]
    assert all(sha256(text.encode()).hexdigest() == digest for digest, text in document["blobs"].items())
    head = report.journal_head
    assert {name: document[name] for name in ("format", "run", "head", "table")} == {
        "format": EXPORT_FORMAT,
        "run": "7f3a",
        "head": {"digest": head.digest, "count": head.count},
        "table": RUN.as_json(),
    }


def test_lines_hold_each_text_once() -> None:
    """The lines of an export say each text where it first comes, and otherwise what the document says."""
    journal = MemoryJournal()
    ran(journal, "7f3a", "red", "red", "red green")
    document = json.loads(asyncio.run(export_json(journal, "7f3a")))
    lines = asyncio.run(lines_of(journal, "7f3a"))
    texts = [blob for line in lines for blob in line["blobs"].items()]
    assert len(texts) == len(dict(texts))
    assert dict(texts) == document["blobs"]
    assert [{name: line[name] for name in ("sequence", "previous", "digest", "body")} for line in lines] == (
        document["records"]
    )


def test_a_damaged_run_says_what_can_be_recovered(tmp_path: Path) -> None:
    """The error names the damage, and the records before it that can still be exported."""
    path = tmp_path / "runs.sqlite"
    with SqliteJournal(path) as journal:
        whole = ran(journal, "r", "red", "red green")
    with sqlite3.connect(path) as connection:
        ((last,),) = connection.execute("SELECT max(first) FROM batch").fetchall()
        connection.execute("UPDATE batch SET bodies = zeroblob(length(bodies)) WHERE first = ?", (last,))
    connection.close()
    with SqliteJournal(path) as journal, pytest.raises(JournalError) as caught:
        asyncio.run(load_run(journal, "r"))
    assert "damaged" in str(caught.value)
    assert f"records 1 to {last - 1} can be read: export the run as JSON lines to keep them" in str(caught.value)
    assert last - 1 < len(whole.records)
