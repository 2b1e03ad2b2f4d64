"""JSON data that whoever is given it can read and copy, but not change: it is shared between requests."""

from __future__ import annotations

from typing import NoReturn

from orchestrator.jsondata import JSON

__all__ = ["ReadOnlyArray", "ReadOnlyObject", "read_only"]


def refuse(*_: object, **__: object) -> NoReturn:
    """Raise TypeError, which says what to do instead."""
    raise TypeError("a message of a request cannot be changed: change a copy (copy.deepcopy gives plain data)")


class ReadOnlyObject(dict[str, JSON]):
    """A JSON object that raises TypeError when it is changed; a dict otherwise, and any copy of it is a plain one."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = refuse
    clear = pop = popitem = setdefault = update = refuse

    def __reduce__(self) -> tuple[type[dict[str, JSON]], tuple[dict[str, JSON]]]:
        return dict, (dict(self),)


class ReadOnlyArray(list[JSON]):
    """A JSON array that raises TypeError when it is changed; a list otherwise, and any copy of it is a plain one."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = refuse
    append = clear = extend = insert = pop = remove = reverse = sort = refuse

    def __reduce__(self) -> tuple[type[list[JSON]], tuple[list[JSON]]]:
        return list, (list(self),)


def read_only(value: JSON) -> JSON:
    """The same data, down to its leaves, in containers that cannot be changed."""
    if isinstance(value, dict):
        return ReadOnlyObject({name: read_only(item) for name, item in value.items()})
    if isinstance(value, list):
        return ReadOnlyArray([read_only(item) for item in value])
    return value
