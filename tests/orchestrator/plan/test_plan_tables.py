"""The two lifecycles of plans, as the README writes them out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.plan.studiopaths import STUDIO_PATHS
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.plan import PLAN, STEP

README = Path(__file__).parents[3] / "README.md"
ROW = re.compile(r"\| ([a-z, ]+) \| `([a-z:]+)`[^|]* \| \**([a-z]+)\** \|")

pytestmark = pytest.mark.skipif(not README.is_file(), reason="the README is not part of an installed package")


@pytest.mark.parametrize(("heading", "table"), [("The life of a plan:", PLAN), ("The life of a step:", STEP)])
def test_every_row_is_written_out(heading: str, table: Lifecycle) -> None:
    """'Both lifecycle tables are written out in the docs, including executing → completed without amendment.'"""
    text = README.read_text(encoding="utf-8").partition(heading)[2].strip().partition("\n\n")[0]
    told = {(source, event, to) for sources, event, to in ROW.findall(text) for source in sources.split(", ")}
    assert told == {(source, row.event, row.target) for row in table.rows for source in row.sources}
    if table is PLAN:
        assert "| executing | `plan:completed` (without an amendment, too) | **completed** |" in text


def test_every_path_is_written_out() -> None:
    """'Paths are configurable; studio/ by default': each key with its default."""
    text = README.read_text(encoding="utf-8").partition("[paths]\n")[2].partition("```")[0]
    assert dict(re.findall(r'(?m)^(\w+) = "([^"]+)"', text)) == dict(STUDIO_PATHS)
