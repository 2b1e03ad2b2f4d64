"""What the other side has to know of a class to make a stand-in: name, bases and the special methods that are asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from orchestrator.runner.values import BUILTINS, MUTABLE, builtin_base

__all__ = ["SPECIAL", "VALUES", "described", "is_standard_error"]

VALUES: Final[tuple[type, ...]] = (int, float, complex, str, bytes, tuple, frozenset)
"""Immutable built-in types: an instance of a class that derives from one crosses with its value."""

OPERATORS: Final = (
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "divmod", "lshift", "rshift", "and", "or",
    "xor",
)  # fmt: skip
COMPARISONS: Final = ("__lt__", "__le__", "__gt__", "__ge__")
SPECIAL: Final = (
    "__len__", "__iter__", "__next__", "__reversed__", "__contains__", "__getitem__", "__setitem__", "__delitem__",
    "__call__", "__enter__", "__exit__", "__await__", "__aiter__", "__anext__", "__aenter__", "__aexit__",
    "__bool__", "__hash__", "__eq__", "__repr__", "__str__", "__format__", "__bytes__", "__int__", "__float__",
    "__complex__", "__index__", "__round__", "__trunc__", "__floor__", "__ceil__", "__neg__", "__pos__", "__abs__",
    "__invert__", "__fspath__", "__length_hint__", "__init__", *COMPARISONS,
    *(f"__{prefix}{name}__" for name in OPERATORS for prefix in ("", "r", "i") if prefix + name != "idivmod"),
)  # fmt: skip
"""Special methods that are asked of the original."""

UNKNOWN_MODULES: Final = frozenset({"unittest", "bdb", "pdb", "doctest", "test"})
"""Modules whose exceptions would mean something to the judge."""


def described(kind: type, type_value: Callable[[type], Any]) -> dict[str, Any]:
    """The description of a class; `type_value` encodes its bases."""
    is_error = issubclass(kind, BaseException)
    value = None if is_error else value_base(kind)
    plain = value or (BaseException if is_error else object)
    return {
        "name": kind.__name__,
        "qualname": kind.__qualname__,
        "module": str(getattr(kind, "__module__", "")),
        "text": kind.__doc__ if type(kind.__doc__) is str and kind.__module__ != "builtins" else "",
        "bases": [type_value(base) for base in kind.__bases__ if base is not object],
        "value": "" if value is None else value.__name__,
        "is_error": is_error,
        "is_reduced": not is_error and issubclass(kind, MUTABLE),
        "special": [name for name in SPECIAL if is_own(kind, plain, name)],
        "is_hashable": getattr(kind, "__hash__", None) is not None,
    }


def value_base(kind: type) -> type | None:
    """The immutable built-in that a class adds to; None for built-ins themselves and all else."""
    base = builtin_base(kind)
    return base if base in VALUES and BUILTINS.get(kind.__name__) is not kind else None


def is_own(kind: type, plain: type, name: str) -> bool:
    """Whether a class has a special method that the plain built-in it derives from has not."""
    found = getattr(kind, name, None)
    return found is not None and found is not getattr(plain, name, None)


def is_standard_error(kind: type) -> bool:
    """Whether this is an exception of the standard library that both sides know as the same."""
    module = str(getattr(kind, "__module__", ""))
    return (
        issubclass(kind, BaseException)
        and module.partition(".")[0] in sys.stdlib_module_names - UNKNOWN_MODULES
        and getattr(sys.modules.get(module), kind.__qualname__, None) is kind
    )
