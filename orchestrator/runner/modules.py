"""The candidate's modules as the suite imports them: every name in them is asked of the candidate's process."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from orchestrator.runner.links import LINK, link_of, linked

if TYPE_CHECKING:
    from orchestrator.runner.judge import JudgePeer

__all__ = ["install"]

LOCAL: Final = frozenset(
    {"__spec__", "__loader__", "__package__", "__path__", "__name__", "__file__", "__cached__", "__class__", LINK}
)


def install(peer: JudgePeer, named: Sequence[str], others: Sequence[str]) -> None:
    """Have imports of these modules end at the candidate; `others` only where nothing else has the name."""
    sys.meta_path.insert(0, Finder(peer, frozenset(named)))
    sys.meta_path.append(Finder(peer, frozenset(others)))


class Finder(MetaPathFinder):
    """Finds the candidate's modules and what lies below them."""

    def __init__(self, peer: JudgePeer, names: frozenset[str]) -> None:
        self.peer = peer
        self.names = names

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002
        """The spec of a module of the candidate."""
        if name.partition(".")[0] not in self.names:
            return None
        return ModuleSpec(name, ModuleLoader(self.peer), origin=f"{name.replace('.', '/')}.py")


class ModuleLoader(Loader):
    """Has the candidate's process import a module."""

    def __init__(self, peer: JudgePeer) -> None:
        self.peer = peer

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The stand-in; raises what the module raised, and ImportError for what would end the judge."""
        __tracebackhide__ = True
        found, is_package = self.imported(spec.name)
        link = link_of(found)
        if link is None:
            raise ImportError(f"the candidate has put {type(found).__name__} in the place of its module {spec.name}")
        if isinstance(found, ModuleStandIn):
            return found
        made = ModuleStandIn(spec.name)
        object.__setattr__(made, LINK, link)
        if is_package is True:
            made.__path__ = []
            spec.submodule_search_locations = []
        self.peer.imported[link[1]] = made
        return made

    def imported(self, name: str) -> tuple[Any, Any]:
        """The module as the candidate's process has it, and whether it is a package."""
        __tracebackhide__ = True
        try:
            found, is_package = self.peer.ask("import", name=name)
        except BaseException as error:
            self.peer.imports.append(f"importing {name} raised {type(error).__name__}: {error}")
            if isinstance(error, Exception) or self.peer.faults:
                raise
            raise ImportError(self.peer.imports[-1]) from None
        return found, is_package

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


class ModuleStandIn(ModuleType):
    """A module of the candidate."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]  # read-only, as what it shows lies elsewhere
        """What the module holds."""
        return Names(self)

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name in LOCAL:
            raise AttributeError(name)
        peer, identity = linked(self)
        return peer.ask("get", identity, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in LOCAL or (isinstance(value, ModuleStandIn) and f"{self.__name__}.{name}" == value.__name__):
            object.__setattr__(self, name, value)
            return
        peer, identity = linked(self)
        peer.ask("set", identity, name, args=(value,))

    def __delattr__(self, name: str) -> None:
        peer, identity = linked(self)
        peer.ask("del", identity, name)

    def __dir__(self) -> list[str]:
        peer, identity = linked(self)
        names: list[str] = peer.ask("dir", identity)
        return names


class Names(Mapping[str, Any]):
    """What a module of the candidate holds by name."""

    def __init__(self, module: ModuleStandIn) -> None:
        self.module = module

    def __getitem__(self, name: str) -> Any:
        peer, identity = linked(self.module)
        return peer.ask("entry", identity, name)

    def __iter__(self) -> Iterator[str]:
        return iter(dir(self.module))

    def __len__(self) -> int:
        return len(dir(self.module))
