"""Generators that other distributions offer; one is loaded only when it is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.faults import closest_name
from orchestrator.generators.callable import as_generator
from orchestrator.ports import Generator

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "load_generator"]

GROUP: Final = "orchestrator.generators"
"""The entry-point group; what a point names is a generator, a callable, or a class made without arguments."""


def load_generator(name: str) -> Generator:
    """The generator that an installed distribution offers under `name`.

    Raises GeneratorUnavailableError when there is none, more than one, or it cannot be imported.
    """
    point = _point(name)
    try:
        loaded = point.load()
        return as_generator(loaded() if isinstance(loaded, type) else loaded)
    except Exception as error:
        raise GeneratorUnavailableError(f"generator {name!r} ({point.value}) cannot be loaded: {error}") from error


def _point(name: str) -> EntryPoint:
    from importlib.metadata import entry_points

    points = entry_points(group=GROUP)
    found = {point.value: point for point in points if point.name == name}
    if len(found) > 1:
        raise GeneratorUnavailableError(f"generator {name!r} is offered more than once: {', '.join(sorted(found))}")
    if found:
        return found.popitem()[1]
    names = sorted({point.name for point in points})
    near = closest_name(name, names)
    suggestion = f" (did you mean {near!r}?)" if near else ""
    offered = ", ".join(names) or "none: install a distribution with an entry point in the group " + GROUP
    raise GeneratorUnavailableError(f"no generator is called {name!r}{suggestion}; available: {offered}")
