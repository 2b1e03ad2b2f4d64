"""How everything that is no plain value crosses: objects as handles, classes by description, errors with their text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import MethodType, ModuleType
from typing import Any, Final

from orchestrator.runner.decoding import ValueDecoder
from orchestrator.runner.describing import described, is_standard_error, value_base
from orchestrator.runner.encoding import ValueEncoder
from orchestrator.runner.links import LINK, TEXT, link_of
from orchestrator.runner.standins import RemoteMethod, StandIn, new_class, new_instance
from orchestrator.runner.values import BUILTINS, MUTABLE, Loan, builtin_base
from orchestrator.runner.wire import ProtocolError, exactly

__all__ = ["Crossing", "reduced"]

MOST_OBJECTS: Final = 2_000_000
"""How many objects may cross in one evaluation."""
DESCRIPTION: Final = {
    "name": str, "qualname": str, "module": str, "text": str, "bases": list, "value": str,
    "is_error": bool, "is_reduced": bool, "special": list, "is_hashable": bool,
}  # fmt: skip


class Crossing:
    """The objects that crossed, either way."""

    def __init__(self, *, trusts: bool) -> None:
        self.trusts = trusts
        """Whether the other side may answer for plain values."""
        self.exported: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.told: set[int] = set()
        self.telling: list[int] = []
        """Classes whose description is in the message that is being written."""
        self.imported: dict[int, Any] = {}
        self.given: set[type] = set()
        """Classes of this side that were handed out as such, not merely as the class of something."""
        self.made: set[int] = set()
        """Numbers of objects of the other side that this side's code made itself, and that never came as an answer."""
        self.shown: set[int] = set()
        """Numbers of objects of the other side that an operator gave which was shown a plain value."""

    def encoder(self, loan: Loan, *, lends: bool = False) -> ValueEncoder:
        """Encodes for one message."""
        return ValueEncoder(lambda value, depth: self.encoded(value, depth, loan), loan, lends=lends)

    def decoder(self, loan: Loan, *, borrows: bool) -> ValueDecoder:
        """Decodes one message."""
        return ValueDecoder(lambda tag, rest, depth: self.decoded(tag, rest, depth, loan), loan, borrows=borrows)

    def untell(self) -> None:
        """The message that was being written is not sent."""
        self.told.difference_update(self.telling)
        self.telling.clear()

    # Out

    def encoded(self, value: Any, depth: int, loan: Loan) -> Any:  # noqa: PLR0911 -- one for each way to cross
        """An object as a handle: the other side's own, or one of this side's."""
        link = link_of(value)
        if link is not None and link[0] is self:
            return ["o", link[1]]
        if type(value) is RemoteMethod and value._peer is self:  # noqa: SLF001 -- the one who made it
            return ["om", value._identity, value.__name__]  # noqa: SLF001
        if isinstance(value, type):
            self.given.add(value)
            return self.class_value(value)
        encoder = self.encoder(loan)
        if isinstance(value, BaseException):
            return self.error(value, encoder)
        if type(value) is MethodType and id(value.__self__) in self.numbers and is_found(value):
            return ["m", self.numbers[id(value.__self__)], value.__name__]
        if id(value) not in self.numbers and isinstance(value, MUTABLE):
            return encoder.encode(reduced(value), depth)
        return self.handle(value, encoder)

    def handle(self, value: Any, encoder: ValueEncoder) -> list[Any]:
        """An object of this side."""
        kind = type(value)
        base = value_base(kind)
        carried = None if base is None else encoder.encode(base_value(value, base))
        return ["h", self.export(value), self.class_handle(kind), carried]

    def kept(self, value: Any, encoder: ValueEncoder) -> Any:
        """What a class gave that the other side called: an object, whatever it derives from."""
        is_derived = type(value) not in MUTABLE and isinstance(value, MUTABLE)
        return self.handle(value, encoder) if is_derived else encoder.encode(value)

    def export(self, value: Any) -> int:
        """The number of an object of this side."""
        number = self.numbers.get(id(value))
        if number is None:
            number = len(self.exported) + 1
            if number > MOST_OBJECTS:
                raise ValueError(f"more than {MOST_OBJECTS} objects crossed between the processes")
            self.exported[number] = value
            self.numbers[id(value)] = number
        return number

    def own(self, number: int) -> Any:
        """An object of this side, by its number."""
        if number not in self.exported:
            raise ProtocolError(f"the unknown object {number}")
        return self.exported[number]

    def own_method(self, number: int, name: str) -> Any:
        """A method of an object of this side; ProtocolError where the other side has no right to it."""
        target = self.own(number)
        try:
            self.permit(target, "method", name)
            return getattr(target, name)
        except Exception as error:  # noqa: BLE001 -- a property of the suite may raise anything
            raise ProtocolError(f"a method that is not there to be had: {error}") from None

    def permit(self, target: Any, do: str, name: str) -> None:
        """Raise what refuses an act on an object of this side."""

    def class_value(self, kind: type) -> list[Any]:
        """A class, by name where both sides have it."""
        link = link_of(kind)
        if link is not None and link[0] is self:
            return ["o", link[1]]
        if BUILTINS.get(kind.__name__) is kind:
            return ["x", kind.__name__]
        if is_standard_error(kind):
            return ["y", kind.__module__, kind.__qualname__, builtin_error(kind).__name__]
        return self.class_handle(kind)

    def class_handle(self, kind: type) -> list[Any]:
        """A class of this side; the first time with its description."""
        number = self.export(kind)
        if number in self.told:
            return ["k", number, None]
        self.told.add(number)
        self.telling.append(number)
        return ["k", number, described(kind, self.class_value)]

    def error(self, error: BaseException, encoder: ValueEncoder) -> list[Any]:
        """An exception: its class, arguments and text; by number where it is the other side's own."""
        link = link_of(error)
        if link is not None and link[0] is self:
            return ["o", link[1]]
        try:
            text = str(error)
        except Exception:  # noqa: BLE001 -- its own code
            text = ""
        kind = type(error)
        known = is_standard_error(kind) and kind.__module__ != "builtins"
        attributes = {key: each for key, each in vars(error).items() if known and not key.startswith("_")}
        args = [encoder.encode(each) for each in error.args]
        return ["e", self.export(error), self.class_value(kind), args, text, encoder.encode(attributes)]

    # In

    def decoded(self, tag: str, rest: list[Any], depth: int, loan: Loan) -> Any:  # noqa: PLR0911 -- as above
        """What a handle stands for."""
        decode = HANDLES.get(tag)
        if decode is None:
            raise ProtocolError(f"a value of the unknown kind {tag!r:.20}")
        name, count = decode
        if len(rest) != count:
            raise ProtocolError(f"a value of kind {tag!r} with {len(rest)} parts")
        decoder = self.decoder(loan, borrows=False)
        match name:
            case "own":
                return self.own(exactly(int, rest[0]))
            case "own_method":
                return self.own_method(exactly(int, rest[0]), exactly(str, rest[1]))
            case "method":
                return RemoteMethod(self, exactly(int, rest[0]), exactly(str, rest[1]))  # type: ignore[arg-type]
            case "class":
                return self.found_class(exactly(int, rest[0]), rest[1], decoder)
            case "standard_error":
                return standard_error(*(exactly(str, each) for each in rest))
            case "object":
                return self.found_object(rest, decoder, depth)
            case _:
                return self.found_error(rest, decoder, depth)

    def found_class(self, number: int, description: Any, decoder: ValueDecoder) -> type:
        """The class that stands for one over there."""
        known = self.imported.get(number)
        if known is not None:
            if not isinstance(known, type):
                raise ProtocolError("an object that became a class")
            return known
        checked = checked_description(description)
        bases = tuple(decoder.decode(each) for each in checked["bases"])
        if not all(isinstance(each, type) for each in bases):
            raise ProtocolError("a class whose bases are no classes")
        if checked["is_error"]:
            bases = tuple(each for each in bases if issubclass(each, BaseException))
        made = new_class(self, number, checked, bases)  # type: ignore[arg-type]
        self.imported[number] = made
        return made

    def found_object(self, rest: list[Any], decoder: ValueDecoder, depth: int) -> Any:
        """What stands for an object over there, the same each time."""
        number = exactly(int, rest[0])
        kind, value = decoder.decode(rest[1], depth), decoder.decode(rest[2], depth)
        if not isinstance(kind, type) or not issubclass(kind, StandIn):
            raise ProtocolError("an object whose class is none")
        self.made.discard(number)
        if number in self.imported:
            known = self.imported[number]
            if type(known) is not kind and not isinstance(known, ModuleType):
                raise ProtocolError("an object that became one of another class")
            return known
        made = self.imported[number] = new_instance(kind, (self, number), value)  # type: ignore[arg-type]
        return made

    def found_error(self, rest: list[Any], decoder: ValueDecoder, depth: int) -> BaseException:
        """An exception like the one over there, the same each time."""
        number = exactly(int, rest[0])
        kind = decoder.decode(rest[1], depth)
        args = [decoder.decode(each, depth) for each in exactly(list, rest[2])]
        text, attributes = exactly(str, rest[3]), decoder.decode(rest[4], depth)
        if number in self.imported:
            known = self.imported[number]
        elif isinstance(kind, type) and issubclass(kind, BaseException) and type(attributes) is dict:
            known = self.imported[number] = new_error(kind, args, attributes)
            known.__dict__.update({LINK: (self, number), TEXT: text})
        else:
            known = None
        if not isinstance(known, BaseException):
            raise ProtocolError("an error that is none")
        return known


HANDLES: Final = {
    "o": ("own", 1), "om": ("own_method", 2), "m": ("method", 2), "k": ("class", 2),
    "y": ("standard_error", 3), "h": ("object", 3), "e": ("error", 5),
}  # fmt: skip


def checked_description(description: Any) -> dict[str, Any]:
    """The description of a class, when it is one."""
    table: dict[str, Any] = exactly(dict, description)
    if table.keys() != DESCRIPTION.keys():
        raise ProtocolError("a class whose description lacks something, or has too much")
    for name, kind in DESCRIPTION.items():
        exactly(kind, table[name])
    for name in table["special"]:
        exactly(str, name)
    return table


def is_found(method: MethodType) -> bool:
    """Whether a bound method is what its object has under its name."""
    own = vars(method.__self__) if hasattr(method.__self__, "__dict__") else {}
    return method.__name__ not in own and getattr(type(method.__self__), method.__name__, None) is method.__func__


def reduced(value: Any) -> Any:
    """An instance of a class derived from a mutable built-in, as that built-in, by the built-in's own methods."""
    base = builtin_base(type(value))
    assert base is not None
    made = base()
    if base is dict:
        for key in dict.__iter__(value):
            dict.__setitem__(made, key, dict.__getitem__(value, key))
    elif base is list:
        list.extend(made, list.__iter__(value))
    elif base is set:
        set.update(made, set.__iter__(value))
    else:
        bytearray.extend(made, bytearray.__getitem__(value, slice(None)))
    return made


def base_value(value: Any, base: type) -> Any:
    """The plain value of an instance of a class derived from an immutable built-in, by the built-in's own methods."""
    return PLAIN[base](value)


PLAIN: Final[dict[type, Callable[[Any], Any]]] = {
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: lambda value: str.__getitem__(value, slice(None)),
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}


def builtin_error(kind: type) -> type:
    """The nearest built-in that an exception derives from."""
    return next((each for each in kind.__mro__ if BUILTINS.get(each.__name__) is each), BaseException)


def standard_error(module: str, name: str, base: str) -> type:
    """An exception of the standard library; where it is not loaded here, one like it."""
    found = getattr(sys.modules.get(module), name, None)
    if isinstance(found, type) and is_standard_error(found):
        return found
    parent = BUILTINS.get(base)
    if not (isinstance(parent, type) and issubclass(parent, BaseException)):
        raise ProtocolError(f"an exception derived from {base!r:.40}")
    made: type = UNLOADED.setdefault((module, name), type(name, (parent,), {"__module__": module}))
    return made


UNLOADED: Final[dict[tuple[str, str], type]] = {}


def new_error(kind: type[BaseException], args: list[Any], attributes: dict[str, Any]) -> BaseException:
    """An exception with these arguments, made without any code of the candidate."""
    made: BaseException
    try:
        made = kind.__new__(kind, *args)
        BaseException.__init__(made, *args)
        if link_of(kind) is None:
            kind.__init__(made, *args)
    except Exception:  # noqa: BLE001 -- a class that takes other arguments than it keeps
        made = BaseException.__new__(kind, *args)
    made.args = tuple(args)
    made.__dict__.update({key: each for key, each in attributes.items() if type(key) is str and key.isidentifier()})
    return made
