"""What ties a stand-in to the object it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from orchestrator.runner.peer import Peer

__all__ = ["LINK", "OWN", "TEXT", "link_of", "linked", "special_of"]

LINK: Final = "_orchestrator_link"
TEXT: Final = "_orchestrator_text"
OWN: Final = frozenset({LINK, TEXT})
"""Attributes of a stand-in that are its own."""


def link_of(value: object) -> tuple[Peer, int] | None:
    """Whose stand-in this is, and of which object; None for everything else."""
    if isinstance(value, type):
        link: tuple[Peer, int] | None = type.__getattribute__(value, "__dict__").get(LINK)
        return link
    try:
        link = object.__getattribute__(value, LINK)
    except AttributeError:
        return None
    return link


def linked(value: object) -> tuple[Peer, int]:
    """The link that every stand-in has."""
    link = link_of(value)
    if link is None:
        raise TypeError(f"{type(value).__name__} stands for nothing")
    return link


def special_of(value: object, name: str, *args: Any) -> Any:
    """Ask for a special method."""
    __tracebackhide__ = True
    peer, identity = linked(value)
    return peer.ask("special", identity, name, args=args)
