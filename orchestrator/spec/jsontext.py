"""A JSON value kept as its text: immutable, hashable and equal exactly when the values are."""

from __future__ import annotations

import json

from orchestrator.errors import SpecError
from orchestrator.jsondata import JSON, json_faults

__all__ = ["JsonText", "json_text"]


class JsonText(str):
    """The text of a JSON value, keys sorted.

    A value that callers could change in place would make a spec differ from its digest, and a dict
    could not be hashed; `decoded()` gives a fresh value each time instead. Unlike Python values, the
    texts of `true`, `1` and `1.0` differ.
    """

    __slots__ = ()

    def decoded(self) -> JSON:
        """A fresh copy of the value."""
        return json.loads(self)


def json_text(value: JSON) -> JsonText:
    """The text of `value`, which may be one already; raises SpecError where it is not JSON data."""
    if isinstance(value, JsonText):
        return value
    faults = tuple(json_faults(value))
    if faults:
        raise SpecError("value", faults)
    return JsonText(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")))
