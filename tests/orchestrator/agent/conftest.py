"""What the tests of the agent loop share: what a whole conversation is, and the records of a run by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from orchestrator_events.record import Record

Messages = Sequence[Mapping[str, Any]]


def assert_well_formed(messages: Messages) -> None:
    """Every tool call has its result right after it, in order, and the last word is an assistant's."""
    owed: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert owed, f"a result without a call: {message}"
            assert message["tool_call_id"] == owed.pop(0), messages
            continue
        assert not owed, f"{message} stands between a call and its result"
        owed = [call["id"] for call in message.get("tool_calls", ())]
    assert not owed, f"no result for {owed}"
    spoken = [message for message in messages if message["role"] not in {"system", "developer"}]
    if spoken:
        assert (spoken[-1]["role"], spoken[-1].get("tool_calls")) == ("assistant", None), messages


def names_of(records: Sequence[Record]) -> list[str]:
    """Wire names, in order."""
    return [record.event.name for record in records]


@pytest.fixture
def well_formed() -> Callable[[Messages], None]:
    """Asserts that a conversation is whole."""
    return assert_well_formed


@pytest.fixture
def names() -> Callable[[Sequence[Record]], list[str]]:
    """The wire names of records."""
    return names_of
