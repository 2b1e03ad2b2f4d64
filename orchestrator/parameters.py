"""Generation parameters: JSON text in records, which hold no floats, and a mapping everywhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

__all__ = ["read_parameters", "write_parameters"]


@lru_cache(maxsize=256)
def read_parameters(text: str) -> Mapping[str, Any]:
    """Parameters from their JSON; the same few texts come again and again."""
    return MappingProxyType(json.loads(text))


def write_parameters(parameters: Mapping[str, Any]) -> str:
    """Parameters as compact JSON with sorted keys; ValueError for NaN, infinity and what is not JSON."""
    if not parameters:
        return "{}"
    try:
        return json.dumps(dict(parameters), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except TypeError as error:
        raise ValueError(f"generation parameters must be JSON values: {error}") from error
