"""`[generator]`: who writes the candidates, and what holds it in."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import attrs

from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.quantities import parse_duration
from orchestrator.sections.checking import names_a_program, names_a_variable, read_by, stray_keys, was_set

__all__ = ["KINDS", "GeneratorSection"]

ANY_KIND: Final = ("parameters", "max_prompt_characters", "directory")
NAMED: Final = ("name", "time", "output_limit")
HELD: Final = ("environment", "network", "readable", "sandbox")
KINDS: Final = MappingProxyType(
    {
        "command": (*ANY_KIND, *NAMED, *HELD, "command", "input", "output"),
        "function": (*ANY_KIND, *NAMED, *HELD, "function", "path"),
        "entry_point": (*ANY_KIND, "entry_point"),
        "model": (
            *ANY_KIND, *NAMED, "model", "base_url", "api_key_variable", "stream", "extraction", "prices", "system",
            "extra_body", "max_tokens_name", "use_proxies",
        ),
    }
)  # fmt: skip
"""The keys that each kind of generator takes; the kind is the key that names it."""


@attrs.frozen(kw_only=True)
class GeneratorSection:
    """`[generator]`: a program, a function in a child process, an entry point, or a model behind a server."""

    command: str | tuple[str, ...] = attrs.field(default=(), validator=names_a_program)
    """Program and arguments, as one text or a list; no shell ever runs."""
    entry_point: str = ""
    """Name under which an installed distribution offers a generator."""
    function: str = ""
    """`module:function`, called in a child process of its own."""
    model: str = ""
    """Name of a model, as its OpenAI-compatible server knows it."""
    name: str = ""
    input: Literal["text", "json"] = "text"
    output: Literal["text", "json", "files"] = "text"
    environment: tuple[str, ...] = ()
    """Names of variables to pass on beside the harmless ones."""
    network: Literal["host", "none"] = "host"
    """Whether a program or function may use the network."""
    readable: tuple[Path, ...] = ()
    """What a program or function may read beside the system and its own directory, when a sandbox holds it."""
    sandbox: Literal["auto", "bubblewrap", "container", "containment"] | None = None
    """What holds the program or function in; by default what `[sandbox]` says for both."""
    path: tuple[Path, ...] = ()
    """Directories in which the function's module is looked for; by default `directory`."""
    base_url: str = ""
    """Of the model's server; by default the API's own."""
    api_key_variable: str = attrs.field(default="OPENAI_API_KEY", validator=names_a_variable)
    """Name of the variable that holds the key."""
    stream: bool = True
    extraction: Literal["none", "fenced", "files"] | None = None
    """What of a model's answer is the candidate: all of it, its one fenced block, which is the default, or the
    blocks that name a file."""
    prices: Path | None = None
    """A dated table of prices, without which money is not counted."""
    system: str = ""
    """Text that goes before the prompt as the system's message."""
    extra_body: dict[str, Any] = attrs.Factory(dict[str, Any])
    """What the server takes beside the usual, as it is sent."""
    max_tokens_name: Literal["", "max_tokens", "max_completion_tokens"] = ""
    """What the server calls the limit of output tokens; by default what is usual there."""
    use_proxies: bool = False
    """Whether the environment's proxies are used to reach the server."""
    parameters: dict[str, Any] = attrs.Factory(dict[str, Any])
    time: str | float | None = attrs.field(default=None, validator=read_by(parse_duration))
    """Longest time of one call."""
    max_prompt_characters: int | None = None
    output_limit: int = 1_000_000
    """Largest answer, bytes."""
    directory: Path | None = None
    """Where the program or function runs; by default the directory of the file."""

    def __attrs_post_init__(self) -> None:
        kinds = [kind for kind in KINDS if was_set(self, kind)]
        if len(kinds) > 1:
            listed = " and ".join(spelled(kind) for kind in kinds)
            fault = f"{listed} at once: a generator is one of {', '.join(map(spelled, KINDS))}, so keep one of them"
            raise DocumentError("[generator]", (Fault("$", fault),))
        if kinds:
            faults = stray_keys(self, KINDS[kinds[0]], f"a generator named by {spelled(kinds[0])}")
            if faults:
                raise DocumentError("[generator]", tuple(faults))

    @property
    def seconds(self) -> float | None:
        """Longest time of one call, seconds; None for no limit of its own."""
        return None if self.time is None else parse_duration(self.time)

    @property
    def kind(self) -> str:
        """The key that names the generator: command, function, entry_point or model; empty when none does."""
        return next((kind for kind in KINDS if was_set(self, kind)), "")


def spelled(key: str) -> str:
    """A key as files write it."""
    return key.replace("_", "-")
