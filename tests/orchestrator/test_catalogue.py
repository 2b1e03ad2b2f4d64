"""The catalogue of events in the repository is the one the code describes."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import catalogue
from orchestrator_states.run import RUN


def test_the_catalogue_in_the_repository_is_up_to_date() -> None:
    """events/README.md is generated; a change of an event or a table shows there."""
    assert catalogue.README.read_text(encoding="utf-8") == catalogue.catalogue_markdown()
    assert catalogue.main(["--check"]) == 0


def test_an_outdated_catalogue_is_told_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check fails on a missing or different file, names it and the command; writing mends it."""
    target = tmp_path / "README.md"
    monkeypatch.setattr(catalogue, "README", target)
    missing = catalogue.main(["--check"])
    target.write_text("old", encoding="utf-8")
    outdated = catalogue.main(["--check"])
    written, checked = catalogue.main([]), catalogue.main(["--check"])
    message = f"{target} is out of date: run python -m orchestrator.catalogue\n"
    assert (missing, outdated, written, checked) == (1, 1, 0, 0)
    assert capsys.readouterr().err == message * 2


def test_every_row_and_note_of_a_lifecycle_has_a_role() -> None:
    """No move and no note of the table is missing from what the catalogue is told."""
    roles = list(catalogue.roles_of(RUN))
    moves = {(role.event, *move) for role in roles for move in role.moves}
    notes = {(role.event, state) for role in roles for state in role.notes}
    assert moves == {(row.event, source, row.target) for row in RUN.rows for source in row.sources}
    assert notes == {(each.event, state) for each in RUN.notes for state in each.states}


def test_the_terminal_form_lists_every_event() -> None:
    """The command line shows the same overview as a plain table."""
    names = [line.split()[0] for line in catalogue.catalogue_text().splitlines()[1:]]
    assert names == sorted(names)
    assert "attempt:failed" in names
