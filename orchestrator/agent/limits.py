"""What bounds an agent run: turns, tool calls, and what one call may take."""

from __future__ import annotations

import attrs

from orchestrator_events.budget import Budget

__all__ = ["DEFAULT_ITERATIONS", "MOST_COUNT", "MOST_SECONDS", "AgentLimits", "budget_of", "shown_number"]

DEFAULT_ITERATIONS = 50
MOST_COUNT = 1_000_000
"""The highest limit of turns, of tool calls and of characters: one beyond it would be none."""
MOST_SECONDS = 31_536_000.0
"""The longest limit of time, seconds: a year."""


def _is_count(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    if type(value) is not int or not 1 <= value <= MOST_COUNT:
        raise ValueError(f"{attribute.name} must be a whole number from 1 to {MOST_COUNT}, not {shown_number(value)}")


def _is_seconds(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= MOST_SECONDS:  # type: ignore[operator]  # a number, by the first half
        most = f"{MOST_SECONDS:.0f}"
        raise ValueError(
            f"{attribute.name} must be a number of seconds above 0 and at most {most}, not {shown_number(value)}"
        )


def shown_number(value: object) -> str:
    """A value as an error shows it: an integer of a thousand digits only by its length."""
    is_long = isinstance(value, int) and abs(value) >= 10**20
    return f"one of {value.bit_length() * 30103 // 100000 + 1} digits or so" if is_long else repr(value)  # type: ignore[attr-defined]  # an int, by is_long


@attrs.frozen(kw_only=True)
class AgentLimits:
    """How far an agent may go. Turns are always limited (contract 2: prevent infinite loops).

    Raises ValueError for an iteration limit that is None, below 1, above a million, or no whole number.
    """

    iterations: int = attrs.field(default=DEFAULT_ITERATIONS, validator=_is_count)
    """Calls of the model in one run; one more, without tools, closes a run that reached it."""
    tool_calls: int | None = attrs.field(default=None, validator=attrs.validators.optional(_is_count))
    """Tools run for the model in one run, automatic verifications not counted; None: as many as turns allow."""
    provider_seconds: float = attrs.field(default=1_800.0, validator=_is_seconds)
    """What one call of the model may take."""
    tool_seconds: float = attrs.field(default=600.0, validator=_is_seconds)
    """What one tool call may take."""
    seconds_by_tool: dict[str, float] = attrs.field(factory=dict)
    """What one call of a named tool may take, where that differs."""
    output_characters: int = attrs.field(default=100_000, validator=_is_count)
    """The longest tool result that the model reads; of longer ones head and tail."""

    @seconds_by_tool.validator
    def _are_seconds(self, attribute: attrs.Attribute[dict[str, float]], value: dict[str, float]) -> None:
        for seconds in value.values():
            _is_seconds(self, attribute, seconds)  # type: ignore[arg-type]  # the name is all it reads of it

    def seconds_of(self, tool: str) -> float:
        """What one call of this tool may take."""
        return self.seconds_by_tool.get(tool, self.tool_seconds)


def budget_of(limits: AgentLimits, budget: Budget | None) -> Budget:
    """The budget of a run: time, tokens and money as given; a turn is an attempt, and the closing one is one more."""
    given = budget or Budget()
    return attrs.evolve(given, attempts=limits.iterations + 1, repeats=None)
