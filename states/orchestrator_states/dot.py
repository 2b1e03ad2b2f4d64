"""A lifecycle as DOT text, for Graphviz and whatever else reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import dumps

from orchestrator_states.graph import Arrow, Graph, graph_of, note_lines
from orchestrator_states.identifiers import identifiers
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.path import PathOverlay
from orchestrator_states.svg.style import LIGHT, TIMES, tone_of

__all__ = ["to_dot"]

INDENT = "    "


def to_dot(lifecycle: Lifecycle, *, path: PathOverlay | None = None) -> str:
    """DOT text of a lifecycle, the same for the same table; ends in a newline.

    Groups are clusters; arrows at a group are cut at its border, which `dot` and `fdp` know how to do. `path`
    puts how often and how long a run was in a state below its name, and makes what it saw and took thick.
    """
    graph = graph_of(lifecycle)
    words = identifiers((*lifecycle.states, *(group.name for group in graph.groups)))
    inner = body(graph, words, path or PathOverlay())
    lines = [f"digraph {dumps(lifecycle.name)} {{", *(INDENT + line for line in inner), "}"]
    return "\n".join(lines) + "\n"


def body(graph: Graph, words: Mapping[str, str], path: PathOverlay) -> Iterator[str]:
    """Settings, states, groups, arrows and notes."""
    lifecycle = graph.lifecycle
    yield 'graph [rankdir=LR, compound=true, fontname="sans-serif", nodesep=0.5, ranksep=0.8]'
    yield 'node [shape=box, style="rounded,filled", fontname="sans-serif"]'
    yield 'edge [fontname="monospace", fontsize=10]'
    yield "start_mark [shape=point, width=0.15]"
    yield from (node(lifecycle, state, words, path) for state in lifecycle.states if not graph.group_of(state))
    for group in graph.groups:
        yield f"subgraph cluster_{words[group.name]} {{"
        yield f"{INDENT}label={dumps(group.title)}; style=dashed"
        yield from (INDENT + node(lifecycle, state, words, path) for state in group.states)
        yield "}"
    yield f"start_mark -> {words[lifecycle.initial]}"
    yield from (edge(graph, arrow, words, path) for arrow in graph.arrows)
    yield from (f"// {line}" for line in note_lines(lifecycle))


def node(lifecycle: Lifecycle, state: str, words: Mapping[str, str], path: PathOverlay) -> str:
    """A state: resting ones are double-lined."""
    is_resting = state in lifecycle.resting
    tone = LIGHT.tones[tone_of(state, is_initial=state == lifecycle.initial, is_resting=is_resting)]
    border = 2 if is_resting else 1
    visits = path.visits.get(state, 0)
    been = " ".join(filter(None, (f"{TIMES}{visits}", path.time(state)))) if visits else ""
    label = dumps(f"{state}\n{been}" if been else str(state), ensure_ascii=False)
    return (
        f"{words[state]} [label={label}, peripheries={border},{' penwidth=3,' if visits else ''}"
        f' fillcolor="{tone.fill}", color="{tone.line}", fontcolor="{tone.text}"]'
    )


def edge(graph: Graph, arrow: Arrow, words: Mapping[str, str], path: PathOverlay) -> str:
    """An arrow; one at a group runs between middle members and is cut at the cluster's border."""
    source, target = (graph.members(element) for element in (arrow.source, arrow.target))
    counts = [path.taken(label.moves) for label in arrow.labels]
    lines = [
        f"{label.text} {TIMES}{count}" if count else label.text
        for label, count in zip(arrow.labels, counts, strict=True)
    ]
    attributes = [f"label={dumps(chr(10).join(lines), ensure_ascii=False)}"]
    attributes += ["penwidth=2.5"] if any(counts) else []
    attributes += [f"ltail=cluster_{words[arrow.source]}"] if arrow.source not in source else []
    attributes += [f"lhead=cluster_{words[arrow.target]}"] if arrow.target not in target else []
    one, other = words[source[len(source) // 2]], words[target[len(target) // 2]]
    return f"{one} -> {other} [{', '.join(attributes)}]"
