"""Colours and faces of the pictures: light by default, dark where the reader's system asks for it.

Plain rules twice instead of CSS variables, because several SVG viewers know no variables. Every text has a
contrast of at least 4.5 to 1 with what it stands on, every line that matters 3 to 1 (WCAG 2.2 AA).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["DARK", "LIGHT", "TIMES", "Scheme", "Tone", "stylesheet", "tone_of"]


class Tone(NamedTuple):
    """Colours of one kind of state."""

    fill: str
    line: str
    text: str


class Scheme(NamedTuple):
    """All colours of one picture."""

    paper: str
    edge: str
    ink: str
    quiet: str
    arrow: str
    taken: str
    label: str
    frame: str
    frame_line: str
    tones: Mapping[str, Tone]


LIGHT = Scheme(
    paper="#ffffff",
    edge="#dfe3ea",
    ink="#18202c",
    quiet="#566072",
    arrow="#667085",
    taken="#3451b2",
    label="#27303f",
    frame="#f4f6fa",
    frame_line="#8791a3",
    tones={
        "start": Tone("#ffffff", "#667085", "#18202c"),
        "open": Tone("#e9effe", "#4c67c4", "#1c2f73"),
        "good": Tone("#dff5e6", "#2a8a4d", "#0f4d27"),
        "short": Tone("#fdf0d3", "#ad7410", "#5e3b05"),
        "given-up": Tone("#e9ebef", "#727b8b", "#333b48"),
        "bad": Tone("#fde6e6", "#c93d3d", "#76191b"),
        "rest": Tone("#dff2f4", "#217f8c", "#0d4a52"),
    },
)
DARK = Scheme(
    paper="#10141b",
    edge="#262d39",
    ink="#e8ecf3",
    quiet="#9aa5b8",
    arrow="#8794aa",
    taken="#9db4ff",
    label="#d3dae6",
    frame="#171d27",
    frame_line="#616d82",
    tones={
        "start": Tone("#10141b", "#8794aa", "#e8ecf3"),
        "open": Tone("#1d2a52", "#7b94ea", "#dbe4ff"),
        "good": Tone("#12351f", "#4bb472", "#c9f2d6"),
        "short": Tone("#3b2b0b", "#d39a35", "#fbe3b2"),
        "given-up": Tone("#272d38", "#8d97a9", "#dce1ea"),
        "bad": Tone("#42191b", "#e57373", "#fdd7d7"),
        "rest": Tone("#10343a", "#4cb0be", "#c8eef3"),
    },
)

TIMES = "\N{MULTIPLICATION SIGN}"
KINDS = {
    "passed": "good",
    "completed": "good",
    "done": "good",
    "exhausted": "short",
    "incomplete": "short",
    "blocked": "short",
    "paused": "short",
    "cancelled": "given-up",
    "aborted": "given-up",
    "failed": "bad",
    "rejected": "bad",
}


def tone_of(state: str, *, is_initial: bool, is_resting: bool) -> str:
    """The kind of a state that its colours follow."""
    if is_resting:
        return KINDS.get(state, "rest")
    return "start" if is_initial else "open"


def stylesheet(*, has_path: bool = False) -> str:
    """The rules of a picture, both schemes; all of them hold inside the picture only."""
    faces = (*FACES, *PATH_FACES) if has_path else FACES
    light, dark = (scoped(rules) for rules in ([*faces, *colours(LIGHT)], colours(DARK)))
    return f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


def scoped(rules: Sequence[str]) -> str:
    """Rules that leave a page alone in which the picture stands inline."""
    return "".join(f".lifecycle {rule}\n" for rule in rules)


MONOSPACED = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'
FACES = (
    'text { font-family: ui-sans-serif, system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }',
    ".name { font-size: 20px; font-weight: 650; }",
    ".hint { font-size: 12px; font-weight: 400; }",
    ".group { font-size: 11px; letter-spacing: .3px; }",
    ".state text { font-size: 14px; font-weight: 600; text-anchor: middle; }",
    f".event text {{ font-family: {MONOSPACED}; font-size: 12px; }}",
    ".count text { font-size: 11px; font-weight: 700; text-anchor: middle; }",
    ".line { fill: none; stroke-width: 1.6; stroke-linecap: round; }",
    ".frame { stroke-width: 1.4; stroke-dasharray: 2 5; stroke-linecap: round; }",
    ".box { stroke-width: 1.6; }",
    ".ring { fill: none; stroke-width: 1; }",
    ".taken .line { stroke-width: 2.6; }",
    ".idle .line { stroke-dasharray: 5 5; }",
)
PATH_FACES = (".state .time { font-size: 11px; font-weight: 400; }",)


def colours(scheme: Scheme) -> list[str]:
    """The rules that set colours."""
    rules = [
        f".paper {{ fill: {scheme.paper}; stroke: {scheme.edge}; }}",
        f".name {{ fill: {scheme.ink}; }}",
        f".hint {{ fill: {scheme.quiet}; }}",
        f".group {{ fill: {scheme.quiet}; }}",
        f".frame {{ fill: {scheme.frame}; stroke: {scheme.frame_line}; }}",
        f".line {{ stroke: {scheme.arrow}; }}",
        f".head {{ fill: {scheme.arrow}; }}",
        f".dot {{ fill: {scheme.arrow}; }}",
        f".event text {{ fill: {scheme.label}; }}",
        f".taken .line {{ stroke: {scheme.taken}; }}",
        f".taken .head {{ fill: {scheme.taken}; }}",
        f".count rect {{ fill: {scheme.taken}; }}",
        f".count text {{ fill: {scheme.paper}; }}",
    ]
    for kind, tone in scheme.tones.items():
        rules += [
            f".{kind} .box {{ fill: {tone.fill}; stroke: {tone.line}; }}",
            f".{kind} .ring {{ stroke: {tone.line}; }}",
            f".{kind} text {{ fill: {tone.text}; }}",
        ]
    return rules
