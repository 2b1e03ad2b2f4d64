"""Errors in words, for records."""

from __future__ import annotations

from orchestrator.excerpt import excerpt

__all__ = ["describe"]


def describe(error: BaseException) -> str:
    """Type and message of an error, at most 4,000 characters of it.

    Control characters are removed; lone surrogates, which no record could hold, are escaped.
    """
    try:
        message = str(error)
    except Exception as failure:  # noqa: BLE001 -- an error of a generator's may be anything
        message = f"(its message cannot be shown: {type(failure).__name__})"
    return excerpt(f"{type(error).__name__}: {message}".encode("utf-8", "backslashreplace").decode())
