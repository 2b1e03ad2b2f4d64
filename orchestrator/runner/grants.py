"""What the candidate may do with objects of the suite that it was given: use them, and not take the judge apart.

An attribute whose name begins with an underscore leads to globals, frames and classes, and from there to all of
the judge; the objects of test frameworks decide about the verdict. Both stay closed, whatever the suite hands out.
"""

from __future__ import annotations

import builtins
import sys
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any, Final

from orchestrator.runner.describing import SPECIAL
from orchestrator.runner.values import BUILTINS

__all__ = ["RefusedError", "check"]

OPAQUE: Final = (CodeType, FrameType, ModuleType, TracebackType)
UNSAFE: Final = tuple(each for name, each in vars(builtins).items() if callable(each) and name not in BUILTINS)
"""Functions such as eval, open and getattr: they would work in the judge's process."""
ACTS: Final = frozenset({"get", "call", "construct", "method", "dir", "copy", "deepcopy", "reduce", "await"})
FRAMEWORKS: Final = ("unittest", "pytest", "_pytest", "pluggy", "_hypothesis", "hypothesis", "orchestrator")
READABLE: Final = frozenset({"__name__", "__qualname__", "__doc__", *SPECIAL})
FRAME_NAMES: Final = ("gi_", "cr_", "ag_", "tb_", "f_", "co_", "func_")
MOCK_NAMES: Final = ("assert_", "configure_mock", "reset_mock", "attach_mock", "mock_add_spec")


class RefusedError(Exception):
    """The candidate may not do this to an object of the suite."""


def check(value: Any, act: str, name: str, *, is_given: bool) -> None:
    """Raise RefusedError for an act on an object of the suite that could reach the judge or the verdict.

    `is_given`: the suite handed the object out itself, it did not merely come along as the class of another.
    """
    if is_closed(value) or not (is_given or is_of_suite(value)):
        raise RefusedError(f"{type(value).__name__} of the suite is closed to the candidate")
    if act in ("set", "del"):
        if not is_writable(value, name):
            raise RefusedError(f"{name!r:.80} of an object of the suite cannot be changed by the candidate")
    elif act == "special":
        if name not in SPECIAL or (name == "__init__" and is_mock(value)):
            raise RefusedError(f"{name!r:.80} is no operation")
    elif act not in ACTS or (name and not is_readable(value, name)):
        raise RefusedError(f"{name!r:.80} of an object of the suite is closed to the candidate")


def is_closed(value: Any) -> bool:
    """Whether nothing at all can be done with it: what runs or holds code, and what frameworks are made of."""
    if isinstance(value, OPAQUE) or any(value is each for each in UNSAFE):
        return True
    return is_of_framework(value) and not is_mock(value)


def is_of_suite(value: Any) -> bool:
    """Whether this is no class, or one that the standard library does not have."""
    if not isinstance(value, type):
        return True
    return str(getattr(value, "__module__", "")).partition(".")[0] not in sys.stdlib_module_names


def is_of_framework(value: Any) -> bool:
    """Whether a test framework made its class; bound methods and plain functions are what the suite chose to give."""
    if isinstance(value, FunctionType | MethodType):
        return False
    classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
    return any(str(getattr(each, "__module__", "")).partition(".")[0] in FRAMEWORKS for each in classes)


def is_mock(value: Any) -> bool:
    """Whether this is a mock, which suites hand to candidates to see what they do with it."""
    mock = sys.modules.get("unittest.mock")
    return mock is not None and isinstance(value, (mock.NonCallableMock, type(mock.sentinel.x), type(mock.call)))


def is_readable(value: Any, name: str) -> bool:
    """Whether an attribute can be had, or a method be called."""
    if name in READABLE:
        return True
    if name.startswith(("_", *FRAME_NAMES)) or (isinstance(value, type) and name in ("mro", "register")):
        return False
    return not (is_mock(value) and name.startswith(MOCK_NAMES))


def is_writable(value: Any, name: str) -> bool:
    """Whether an attribute can be set: one that holds data, of a plain object of the suite."""
    if name.startswith("_") or is_mock(value) or isinstance(value, type | FunctionType | MethodType | BaseException):
        return False
    return not callable(getattr(type(value), name, None))
