"""Reads JSON, TOML and YAML files that others wrote, as plain data and without surprises.

All three formats give the same kind of data: tables with string keys, arrays, strings, finite numbers
within the range JSON holds exactly, booleans and null. Whatever one format can say beyond that (a date,
an alias, NaN, a key given twice) is a fault, because it would mean something else in the next format or
nothing at all in the digest of a spec.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, closest_name
from orchestrator.jsondata import (
    JSON,
    MAXIMUM_DEPTH,
    TOO_DEEP,
    TableWithRepeats,
    UnreadableTextError,
    json_faults,
)
from orchestrator.plaintoml import load_plain_toml

__all__ = ["MAXIMUM_BYTES", "parse_document", "read_document", "read_text"]

MAXIMUM_BYTES: Final = 1_000_000
"""Longest file that is read, in bytes."""


def read_document(path: str | os.PathLike[str]) -> JSON:
    """The data of a .json, .toml, .yaml or .yml file of at most 1 MB.

    Raises DocumentError with the line and column of a syntax error, or with the path of every value
    that is not plain JSON data.
    """
    source = os.fspath(path)
    suffix = Path(source).suffix.lower()
    if suffix not in _PARSERS:
        choices = ", ".join(_PARSERS)
        message = f"unknown kind of file {suffix!r}: name it with one of {choices}"
        raise DocumentError(source, (Fault("", message, closest_name(suffix, _PARSERS)),))
    return parse_document(read_text(path), suffix, source)


def parse_document(text: str, suffix: str, source: str) -> JSON:
    """The data in `text`, parsed as the format of `suffix`; `source` is the name that errors give it."""
    try:
        data = _PARSERS[suffix](text)
    except UnreadableTextError as error:
        raise DocumentError(source, (error.fault,)) from None
    except RecursionError:
        raise DocumentError(source, (Fault("", TOO_DEEP),)) from None
    faults = tuple(json_faults(data))
    if faults:
        raise DocumentError(source, faults)
    return data


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a regular UTF-8 file of at most 1 MB, line ends as they are; raises DocumentError."""
    source = os.fspath(path)
    try:
        return _read_bytes(Path(path)).decode()
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte {error.start} cannot be decoded; save the file as UTF-8"
    except FileNotFoundError:
        message = "no such file"
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
    except ValueError as error:
        message = str(error)
    raise DocumentError(source, (Fault("", message),))


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise ValueError("is a directory, expected a file")
    if path.exists() and not path.is_file():
        raise ValueError("is not a regular file")
    with path.open("rb") as file:
        content = file.read(MAXIMUM_BYTES + 1)
    if len(content) > MAXIMUM_BYTES:
        raise ValueError(f"larger than {MAXIMUM_BYTES} bytes: split it")
    return content


def _parse_json(text: str) -> JSON:
    try:
        return json.loads(text, object_pairs_hook=_table_of_pairs, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise UnreadableTextError(f"line {error.lineno}, column {error.colno}", error.msg) from None


def _table_of_pairs(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    table = dict(pairs)
    if len(table) == len(pairs):
        return table
    marked = TableWithRepeats(table)
    marked.repeated = tuple(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
    return marked


def _integer(digits: str) -> int:
    # int() refuses more than 4300 digits with an error of its own; any such number is refused later.
    return int(digits[:40])


def _parse_toml(text: str) -> JSON:
    return load_plain_toml(text, MAXIMUM_DEPTH)


def _parse_yaml(text: str) -> JSON:
    from orchestrator.plainyaml import load_plain_yaml

    return load_plain_yaml(text, MAXIMUM_DEPTH)


_PARSERS: Final[Mapping[str, Callable[[str], JSON]]] = MappingProxyType(
    {".json": _parse_json, ".toml": _parse_toml, ".yaml": _parse_yaml, ".yml": _parse_yaml}
)
