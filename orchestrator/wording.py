"""Errors in words, for records."""

from __future__ import annotations

__all__ = ["describe"]


def describe(error: BaseException) -> str:
    """Type and message of an error; lone surrogates, which no record could hold, are escaped."""
    text = f"{type(error).__name__}: {error}"
    return text.encode("utf-8", "backslashreplace").decode()
