"""The environment that a started program sees: what is allowed by name, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["DEFAULT_ALLOWED", "clean_environment", "variable_names"]

DEFAULT_ALLOWED: Final = (
    "PATH", "HOME", "LANG", "LC_*", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONUTF8",
)  # fmt: skip
"""Variables that programs need to start and to speak the user's language; none of them is a secret."""

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def clean_environment(allow: Iterable[str] = DEFAULT_ALLOWED, extra: Mapping[str, str] = _NOTHING) -> dict[str, str]:
    """The allowed variables of this process, then `extra` over them.

    A name that ends in `*` allows every variable that begins like it.
    """
    names = set(allow)
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    kept = {
        name: value for name, value in os.environ.items() if name in names or (prefixes and name.startswith(prefixes))
    }
    return kept | dict(extra)


def variable_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names as a tuple; a lone text, which would pass one letter at a time, is a TypeError."""
    if isinstance(names, str):
        raise TypeError(f"environment must be a list of names: write ({names!r},)")
    return tuple(names)
