"""Strategies: what each changes between attempts, and how it is named."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator import (
    Augmentations,
    Budget,
    CodeSeed,
    Composition,
    FailureFeedback,
    MergedSpec,
    NaiveRetry,
    Orchestrator,
    ParameterVariation,
    Refinement,
    RunFailedError,
    SeedMixing,
    Strategy,
)
from orchestrator.attempt import Attempt
from orchestrator.run import Run
from orchestrator.testing import ScriptedEvaluator, ScriptedGenerator

SPEC = MergedSpec(intent="Set x to 1.")


def attempts_of(strategy: Strategy, attempts: int = 4, **options: Any) -> tuple[Attempt, ...]:
    """The attempts of a run that never passes."""
    made = Orchestrator(
        generator=ScriptedGenerator([lambda request: f"x = {request.attempt}"], "repeat"),
        evaluator=ScriptedEvaluator([{"case": "no"}], "repeat"),
        strategy=strategy,
        budget=Budget(attempts=attempts),
        **options,
    )
    return made.run(SPEC).history


class Noting:
    """A host's own strategy: adds a sentence."""

    name = "noting"

    def refine(self, run: Run, attempt: Attempt | None) -> Refinement:
        """Say how many attempts there were."""
        return Refinement(notes=() if attempt is None else (f"That was {len(run.attempts)} of many.",))


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        (NaiveRetry(), "naive-retry"),
        (FailureFeedback(), "failure-feedback"),
        (ParameterVariation({"b": [1, 2], "a": ("x",)}), 'parameter-variation {"a": ["x"], "b": [1, 2]}'),
        (SeedMixing(["one", "two"]), 'seed-mixing ["one", "two"]'),
        (Composition([NaiveRetry(), SeedMixing(["one"])]), 'naive-retry + seed-mixing ["one"]'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_names_say_the_parameters(strategy: Strategy, name: str) -> None:
    """A strategy's name holds everything that makes it repeatable."""
    assert strategy.name == name


def test_parameters_go_round() -> None:
    """Each parameter takes its values in turn, from the second attempt on, and then from the first one
    again.
    """
    found = attempts_of(ParameterVariation({"a": [1, 2], "b": [5, 6, 7]}), 6, parameters={"a": 0})
    assert [attempt.parameters for attempt in found] == [
        {"a": 0},
        {"a": 1, "b": 5},
        {"a": 2, "b": 6},
        {"a": 1, "b": 7},
        {"a": 2, "b": 5},
        {"a": 1, "b": 6},
    ]


def test_parameters_reset_when_a_strategy_stops_changing_them() -> None:
    """What an attempt changes holds for that attempt only."""

    class Once:
        name = "once"

        def refine(self, run: Run, attempt: Attempt | None) -> Refinement:  # noqa: ARG002 -- the port's signature
            return Refinement(parameters={"a": 9} if attempt is not None and attempt.number == 1 else {})

    found = attempts_of(Once(), 3, parameters={"a": 0})
    assert [attempt.parameters for attempt in found] == [{"a": 0}, {"a": 9}, {"a": 0}]


@pytest.mark.parametrize("values", [{"a": []}, {"a": ()}, {"a": "0.5"}], ids=str)
def test_variation_needs_values(values: dict[str, Any]) -> None:
    """An empty list, or a text taken for a list, is refused when the strategy is made."""
    with pytest.raises(ValueError, match="a needs a list of at least one value"):
        ParameterVariation(values)


def test_seeds_go_round() -> None:
    """The seeds are mixed in one at a time, in the order given, from the first attempt on."""
    seeds = Augmentations(seeds=[CodeSeed("a", "A"), CodeSeed("b", "B"), CodeSeed("c", "C")])
    found = attempts_of(SeedMixing(["c", "a"]), augmentations=seeds)
    assert [attempt.seed for attempt in found] == ["c", "a", "c", "a"]


def test_seed_mixing_needs_a_label() -> None:
    """No label is refused when the strategy is made."""
    with pytest.raises(ValueError, match="at least one code seed"):
        SeedMixing([])


def test_seed_that_is_not_configured() -> None:
    """A label without a seed fails the run with the ones there are, before anything is bought."""
    with pytest.raises(RunFailedError, match=r"code seed 'z'; configured: a") as caught:
        attempts_of(SeedMixing(["z"]), augmentations=Augmentations(seeds=[CodeSeed("a", "A")]))
    assert caught.value.report.generator_invocations == 0


def test_composition() -> None:
    """Later parts win on a parameter or seed, notes add up, and details are shown only if every part shows
    them.
    """
    seeds = Augmentations(seeds=[CodeSeed("a", "AAA"), CodeSeed("b", "BBB")])
    parts: list[Strategy] = [
        ParameterVariation({"t": [1], "u": [2]}),
        SeedMixing(["a"]),
        Noting(),
        Noting(),
        ParameterVariation({"t": [3]}),
        SeedMixing(["b"]),
        NaiveRetry(),
    ]
    second = attempts_of(Composition(parts), 2, augmentations=seeds)[1]
    assert (second.parameters, second.seed) == ({"t": 3, "u": 2}, "b")
    assert second.prompt.count("- That was 1 of many.\n") == 2
    assert ("Failure messages" in second.prompt, "Closest candidate" in second.prompt) == (False, False)


def test_composition_of_nothing_is_plain_feedback() -> None:
    """Without parts nothing changes and details are shown."""
    assert "Failure messages" in attempts_of(Composition([]), 2)[1].prompt


def test_strategy_that_asks_for_what_is_not_json() -> None:
    """Parameters that no record could hold fail the run with the reason."""

    class Odd:
        name = "odd"

        def refine(self, run: Run, attempt: Attempt | None) -> Refinement:  # noqa: ARG002 -- the port's signature
            return Refinement(parameters={"t": float("nan")} if attempt is None else {})

    with pytest.raises(RunFailedError, match="JSON"):
        attempts_of(Odd())
