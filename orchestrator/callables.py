"""What plain callables and adapter objects have in common, whichever port they fill."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

__all__ = ["is_async", "missing_attributes", "name_of_callable"]


def is_async(call: Callable[..., object]) -> bool:
    """Whether calling it gives an awaitable at once, so that it needs no thread."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004 the method is asked, not whether it is callable


def name_of_callable(call: Callable[..., object]) -> str:
    """Module and qualified name of a function or of the class of a callable object."""
    while isinstance(call, functools.partial):
        call = call.func
    named = call if hasattr(call, "__qualname__") else type(call)
    return f"{named.__module__}.{named.__qualname__}"


def missing_attributes(candidate: object, names: tuple[str, ...]) -> str:
    """The attributes of a port that an object lacks, as a list in words; empty when it has them all."""
    return ", ".join(name for name in names if not hasattr(candidate, name))
