"""Reads an exported run back, strictly: the forms of `orchestrator.export`, from a file that nobody vouches for.

What is read is the shape alone; whether the records are what was written is for `orchestrator.audit` to say.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.exports.links import DEEPEST, EXPORT_FORMAT
from orchestrator.faults import Fault
from orchestrator.jsondata import JSON
from orchestrator.structuring import structure
from orchestrator_events.journal import Head

__all__ = ["MAXIMUM_BYTES", "Export", "Link", "parse_export", "read_export"]

MAXIMUM_BYTES: Final = 256_000_000
"""Longest export that is read, in bytes."""


@attrs.frozen
class Link:
    """One record as an export holds it: its place in the chain, and the bytes that were hashed."""

    sequence: int
    previous: str
    digest: str
    body: bytes


@attrs.frozen(kw_only=True)
class Export:
    """An exported run; nothing in it has been checked but its shape."""

    source: str
    """Name that findings and errors give it."""
    run_id: str
    table: Mapping[str, JSON]
    links: tuple[Link, ...]
    blobs: Mapping[str, str]
    """Texts by what is said to be their digest."""
    head: Head | None = None
    """The end of the chain as the export states it; None for JSON lines."""
    torn: str = ""
    """What is wrong with a last line that was cut off or overwritten; empty where nothing is."""
    tables: Mapping[str, Mapping[str, JSON]] = attrs.field(factory=dict)
    """Tables of further lifecycles in the stream, by name."""
    children: tuple[Export, ...] = ()
    """The runs that this one is said to have started, in order."""


@attrs.frozen(kw_only=True)
class RecordEntry:
    """A record in a document."""

    sequence: int
    previous: str
    digest: str
    body: dict[str, JSON]


@attrs.frozen(kw_only=True)
class Line(RecordEntry):
    """A line: a record, and the texts that no earlier line held; the first line says what it is the export of."""

    blobs: dict[str, str]
    format: str | None = None
    run: str | None = None
    table: dict[str, JSON] | None = None
    tables: dict[str, dict[str, JSON]] | None = None


@attrs.frozen(kw_only=True)
class HeadEntry:
    """The end of the chain in a document."""

    digest: str
    count: int


@attrs.frozen(kw_only=True)
class Document:
    """The whole document."""

    format: str
    run: str
    head: HeadEntry
    table: dict[str, JSON]
    records: list[RecordEntry]
    blobs: dict[str, str]
    tables: dict[str, dict[str, JSON]] | None = None
    children: list[dict[str, JSON]] | None = None


def read_export(path: str | os.PathLike[str]) -> Export:
    """The export in a regular file of at most 256 MB, as one JSON document or as JSON lines.

    A last line that is cut off is left out and told in `torn`. Raises DocumentError, with the place, for
    anything else that is not of the form.
    """
    source = os.fspath(path)
    try:
        return parse_export(content_of(Path(path)), source)
    except FileNotFoundError:
        message = "no such file"
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
    except ValueError as error:
        message = str(error)
    raise DocumentError(source, (Fault("", message),))


def parse_export(content: str | bytes, source: str = "export") -> Export:
    """The export in a text or its UTF-8 bytes; raises as `read_export` does. `source` is its name in errors."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if len(data) > MAXIMUM_BYTES:
        raise DocumentError(source, (Fault("", f"larger than {MAXIMUM_BYTES} bytes"),))
    first, _, _ = data.partition(b"\n")
    if is_line(first):
        return export_of_lines(data, source)
    return export_of_document(structure(parsed(data, source), Document, source), source)


def content_of(path: Path) -> bytes:
    """The bytes of a regular file; ValueError for anything else, and for one that is too long."""
    if path.is_dir():
        raise ValueError("is a directory, expected a file")
    if path.exists() and not path.is_file():
        raise ValueError("is not a regular file")
    with path.open("rb") as file:
        return file.read(MAXIMUM_BYTES + 1)


def is_line(first: bytes) -> bool:
    """Whether a first line is a record by itself, so that the others are too."""
    try:
        data = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and "records" not in data


def parsed(data: bytes, source: str) -> JSON:
    """Strict JSON: UTF-8, no key twice, no number that JSON does not hold exactly, nesting bounded."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DocumentError(source, (Fault("", f"not UTF-8: byte {error.start} cannot be decoded"),)) from None
    return parse_document(text, ".json", source)


def export_of_document(document: Document, source: str, depth: int = 1) -> Export:
    """The export that a document holds, with those of the runs inside it."""
    expect_format(document.format, source)
    children = document.children or []
    if children and depth > DEEPEST:
        raise DocumentError(source, (Fault("$.children", f"runs lie more than {DEEPEST} deep in each other"),))
    return Export(
        source=source,
        run_id=document.run,
        table=document.table,
        links=tuple(map(link_of, document.records)),
        blobs=document.blobs,
        head=Head(document.head.digest, document.head.count),
        tables=document.tables or {},
        children=tuple(
            export_of_document(structure(child, Document, place), place, depth + 1)
            for number, child in enumerate(children)
            for place in (f"{source}, $.children[{number}]",)
        ),
    )


def export_of_lines(data: bytes, source: str) -> Export:
    """The export that lines hold, without a last line that is no JSON."""
    *lines, rest = data.split(b"\n")
    lines += [rest] if rest.strip() else []
    streams: list[list[tuple[int, Line]]] = []
    torn = ""
    for number, line in enumerate(lines, 1):
        place = f"{source}, line {number}"
        try:
            content = parsed(line, place)
        except DocumentError as error:
            if number < len(lines) or not streams:
                raise
            torn = str(error)
            break
        found = structure(content, Line, place)
        if not streams or begins_another(found, streams[-1]):
            streams.append([])
        streams[-1].append((number, found))
    exports = [export_of_stream(stream, source) for stream in streams]
    return in_a_tree([*exports[:-1], attrs.evolve(exports[-1], torn=torn)], source)


def begins_another(line: Line, stream: list[tuple[int, Line]]) -> bool:
    """Whether a line is the first of another run; one that opens the same run again is a fault of that run."""
    return line.run is not None and line.run != stream[0][1].run


def export_of_stream(stream: list[tuple[int, Line]], source: str) -> Export:
    """The export of one run among the lines."""
    number, opening = stream[0]
    if opening.format is None or opening.run is None or opening.table is None:
        place = f"line {number}"
        raise DocumentError(source, (Fault(place, "needs format, run and table: it is not the first of its export"),))
    expect_format(opening.format, source)
    return Export(
        source=source,
        run_id=opening.run,
        table=opening.table,
        links=tuple(link_of(line) for _, line in stream),
        blobs=dict(texts_of(stream, source)),
        tables=opening.tables or {},
    )


def in_a_tree(exports: list[Export], source: str) -> Export:
    """The runs, each below the one that its own first record names, or below the first; a parent comes earlier."""
    inside: dict[str, list[str]] = {}
    known: dict[str, Export] = {}
    for export in exports:
        if export.run_id in known:
            raise DocumentError(source, (Fault("", f"the run {export.run_id!r:.80} is there twice"),))
        if known:
            parent = parent_of(export)
            inside.setdefault(parent if parent in known else exports[0].run_id, []).append(export.run_id)
        known[export.run_id] = export

    def whole(run_id: str, depth: int) -> Export:
        if depth > DEEPEST + 1:
            raise DocumentError(source, (Fault("", f"runs lie more than {DEEPEST} deep in each other"),))
        children = tuple(whole(child, depth + 1) for child in inside.get(run_id, ()))
        return attrs.evolve(known[run_id], children=children)

    return whole(exports[0].run_id, 1)


def parent_of(export: Export) -> str:
    """The parent that a run's first record names; empty for none."""
    body = json.loads(export.links[0].body)
    event = body.get("event")
    parent = event.get("parent_id") if isinstance(event, dict) else None
    return parent if isinstance(parent, str) else ""


def texts_of(stream: list[tuple[int, Line]], source: str) -> Iterator[tuple[str, str]]:
    """Every text of every line of a run by its digest; none may be there twice."""
    seen: set[str] = set()
    for position, (number, line) in enumerate(stream):
        if position and (line.format, line.run, line.table, line.tables) != (None, None, None, None):
            raise DocumentError(source, (Fault(f"line {number}", "only the first line has format, run and table"),))
        if again := seen & line.blobs.keys():
            raise DocumentError(source, (Fault(f"line {number}", f"an earlier line holds the text {min(again)}"),))
        seen |= line.blobs.keys()
        yield from line.blobs.items()


def link_of(entry: RecordEntry) -> Link:
    """The record with its body as the bytes that were hashed: RFC 8785, since records hold no floats."""
    body = json.dumps(entry.body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Link(entry.sequence, entry.previous, entry.digest, body.encode())


def expect_format(found: str, source: str) -> None:
    """Raise DocumentError for a form that this release does not read."""
    if found != EXPORT_FORMAT:
        raise DocumentError(source, (Fault("$.format", f"expected {EXPORT_FORMAT!r}, found {found!r:.80}"),))
