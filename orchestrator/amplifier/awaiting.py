"""Calls into the kernel's parts, of which a mock's may not be async."""

from __future__ import annotations

from inspect import isawaitable
from typing import Any

__all__ = ["awaited"]


async def awaited(value: Any) -> Any:
    """What was returned, awaited where it has to be."""
    return await value if isawaitable(value) else value
