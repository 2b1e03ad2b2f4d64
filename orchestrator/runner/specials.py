"""The special methods of stand-ins: what is asked of the original, and what is checked or decided here.

The judge compares plain values itself. A stand-in never equals one, unless its class derives from an immutable
built-in: then it carries its value, which is what counts. It has no order beside one either, and what an operator
gives that was shown a plain value must be a stand-in without a value, which never becomes a number again: so no
object can make up a difference that meets a tolerance. Objects that the suite itself made of a class are left to
work as they like with plain values, until one of them comes back as an answer. A failure passes every context
manager of the candidate, whatever that says of it.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Generator
from typing import Any, Final

from orchestrator.runner.describing import COMPARISONS, SPECIAL, VALUES
from orchestrator.runner.links import OWN, TEXT, link_of, linked, special_of

__all__ = ["asked_methods", "checked", "error_methods"]


def asked_methods(value: type | None, description: dict[str, Any], *, is_trusting: bool) -> dict[str, Any]:
    """The special methods of the stand-ins of one class; `value` is the immutable built-in it derives from."""
    special = frozenset(description["special"])
    return {
        **{name: asking(name, is_plain=is_trusting) for name in special & PLAIN},
        **equality(value, special, description=description, is_trusting=is_trusting),
        **ordering(value, special, is_trusting=is_trusting),
        **awaiting(special),
        **({} if is_trusting or "__contains__" not in special else {"__contains__": containing(value)}),
    }


def error_methods() -> dict[str, Any]:
    """The special methods of exceptions."""
    return {"__str__": error_text, "__getattr__": error_attribute}


def asking(name: str, *, is_plain: bool) -> Callable[..., Any]:
    """A special method that asks the original."""

    def ask(self: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        peer, identity = linked(self)
        is_free = identity in peer.made and not any(link_of(each) and is_told(each) for each in args)
        answer = peer.ask("special", identity, name, args=args, kwargs=kwargs)
        if is_plain:
            return answer
        if name in LEAVING and args and is_failure(args[0]):
            return False if name == "__exit__" else unsuppressed(answer)
        if name in NUMERIC and (is_told(self) or (name in ARITHMETIC and any(is_told(each) for each in args))):
            return answer if is_known(name, answer, self, args) else still_remote(name, answer, is_free=is_free)
        return checked(name, answer)

    ask.__name__ = name
    return ask


def is_failure(kind: Any) -> bool:
    """Whether an exception says that a case failed, or that the judge or its framework gives up."""
    if not isinstance(kind, type) or issubclass(kind, Exception):
        return isinstance(kind, type) and issubclass(kind, AssertionError)
    return not issubclass(kind, ENDINGS)


async def unsuppressed(answer: Any) -> bool:
    """What `__aexit__` gives where it may do what it likes, but not hide the failure that it was shown."""
    await answer
    return False


def is_told(operand: object) -> bool:
    """Whether the candidate is shown a plain value by this operand, or the operand comes of one that it was shown."""
    link = link_of(operand)
    return link is None or link[1] in link[0].shown


def is_known(name: str, answer: Any, self: Any, args: tuple[Any, ...]) -> bool:
    """Whether an operator gave just what the built-in gives that the object derives from."""
    base = next((kind for kind in VALUES if isinstance(self, kind)), None)
    operator = getattr(base, name, None)
    if operator is None:
        return False
    try:
        found = operator(self, *args)
        equal: Callable[..., Any] = type(found).__eq__
        return type(found) in VALUES and isinstance(answer, type(found)) and equal(found, answer) is True
    except Exception:  # noqa: BLE001 -- what the built-in cannot do is not known
        return False


def still_remote(name: str, answer: Any, *, is_free: bool) -> Any:
    """What an operator gave that was shown a plain value, or that has an operand which was."""
    link = link_of(answer)
    if answer is NotImplemented or (link is not None and is_free):
        return answer
    if link is not None and not isinstance(answer, VALUES):
        link[0].shown.add(link[1])
        return answer
    raise TypeError(
        f"{name} of an object of the candidate was shown a plain value and gave {type(answer).__name__}: "
        "compare values, not objects that answer for themselves"
    )


def checked(name: str, answer: Any) -> Any:
    """The answer, when it has the type that the method promises."""
    kinds = ANSWERS.get(name)
    if kinds is not None and type(answer) not in kinds:
        raise TypeError(f"{name} of an object of the candidate gave {type(answer).__name__}, not {kinds[0].__name__}")
    if name == "__len__" and answer < 0:
        raise ValueError("__len__ of an object of the candidate gave a negative number")
    return answer


def equality(
    value: type | None, special: frozenset[str], *, description: dict[str, Any], is_trusting: bool
) -> dict[str, Any]:
    """`==`, `!=` and `hash`."""
    asks_equality, asks_hash = "__eq__" in special, "__hash__" in special
    equal: Callable[..., Any] = getattr(value, "__eq__", object.__eq__)
    hash_of: Callable[..., Any] = getattr(value, "__hash__", object.__hash__)

    def is_equal(self: Any, other: object) -> Any:
        __tracebackhide__ = True
        if asks_equality and (is_trusting or link_of(other) is not None):
            return special_of(self, "__eq__", other)
        if value is not None:
            return equal(self, other)
        if description["is_reduced"]:
            return linked(self)[0].ask("reduce", linked(self)[1]) == other
        return True if self is other else NotImplemented

    def is_unequal(self: Any, other: object) -> Any:
        __tracebackhide__ = True
        if is_trusting or link_of(other) is not None:
            return special_of(self, "__ne__", other)
        found = is_equal(self, other)
        return found if found is NotImplemented else not found

    def hashed(self: Any) -> int:
        if value is not None:
            return int(hash_of(self))
        return int(checked("__hash__", special_of(self, "__hash__"))) if asks_hash else hash(linked(self)[1])

    return {"__eq__": is_equal, "__ne__": is_unequal, "__hash__": hashed if description["is_hashable"] else None}


def ordering(value: type | None, special: frozenset[str], *, is_trusting: bool) -> dict[str, Any]:
    """`<` and the like."""

    def compare(name: str) -> Callable[..., Any]:
        def is_so(self: Any, other: object) -> Any:
            __tracebackhide__ = True
            if is_trusting or link_of(other) is not None:
                return special_of(self, name, other)
            return NotImplemented if value is None else getattr(value, name)(self, other)

        return is_so

    return {name: compare(name) for name in special.intersection(COMPARISONS)}


def containing(value: type | None) -> Callable[..., bool]:
    """`in`: the original is asked where the suite itself made it, otherwise what it holds is looked at."""

    has: Callable[..., Any] = getattr(value, "__contains__", bool)

    def contains(self: Any, item: object) -> bool:
        __tracebackhide__ = True
        peer, identity = linked(self)
        if identity in peer.made or link_of(item) is not None:
            return bool(checked("__contains__", special_of(self, "__contains__", item)))
        if value is not None:
            return bool(has(self, item))
        return any(item is each or item == each for each in self)

    return contains


def awaiting(special: frozenset[str]) -> dict[str, Any]:
    """What makes it a coroutine: it runs to its end over there."""
    if "__await__" not in special:
        return {}

    def result(self: Any) -> Any:
        peer, identity = linked(self)
        return peer.ask("await", identity)

    def wait(self: Any) -> Generator[Any, None, Any]:
        return result(self)
        yield

    def send(self: Any, _value: Any) -> Any:
        raise StopIteration(result(self))

    def throw(_self: Any, error: Any, *_rest: Any) -> Any:
        raise error

    return {"__await__": wait, "send": send, "throw": throw, "close": lambda _self: None}


def error_text(error: Any) -> str:
    """What the original says of itself."""
    text = error.__dict__.get(TEXT)
    return text if type(text) is str else BaseException.__str__(error)


def error_attribute(error: Any, name: str) -> Any:
    """An attribute of the original."""
    __tracebackhide__ = True
    link = link_of(error)
    if link is None or name in OWN or name == "__notes__":
        raise AttributeError(name)
    return link[0].ask("get", link[1], name)


ARITHMETIC: Final = frozenset(
    f"__{prefix}{name}__"
    for name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "divmod", "and", "or", "xor")
    for prefix in ("", "r", "i")
)
NUMERIC: Final = ARITHMETIC | {
    f"__{name}__"
    for name in ("abs", "round", "neg", "pos", "invert", "trunc", "floor", "ceil", "int", "float", "complex", "index")
} | {"__bool__", "__len__"}  # fmt: skip
"""What makes numbers of objects, or tells whether they are nothing."""
ANSWERS: Final[dict[str, tuple[type, ...]]] = {
    "__len__": (int,), "__bool__": (bool,), "__hash__": (int,), "__contains__": (bool,), "__index__": (int,),
    "__int__": (int,), "__float__": (float,), "__complex__": (complex,), "__bytes__": (bytes,),
    "__str__": (str,), "__repr__": (str,), "__format__": (str,), "__fspath__": (str, bytes),
}  # fmt: skip
LEAVING: Final = frozenset({"__exit__", "__aexit__"})
ENDINGS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, CancelledError)
"""What is no Exception either, and says nothing of a case."""
NOT_PLAIN: Final = {"__eq__", "__hash__", "__await__", *COMPARISONS}
PLAIN: Final = frozenset(SPECIAL) - NOT_PLAIN
