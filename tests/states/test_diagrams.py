"""The pictures in the repository are those that the tables give today."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator_states import RUN, Lifecycle
from orchestrator_states.catalogue import LIFECYCLES, UnknownLifecycleError, lifecycle
from orchestrator_states.diagrams import drawn, main, stale, write_all

DIAGRAMS = Path(__file__).parents[2] / "diagrams"


@pytest.mark.skipif(not DIAGRAMS.is_dir(), reason="the pictures are not part of an installed package")
def test_pictures_are_up_to_date() -> None:
    """Every picture in `diagrams/` equals what the code draws, and there is none without a lifecycle."""
    pictures = {path.name for path in DIAGRAMS.iterdir() if path.suffix in (".mmd", ".svg")}
    assert (stale(DIAGRAMS), pictures) == ((), set(drawn()))


def test_writing_makes_them_up_to_date(tmp_path: Path) -> None:
    """What `write_all` writes, into a folder that it makes, is what `stale` wants to see."""
    folder = tmp_path / "new" / "diagrams"
    missing = stale(folder)
    written = write_all(folder)
    assert (missing, stale(folder)) == (written, ())


def test_check_names_what_is_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command with `--check` changes nothing, names each stale file and exits with 1."""
    write_all(tmp_path)
    (tmp_path / "run.mmd").write_text("old")
    assert (main(["--check", str(tmp_path)]), (tmp_path / "run.mmd").read_text()) == (1, "old")
    assert capsys.readouterr().err == (f"{tmp_path / 'run.mmd'} is stale: run python -m orchestrator_states.diagrams\n")


def test_command_writes_and_then_finds_nothing_stale(tmp_path: Path) -> None:
    """The command without options writes all pictures and exits with 0; a check after it does too."""
    assert (main([str(tmp_path)]), main(["--check", str(tmp_path)])) == (0, 0)


def test_every_name_of_the_catalogue_is_that_of_its_lifecycle() -> None:
    """Each entry loads, is a lifecycle, and carries the name it is listed under."""
    loaded = {name: lifecycle(name) for name in LIFECYCLES}
    assert {name: table.name for name, table in loaded.items()} == {name: name for name in LIFECYCLES}
    assert all(isinstance(table, Lifecycle) for table in loaded.values())
    assert loaded["run"] is RUN


def test_unknown_name_gets_a_hint() -> None:
    """A name close to a known one is answered with it, any other with the list."""
    with pytest.raises(UnknownLifecycleError, match=r"no lifecycle is called 'runn'; did you mean 'run'\?"):
        lifecycle("runn")
    with pytest.raises(UnknownLifecycleError) as caught:
        lifecycle("zzz")
    assert (caught.value.name, caught.value.known) == ("zzz", tuple(LIFECYCLES))
    assert str(caught.value) == f"no lifecycle is called 'zzz'; there are: {', '.join(LIFECYCLES)}"
