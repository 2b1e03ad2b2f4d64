"""Words: errors as records hold them, and numbers of things."""

from __future__ import annotations

from orchestrator.excerpt import excerpt

__all__ = ["count_of", "describe"]


def describe(error: BaseException) -> str:
    """Type and message of an error, at most 4,000 characters of it.

    Control characters are removed; lone surrogates, which no record could hold, are escaped.
    """
    try:
        message = str(error)
    except Exception as failure:  # noqa: BLE001 -- an error of a generator's may be anything
        message = f"(its message cannot be shown: {type(failure).__name__})"
    return excerpt(f"{type(error).__name__}: {message}".encode("utf-8", "backslashreplace").decode())


def count_of(number: int, noun: str) -> str:
    """`1 attempt`, `2,000 attempts`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
