"""Values that are cheap to make are the frozen attrs classes they were declared as."""

from __future__ import annotations

import copy
import pickle

import attrs
import pytest

from orchestrator_events.making import cheaply_made
from orchestrator_events.verdict import CaseResult, CaseStatus

CASE = CaseResult("a", CaseStatus.FAILED, "no")


@cheaply_made
@attrs.frozen(kw_only=True, weakref_slot=False)
class Point:
    """Two fields, one with a default."""

    x: int
    y: int = 2


def test_it_is_what_was_declared() -> None:
    """Class, fields, defaults, equality, hash and text are those of the attrs class."""
    made = Point(x=1)
    assert (type(made) is Point, made, hash(made) == hash(Point(x=1)), repr(made)) == (
        True,
        Point(x=1, y=2),
        True,
        "Point(x=1, y=2)",
    )


def test_it_stays_frozen() -> None:
    """A field can be neither set nor deleted once the value is made."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        CASE.message = "yes"  # type: ignore[misc]  # what is tested
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del CASE.message
    assert attrs.astuple(CASE) == ("a", CaseStatus.FAILED, "no", "")


def test_copies_are_equal() -> None:
    """evolve, copy and pickle give equal values."""
    copies = [attrs.evolve(CASE), copy.copy(CASE), copy.deepcopy(CASE), pickle.loads(pickle.dumps(CASE))]
    assert copies == [CASE] * 4


@pytest.mark.parametrize("arguments", [{}, {"x": 1, "z": 3}, {"y": 1}])
def test_wrong_arguments_are_refused(arguments: dict[str, int]) -> None:
    """A missing or unknown field is a TypeError, as with any class."""
    with pytest.raises(TypeError, match="__init__"):
        Point(**arguments)


def test_a_subclass_is_made_as_ever() -> None:
    """A host's subclass, with room for more attributes, keeps its class."""

    class Named(CaseResult):
        """A case with a note."""

    named = Named("a", CaseStatus.FAILED, "no")
    assert (type(named) is Named, attrs.astuple(named)) == (True, attrs.astuple(CASE))


def test_what_cannot_be_made_cheaply_is_refused() -> None:
    """A factory has to run for each value: the class is left to attrs."""

    @attrs.frozen(weakref_slot=False)
    class Listed:
        items: list[int] = attrs.Factory(list[int])

    with pytest.raises(TypeError, match="field items: only plain defaults"):
        cheaply_made(Listed)
