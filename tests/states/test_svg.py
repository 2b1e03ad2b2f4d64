"""The picture of a lifecycle: complete, well-formed, legible by geometry and by contrast."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest

from orchestrator_states import RUN, Lifecycle
from orchestrator_states.graph import graph_of
from orchestrator_states.svg import PathOverlay, to_svg
from orchestrator_states.svg.drawing import texts_of
from orchestrator_states.svg.geometry import Rectangle, segments
from orchestrator_states.svg.layout import Layout, lay_out
from orchestrator_states.svg.placement import main_path, place
from orchestrator_states.svg.style import DARK, LIGHT, Scheme

SVG = "{http://www.w3.org/2000/svg}"

WALK = PathOverlay(
    visits={"ready": 1, "prompting": 2, "generating": 2, "evaluating": 12, "refining": 1, "passed": 1},
    moves={
        ("ready", "execution:start", "prompting"): 1,
        ("prompting", "prompt:ready", "generating"): 2,
        ("generating", "attempt:failed", "refining"): 1,
        ("evaluating", "budget:exhausted", "exhausted"): 1,
        ("exhausted", "execution:resumed", "refining"): 3,
    },
)


@pytest.fixture(scope="module")
def layouts() -> dict[str, Layout]:
    """Layouts made so far by table digest: a dense one takes its second."""
    return {}


@pytest.fixture
def layout(table: Lifecycle, layouts: dict[str, Layout]) -> Layout:
    """The places of a table's picture."""
    if table.digest not in layouts:
        layouts[table.digest] = laid_out(table)
    return layouts[table.digest]


def laid_out(table: Lifecycle, path: PathOverlay | None = None) -> Layout:
    """The places of a table's picture, with room for the counts of a path."""
    graph = graph_of(table)
    return lay_out(graph, {(arrow.source, arrow.target): texts_of(arrow, path) for arrow in graph.arrows})


def words(svg: str) -> list[str]:
    """Everything that is written in a picture, description and style left out."""
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_every_state_and_event_is_written(table: Lifecycle) -> None:
    """A picture is well-formed XML and names each state and each event of the table."""
    written = words(to_svg(table))
    named = {str(state) for state in table.states} | {row.event for row in table.rows}
    assert {name for name in named if not any(name in text for text in written)} == set()


def test_the_same_table_gives_the_same_bytes(table: Lifecycle) -> None:
    """A picture depends on the table alone, so a repository can compare it; coordinates are whole pixels."""
    picture = to_svg(Lifecycle.from_json(table.as_json()))
    assert picture == to_svg(table)
    assert re.findall(r'\b(?:[xy]|d|cx|cy)="[^"]*\d\.(?!5")\d*[^"]*"', picture) == []


def test_no_two_words_and_boxes_overlap(layout: Layout) -> None:
    """Labels, titles, boxes and the mark of the start stand apart, in every pair."""
    areas = [route.label.area for route in layout.routes]
    areas += [*layout.draft.boxes.values(), *layout.titles.values(), layout.draft.mark]
    assert [pair for pair in combinations(areas, 2) if pair[0].overlaps(pair[1])] == []


def test_no_line_runs_through_words_or_boxes(layout: Layout) -> None:
    """Arrows and frames pass beside every label and title, and touch boxes at their edge only."""
    closed = [route.label.area for route in layout.routes] + list(layout.titles.values())
    closed += [area.grown(-2) for area in layout.draft.boxes.values()]
    lines = [leg for route in layout.routes for leg in segments(route.points)]
    lines += [side for area in layout.draft.frames.values() for side in area.sides()]
    assert [(area, line) for area in closed for line in lines if area.overlaps(line)] == []


def test_arrows_never_run_along_each_other(layout: Layout) -> None:
    """Two arrows cross at a right angle or not at all, so that each can be followed by eye."""
    routes = layout.routes
    shared = [
        (one.arrow, other.arrow)
        for one, other in combinations(routes, 2)
        for leg in segments(one.points)
        for its in segments(other.points)
        if leg.overlaps(its) and (leg.width > leg.height) == (its.width > its.height)
    ]
    assert shared == []


def test_arrows_go_from_edge_to_edge(layout: Layout) -> None:
    """Each arrow starts on the edge of its source and ends on the edge of its target, in upright legs."""
    places = {**layout.draft.boxes, **layout.draft.frames}
    for route in layout.routes:
        ends = (places[route.arrow.source], route.points[0]), (places[route.arrow.target], route.points[-1])
        assert [area.holds(point) and not area.grown(-1).holds(point) for area, point in ends] == [True, True]
        assert all(one.x == other.x or one.y == other.y for one, other in pairwise(route.points))


def test_a_group_frames_its_states_and_no_others(layout: Layout) -> None:
    """A frame holds the boxes of its group whole, and touches no other box."""
    for group in layout.graph.groups:
        frame = layout.draft.frames[group.name]
        touched = {state for state, area in layout.draft.boxes.items() if area.overlaps(frame)}
        whole = {state for state, area in layout.draft.boxes.items() if inside(area, frame)}
        assert (touched, whole) == (set(group.states), set(group.states))


def inside(area: Rectangle, frame: Rectangle) -> bool:
    """Whether an area lies wholly in a frame."""
    return frame.left < area.left and area.right < frame.right and frame.top < area.top and area.bottom < frame.bottom


def test_the_main_path_of_a_run_reads_from_left_to_right() -> None:
    """The way to a conforming candidate is one straight line; refining lies below it."""
    graph = graph_of(RUN)
    path = main_path(graph)
    cells = place(graph)
    assert path == ("ready", "prompting", "generating", "evaluating", "passed")
    assert [cells[state] for state in path] == [(column, 0) for column in range(5)]
    assert cells["refining"] == (2, 1)


def test_a_run_has_one_arrow_where_all_working_states_go_the_same_way() -> None:
    """What any working state may do is drawn once, from the frame around them."""
    graph = graph_of(RUN)
    working, ended = graph.groups
    assert (working.states, ended.states) == (
        ("prompting", "generating", "evaluating", "refining"),
        ("exhausted", "cancelled", "failed"),
    )
    assert [
        (arrow.source, arrow.target, [label.text for label in arrow.labels])
        for arrow in graph.arrows
        if {arrow.source, arrow.target} & {working.name, ended.name}
    ] == [
        (working.name, "exhausted", ["budget:exhausted"]),
        (working.name, "cancelled", ["execution:cancelled"]),
        (working.name, "failed", ["execution:failed"]),
        (ended.name, working.name, ["execution:resumed [into]"]),
    ]


def test_arrows_stand_for_the_moves_of_the_table(table: Lifecycle) -> None:
    """The arrows' labels together stand for every move of the table, each once."""
    drawn = [move for arrow in graph_of(table).arrows for label in arrow.labels for move in label.moves]
    rows = [(source, row.event, row.target) for row in table.rows for source in row.sources]
    assert sorted(drawn) == sorted(rows)


def test_a_picture_tells_its_content_to_those_who_cannot_see_it() -> None:
    """The picture has the role of an image, a title, and the table in words."""
    root = ET.fromstring(to_svg(RUN))
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert (root.get("role"), root.get("aria-labelledby"), title.text) == (
        "img",
        f"{title.get('id')} {description.get('id')}",
        "Lifecycle run",
    )
    assert (description.text or "").splitlines()[:2] == [
        "Starts in ready. Rests in passed, exhausted, cancelled, failed.",
        "ready: execution:start leads to prompting.",
    ]


def test_names_cannot_break_out_of_the_text(odd: Lifecycle) -> None:
    """Names with markup in them are written as text, in the picture and in its title."""
    picture = to_svg(odd)
    title = ET.fromstring(picture).find(f"{SVG}title")
    assert title is not None
    assert (title.text, 'say "hi" & <go>' in words(picture)) == ('Lifecycle odd "name": <b>&', True)


def test_a_path_is_laid_over_the_picture() -> None:
    """With a run's path the picture tells visits and moves, and sets taken arrows apart from idle ones."""
    picture = to_svg(RUN, path=WALK)
    root = ET.fromstring(picture)
    taken = [
        text.text
        for arrow in root.iter(f"{SVG}g")
        if arrow.get("class") == "arrow taken"
        for text in arrow.iter(f"{SVG}text")
    ]
    badges = [
        text.text
        for badge in root.iter(f"{SVG}g")
        if badge.get("class") == "count"
        for text in badge.iter(f"{SVG}text")
    ]
    assert taken == [
        "execution:start \u00d71",
        "prompt:ready \u00d72",
        "attempt:failed \u00d71",
        "budget:exhausted \u00d71",
        "execution:resumed [into] \u00d73",
    ]
    assert badges == ["\u00d71", "\u00d72", "\u00d72", "\u00d712", "\u00d71", "\u00d71"]
    areas = [route.label.area for route in laid_out(RUN, WALK).routes]
    assert [pair for pair in combinations(areas, 2) if pair[0].overlaps(pair[1])] == []


def test_times_stand_in_the_boxes(table: Lifecycle) -> None:
    """With times each state that has one shows it below its name, inside its box, and the picture says it in words."""
    states = [str(state) for state in table.states]
    path = PathOverlay(visits=dict.fromkeys(states, 2), times_us=dict.fromkeys(states[:2], 65_000_000))
    root = ET.fromstring(to_svg(table, path=path))
    shown = {}
    for box in root.iter(f"{SVG}g"):
        texts = [text for text in box.iter(f"{SVG}text") if (box.get("class") or "").startswith("state ")]
        if len(texts) > 1:
            shown[texts[0].text] = (texts[1].get("class"), texts[1].text)
    assert shown == dict.fromkeys(states[:2], ("time", "1m 05s"))
    (described,) = root.iter(f"{SVG}desc")
    assert f"The run was in {states[0]} \u00d72, 1m 05s.\n" in (described.text or "")


def test_a_path_has_a_legend_of_its_own() -> None:
    """The picture of a run explains taken and idle arrows and the counts; that of a table does not mention them."""
    hints = [
        {text.text for text in ET.fromstring(picture).iter(f"{SVG}text") if text.get("class") == "hint"}
        for picture in (to_svg(RUN), to_svg(RUN, path=WALK))
    ]
    assert hints[1] - hints[0] == {"this run took it", "this run did not", "how often it was there"}


def test_the_style_stays_inside_the_picture() -> None:
    """Every rule is bound to the picture, so that a page can hold it inline; nothing is fetched."""
    picture = to_svg(RUN, path=WALK)
    style = picture.split("<style>\n")[1].split("</style>")[0]
    rules = [line for line in style.splitlines() if line not in ("}", "@media (prefers-color-scheme: dark) {")]
    assert [rule for rule in rules if not rule.startswith(".lifecycle ")] == []
    assert re.findall(r"url\(|href|@import|<script", picture) == []


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_is_enough_to_read_and_to_see(scheme: Scheme) -> None:
    """Text has 4.5 to 1 with what it stands on, lines and boxes 3 to 1 with what is around them."""
    text = [(tone.text, tone.fill) for tone in scheme.tones.values()]
    text += [(scheme.ink, scheme.paper), (scheme.paper, scheme.taken)]
    text += [(colour, ground) for colour in (scheme.label, scheme.quiet) for ground in (scheme.paper, scheme.frame)]
    lines = [(scheme.arrow, scheme.paper), (scheme.arrow, scheme.frame), (scheme.taken, scheme.frame)]
    lines += [(scheme.frame_line, scheme.paper)]
    lines += [(tone.line, ground) for tone in scheme.tones.values() for ground in (tone.fill, scheme.frame)]
    faint = [pair for pair in text if contrast(*pair) < 4.5] + [pair for pair in lines if contrast(*pair) < 3]
    assert faint == []


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours by WCAG 2.2."""
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def luminance(colour: str) -> float:
    """The relative luminance of #rrggbb by WCAG 2.2."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
