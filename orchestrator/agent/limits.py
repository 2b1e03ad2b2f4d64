"""What bounds an agent run: turns, tool calls, and what one call may take."""

from __future__ import annotations

from math import isfinite

import attrs

from orchestrator_events.budget import Budget

__all__ = ["DEFAULT_ITERATIONS", "AgentLimits", "budget_of"]

DEFAULT_ITERATIONS = 50


def _is_count(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    if type(value) is not int or value < 1:
        raise ValueError(f"{attribute.name} must be a whole number from 1, not {value!r}")


def _is_seconds(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise ValueError(f"{attribute.name} must be a finite number of seconds above 0, not {value!r}")


@attrs.frozen(kw_only=True)
class AgentLimits:
    """How far an agent may go. Turns are always limited (contract 2: prevent infinite loops).

    Raises ValueError for an iteration limit that is None, below 1 or no whole number.
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
