"""An export put back into a journal exports to the same text, or is refused with the place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import DocumentError
from orchestrator.exports.document import export_json
from orchestrator.exports.lines import export_lines
from orchestrator.exports.restoring import import_export
from orchestrator.history import load_run, report_of
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.run import Run
from orchestrator_events.errors import JournalConflictError
from orchestrator_events.journal import Journal


async def lines_of(journal: Journal, run_id: str = "7f3a") -> str:
    """The run as JSON lines."""
    return "".join([line async for line in export_lines(journal, run_id)])


def both(journal: Journal) -> tuple[str, str]:
    """The run in both forms."""
    return asyncio.run(export_json(journal, "7f3a")), asyncio.run(lines_of(journal))


@pytest.mark.parametrize("form", [0, 1], ids=["json", "jsonl"])
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_round_trip(ended: Run, tmp_path: Path, form: int, store: str) -> None:
    """Export, import, export: the same bytes in both forms, from either form, and the run is the run."""
    texts = both(ended.journal)
    if store == "memory":
        fresh: Journal = MemoryJournal()
        head = asyncio.run(import_export(fresh, parse_export(texts[form])))
        assert both(fresh) == texts
        assert head == report_of(ended).journal_head
        assert report_of(asyncio.run(load_run(fresh, "7f3a"))).as_json() == report_of(ended).as_json()
    else:
        with closing(SqliteJournal(tmp_path / "journal.sqlite")) as durable:
            asyncio.run(import_export(durable, parse_export(texts[form])))
        with closing(SqliteJournal(tmp_path / "journal.sqlite", read_only=True)) as durable:
            assert both(durable) == texts


def test_a_run_is_put_back_once(run_called: Callable[[str], Run]) -> None:
    """A journal that has the run keeps what it has."""
    journal = MemoryJournal()
    export = parse_export(both(run_called("passed").journal)[0])
    asyncio.run(import_export(journal, export))
    before = both(journal)
    with pytest.raises(JournalConflictError):
        asyncio.run(import_export(journal, export))
    assert both(journal) == before


def reworded(document: dict[str, Any]) -> None:
    """A field of an event is another."""
    document["records"][2]["body"]["event"]["attempt"] = 2


def cut(document: dict[str, Any]) -> None:
    """The last record is gone."""
    document["records"].pop()


def left_out(document: dict[str, Any]) -> None:
    """A record in the middle is gone."""
    document["records"].pop(3)


def other_text(document: dict[str, Any]) -> None:
    """A text is another."""
    document["blobs"][next(iter(document["blobs"]))] += "."


def no_text(document: dict[str, Any]) -> None:
    """No text is there."""
    document["blobs"].clear()


def other_table(document: dict[str, Any]) -> None:
    """The table starts elsewhere."""
    document["table"]["initial"] = "prompting"


def other_run(document: dict[str, Any]) -> None:
    """The run is called otherwise."""
    document["run"] = "81bc"


def more_text(document: dict[str, Any]) -> None:
    """There is a text that nothing names."""
    document["blobs"]["01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b"] = "\n"


def unknown_event(document: dict[str, Any]) -> None:
    """An event has a name nobody knows."""
    document["records"][0]["body"]["name"] = "execution:begun"


def nothing(document: dict[str, Any]) -> None:
    """There are no records."""
    document["records"].clear()


DAMAGE: dict[Callable[[dict[str, Any]], None], str] = {
    reworded: r"record 3: the hash chain breaks here",
    cut: r"\$\.head: not the digest and number of the last record",
    left_out: r"record 5: expected record 4 of run 7f3a",
    other_text: r"the text has another digest",
    no_text: r"record 1: a text that it names is not in the export",
    other_table: r"\$\.table: not the table that the first record names",
    other_run: r"record 1: expected record 1 of run 81bc",
    more_text: r"no record names this text",
    unknown_event: r"record 1: unknown event 'execution:begun'",
    nothing: r"\$\.records: there is no record",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_what_does_not_hold_together_is_refused(
    run_called: Callable[[str], Run], damage: Callable[[dict[str, Any]], None]
) -> None:
    """A changed export is refused with the place, and nothing of it is kept."""
    document = json.loads(both(run_called("passed").journal)[0])
    damage(document)
    journal = MemoryJournal()
    with pytest.raises(DocumentError, match=DAMAGE[damage]):
        asyncio.run(import_export(journal, parse_export(json.dumps(document))))
    assert asyncio.run(journal.run_ids()) == ()


def test_a_torn_end_is_refused(run_called: Callable[[str], Run]) -> None:
    """Lines that were cut off can be audited, but not put back as if they were whole."""
    lines = both(run_called("passed").journal)[1]
    with pytest.raises(DocumentError, match="its end is torn"):
        asyncio.run(import_export(MemoryJournal(), parse_export(lines[:-40])))
