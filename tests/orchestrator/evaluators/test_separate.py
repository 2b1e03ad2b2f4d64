"""What a judge in a process of its own promises: which suites work, and what no candidate can do to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import pytest

from orchestrator.adapter_errors import CandidateRefusedError, EvaluationError
from orchestrator.candidate import Candidate
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.evaluators.separate import SeparateEvaluator
from orchestrator.ports import Evaluator, Submission, Verdict
from orchestrator.sandbox.containment import CONTAINMENT
from orchestrator.spec import MergedSpec
from orchestrator_events.verdict import CaseStatus

QUIET = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
PYTEST = "{python} -m pytest -q -p no:cacheprovider --junitxml={report}"


def judged(evaluator: Evaluator, candidate: str | Mapping[str, str]) -> Verdict:
    """What an evaluator says of a candidate."""
    made = Candidate(dedent(candidate)) if isinstance(candidate, str) else Candidate(files=candidate)
    return asyncio.run(
        evaluator.evaluate(
            Submission(
                run_id="run", attempt=1, candidate=made, spec=MergedSpec(intent="x"), language="python", seconds=None
            )
        )
    )


def separate(suite: str | Mapping[str, str], **options: Any) -> SeparateEvaluator:
    """The judge of a suite of one file, or of several; without a sandbox, which starts sooner."""
    files = {"test_it.py": dedent(suite)} if isinstance(suite, str) else suite
    options = {"candidate_file": "it.py", "extra_environment": QUIET, "launcher": CONTAINMENT, **options}
    return SeparateEvaluator(suite=files, **options)


def statuses(verdict: Verdict) -> dict[str, str]:
    """Case names and their statuses."""
    return {result.id.rpartition("::")[2]: str(result.status) for result in verdict.results}


def all_pass(suite: str, candidate: str, **options: Any) -> None:
    """Every case of the suite passes."""
    verdict = judged(separate(suite, **options), candidate)
    assert verdict.results
    wrong = [(result.id, result.message) for result in verdict.results if result.status is not CaseStatus.PASSED]
    assert (wrong, verdict.integrity) == ([], "separate")


# Suites that work as they do beside the candidate

VALUES = """
    import math
    from collections import Counter, OrderedDict, deque
    from datetime import UTC, date, datetime, time, timedelta, timezone
    from decimal import Decimal
    from fractions import Fraction
    from pathlib import Path
    import pytest
    import it

    ALL = [
        None, True, False, 0, -1, 2**53, -(2**200), 1.5, -0.0, math.inf, "", "ä\\udc80", b"\\x00", 1 + 2j, [1, [2]],
        (1,), {1, 2}, frozenset({3}), {"a": [1], (1, 2): {}}, range(1, 9, 2), slice(1, None), deque([1], 3),
        Decimal("1.10"), Fraction(1, 3), date(2024, 2, 29), datetime(2024, 2, 29, 1, 2, 3, 4), time(1, 2, fold=1),
        datetime(2024, 1, 1, tzinfo=UTC), timedelta(-1, 2, 3), timezone(timedelta(hours=2), "X"), Path("a/b"), int,
        ValueError, len,
    ]

    @pytest.mark.parametrize("value", ALL, ids=range(len(ALL)))
    def test_there_and_back(value):
        found = it.same(value)
        assert type(found) is type(value) and found == value and repr(found) == repr(value)

    def test_nan():
        assert math.isnan(it.same(math.nan))

    def test_derived_from_standard_ones():
        assert it.same(OrderedDict(a=1)) == {"a": 1} and it.count("aab") == {"a": 2, "b": 1}

    def test_changes_are_written_back():
        numbers, table, seen, octets = [3, 1, 2], {"a": [1]}, set(), bytearray(b"a")
        assert it.change(numbers, table, seen, octets) is numbers
        assert (numbers, table, seen, octets) == ([1, 2, 3], {"a": [1, 9], "b": 2}, {5}, bytearray(b"ab"))

    def test_same_list_twice():
        numbers = []
        assert it.are_one(numbers, numbers) is True and it.are_one([], []) is False

    def test_self_reference():
        numbers = []
        numbers.append(numbers)
        assert it.are_one(numbers, numbers[0])

    def test_views():
        assert it.views({"a": 1}) == (["a"], [1], [("a", 1)]) and it.keys({"a": 1}) == {"a"}
"""
VALUES_CANDIDATE = """
    import collections
    def same(value): return value
    def count(text): return collections.Counter(text)
    def change(numbers, table, seen, octets):
        numbers.sort(); table["a"].append(9); table["b"] = 2; seen.add(5); octets.extend(b"b")
        return numbers
    def are_one(one, other): return one is other
    def views(table): return list(table.keys()), list(table.values()), list(table.items())
    def keys(table): return table.keys()
"""

OBJECTS = """
    import copy
    import pytest
    import it
    from it import Colour, Count, Names, Pair, Point, Score, Stack, Text, TooFar

    def test_attributes_and_methods():
        point = Point(1, 2)
        assert (point.x, point.length(), Point.ORIGIN.x, Point.of("3,4").y) == (1, 5, 0, 4)
        point.x = 7
        assert (point.x, vars(point)) == (7, {"x": 7, "y": 2})
        del point.x
        assert not hasattr(point, "x")

    def test_operators():
        assert Point(1, 2) + Point(1, 1) == Point(2, 3) and Point(1, 2) != Point(2, 1) and -Point(1, 1) == Point(-1, -1)
        assert Point(1, 2) < Point(1, 3) and not Point(1, 3) <= Point(1, 2) and Point(1, 2) * 3 == Point(3, 6)
        assert [Point(1, 2)] == [Point(1, 2)] and hash(Point(1, 2)) == hash(Point(1, 2))
        assert {Point(1, 2): "a"}[Point(1, 2)] == "a" and copy.deepcopy(Point(1, 2)) == Point(1, 2)

    def test_words():
        assert (repr(Point(1, 2)), str(Point(1, 2)), f"{Point(1, 2):>3}") == ("Point(1, 2)", "1/2", "1|2|>3")

    def test_identity_and_classes():
        point = it.remember(Point(1, 2))
        assert it.remembered() is point and type(point) is Point and isinstance(point, Point)
        assert issubclass(it.Point3, Point) and isinstance(it.Point3(1, 2), Point) and not isinstance(3, Point)
        assert (Point.__name__, Point.__doc__, it.__name__) == ("Point", "A point.", "it")

    def test_containers():
        names = Names()
        names["a"] = 1
        assert (len(names), names["a"], "a" in names, list(names), bool(Names())) == (1, 1, True, ["a"], False)
        with pytest.raises(KeyError, match="zzz"):
            names["zzz"]

    def test_derived_from_built_ins():
        stack = Stack()
        stack.push(1)
        assert stack == [1] and stack != [2] and (stack.pop(), len(stack)) == (1, 0)
        assert Pair(1, 2) == (1, 2) and Pair(1, 2).first == 1 and isinstance(Pair(1, 2), tuple)
        assert Score.HIGH == 9 and Score.HIGH.name == "HIGH" and Text("a").loud() == "A!" and Text("a") == "a"

    def test_enum():
        assert list(Colour) == [Colour.RED, Colour.BLUE] and Colour(1) is Colour.RED and Colour["BLUE"].value == 2
        assert it.paint(Colour.RED) is Colour.BLUE and Colour.RED in Colour and len(Colour) == 2 and Colour.RED != 1

    def test_context_manager():
        with Count() as count:
            assert count.is_open is True
        assert count.is_open is False
        with pytest.raises(ZeroDivisionError), Count():
            1 / 0
        with Count(swallows=ZeroDivisionError) as count:
            1 / 0
        assert count.swallowed == "division by zero"

    def test_iterators():
        numbers = it.numbers()
        assert (next(numbers), numbers.send(5), list(numbers)) == (0, 5, [1, 2])
        assert list(it.doubled(iter([1, 2]))) == [2, 4] and sum(it.doubled(x for x in (1, 2))) == 6

    def test_callbacks():
        seen = []
        assert it.apply(lambda x: x + 1, [1, 2]) == [2, 3] and it.apply(seen.append, [1]) == [None] and seen == [1]
        with pytest.raises(ZeroDivisionError):
            it.apply(lambda x: 1 / 0, [1])
        assert it.apply(str.upper, ["a"]) == ["A"] and sorted([3, 1], key=it.negative) == [3, 1]

    class Node:
        def __init__(self, value, after=None):
            self.value, self.after = value, after

    def test_objects_of_the_suite():
        last = Node(2)
        assert it.total(Node(1, last)) == 3 and it.reversed_list(Node(1, last)) is last and last.after.value == 1

    def test_own_errors_come_back_as_they_are():
        error = LookupError("mine")
        def fail(_):
            raise error
        with pytest.raises(LookupError) as caught:
            it.apply(fail, [1])
        assert caught.value is error

    def test_errors():
        with pytest.raises(TooFar, match="^too far: 7$") as caught:
            it.go(7)
        assert (type(caught.value), caught.value.args, caught.value.steps) == (TooFar, ("too far: 7",), 7)
        with pytest.raises(ValueError):
            it.go(8)
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            it.go()
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            it.nothing
"""
OBJECTS_CANDIDATE = """
    import enum, functools, collections

    @functools.total_ordering
    class Point:
        "A point."
        def __init__(self, x, y): self.x, self.y = x, y
        def length(self): return self.x**2 + self.y**2
        @classmethod
        def of(cls, text): return cls(*map(int, text.split(",")))
        def __eq__(self, other): return (self.x, self.y) == (other.x, other.y)
        def __lt__(self, other): return (self.x, self.y) < (other.x, other.y)
        def __hash__(self): return hash((self.x, self.y))
        def __add__(self, other): return Point(self.x + other.x, self.y + other.y)
        def __mul__(self, n): return Point(self.x * n, self.y * n)
        def __neg__(self): return Point(-self.x, -self.y)
        def __repr__(self): return f"Point({self.x}, {self.y})"
        def __str__(self): return f"{self.x}/{self.y}"
        def __format__(self, spec): return f"{self.x}|{self.y}|{spec}"
    Point.ORIGIN = Point(0, 0)
    class Point3(Point): pass
    def remember(point):
        global kept
        kept = point
        return point
    def remembered(): return kept
    class Names:
        def __init__(self): self.names = {}
        def __len__(self): return len(self.names)
        def __getitem__(self, name): return self.names[name]
        def __setitem__(self, name, value): self.names[name] = value
        def __contains__(self, name): return name in self.names
        def __iter__(self): return iter(self.names)
    class Stack(list):
        def push(self, value): self.append(value)
    class Pair(collections.namedtuple("Pair", "first second")): pass
    class Text(str):
        def loud(self): return self.upper() + "!"
    class Score(enum.IntEnum):
        HIGH = 9
    class Colour(enum.Enum):
        RED = 1
        BLUE = 2
    def paint(colour): return Colour.BLUE if colour is Colour.RED else Colour.RED
    class Count:
        def __init__(self, swallows=()): self.swallows = swallows
        def __enter__(self):
            self.is_open = True
            return self
        def __exit__(self, kind, error, trace):
            self.is_open = False
            self.swallowed = str(error)
            return kind is not None and issubclass(kind, self.swallows)
    def numbers():
        got = yield 0
        if got: yield got
        yield 1
        yield 2
    def doubled(values):
        for value in values: yield 2 * value
    def apply(function, values): return [function(value) for value in values]
    def negative(number): return -number
    def total(node): return node.value + (total(node.after) if node.after else 0)
    def reversed_list(node):
        before = None
        while node: before, node.after, node = node, before, node.after
        return before
    class TooFar(ValueError):
        def __init__(self, steps):
            super().__init__(f"too far: {steps}")
            self.steps = steps
    def go(steps): raise TooFar(steps) if steps == 7 else ValueError(steps)
"""

SURROUNDINGS = """
    import asyncio
    import builtins
    import io
    import sys
    from unittest.mock import MagicMock, patch
    import it

    def test_output(capsys):
        it.hello()
        assert capsys.readouterr() == ("hello\\n", "oh\\n")

    def test_input(monkeypatch):
        monkeypatch.setattr("builtins.input", lambda prompt: prompt + "bob")
        assert it.ask() == "name? bob"

    def test_standard_input(monkeypatch):
        monkeypatch.setattr("sys.stdin", io.StringIO("one\\ntwo\\n"))
        assert it.lines() == ["one\\n", "two\\n"]

    def test_patched_names(monkeypatch):
        monkeypatch.setattr(it, "helper", lambda: "mine")
        assert it.use() == "mine"
        monkeypatch.undo()
        with patch("it.helper", return_value="patched") as helper:
            assert it.use() == "patched"
        helper.assert_called_once_with()
        assert it.use() == "own"

    def test_mock():
        mock = MagicMock()
        mock.read.return_value = 5
        assert it.read(mock) == 5
        mock.read.assert_called_once_with(3, end=4)

    def test_async():
        async def main():
            values = [value async for value in it.ticks()]
            async with it.Door() as door:
                return await it.later(2), values, door
        assert asyncio.run(main()) == (4, [0, 1], "open")

    def test_file(tmp_path):
        it.write(tmp_path / "a.txt")
        assert (tmp_path / "a.txt").read_text() == "written"
"""
SURROUNDINGS_CANDIDATE = """
    import sys
    def hello():
        print("hello")
        print("oh", file=sys.stderr)
    def ask(): return input("name? ")
    def lines(): return list(sys.stdin)
    def helper(): return "own"
    def use(): return helper()
    def read(source): return source.read(3, end=4)
    async def later(number): return number * 2
    async def ticks():
        for number in range(2): yield number
    class Door:
        async def __aenter__(self): return "open"
        async def __aexit__(self, *error): return None
    def write(path): path.write_text("written")
"""


@pytest.mark.parametrize(
    ("suite", "candidate"),
    [(VALUES, VALUES_CANDIDATE), (OBJECTS, OBJECTS_CANDIDATE), (SURROUNDINGS, SURROUNDINGS_CANDIDATE)],
    ids=["values", "objects", "surroundings"],
)
def test_suites_work_as_they_do_beside_the_candidate(suite: str, candidate: str) -> None:
    """Values, objects, classes, errors, callbacks, output, input, patches and coroutines cross; ids are the same."""
    apart = judged(separate(suite), candidate)
    command = CommandEvaluator(
        PYTEST, suite={"test_it.py": dedent(suite)}, candidate_file="it.py", extra_environment=QUIET,
        launcher=CONTAINMENT,
    )  # fmt: skip
    beside = judged(command, candidate)
    wrong = [(result.id, result.message) for result in apart.results if result.status is not CaseStatus.PASSED]
    assert wrong == []
    assert [result.id for result in apart.results] == [result.id for result in beside.results]


def test_packages() -> None:
    """A candidate of several files is imported as it stands; its own imports stay in its process."""
    suite = (
        "import shop.till as till\nfrom shop import Till\ndef test_it(): assert Till is till.Till and Till().sum() == 3"
    )
    files = {
        "shop/__init__.py": "from shop.till import Till\n",
        "shop/till.py": "from shop.prices import ALL\nclass Till:\n    def sum(self): return sum(ALL)\n",
        "shop/prices.py": "ALL = [1, 2]\n",
    }
    assert statuses(judged(separate({"test_shop.py": suite}, candidate_file=""), files)) == {"test_it": "passed"}


def test_module_of_the_candidate_hides_none_of_the_judges() -> None:
    """A candidate of several files cannot put a module in the place of one that the judge needs."""
    suite = "import json, it\n\ndef test_it():\n    assert json.loads('1') == 1 and it.ONE == 1\n"
    files = {"it.py": "ONE = 1\n", "json.py": "def loads(text): return 1\n", "pytest.py": "raise SystemExit\n"}
    assert statuses(judged(separate({"test_it.py": suite}, candidate_file=""), files)) == {"test_it": "passed"}


def test_shared_files() -> None:
    """What the suite shares can be imported by the candidate; nothing else of the suite can."""
    suite = {
        "test_it.py": "import it\n\ndef test_it():\n    assert it.found() == ['DATA', 'no answers']\n",
        "data.py": "DATA = 1\n",
        "answers.py": "RIGHT = 1\n",
    }
    candidate = """
        def found():
            import data
            try:
                import answers
            except ImportError:
                return [*[name for name in dir(data) if name.isupper()], "no answers"]
    """
    assert statuses(judged(separate(suite, shared=("data.py",)), candidate)) == {"test_it": "passed"}


def test_unittest_and_pytest_give_the_same_ids() -> None:
    """A suite of unittest has the same ids and statuses under either framework."""
    suite = """
        import unittest, it
        class Numbers(unittest.TestCase):
            def test_right(self): self.assertEqual(it.one(), 1)
            def test_wrong(self): self.assertEqual(it.one(), 2)
            def test_broken(self):
                with self.assertRaises(KeyError): it.one(5)
            @unittest.skip("later")
            def test_skipped(self): pass
    """
    by_pytest = judged(separate(suite), "def one(): return 1")
    by_unittest = judged(separate(suite, framework="unittest"), "def one(): return 1")
    assert by_unittest.results[0].id.startswith("test_it.Numbers::test_")
    assert sorted(result.id for result in by_unittest.results) == sorted(result.id for result in by_pytest.results)
    assert statuses(by_unittest) == {
        "test_right": "passed", "test_wrong": "failed", "test_broken": "error", "test_skipped": "skipped",
    }  # fmt: skip


# What no candidate can do

LIAR = """
    class Liar:
        def __eq__(self, other): return True
        def __ne__(self, other): return False
        def __lt__(self, other): return True
        __gt__ = __le__ = __ge__ = __lt__
        def __sub__(self, other): return 0
        __rsub__ = __sub__
        def __contains__(self, other): return True
        def __iter__(self): return iter(())
        def __bool__(self): return True
        def __abs__(self): return 0
        def __round__(self, digits=None): return 0
        def __hash__(self): return hash("x")
        def __len__(self): return True
    class Number(float):
        __eq__ = __lt__ = __gt__ = __le__ = __ge__ = lambda self, other: True
        __sub__ = __rsub__ = lambda self, other: 0
        __hash__ = None
    class Words(str):
        __contains__ = lambda self, other: True
        startswith = lambda self, other: True
        def __eq__(self, other): return True
        __hash__ = str.__hash__
    def value(): return Liar()
    def number(): return Number(1)
    def words(): return Words("")
"""
BELIEVERS = """
    import math
    import pytest
    import it

    def test_equal(): assert it.value() == "x"
    def test_reversed(): assert "x" == it.value()
    def test_not_unequal(): assert not it.value() != "x"
    def test_in_a_list(): assert [it.value()] == ["x"]
    def test_member(): assert it.value() in ["x"]
    def test_key(): assert {"x": 1}[it.value()]
    def test_less(): assert it.value() < 3
    def test_approximately(): assert it.value() == pytest.approx(3.0)
    def test_close(): assert math.isclose(it.value(), 3.0)
    def test_difference(): assert abs(it.value() - 3) < 0.1
    def test_reversed_difference(): assert abs(3 - it.value()) < 0.1
    def test_true(): assert it.value() is True
    def test_length(): assert len(it.value()) == 1
    def test_number_equal(): assert it.number() == 3.0
    def test_number_less(): assert it.number() > 3.0
    def test_number_close(): assert it.number() == pytest.approx(3.0)
    def test_number_difference(): assert abs(it.number() - 3) < 0.1
    def test_words_equal(): assert it.words() == "x"
    def test_words_begin(): assert it.words().startswith("x")
"""


def test_nothing_equals_a_value_that_it_is_not() -> None:
    """An object of the candidate that claims to be equal, close, smaller or the key passes no comparison."""
    found = statuses(judged(separate(BELIEVERS), LIAR))
    assert (len(found), {name for name, status in found.items() if status == "passed"}) == (19, set())


def test_no_difference_is_made_up_in_two_steps() -> None:
    """What an operator gave that was shown a plain value never becomes a number, whichever object it is."""
    suite = """
        import math
        import unittest
        import pytest
        import it

        class Tolerances(unittest.TestCase):
            def test_almost(self): self.assertAlmostEqual(it.value(), 4.0)
            def test_almost_number(self): self.assertAlmostEqual(it.number(), 4.0)
            def test_falsy(self): self.assertFalse(it.value() - 4)
            def test_method(self): self.assertAlmostEqual(it.Circle(2).area(), 4.0)
            def test_same_object(self): self.assertAlmostEqual(it.Circle(2).itself(), 4.0)

        def test_difference(): assert abs(it.value() - 4) < 1e-9
        def test_reversed_difference(): assert abs(4 - it.value()) < 1e-9
        def test_negated(): assert abs(-(it.value() - 4)) < 1e-9
        def test_squared(): assert math.sqrt((it.value() - 4) ** 2) < 1e-9
        def test_summed(): assert float(sum(each - 4 for each in [it.value(), it.value()])) < 1e-9
        def test_multiplied(): assert float((it.value() - 4) * it.value()) < 1e-9
        def test_rounded(): assert round(it.value() - 4, 7) == 0
        def test_length(): assert len(it.value() - {4}) == 0
        def test_number_difference(): assert abs(it.number() - 4) < 1e-9
        def test_number_close(): assert it.number() == pytest.approx(4.0)
        def test_close_number(): assert pytest.approx(4.0) == it.number()
        def test_number_zero(): assert it.number() - 4 == 0
    """
    candidate = """
        class Liar:
            def __sub__(self, other): return self
            __rsub__ = __pow__ = __mul__ = __add__ = __radd__ = __sub__
            def __neg__(self): return Liar()
            def __abs__(self): return 0.0
            def __round__(self, digits=None): return 0
            def __bool__(self): return False
            def __len__(self): return 0
            def __float__(self): return 0.0
        class Number(float):
            def __sub__(self, other): return Number(0)
            __rsub__ = __sub__
        class Circle(Liar):
            def __init__(self, radius): pass
            def area(self): return Circle(0)
            def itself(self): return self
        def value(): return Liar()
        def number(): return Number(1)
    """
    found = statuses(judged(separate(suite), candidate))
    assert (len(found), {name for name, status in found.items() if status == "passed"}) == (17, set())


def test_no_context_manager_hides_a_failure() -> None:
    """One that swallows everything swallows the errors of the candidate and the suite, and no failed assertion."""
    suite = """
        import asyncio
        import unittest
        import pytest
        import it

        async def inside(act):
            async with it.Swallower():
                act()

        class Cases(unittest.TestCase):
            def test_method(self):
                with it.Swallower():
                    self.assertEqual(1, 2)

        def test_assert():
            with it.Swallower():
                assert False
        def test_fail():
            with it.Swallower():
                pytest.fail("no")
        def test_broken():
            with it.Swallower():
                it.leave()
        def test_async(): asyncio.run(inside(lambda: pytest.fail("no")))
        def test_error():
            with it.Swallower():
                raise ValueError
        def test_async_error(): asyncio.run(inside(lambda: 1 / 0))
    """
    candidate = """
        import os
        def leave(): os._exit(0)
        class Swallower:
            def __enter__(self): return self
            def __exit__(self, *error): return True
            async def __aenter__(self): return self
            async def __aexit__(self, *error): return True
    """
    found = statuses(judged(separate(suite), candidate))
    passed = {name for name, status in found.items() if status == "passed"}
    assert (len(found), passed - {"test_error", "test_async_error"}) == (7, set())
    honest = suite.replace("it.leave()", "pass")
    kept = statuses(judged(separate(honest), candidate))
    assert (kept["test_error"], kept["test_async_error"]) == ("passed", "passed")


def test_honest_objects_work_with_plain_values() -> None:
    """What the suite made itself computes as it likes; flags and numbers with units give what numbers give."""
    suite = """
        import it

        def test_made(): assert abs(it.Vector(3, 4) * 2) == 10 and it.Modular(5) + 4 == 2
        def test_given(): assert (it.vector() * 2).x == 6
        def test_flags(): assert it.flags() & 4 == 4 and not it.flags() & 2
        def test_unit(): assert abs(it.metres() - 3) < 0.1
    """
    candidate = """
        import enum
        class Flags(enum.IntFlag):
            READ, WRITE, RUN = 1, 2, 4
        class Metres(float):
            def __sub__(self, other): return Metres(float(self) - other)
        class Modular(int):
            def __add__(self, other): return Modular((int(self) + other) % 7)
        class Vector:
            def __init__(self, x, y): self.x, self.y = x, y
            def __mul__(self, factor): return Vector(self.x * factor, self.y * factor)
            def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
        def vector(): return Vector(3, 4)
        def flags(): return Flags.READ | Flags.RUN
        def metres(): return Metres(3.05)
    """
    assert set(statuses(judged(separate(suite), candidate)).values()) == {"passed"}


def test_liar_that_claims_to_hold_everything() -> None:
    """What is in a candidate's object is looked up by the judge, unless the suite itself made it."""
    suite = """
        import it
        def test_given(): assert 3 in it.given()
        def test_answered(): assert 3 in it.Bag([3]).emptied()
        def test_made(): assert 3 in it.Bag([3])
    """
    candidate = """
        class Bag:
            def __init__(self, values): self.values = values
            def __contains__(self, value): return True
            def __iter__(self): return iter(self.values)
            def emptied(self): return Bag([])
        class Hidden(Bag): pass
        def given(): return Hidden([])
    """
    assert statuses(judged(separate(suite), candidate)) == {
        "test_given": "failed", "test_answered": "failed", "test_made": "passed",
    }  # fmt: skip


CLOSED = """
    import unittest
    from unittest.mock import Mock
    import pytest
    import it

    def secret(): ...

    class Plain:
        number = 1
        _hidden = 2
        def method(self): return 3

    @pytest.mark.parametrize("name", ["__globals__", "__code__", "__closure__", "__builtins__", "__class__.__mro__"])
    def test_function(name):
        assert it.reached(secret, name) == "closed"

    def test_object():
        plain = Plain()
        assert it.reached(plain, "_hidden") == it.reached(plain, "method.__func__.__globals__") == "closed"
        assert it.assigned(plain, "method") == it.assigned(Plain, "number") == "closed"
        assert it.assigned(plain, "number") == "done" and plain.number == 0

    def test_mock():
        mock = Mock()
        assert it.reached(mock, "assert_called") == it.assigned(mock, "called") == "closed" and not mock.called

    def test_frameworks(monkeypatch):
        assert it.reached(monkeypatch, "setattr") == it.reached(unittest.TestCase(), "run") == "closed"
        assert it.reached(pytest, "fail") == "closed"

    def test_frames():
        generator = (each for each in [1])
        assert it.reached(generator, "gi_frame") == "closed"
        try:
            1 / 0
        except ZeroDivisionError as error:
            assert it.reached(error.__traceback__, "tb_frame") == "closed"
"""
CLOSED_CANDIDATE = """
    def reached(value, names):
        try:
            for name in names.split("."):
                value = type(value).__getattr__(value, name)
            return "open"
        except Exception as error:
            return "closed" if type(error).__name__ == "RefusedError" else repr(error)
    def assigned(value, name):
        try:
            setattr(value, name, 0)
            return "done"
        except Exception as error:
            return "closed" if type(error).__name__ == "RefusedError" else repr(error)
"""

RAW = """
    import gc
    from orchestrator.runner.candidate import CandidatePeer
    (peer,) = [each for each in gc.get_objects() if isinstance(each, CandidatePeer)]
    def f():
        {}
        return 1
"""


@pytest.mark.parametrize(
    "act",
    [
        "peer.wire.socket.sendall(b'garbage\\n')",
        "peer.wire.socket.sendall(b'[1]\\n')",
        'peer.wire.socket.sendall(b\'{"n": 1, "value": NaN}\\n\')',
        'peer.wire.socket.sendall(b\'{"n": 1, "n": 2}\\n\')',
        "peer.wire.socket.sendall(b'[' * 100000 + b'\\n')",
        "peer.wire.socket.sendall(b'x' * 17_000_000)",
        "peer.wire.send({'n': 999, 'value': 1})",
        "peer.wire.send({'n': peer.last, 'value': 1, 'more': 2})",
        "peer.wire.send({'n': True, 'value': 1})",
        "peer.wire.send({'n': 1, 'do': 'exec', 'args': []})",
        "peer.wire.send({'n': 1, 'do': 'get', 'on': 0, 'name': '__class__', 'args': [], 'kwargs': []})",
        "peer.wire.send({'n': 1, 'do': 'call', 'on': 77, 'name': '', 'args': [], 'kwargs': []})",
        "peer.wire.send({'n': 1, 'do': 'input', 'args': [['h', 1, ['x', 'int'], None]]})",
        "peer.wire.send({'n': 1, 'do': 'input', 'args': [['x', 'eval']]})",
        "peer.wire.send({'n': 1, 'do': 'input', 'args': [['o', 5]]})",
        "peer.wire.send({'n': 1, 'do': 'input', 'args': [['i', '0x' + 'f' * 5_000_000]]})",
        "import os; os._exit(0)",
        "import os; os.kill(os.getpid(), 11)",
        "peer.wire.socket.close(); import time; time.sleep(9)",
    ],
)
def test_broken_protocol_is_an_error(act: str) -> None:
    """Whatever comes instead of an answer, the case and those after it are errors, even one that expects errors."""
    suite = """
        import pytest
        import it
        def test_first():
            with pytest.raises(BaseException):
                it.f()
        def test_second(): pass
    """
    verdict = judged(separate(suite, seconds=20), RAW.format(act))
    assert statuses(verdict) == {"test_first": "error", "test_second": "error"}


def test_suite_is_closed_to_the_candidate() -> None:
    """From an object of the suite no way leads to globals, frames, frameworks or the verdict."""
    all_pass(CLOSED, CLOSED_CANDIDATE)


ESCAPES = """
    import io
    import it

    def secret(value): return value

    class File(io.FileIO): ...
    class Plain: ...

    def test_it(tmp_path):
        (tmp_path / "a").write_text("old")
        with File(tmp_path / "a") as file:
            assert it.attack(secret, file, Plain(), eval, open, str(tmp_path / "a")) == "closed"
        assert (tmp_path / "a").read_text() == "old"
"""


@pytest.mark.parametrize(
    "act",
    [
        "peer.ask('construct', number(secret), '__globals__')",
        "peer.ask('construct', number(type(plain)), '__subclasses__')",
        "peer.ask('call', number(type(plain)), 'mro')",
        "peer.ask('vars', number(plain))",
        "peer.ask('entry', number(type(plain)), '__init__')",
        "peer.ask('method', number(secret), '__globals__')",
        "peer.ask('special', number(secret), '__getattribute__', args=('__globals__',))",
        "peer.ask('construct', number(type(file).__mro__[1]), args=(path, 'w'))",
        "peer.ask('construct', number(type(secret)), args=(1, {}))",
        "run('1 + 1')",
        "opened(path, 'w')",
        "secret(Stolen(peer, number(secret), '__globals__'))",
    ],
)
def test_no_question_leads_out(act: str) -> None:
    """Questions that no honest stand-in would ask are refused, or end the conversation; nothing comes of them."""
    candidate = f"""
        import gc
        from orchestrator.runner.candidate import CandidatePeer
        from orchestrator.runner.links import linked
        from orchestrator.runner.standins import RemoteMethod as Stolen
        (peer,) = [each for each in gc.get_objects() if isinstance(each, CandidatePeer)]
        def number(value): return linked(value)[1]
        def attack(secret, file, plain, run, opened, path):
            try:
                found = {act}
            except Exception as error:
                return "closed" if type(error).__name__ == "RefusedError" else repr(error)
            return repr(found)
    """
    status = statuses(judged(separate(ESCAPES), candidate))["test_it"]
    assert status == ("error" if "Stolen" in act else "passed")


def test_candidate_that_ends_says_how() -> None:
    """The reason in the report is how the process really ended."""
    verdict = judged(separate("import it\ndef test_it(): assert it.f()"), "import os\ndef f(): os.kill(os.getpid(), 9)")
    assert verdict.results[0].message.startswith("the candidate's process was killed by SIGKILL")


@pytest.mark.parametrize(
    ("candidate", "status"),
    [
        ("raise SystemExit(0)", "error"),
        ("raise KeyboardInterrupt", "error"),
        ("import os\nos._exit(0)", "error"),
        ("def f(:", "error"),
        ("def f(): raise SystemExit(0)", "failed"),
        ("def f(): raise KeyboardInterrupt", "failed"),
        ("def f(): raise __import__('unittest').SkipTest('no')", "failed"),
        ("import pytest\ndef f(): pytest.skip('no')", "failed"),
        ("import pytest\ndef f(): pytest.exit('no', returncode=0)", "failed"),
        ("import pytest\ndef f(): pytest.xfail('no')", "failed"),
    ],
)
def test_ways_out_end_nothing_but_the_case(candidate: str, status: str) -> None:
    """Exits, interrupts, skips and expected failures of the candidate's making are failures in the judge."""
    assert list(statuses(judged(separate("import it\ndef test_it(): assert it.f() == 1"), candidate)).values()) == [
        status
    ]


def test_hanging_call_is_cut_off_alone() -> None:
    """With a time for each call, the case whose call hangs is an error, and the next ones are judged."""
    suite = "import it\ndef test_a(): it.hang()\ndef test_b(): assert it.f() == 1\n"
    candidate = "def hang():\n    while True: pass\ndef f(): return 1\n"
    assert statuses(judged(separate(suite, call_seconds=0.05), candidate)) == {"test_a": "error", "test_b": "passed"}


def test_candidate_that_cannot_be_stopped_fails_the_rest() -> None:
    """A call that ignores being given up costs all cases after it."""
    suite = "import it\ndef test_a(): it.hang()\ndef test_b(): assert it.f() == 1\n"
    candidate = """
        import time
        def hang():
            while True:
                try: time.sleep(9)
                except BaseException: pass
        def f(): return 1
    """
    assert statuses(judged(separate(suite, call_seconds=0.05), candidate)) == {"test_a": "error", "test_b": "error"}


def test_hanging_suite_is_timed_out() -> None:
    """Without one, the time of the suite bounds it."""
    verdict = judged(
        separate("import it\ndef test_a(): it.hang()\n", seconds=1.5), "def hang():\n    while True: pass\n"
    )
    assert statuses(verdict) == {"(suite)": "timed out"}


def test_report_and_suite_are_out_of_reach() -> None:
    """The candidate's process has neither the report's descriptor nor its variable, and works elsewhere."""
    suite = """
        import os
        import it
        def test_it():
            variables, files, sockets = it.look()
            assert (variables, files, sockets) == ([], ["it.py"], 1)
    """
    candidate = """
        import os, stat
        def look():
            numbers = [int(name) for name in os.listdir("/proc/self/fd")]
            kinds = []
            for number in numbers:
                try: kinds.append(os.fstat(number).st_mode)
                except OSError: pass
            return (
                [name for name in os.environ if "REPORT" in name],
                sorted(name for name in os.listdir(".") if name != "__pycache__"),
                sum(map(stat.S_ISSOCK, kinds)),
            )
    """
    all_pass(suite, candidate)


def test_suite_that_is_changed_is_no_verdict() -> None:
    """Where no sandbox hides the suite, a candidate that writes into it is found out."""
    candidate = """
        import glob, os
        for name in glob.glob(os.path.join(os.getcwd(), "..", "suite", "*.py")):
            open(name, "a").write("#")
        def f(): return 1
    """
    with pytest.raises(EvaluationError, match=r"the suite's own files were changed while it ran: test_it\.py"):
        judged(separate("import it\ndef test_it(): assert it.f() == 1"), candidate)


# Misuse


def test_candidate_that_holds_a_file_of_the_suite_is_refused() -> None:
    """No path of the suite can be the candidate's, though it would not lie there."""
    with pytest.raises(CandidateRefusedError, match=r"has the same path as 'test_it.py'"):
        judged(separate("def test_it(): pass", candidate_file=""), {"it.py": "", "test_it.py": ""})


@pytest.mark.parametrize(
    ("suite", "options", "message"),
    [
        ({"empty.py": ""}, {}, "reported no case"),
        ({"conftest.py": "raise ValueError('broken')"}, {}, "reported no"),
        ("import it\ndef test_it(): pass", {"arguments": ("none.py",)}, "reported no case"),
        ("def test_it(): pass", {"candidate_file": ""}, "name its file with candidate_file"),
    ],
)
def test_suite_at_fault_is_no_verdict(suite: Any, options: dict[str, Any], message: str) -> None:
    """A suite without a case, broken or misused, blames no candidate."""
    with pytest.raises(EvaluationError, match=message):
        judged(separate(suite, **options), "x = 1")


def test_conftest_that_imports_a_broken_candidate() -> None:
    """Where the candidate is what breaks the suite, the candidate fails."""
    verdict = judged(
        separate({"conftest.py": "import it", "test_it.py": "def test_it(): pass"}), "raise ValueError('no')"
    )
    assert statuses(verdict) == {"(candidate)": "error"}


def test_unknown_framework() -> None:
    """Only two frameworks are known."""
    with pytest.raises(ValueError, match=r"'nose' is no framework: choose pytest or unittest"):
        SeparateEvaluator(suite={}, framework="nose")  # type: ignore[arg-type]
