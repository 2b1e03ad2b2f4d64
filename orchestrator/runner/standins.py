"""Stand-ins: objects of the other process, whose classes ask for every special method of the original's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from orchestrator.runner.describing import VALUES
from orchestrator.runner.links import LINK, OWN, link_of, linked, special_of
from orchestrator.runner.specials import asked_methods, checked, error_methods
from orchestrator.runner.wire import ProtocolError

if TYPE_CHECKING:
    from orchestrator.runner.peer import Peer

__all__ = ["RemoteMethod", "StandIn", "StandInClass", "new_class", "new_instance"]


class StandInClass(type):
    """The class of a stand-in: calling it makes an object over there."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> StandInClass:
        """A class that is written down; those of stand-ins are made by `made`."""
        if namespace.get("__module__") == __name__:
            return super().__new__(cls, name, bases, namespace)
        raise TypeError(f"{bases[0].__name__} belongs to another process: no class here can derive from it")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """An object of the class."""
        __tracebackhide__ = True
        peer, identity = linked(cls)
        made = initialiser(str(cls.__module__))(peer, identity, args, kwargs)
        link = link_of(made)
        if link is not None and link[1] not in peer.shown:
            peer.made.add(link[1])
        return made

    def __getattr__(cls, name: str) -> Any:
        """An attribute of the class."""
        __tracebackhide__ = True
        link = link_of(cls)
        if link is None or name in OWN:
            raise AttributeError(name)
        return link[0].ask("get", link[1], name)

    def __setattr__(cls, name: str, value: Any) -> None:
        peer, identity = linked(cls)
        peer.ask("set", identity, name, args=(value,))

    def __delattr__(cls, name: str) -> None:
        peer, identity = linked(cls)
        peer.ask("del", identity, name)

    def __iter__(cls) -> Any:
        return special_of(cls, "__iter__")

    def __len__(cls) -> int:
        return checked("__len__", special_of(cls, "__len__"))  # type: ignore[no-any-return]

    def __getitem__(cls, key: Any) -> Any:
        return special_of(cls, "__getitem__", key)

    def __contains__(cls, key: Any) -> bool:
        return any(key is each or key == each for each in cls)

    def __bool__(cls) -> bool:
        return True


class StandIn(metaclass=StandInClass):
    """An object of the other process."""

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name in OWN:
            raise AttributeError(name)
        peer, identity = linked(self)
        return peer.ask("get", identity, name)

    def __setattr__(self, name: str, value: Any) -> None:
        __tracebackhide__ = True
        peer, identity = linked(self)
        peer.ask("set", identity, name, args=(value,))

    def __delattr__(self, name: str) -> None:
        __tracebackhide__ = True
        peer, identity = linked(self)
        peer.ask("del", identity, name)

    def __dir__(self) -> list[str]:
        peer, identity = linked(self)
        names: list[str] = peer.ask("dir", identity)
        return names

    @property
    def __dict__(self) -> Any:  # type: ignore[override]  # read-only, as what it shows lies elsewhere
        """A copy of what the original has."""
        peer, identity = linked(self)
        return peer.ask("vars", identity)

    def __copy__(self) -> Any:
        peer, identity = linked(self)
        return peer.ask("copy", identity)

    def __deepcopy__(self, memo: Any) -> Any:
        peer, identity = linked(self)
        return peer.ask("deepcopy", identity)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__} belongs to another process: it cannot be pickled")


class RemoteMethod:
    """A method of an object over there, asked for by name when it is called."""

    def __init__(self, peer: Peer, identity: int, name: str) -> None:
        self._peer, self._identity, self.__name__ = peer, identity, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the method gives over there."""
        __tracebackhide__ = True
        return self._peer.ask("call", self._identity, self.__name__, args=args, kwargs=kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "__self__":
            return self._peer.imported.get(self._identity)
        return getattr(self._peer.ask("method", self._identity, self.__name__), name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteMethod) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> tuple[int, int, str]:
        """What tells it from others."""
        return id(self._peer), self._identity, self.__name__


def new_class(peer: Peer, identity: int, description: dict[str, Any], bases: tuple[type, ...]) -> type:
    """The class that stands for one over there."""
    namespace: dict[str, Any] = {
        LINK: (peer, identity),
        "__doc__": description["text"] or None,
        "__qualname__": description["qualname"],
        "__module__": description["module"],
    }
    if description["is_error"]:
        return made(description["name"], bases or (Exception,), namespace | error_methods())
    value = next((kind for kind in VALUES if kind.__name__ == description["value"]), None)
    namespace |= asked_methods(value, description, is_trusting=peer.trusts)
    usable = [base for base in bases if issubclass(base, StandIn)]
    if value is not None and not any(issubclass(base, value) for base in usable):
        usable.append(value)
    if not any(issubclass(base, StandIn) for base in usable):
        usable.insert(0, StandIn)
    return made(description["name"], tuple(dict.fromkeys(usable)), namespace)


def made(name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
    """A class, with fewer bases where Python cannot bring these together."""
    try:
        return type.__new__(StandInClass, name, bases, namespace)
    except TypeError:
        return type.__new__(StandInClass, name, bases[-1:], namespace)


def new_instance(kind: type, link: tuple[Peer, int], value: Any) -> Any:
    """What stands for one object."""
    base = next((each for each in VALUES if issubclass(kind, each)), None)
    if (base is None) != (value is None) or (base is not None and type(value) is not base):
        raise ProtocolError(f"an instance of {kind.__name__} whose value is {type(value).__name__}")
    made = object.__new__(kind) if base is None else base.__new__(kind, value)
    object.__setattr__(made, LINK, link)
    return made


def construct(peer: Peer, identity: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make an object over there."""
    __tracebackhide__ = True
    return peer.ask("construct", identity, args=args, kwargs=kwargs)


@cache
def initialiser(module: str) -> Callable[..., Any]:
    """`construct`, whose frame is called like the one it stands for: suites that are called back look at the stack."""
    code = construct.__code__.replace(co_name="__init__", co_filename=f"{module.replace('.', '/')}.py")
    return FunctionType(code, globals())
