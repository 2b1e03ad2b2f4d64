"""One case of a suite, as it is reported."""

from __future__ import annotations

__all__ = ["Case"]


class Case:
    """Id, status and message."""

    def __init__(self, case: str, status: str, message: str = "") -> None:
        self.id = case
        self.status = status
        self.message = message
