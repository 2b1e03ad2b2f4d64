"""Names that diagram languages accept for states and groups, unique within a diagram."""

from __future__ import annotations

from collections.abc import Iterable
from re import sub

__all__ = ["identifiers"]

RESERVED = frozenset(
    (
        "as",
        "choice",
        "class",
        "classdef",
        "click",
        "default",
        "digraph",
        "direction",
        "edge",
        "end",
        "fork",
        "graph",
        "hide",
        "join",
        "node",
        "note",
        "scale",
        "start_mark",
        "state",
        "strict",
        "style",
        "subgraph",
    )
)


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """For each name an ASCII word that is no keyword of Mermaid or DOT; the name itself where it is one."""
    found: dict[str, str] = {}
    for name in names:
        word = sub(r"[^0-9A-Za-z_]", "_", name)
        while not word or word.lower() in RESERVED or word[0].isdigit() or word in found.values():
            word = f"s_{word}" if word[:1].isdigit() else f"{word}_"
        found[str(name)] = word
    return found
