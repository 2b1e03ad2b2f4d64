"""Audits of random runs: the untouched are clean, the touched never are, and no input crashes the tool."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import cache
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import Budget, Candidate, EvalCase, Generation, MergedSpec, Orchestrator, OrchestratorError, Usage
from orchestrator.audit import audit
from orchestrator.errors import DocumentError
from orchestrator.export import export_json, export_lines
from orchestrator.importing import Export, parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.replay import ReplayError, replay
from orchestrator.testing import ManualClock, ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.record import GENESIS, chain_digest

SPEC = MergedSpec(name="numbers", intent="Count.", avoid="Doubt.", evals=(EvalCase(name="a"), EvalCase(name="b")))

usages = st.builds(
    Usage,
    input_tokens=st.none() | st.integers(0, 400),
    output_tokens=st.none() | st.integers(0, 400),
    money_micro=st.none() | st.integers(0, 400),
)
answers = st.lists(
    st.builds(lambda text, usage: Generation(candidate=Candidate(text), usage=usage), st.sampled_from("xyz"), usages)
    | st.just(OSError("down"))
    | st.just(""),
    max_size=6,
)
reports = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.booleans() | st.just("no"), min_size=1), min_size=1, max_size=6
)
caps = st.none() | st.integers(1, 900)
budgets = st.builds(
    Budget, attempts=st.integers(1, 5), repeats=st.none() | st.integers(1, 3), tokens=caps, input_tokens=caps,
    output_tokens=caps, money_micro=caps, seconds=st.none() | st.integers(1, 9),
)  # fmt: skip


def recorded(script: list[Any], verdicts: list[dict[str, Any]], budget: Budget, parameters: dict[str, int]) -> str:
    """A run, whatever becomes of it, as one JSON document."""
    journal = MemoryJournal()
    orchestrator = Orchestrator(
        generator=ScriptedGenerator(script), evaluator=ScriptedEvaluator(verdicts, "repeat"), budget=budget,
        journal=journal, clock=ManualClock(), parameters=parameters,
    )  # fmt: skip
    with suppress(OrchestratorError):
        orchestrator.run(SPEC, run_id="7f3a")
    return asyncio.run(export_json(journal, "7f3a"))


@given(answers, reports, budgets, st.just({}) | st.builds(lambda limit: {"max_tokens": limit}, st.integers(1, 500)))
def test_any_run_is_clean(
    script: list[Any], verdicts: list[dict[str, Any]], budget: Budget, parameters: dict[str, int]
) -> None:
    """Whatever a generator answers, a suite reports and a budget allows: the record of it bears every check."""
    export = parse_export(recorded(script, verdicts, budget, parameters))
    assert [str(finding) for finding in audit(export).findings] == []
    assert len(replay(export)) == len(export.links)


@cache
def one_run() -> str:
    """A run with failures, a repeat and a pass."""
    script = ["x", OSError("down"), "x", "y", "z"]
    return recorded(script, [{"a": True, "b": "no"}, {"a": "no", "b": "no"}, {"a": True, "b": True}], Budget(), {})


@cache
def its_lines() -> bytes:
    """The same as JSON lines."""
    journal = MemoryJournal()
    generator, evaluator = ScriptedGenerator(["x", "y"]), ScriptedEvaluator([{"a": True}, {"a": True, "b": True}])
    Orchestrator(generator=generator, evaluator=evaluator, journal=journal).run(SPEC, run_id="7f3a")

    async def lines() -> str:
        return "".join([line async for line in export_lines(journal, "7f3a")])

    return asyncio.run(lines()).encode()


def audited(content: str | bytes) -> tuple[Export | None, bool]:
    """The export, if it can be read, and whether it is clean; anything but DocumentError is a crash."""
    try:
        export = parse_export(content)
    except DocumentError:
        return None, False
    with suppress(ReplayError):
        replay(export)
    return export, audit(export).is_clean


@given(st.data())
def test_any_byte_of_any_body(data: st.DataObject) -> None:
    """One bit of one byte of one record is enough."""
    export = parse_export(one_run())
    position = data.draw(st.integers(0, len(export.links) - 1))
    body = bytearray(export.links[position].body)
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    links = list(export.links)
    links[position] = attrs.evolve(links[position], body=bytes(body))
    assert not audit(attrs.evolve(export, links=tuple(links))).is_clean


@pytest.mark.parametrize("form", ["document", "lines"])
@given(data=st.data())
def test_any_byte_of_the_file(form: str, data: st.DataObject) -> None:
    """A byte of the file, changed, removed or added: refused, found, or the same export said otherwise."""
    content = one_run().encode() if form == "document" else its_lines()
    original = parse_export(content)
    position = data.draw(st.integers(0, len(content) - 1))
    removed, added = data.draw(st.integers(0, 1)), data.draw(st.binary(max_size=2))
    export, is_clean = audited(content[:position] + added + content[position + removed :])
    assert not is_clean or export == original


@given(st.data())
def test_any_order_of_records(data: st.DataObject) -> None:
    """Records dropped, doubled or reordered, in whatever way, are found."""
    document = json.loads(one_run())
    records = document["records"]
    chosen = data.draw(st.lists(st.integers(0, len(records) - 1), max_size=len(records) + 2))
    document["records"] = [records[index] for index in chosen]
    assert audited(json.dumps(document))[1] == (chosen == list(range(len(records))))


@given(st.data())
def test_any_removal_with_a_new_chain(data: st.DataObject) -> None:
    """Records removed and everything chained anew: found without a head, whichever they are."""
    document = json.loads(one_run())
    bodies = [link["body"] for link in document["records"]]
    gone = data.draw(st.sets(st.integers(0, len(bodies) - 1), min_size=1, max_size=4))
    previous = GENESIS
    links: list[dict[str, Any]] = []
    for body in [body for index, body in enumerate(bodies) if index not in gone]:
        body["sequence"] = len(links) + 1
        data_bytes = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        digest = chain_digest(previous, data_bytes)
        links.append({"sequence": len(links) + 1, "previous": previous, "digest": digest, "body": body})
        previous = digest
    document["records"], document["head"] = links, {"digest": previous, "count": len(links)}
    assert not audited(json.dumps(document))[1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


@settings(max_examples=300)
@given(st.data())
def test_any_value_anywhere(data: st.DataObject) -> None:
    """Any value put in any place and chained anew crashes nothing."""
    document = json.loads(one_run())
    *way, last = data.draw(st.sampled_from(places(document)[1:]))
    target = document
    for key in way:
        target = target[key]
    target[last] = data.draw(json_values)
    previous = GENESIS
    for link in document["records"] if isinstance(document["records"], list) else ():
        if isinstance(link, dict) and isinstance(link.get("body"), dict):
            body = json.dumps(link["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            link["previous"] = previous
            link["digest"] = previous = chain_digest(previous, body.encode("utf-8", "surrogatepass"))
    audited(json.dumps(document))


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_content(content: bytes) -> None:
    """What is no export at all is refused."""
    assert audited(content) == (None, False)
