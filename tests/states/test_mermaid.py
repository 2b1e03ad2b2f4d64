"""Mermaid text: what it says of a table, in words that Mermaid's releases accept."""

from __future__ import annotations

import re
from html import unescape

from orchestrator_states import RUN, Lifecycle
from orchestrator_states.mermaid import to_mermaid
from orchestrator_states.path import PathOverlay


def test_small_table_in_full(chain: Lifecycle) -> None:
    """Front matter with a title, the start, arrows, the end and colours, in this order."""
    assert to_mermaid(chain) == (
        "---\n"
        'title: "chain"\n'
        "---\n"
        "stateDiagram-v2\n"
        "    direction LR\n"
        "    [*] --> a\n"
        "    a --> b : attempt#58;passed\n"
        "    a --> a : attempt#58;failed\n"
        "    b --> a : prompt#58;refined\n"
        "    b --> [*]\n"
        "    classDef rest fill:#dff2f4,stroke:#217f8c,color:#0d4a52\n"
        "    class b rest\n"
    )


def test_a_run_is_grouped_and_its_notes_are_comments() -> None:
    """What holds for each working or ended state is one arrow, and what does not move is a comment."""
    lines = [line.strip() for line in to_mermaid(RUN).splitlines()]
    assert [line for line in lines if "group_" in line] == [
        'state "any working state<br>(prompting, generating, evaluating, refining)" as group_1',
        'state "any of these ends<br>(exhausted, cancelled, failed)" as group_2',
        "group_1 --> exhausted : budget#58;exhausted",
        "group_1 --> cancelled : execution#58;cancelled",
        "group_1 --> failed : execution#58;failed",
        "group_2 --> group_1 : execution#58;resumed [into]",
        "class group_1,group_2 any_of",
    ]
    noted = " ".join(line for line in lines if line.startswith("%%"))
    assert [each.event for each in RUN.notes if each.event not in noted] == []


def test_every_state_and_event_appears(table: Lifecycle) -> None:
    """Nothing of the table is lost in the text."""
    text = unescape(re.sub("#(58|quot|lt|gt|amp);", entity, to_mermaid(table)))
    named = {str(state) for state in table.states} | {row.event for row in table.rows}
    assert {name for name in named if name not in text} == set()


def entity(found: re.Match[str]) -> str:
    """Mermaid's escape as HTML's."""
    return f"&#{found[1]};" if found[1].isdigit() else f"&{found[1]};"


def test_the_same_table_gives_the_same_text(table: Lifecycle) -> None:
    """The text depends on the table alone."""
    assert to_mermaid(Lifecycle.from_json(table.as_json())) == to_mermaid(table)


def test_arrows_keep_to_the_grammar(table: Lifecycle) -> None:
    """Ends of arrows are plain words and no keywords; labels hold no colon, which old releases refuse."""
    arrows = [line.strip() for line in to_mermaid(table).splitlines() if "-->" in line]
    end = r"(?:\[\*\]|(?!(?:state|note|end|class)\b)\w+)"
    assert [arrow for arrow in arrows if not re.fullmatch(rf"{end} --> {end}(?: : [^:\n]+)?", arrow)] == []


def test_names_that_collide_stay_apart(odd: Lifecycle) -> None:
    """Keywords and names with other characters get words of their own and keep their names as text."""
    lines = [line.strip() for line in to_mermaid(odd).splitlines()]
    assert [line for line in lines if line.startswith("state ")] == [
        'state "state" as state_',
        'state "end" as end_',
        'state "1-2" as s_1_2',
        'state "1_2" as s_1_2_',
        'state "say #quot;hi#quot; #amp; #lt;go#gt;" as say__hi_____go_',
    ]


def test_visits_stand_beside_the_names(chain: Lifecycle) -> None:
    """With visits the names tell how often a run was there; states it never saw stay as they are."""
    lines = [line.strip() for line in to_mermaid(chain, path=PathOverlay(visits={"a": 3, "b": 0})).splitlines()]
    assert [line for line in lines if line.startswith("state ")] == ['state "a \u00d73" as a']


def test_the_way_of_a_run_in_full(chain: Lifecycle) -> None:
    """With a path the names tell visits and times, the arrows moves, and what was seen has a thick border."""
    path = PathOverlay(visits={"a": 2}, moves={("a", "attempt:failed", "a"): 1}, times_us={"a": 500})
    added = [line.strip() for line in to_mermaid(chain, path=path).splitlines()]
    plain = {line.strip() for line in to_mermaid(chain).splitlines()}
    assert [line for line in added if line not in plain] == [
        'state "a \u00d72 #lt;1ms" as a',
        "a --> a : attempt#58;failed \u00d71",
        "classDef been stroke-width:3px",
        "class a been",
    ]
