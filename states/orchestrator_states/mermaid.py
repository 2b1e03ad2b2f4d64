"""A lifecycle as Mermaid text (stateDiagram-v2), which many viewers of Markdown draw.

A group of states is a node of its own, dashed and listing its members. Composite states were rejected:
Mermaid 11 draws all arrows at the border of one on top of each other, and links no members of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import dumps

from orchestrator_states.graph import Graph, Group, Label, graph_of, note_lines
from orchestrator_states.identifiers import identifiers
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.path import PathOverlay
from orchestrator_states.svg.style import LIGHT, TIMES, tone_of

__all__ = ["to_mermaid"]

INDENT = "    "
ESCAPES = {"#": "#35;", ":": "#58;", ";": "#59;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;"}
"""Mermaid's own; the colon has one because releases before 11 end a label at its second colon."""


def to_mermaid(lifecycle: Lifecycle, *, path: PathOverlay | None = None) -> str:
    """Mermaid text of a lifecycle, the same for the same table; ends in a newline.

    Events that go the same way share an arrow, states that several rows treat alike are one more, dashed
    node, and notes are comments. `path` puts how often and how long a run was in a state beside its name, and
    how often it took a move beside the event; the states it saw have a thick border.
    """
    graph = graph_of(lifecycle)
    words = identifiers((*lifecycle.states, *(group.name for group in graph.groups)))
    lines = [
        "---",
        f"title: {dumps(lifecycle.name)}",
        "---",
        "stateDiagram-v2",
        f"{INDENT}direction LR",
        *(INDENT + line for line in body(graph, words, path or PathOverlay())),
    ]
    return "\n".join(lines) + "\n"


def body(graph: Graph, words: Mapping[str, str], path: PathOverlay) -> Iterator[str]:
    """Names, arrows, colours and notes."""
    lifecycle = graph.lifecycle
    for state in lifecycle.states:
        shown = state_text(state, path)
        if shown != words[state]:
            yield f'state "{escaped(shown)}" as {words[state]}'
    for group in graph.groups:
        yield f'state "{group_text(group)}" as {words[group.name]}'
    yield f"[*] --> {words[lifecycle.initial]}"
    for arrow in graph.arrows:
        label = "<br>".join(escaped(label_text(line, path)) for line in arrow.labels)
        yield f"{words[arrow.source]} --> {words[arrow.target]} : {label}"
    yield from (f"{words[state]} --> [*]" for state in lifecycle.resting)
    yield from colours(graph, words)
    yield from seen(lifecycle, words, path)
    yield from (f"%% {line}" for line in note_lines(lifecycle))


def state_text(state: str, path: PathOverlay) -> str:
    """A state's name, with how often and how long a run was there."""
    if not path.visits.get(state):
        return str(state)
    return " ".join(filter(None, (state, f"{TIMES}{path.visits[state]}", path.time(state))))


def label_text(label: Label, path: PathOverlay) -> str:
    """An event with its conditions, and how often a run took it."""
    taken = path.taken(label.moves)
    return f"{label.text} {TIMES}{taken}" if taken else label.text


def seen(lifecycle: Lifecycle, words: Mapping[str, str], path: PathOverlay) -> Iterator[str]:
    """A thick border for the states that a run saw."""
    states = [words[state] for state in lifecycle.states if path.visits.get(state)]
    if states:
        yield "classDef been stroke-width:3px"
        yield f"class {','.join(states)} been"


def group_text(group: Group) -> str:
    """A group's title and its members."""
    return f"{escaped(group.title)}<br>({', '.join(map(escaped, group.states))})"


def colours(graph: Graph, words: Mapping[str, str]) -> Iterator[str]:
    """One class for groups and one per kind of resting state."""
    kinds: dict[str, list[str]] = {}
    for state in graph.lifecycle.resting:
        kinds.setdefault(tone_of(state, is_initial=False, is_resting=True), []).append(words[state])
    for kind, states in kinds.items():
        tone, name = LIGHT.tones[kind], kind.replace("-", "_")
        yield f"classDef {name} fill:{tone.fill},stroke:{tone.line},color:{tone.text}"
        yield f"class {','.join(states)} {name}"
    if graph.groups:
        line = f"stroke:{LIGHT.frame_line},stroke-dasharray:4 4"
        yield f"classDef any_of fill:{LIGHT.frame},{line},color:{LIGHT.ink}"
        yield f"class {','.join(words[group.name] for group in graph.groups)} any_of"


def escaped(text: str) -> str:
    """Text whose every character is shown as it is."""
    return "".join(ESCAPES.get(character, character) for character in text)
