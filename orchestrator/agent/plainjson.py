"""Whatever a tool, a provider or a transcript gives, as plain JSON data, and text that every record can hold."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Final

from orchestrator.jsondata import JSON, MAXIMUM_DEPTH

__all__ = ["bounded", "clean", "dumped", "plain", "read_object", "written"]

LARGEST: Final = 2**63 - 1
SHOWN: Final = 4_000
WRITER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def plain(value: object) -> JSON:
    """The value as JSON data, whatever it is: NaN, sets, bytes, objects and cycles become texts or lists.

    Never raises; texts lose lone surrogates, what nests deeper than 64 levels is cut.
    """
    return _plain(value, ())


def written(value: object) -> str:
    """The value as compact JSON text in the order of its keys; never raises."""
    return dumped(_plain(value, ()))


def dumped(data: JSON) -> str:
    """What is plain JSON data already as `written` writes it; raises whatever json.dumps does for anything else."""
    return WRITER.encode(data)


def read_object(text: str) -> dict[str, JSON]:
    """The JSON object in a text; ValueError when there is none."""
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None
    if not isinstance(data, dict):
        raise ValueError(f"it is a {type(data).__name__}, not an object")  # noqa: TRY004 -- text of others
    return data


def clean(text: str) -> str:
    """The text with each lone surrogate replaced by a question mark: no UTF-8 could carry it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def bounded(text: str, limit: int) -> str:
    """The text, cleaned, in at most `limit` characters: head and tail, and how much is left out between them."""
    text = clean(text)
    if len(text) <= limit:
        return text
    mark = f"\n… {len(text) - limit} characters left out …\n"
    room = max(0, limit - len(mark))
    return text[: room - room // 2] + mark[:limit] + text[len(text) - room // 2 :]


def _plain(value: object, above: tuple[int, ...]) -> JSON:
    kind = type(value)
    if kind is str:  # what nearly all data is made of, told apart without a pattern
        return clean(value)  # type: ignore[arg-type]  # its type is str
    if kind is dict or kind is list:
        return _container(value, above)  # type: ignore[arg-type]  # its type is dict or list
    return _unusual(value, above)


def _unusual(value: object, above: tuple[int, ...]) -> JSON:
    match value:
        case None | bool():
            return value
        case Enum():
            return _plain(value.value, above)
        case str():
            return clean(value)
        case int() | float():
            return _number(value)
        case Mapping() | list() | tuple() | AbstractSet():
            return _container(value, above)
    return bytes(value).decode(errors="replace") if isinstance(value, bytes | bytearray) else _shown(value)


def _number(value: float) -> JSON:
    if isinstance(value, int):
        return int(value) if abs(value) <= LARGEST else hex(value)
    return float(value) if math.isfinite(value) else str(float(value))


def _container(
    value: Mapping[object, object] | list[object] | tuple[object, ...] | AbstractSet[object], above: tuple[int, ...]
) -> JSON:
    if id(value) in above:
        return "(it contains itself)"
    if len(above) >= MAXIMUM_DEPTH:
        return "(it nests too deep)"
    above, kind = (*above, id(value)), type(value)
    try:
        if kind is dict or (kind is not list and isinstance(value, Mapping)):
            return {_key(key): _plain(item, above) for key, item in value.items()}  # type: ignore[union-attr]  # a Mapping
        items = [_plain(item, above) for item in value]
    except Exception as error:  # noqa: BLE001 -- the container may be of anyone's making
        return f"({kind.__name__} that cannot be read: {type(error).__name__})"
    return sorted(items, key=repr) if kind is not list and isinstance(value, AbstractSet) else items


def _key(key: object) -> str:
    if type(key) is str and key.isascii():
        return key
    return clean(key) if isinstance(key, str) else _shown(key)


def _shown(value: object) -> str:
    try:
        return bounded(str(value), SHOWN)
    except Exception as error:  # noqa: BLE001 -- as above
        return f"({type(value).__name__} that cannot be shown: {type(error).__name__})"
