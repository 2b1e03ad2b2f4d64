"""What the ladder promises: the strongest level that works, or a refusal that helps."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from orchestrator.errors import IsolationRefusedError
from orchestrator.sandbox import outcomes
from orchestrator.sandbox.bubblewrap import Bubblewrap
from orchestrator.sandbox.containment import CONTAINMENT, Containment
from orchestrator.sandbox.ladder import best_sandbox
from orchestrator.sandbox.outcomes import keep, kept, name_of
from orchestrator.sandbox.port import EVAL, GENERATOR, Launch, Profile, Start
from orchestrator.sandbox.probes import NETWORK, probed, shortfall
from orchestrator_events.isolation import UNKNOWN, Isolation, Probe


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, as nothing that other tests found shall count."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "orchestrator"


def fake(folder: Path, name: str, script: str) -> None:
    """A program on PATH that is not what it says."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_the_best_level_that_works_is_found_by_trying(profile: Profile) -> None:
    """With bubblewrap it is strong, and says what was probed, what is limited and what nothing holds."""
    launcher = best_sandbox(profile)
    if not isinstance(launcher, Bubblewrap):
        pytest.skip(f"bubblewrap does not work here: {launcher.isolation}")
    outcomes_by_name = {probe.name: probe.outcome for probe in launcher.isolation.probes}
    reached = dict.fromkeys(NETWORK, "allowed" if profile.network else "denied")
    kept_out = ("path socket", "outside write", "secret file", "secret variable", "host signal", "survival")
    assert outcomes_by_name | {"forks": ""} == {**reached, **dict.fromkeys(kept_out, "denied"), "forks": ""}
    assert launcher.isolation.label.startswith("strong (bubblewrap ")
    assert ("network" in launcher.isolation.not_enforced) == profile.network
    assert best_sandbox(profile) is launcher


def test_without_bubblewrap_programs_are_contained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor is there everywhere, and says that it is one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    isolation = best_sandbox(EVAL).isolation
    assert (isolation.label, isolation.level) == ("basic (containment)", "basic")
    assert {"network", "processes that leave the session", "memory in all"} <= set(isolation.not_enforced)


@pytest.mark.parametrize(
    ("script", "remedy"),
    [
        ("", "there is no bwrap on PATH: install bubblewrap .apt install bubblewrap, dnf install bubblewrap"),
        ("echo bubblewrap 0.4.1", "has version 0.4.1, and 0.5.0 is needed: update bubblewrap"),
        ("exit 3", "has version unknown"),
        (
            '[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit; echo "setting up uid map: Permission denied" >&2',
            "setting up uid map: Permission denied: this system does not let .* AppArmor profile for bwrap .* sysctl",
        ),
        ('[ "$1" = --version ] && echo bubblewrap 0.9.1 && exit; exit 0', "ended with status 0: see what bwrap says"),
    ],
    ids=["absent", "old", "broken", "refused", "does nothing"],
)
def test_a_refusal_names_what_is_missing_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, remedy: str
) -> None:
    """The host can act on the message alone; what can be had without it is still had."""
    folder = tmp_path / "bin"
    folder.mkdir()
    if script:
        fake(folder, "bwrap", script)
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(IsolationRefusedError, match=f"(?s)strong is required, and only basic.*{remedy}") as caught:
        best_sandbox(EVAL, require="strong")
    assert (caught.value.required, caught.value.isolation) == ("strong", CONTAINMENT.isolation)
    with pytest.raises(IsolationRefusedError, match="bubblewrap cannot be used"):
        best_sandbox(EVAL, backend="bubblewrap")
    assert best_sandbox(EVAL, require="basic") == CONTAINMENT


def test_a_bubblewrap_that_holds_nothing_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is believed because it is configured; a user's own processes count against its limit outside."""
    script = '[ "$1" = --version ] && echo bubblewrap 0.9.0 && exit; while [ "$1" != -- ]; do shift; done; shift; "$@"'
    fake(tmp_path / "bin", "bwrap", script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    reached = "path socket, outside write, secret file, secret variable, host signal, survival"
    with pytest.raises(IsolationRefusedError, match=rf"did not hold \({reached}\)|temporarily unavailable"):
        best_sandbox(GENERATOR, require="strong")


def test_what_does_not_exist_is_refused_at_once() -> None:
    """The message lists what there is."""
    with pytest.raises(ValueError, match="choose one of none, basic, strong"):
        best_sandbox(EVAL, require="much")
    with pytest.raises(ValueError, match="choose one of auto, bubblewrap, container, containment"):
        best_sandbox(EVAL, backend="jail")  # type: ignore[arg-type] # the mistake under test


def test_probes_tell_what_is_reached_where_nothing_holds() -> None:
    """Under containment every hostile action succeeds: the probes can see."""
    assert {probe.outcome for probe in probed(Containment(), EVAL)} == {"allowed"}


@attrs.frozen
class Bounding:
    """Containment that bounds each process by what is allowed for all, or nothing; and says what it is told to."""

    says: str
    memory_bytes: int | None = None
    python: str = sys.executable
    collects: bool = False
    isolation: Isolation = UNKNOWN

    @contextmanager
    def prepared(self, launch: Launch) -> Iterator[Start]:
        """The command itself."""
        limits = {} if self.memory_bytes is None else {resource.RLIMIT_AS: self.memory_bytes}
        with Containment().prepared(launch) as start:
            yield attrs.evolve(start, limits=limits, overuse=lambda: self.says)


@pytest.mark.parametrize(
    ("says", "memory_bytes", "outcome"),
    [
        ("used more than it may", 40 << 20, "bounded"),
        ("", 40 << 20, "allowed"),
        ("used more than it may", None, "allowed"),
    ],
    ids=["held and told", "refused to one of them", "told and not held"],
)
def test_memory_in_all_is_held_when_it_is_seen_to_be(says: str, memory_bytes: int | None, outcome: str) -> None:
    """What was meant to be bounded did not happen, and the group says that it was for its limit."""
    probes = probed(Bounding(says, memory_bytes), EVAL, in_all=True)
    assert probes[-1] == Probe("memory in all", outcome)


def test_a_strong_sandbox_denies_all_but_a_network_that_was_asked_for() -> None:
    """Only a generator may reach the network."""
    probes = tuple(Probe(name, "allowed") for name in (*NETWORK, "secret file", "forks"))
    assert shortfall(probes, GENERATOR) == ("secret file",)
    assert shortfall(probes, EVAL) == (*NETWORK, "secret file")


def test_outcomes_are_kept_privately(cache: Path) -> None:
    """Directory and file belong to the user alone; another configuration has another name."""
    probes = (Probe("forks", "bounded"), Probe("secret file", "denied"))
    name = name_of("a", EVAL)
    keep(name, probes)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (cache, cache / name)]
    assert (kept(name), modes, name == name_of("a", GENERATOR)) == (probes, [0o700, 0o600], False)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", "[1]", '[["forks"]]', '[["forks", "fine"]]', '[[1, "denied"]]', '[["a", []]]', "[" * 50_000],
)
def test_malformed_outcomes_are_as_good_as_none(cache: Path, content: str) -> None:
    """Whatever is in the file, the sandbox is probed anew."""
    cache.mkdir(parents=True, mode=0o700)
    (cache / "x.json").write_text(content)
    (cache / "x.json").chmod(0o600)
    assert kept("x.json") is None


def test_outcomes_that_others_could_write_are_not_read(cache: Path) -> None:
    """Neither a file nor a directory that is open to others, nor a link."""
    keep("x.json", (Probe("forks", "bounded"),))
    (cache / "link.json").symlink_to(cache / "x.json")
    found = [kept("link.json")]
    (cache / "x.json").chmod(0o666)
    found.append(kept("x.json"))
    (cache / "x.json").chmod(0o600)
    cache.chmod(0o777)
    found.append(kept("x.json"))
    assert found == [None, None, None]
    assert kept.__module__ == outcomes.__name__


def test_a_cache_that_cannot_be_written_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one that is no path at all."""
    (tmp_path / "file").write_text("x")
    for home in (tmp_path / "file", Path("relative")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        keep("x.json", (Probe("forks", "bounded"),))
        assert kept("x.json") is None
    assert not os.path.exists("relative")


def test_importing_the_engine_loads_no_sandbox() -> None:
    """The ladder, its probes and what they need are loaded when a program is first started."""
    program = "import sys, orchestrator; print([name for name in sys.modules if 'sandbox.ladder' in name])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_a_launcher_is_a_value() -> None:
    """Launchers are immutable and can be shared."""
    assert attrs.evolve(CONTAINMENT) == CONTAINMENT
    assert hash(Bubblewrap("bwrap")) == hash(Bubblewrap("bwrap"))
