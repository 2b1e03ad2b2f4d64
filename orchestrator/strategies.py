"""Iteration strategies (contract 1): what changes between attempts. Pure, composable, recorded by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import attrs

from orchestrator.attempt import Attempt
from orchestrator.ports import JSON, Refinement, Strategy
from orchestrator.run import Run

__all__ = ["Composition", "FailureFeedback", "NaiveRetry", "ParameterVariation", "SeedMixing"]


@attrs.frozen
class NaiveRetry:
    """Ask again with identical parameters; the prompt shows the failing ids and nothing else of the failures.

    Cheap, and often enough for a generator that samples. A repeated candidate changes nothing either.
    """

    name: str = attrs.field(default="naive-retry", init=False)

    def refine(self, run: Run, attempt: Attempt | None) -> Refinement:  # noqa: ARG002 -- the port's signature
        """Change nothing."""
        return Refinement(shows_details=False)


@attrs.frozen
class FailureFeedback:
    """Show the failing cases with their messages and the closest candidate, and ask to fix them (the default)."""

    name: str = attrs.field(default="failure-feedback", init=False)

    def refine(self, run: Run, attempt: Attempt | None) -> Refinement:  # noqa: ARG002 -- the port's signature
        """Show the details."""
        return Refinement()


@attrs.frozen
class ParameterVariation:
    """Vary generation parameters between attempts to leave a local minimum.

    `values` gives each parameter the values it takes in turn; attempt 1 uses the configured ones.
    """

    values: Mapping[str, Sequence[JSON]]

    def __attrs_post_init__(self) -> None:
        for parameter, values in self.values.items():
            if isinstance(values, str) or not values:
                raise ValueError(f"ParameterVariation: {parameter} needs a list of at least one value")

    @property
    def name(self) -> str:
        """Name and values."""
        compact = json.dumps({key: list(values) for key, values in self.values.items()}, sort_keys=True)
        return f"parameter-variation {compact}"

    def refine(self, run: Run, attempt: Attempt | None) -> Refinement:  # noqa: ARG002 -- the port's signature
        """The next value of each parameter."""
        if attempt is None:
            return Refinement()
        turn = attempt.number - 1
        return Refinement(parameters={key: values[turn % len(values)] for key, values in self.values.items()})


@attrs.frozen
class SeedMixing:
    """Have the generator build around hand-written code, another seed each attempt, in the order given."""

    labels: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
    """Labels of the configured code seeds to take in turn."""

    @labels.validator
    def _check(self, _: object, labels: tuple[str, ...]) -> None:
        if not labels:
            raise ValueError("SeedMixing needs the label of at least one code seed")

    @property
    def name(self) -> str:
        """Name and labels."""
        return f"seed-mixing {json.dumps(list(self.labels))}"

    def refine(self, run: Run, attempt: Attempt | None) -> Refinement:  # noqa: ARG002 -- the port's signature
        """The next seed."""
        turn = 0 if attempt is None else attempt.number
        return Refinement(seed=self.labels[turn % len(self.labels)])


@attrs.frozen
class Composition:
    """Several strategies at once: later ones win on a parameter or seed, notes add up, and details are shown
    only if every part shows them.
    """

    parts: tuple[Strategy, ...] = attrs.field(converter=tuple[Strategy, ...])

    @property
    def name(self) -> str:
        """The names of the parts, joined by a plus."""
        return " + ".join(part.name for part in self.parts)

    def refine(self, run: Run, attempt: Attempt | None) -> Refinement:
        """All changes of all parts."""
        changes = [part.refine(run, attempt) for part in self.parts]
        parameters: dict[str, JSON] = {}
        for change in changes:
            parameters.update(change.parameters)
        return Refinement(
            shows_details=all(change.shows_details for change in changes),
            parameters=parameters,
            seed=next((change.seed for change in reversed(changes) if change.seed), ""),
            notes=tuple(note for change in changes for note in change.notes),
        )
