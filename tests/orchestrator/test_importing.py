"""An export is read strictly: what is not of the form is refused with its place, and nothing crashes the reader."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator import MergedSpec, Orchestrator
from orchestrator.errors import DocumentError
from orchestrator.export import export_json, export_lines
from orchestrator.importing import Export, parse_export, read_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.journal import Head


async def lines_of(journal: MemoryJournal) -> str:
    """The run as JSON lines."""
    return "".join([line async for line in export_lines(journal, "7f3a")])


@pytest.fixture(scope="module")
def forms() -> tuple[str, str, Head]:
    """One run as a document, as lines, and its head."""
    journal = MemoryJournal()
    orchestrator = Orchestrator(
        generator=ScriptedGenerator(["eins", "zw\N{LATIN SMALL LETTER O WITH DIAERESIS}i"]),
        evaluator=ScriptedEvaluator([{"case": "no"}, {"case": True}]),
        journal=journal,
    )
    result = orchestrator.run(MergedSpec(intent="Count."), run_id="7f3a")
    return asyncio.run(export_json(journal, "7f3a")), asyncio.run(lines_of(journal)), result.journal_head


def test_both_forms(forms: tuple[str, str, Head], tmp_path: Path) -> None:
    """Both forms give the same records, texts and table; the document also states its head."""
    document, lines, head = forms
    (tmp_path / "run.json").write_text(document)
    (tmp_path / "run.jsonl").write_text(lines)
    one, other = read_export(tmp_path / "run.json"), read_export(str(tmp_path / "run.jsonl"))
    assert (one.links, one.blobs, one.table, one.run_id) == (other.links, other.blobs, other.table, "7f3a")
    assert (one.head, other.head, one.torn, other.torn) == (head, None, "", "")
    assert (one.links[-1].digest, len(one.links)) == (head.digest, head.count)
    assert parse_export(json.dumps(json.loads(document))).links == one.links


def torn(lines: str, removed: int) -> Export:
    """The export whose last characters are missing."""
    return parse_export(lines[:-removed])


def test_torn_lines(forms: tuple[str, str, Head]) -> None:
    """A last line that is cut anywhere, or overwritten, is reported, and all before it is kept."""
    _, lines, head = forms
    last = lines.splitlines()[-1]
    kept = [torn(lines, removed) for removed in range(1, len(last) + 2)]
    counts = {len(each.links) for each in kept[1:-1]}
    assert (len(kept[0].links), kept[0].torn, counts, len(kept[-1].links), kept[-1].torn) == (
        head.count, "", {head.count - 1}, head.count - 1, "",
    )  # fmt: skip
    assert all(each.torn for each in kept[1:-1])
    zeroed = parse_export(lines.encode() + b"\0" * 40)
    assert (len(zeroed.links), bool(zeroed.torn)) == (head.count, True)


def changed(forms: tuple[str, str, Head], **fields: Any) -> str:
    """The document with other fields."""
    return json.dumps({**json.loads(forms[0]), **fields})


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"format": "orchestrator.export/2"}, "$.format: expected 'orchestrator.export/1'"),
        ({"format": 1}, "$.format"),
        ({"more": 1}, "more"),
        ({"run": None}, "$.run"),
        ({"head": {"digest": "0"}}, "$.head"),
        ({"head": {"digest": "0", "count": True}}, "$.head.count"),
        ({"table": []}, "$.table"),
        ({"records": {}}, "$.records"),
        ({"records": [{"sequence": 1, "previous": "", "digest": "", "body": []}]}, "$.records[0].body"),
        ({"records": [{"sequence": "1", "previous": "", "digest": "", "body": {}}]}, "$.records[0].sequence"),
        ({"blobs": {"a": 1}}, "$.blobs.a"),
        ({"blobs": {"a": "\ud800"}}, "lone surrogate"),
    ],
)
def test_other_shapes(forms: tuple[str, str, Head], fields: dict[str, Any], place: str) -> None:
    """Unknown fields, missing fields and other types are refused, each with its path."""
    with pytest.raises(DocumentError) as caught:
        parse_export(changed(forms, **fields), "run.json")
    assert str(caught.value).startswith("run.json: ")
    assert place in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", "[]", "7", "null", "{}", "{}\n{}\n", '{"records": []}', "\0", "[" * 100_000, '{"a":' * 5_000,
        '{"format": "orchestrator.export/1", "format": "orchestrator.export/1", "records": []}', "9" * 5_000,
        '{"a": NaN}', '{"a": 1e999}', '{"sequence": 1}\n{"sequence": 2}\n', "\ud800",
    ],
)  # fmt: skip
def test_what_is_no_export(text: str) -> None:
    """Text of any other kind is refused, never a crash."""
    with pytest.raises(DocumentError):
        parse_export(text)


def test_lines_of_another_form(forms: tuple[str, str, Head]) -> None:
    """Lines without their first, with a text twice, or broken in the middle are refused, with the line."""
    _, text, _ = forms
    lines = text.splitlines(keepends=True)
    doubled = json.dumps({**json.loads(lines[2]), "blobs": json.loads(lines[0])["blobs"]}) + "\n"
    cases = {
        "it is not the first": "".join(lines[1:]),
        "line 3: an earlier line holds": "".join([*lines[:2], doubled, *lines[3:]]),
        "line 3": "".join([*lines[:2], "{\n", *lines[3:]]),
        "line 2: only the first line has": "".join([lines[0], lines[0], *lines[2:]]),
    }
    for place, content in cases.items():
        with pytest.raises(DocumentError) as caught:
            parse_export(content)
        assert place in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    """A directory, a missing file and bytes that are no text are refused."""
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    for name, reason in {"": "is a directory", "none.json": "no such file", "bytes.json": "not UTF-8"}.items():
        with pytest.raises(DocumentError, match=reason):
            read_export(tmp_path / name)
