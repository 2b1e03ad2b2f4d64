"""DOT text: complete, quoted and stable."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from orchestrator_states import RUN, Lifecycle
from orchestrator_states.dot import to_dot


def test_small_table_in_full(chain: Lifecycle) -> None:
    """Settings, the start, the states with resting ones double-lined, and the arrows."""
    assert to_dot(chain) == (
        'digraph "chain" {\n'
        '    graph [rankdir=LR, compound=true, fontname="sans-serif", nodesep=0.5, ranksep=0.8]\n'
        '    node [shape=box, style="rounded,filled", fontname="sans-serif"]\n'
        '    edge [fontname="monospace", fontsize=10]\n'
        "    start_mark [shape=point, width=0.15]\n"
        '    a [label="a", peripheries=1, fillcolor="#ffffff", color="#667085", fontcolor="#18202c"]\n'
        '    b [label="b", peripheries=2, fillcolor="#dff2f4", color="#217f8c", fontcolor="#0d4a52"]\n'
        "    start_mark -> a\n"
        '    a -> b [label="attempt:passed"]\n'
        '    a -> a [label="attempt:failed"]\n'
        '    b -> a [label="prompt:refined"]\n'
        "}\n"
    )


def test_arrows_at_a_group_are_cut_at_its_border() -> None:
    """What holds for each state of a group is one arrow that ends or begins at the cluster."""
    cut = [line.strip() for line in to_dot(RUN).splitlines() if "ltail" in line or "lhead" in line]
    assert cut == [
        'evaluating -> exhausted [label="budget:exhausted", ltail=cluster_group_1]',
        'evaluating -> cancelled [label="execution:cancelled", ltail=cluster_group_1]',
        'evaluating -> failed [label="execution:failed", ltail=cluster_group_1]',
        ('cancelled -> evaluating [label="execution:resumed [into]", ltail=cluster_group_2, lhead=cluster_group_1]'),
    ]


def test_every_state_and_event_appears(table: Lifecycle) -> None:
    """Nothing of the table is lost in the text."""
    text = to_dot(table).replace('\\"', '"')
    named = {str(state) for state in table.states} | {row.event for row in table.rows}
    assert {name for name in named if name not in text} == set()


def test_the_same_table_gives_the_same_text(table: Lifecycle) -> None:
    """The text depends on the table alone."""
    assert to_dot(Lifecycle.from_json(table.as_json())) == to_dot(table)


def test_identifiers_are_plain_words(table: Lifecycle) -> None:
    """Names stand in quoted labels only; what links nodes are ASCII words."""
    links = [line.strip() for line in to_dot(table).splitlines() if " -> " in line]
    assert [link for link in links if not re.match(r"[A-Za-z_]\w* -> [A-Za-z_]\w*(?: \[label=|$)", link)] == []


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_it(table: Lifecycle) -> None:
    """Graphviz lays the text out without a word of complaint."""
    ran = subprocess.run(["dot", "-Tplain"], input=to_dot(table), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
