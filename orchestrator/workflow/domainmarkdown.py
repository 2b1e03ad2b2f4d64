"""Domain definitions in Markdown, in the form of contract 4's Domain Extension Template.

A YAML head, or an `extends:` line and a `## Domain: name` heading; a table of Phase, File and Purpose; optionally
the domain's fields as an example object under `## Domain-Specific State`, its components as YAML under
`## Domain-Specific Components`, and its directory under `## Phase Directory`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

import attrs

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.fences import FencedBlock, fenced_blocks
from orchestrator.jsondata import JSON

__all__ = ["read_markdown_domain"]

HEAD: Final = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
EXTENDS: Final = re.compile(r"^extends:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t#]*")
DOMAIN: Final = re.compile(r"domain:[ \t]*(\S+)", re.IGNORECASE)
RULE: Final = re.compile(r":?-+:?")
DIRECTORY: Final = re.compile(r"^\.{0,2}/?[\w.-]+(?:/[\w.-]+)*/?[ \t]*$")
KINDS: Final = MappingProxyType({str: "string", bool: "boolean", int: "integer", float: "number", dict: "object"})
ENGINE_FIELDS: Final = ("phase", "workflow_id", "last_updated", "error", "retry_count", "metrics", "schema_version")
NONE: Final = ("-", "\u2013", "\u2014", "")  # hyphen, en dash, em dash


@attrs.define
class Section:
    """What stands under one heading."""

    level: int
    title: str
    line: int
    lines: list[str] = attrs.Factory(list[str])

    @property
    def text(self) -> str:
        """Its lines."""
        return "\n".join(self.lines)


def read_markdown_domain(text: str, source: str) -> dict[str, JSON]:
    """The keys of the domain file that a Markdown text stands for; DocumentError with every fault."""
    text = text.replace("\r\n", "\n")
    data, body, faults = head_of(text, source)
    sections = list(sections_of(body))
    for section in sections:
        try:
            for key, value in keys_of(section, source):
                data.setdefault(key, value)
        except DocumentError as error:
            faults += [
                attrs.evolve(fault, path=f"## {section.title}" + (f", {fault.path}" if fault.path else ""))
                for fault in error.faults
            ]
    extends = EXTENDS.search(without_fences(body))
    if extends:
        data.setdefault("extends", extends.group(1).strip("\"'`"))
    if faults:
        raise DocumentError(source, tuple(faults))
    return data


def head_of(text: str, source: str) -> tuple[dict[str, JSON], str, list[Fault]]:
    """The YAML head of a text, which may be a fenced block before any table, and what comes after it."""
    found = HEAD.match(text)
    if found:
        yaml, body = found.group(1), text[found.end() :]
    else:
        blocks = [block for block in fenced_blocks(text) if block.info == "yaml" and "phases:" in block.text]
        yaml, body = (blocks[0].text if blocks else ""), text
    if not yaml.strip():
        return {}, body, []
    try:
        data = parse_document(yaml, ".yaml", source)
    except DocumentError as error:
        return {}, body, list(error.faults)
    if not isinstance(data, dict):
        return {}, body, [Fault("", "the YAML head is no table of keys")]
    return dict(data), body, []


def sections_of(text: str) -> Iterator[Section]:
    """The headings of a text that stand in no fenced block, each with its lines."""
    section = Section(0, "", 0)
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = line.strip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        heading = None if fence else HEADING.fullmatch(line.strip())
        if heading:
            yield section
            section = Section(len(heading.group(1)), heading.group(2), number)
        else:
            section.lines.append(line)
    yield section


def keys_of(section: Section, source: str) -> Iterator[tuple[str, JSON]]:
    """The keys that one section gives."""
    title = section.title.casefold()
    named = DOMAIN.fullmatch(section.title)
    if section.level == 1:
        yield "title", section.title
    elif named:
        yield "domain", named.group(1)
    elif title == "phases":
        yield "phases", list(phases_in(section, source))
    elif title == "domain-specific state":
        yield from state_in(section, source)
    elif title == "domain-specific components":
        yield from components_in(section, source)
    elif title == "phase directory":
        directory = next((line.strip() for line in section.lines if DIRECTORY.match(line.strip())), "")
        if directory:
            yield "phase_directory", directory


def phases_in(section: Section, source: str) -> Iterator[dict[str, JSON]]:
    """The phases in the table of a section: Phase, File and Purpose, in any order of columns."""
    rows = [cells(line) for line in section.lines if line.strip().startswith("|")]
    if not rows:
        raise DocumentError(source, (Fault("", "has no table: give one with the columns Phase, File, Purpose"),))
    columns = [cell.casefold() for cell in rows[0]]
    if "phase" not in columns:
        raise DocumentError(source, (Fault("", "its table has no column Phase"),))
    faults = []
    for row in rows[1:]:
        if all(RULE.fullmatch(cell) for cell in row):
            continue
        values = dict(zip(columns, row, strict=False))
        if values["phase"] == "..." or len(row) != len(columns):
            faults.append(Fault("", f"row {' | '.join(row)!r:.120} is no phase: fill it in, or take it out"))
            continue
        yield phase_of(values)
    if faults:
        raise DocumentError(source, tuple(faults))


def phase_of(values: dict[str, str]) -> dict[str, JSON]:
    """One row as the keys of a phase."""
    file = values.get("file", "").strip("`")
    phase: dict[str, JSON] = {"id": values["phase"].strip("`"), "purpose": values.get("purpose", "")}
    if ":" in file:
        phase["callable"] = file
    elif file not in NONE:
        phase["file"] = file
    following = values.get("next", "")
    if following not in NONE:
        phase["next"] = [each.strip().strip("`") for each in following.split(",")]
    return phase


def cells(line: str) -> list[str]:
    """The cells of a row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def state_in(section: Section, source: str) -> Iterator[tuple[str, JSON]]:
    """The schema of the domain's fields, taken from an example object or given as YAML."""
    for block in fenced_blocks(section.text):
        if block.info in ("yaml", "toml"):
            yield "state", parse_document(block.text, f".{block.info}", source)
            return
        if block.info in ("json", "jsonc", "json5", ""):
            example = parse_document(plain_json(block.text), ".json", source)
            if not isinstance(example, dict):
                raise DocumentError(source, (Fault("", "its example is no object"),))
            own = {name: schema_of(value) for name, value in example.items() if name not in ENGINE_FIELDS}
            yield "state", {"type": "object", "properties": own}
            return


def schema_of(value: JSON) -> dict[str, JSON]:
    """The type of an example value; of null, any."""
    if isinstance(value, list):
        return {"type": "array"}
    kind = KINDS.get(type(value))
    return {"type": [kind, "null"]} if kind else {}


def components_in(section: Section, source: str) -> Iterator[tuple[str, JSON]]:
    """The settings of components, where they are given as YAML; a list in words changes nothing."""
    block = next((each for each in fenced_blocks(section.text) if each.info == "yaml"), None)
    if block is not None:
        data = parse_document(block.text, ".yaml", source)
        yield "components", data["components"] if isinstance(data, dict) and set(data) == {"components"} else data


def plain_json(text: str) -> str:
    """JSON without `//` comments and without commas before a closing bracket."""
    kept: list[str] = []
    for line in text.split("\n"):
        is_quoted, end = False, len(line)
        for index, character in enumerate(line):
            if character == '"' and (index == 0 or line[index - 1] != "\\"):
                is_quoted = not is_quoted
            elif not is_quoted and line.startswith("//", index):
                end = index
                break
        kept.append(line[:end])
    return re.sub(r",(\s*[}\]])", r"\1", "\n".join(kept))


def without_fences(text: str) -> str:
    """A text without its fenced blocks."""
    blocks: tuple[FencedBlock, ...] = fenced_blocks(text)
    for block in blocks:
        text = text.replace(block.text, "\n", 1) if block.text.strip() else text
    return text
