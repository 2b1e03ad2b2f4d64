"""Errors stay on their phase until somebody decides: a callback, a policy, or a person later."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.workflow import CascadeRule, ChoiceError, Decision, Phase, Policy, WorkflowAborted, WorkflowPaused


def test_an_error_pauses(bench: Any) -> None:
    """The workflow stays on the phase, the state says what went wrong and how often, and there are three options."""
    bench.phases.script["01-work"] = [ValueError("no network")]
    result = bench.workflow().run()
    assert type(result) is WorkflowPaused
    decision = result.decision
    told = (decision.about, decision.message, decision.options, decision.phase)
    assert told == ("phase error", "Error: ValueError: no network", ("retry", "skip", "abort"), "01-work")
    assert {key: result.state[key] for key in ("phase", "error", "retry_count")} == {
        "phase": "01-work",
        "error": "ValueError: no network",
        "retry_count": 1,
    }


def test_an_error_that_the_phase_reports(bench: Any, make_outcome: Any) -> None:
    """A phase may say itself that it failed, with what it has so far; the engine counts."""
    bench.phases.script["01-work"] = [
        make_outcome("01-work", "Error encountered: no plan", error="no plan", retry_count=7, files=["a.py"])
    ]
    result = bench.workflow().run()
    kept = {key: result.state[key] for key in ("phase", "error", "retry_count", "files")}
    assert kept == {"phase": "01-work", "error": "no plan", "retry_count": 1, "files": ["a.py"]}
    assert "Error encountered: no plan" in result.lines


def test_success_clears_the_error(bench: Any, make_outcome: Any) -> None:
    """A retry that succeeds leaves no error behind."""
    bench.phases.script["01-work"] = [ValueError("no network"), make_outcome("02-check")]
    bench.workflow().run()
    done = bench.workflow().resume("epic-1", "retry")
    assert (done.status, done.state["error"], done.state["retry_count"]) == ("done", None, 0)


def test_skip(bench: Any) -> None:
    """A skipped phase is left for the next one, and its error with it."""
    bench.phases.script["01-work"] = [ValueError("no network")]
    bench.workflow().run()
    done = bench.workflow().resume("epic-1", "skip")
    assert (done.status, done.state["error"], bench.phases.executed) == (
        "done",
        None,
        ["00-init", "01-work", "02-check"],
    )


def test_skip_goes_where_the_phase_may_go(bench: Any) -> None:
    """A skipped phase that declares what may follow is left for the first of those."""
    phases = ("00-init", Phase(id="01-work", next=("01-work", "done")), "02-check", "done")
    domain = bench.domain_with(phases=phases)
    bench.phases.script["01-work"] = [ValueError("no network")]
    bench.workflow(domain=domain).run()
    assert bench.workflow(domain=domain).resume("epic-1", "skip").status == "done"
    assert bench.phases.executed == ["00-init", "01-work"]


def test_abort(bench: Any) -> None:
    """An aborted workflow says who gave it up; it can be taken up again."""
    bench.phases.script["01-work"] = [ValueError("no network"), ValueError("no network")]
    bench.workflow().run()
    aborted = bench.workflow().resume("epic-1", "abort")
    assert (type(aborted), aborted.reason) == (WorkflowAborted, "person chose to abort")
    assert bench.workflow().resume("epic-1").decision.about == "phase error"


def test_a_choice_that_is_none(bench: Any) -> None:
    """A choice that is not among the options changes nothing."""
    bench.phases.script["01-work"] = [ValueError("no network")]
    before = bench.workflow().run()
    with pytest.raises(ChoiceError) as caught:
        bench.workflow().resume("epic-1", "ignore")
    assert caught.value.options == ("retry", "skip", "abort")
    again = bench.workflow().resume("epic-1")
    assert again.decision == before.decision


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_callback_decides(bench: Any, kind: str) -> None:
    """A callback is shown what has to be decided and chooses; who chose is recorded."""
    seen: list[Decision] = []

    def decide(decision: Decision) -> str:
        seen.append(decision)
        return "skip"

    async def decide_later(decision: Decision) -> str:
        return decide(decision)

    bench.phases.script["01-work"] = [ValueError("no network")]
    result = bench.workflow(decide=decide if kind == "plain" else decide_later).run()
    taken = [each.event for each in result.records if each.event.name == "decision:taken"]
    assert (result.status, [each.about for each in seen]) == ("done", ["phase error"])
    assert [(each.choice, each.by, each.phase) for each in taken] == [("skip", "callback", "02-check")]


@pytest.mark.parametrize("answer", [None, "", "ignore", 7, ValueError("gone")])
def test_a_callback_that_does_not_decide(bench: Any, answer: object) -> None:
    """Silence, nonsense and errors are no decision: the workflow pauses."""

    def decide(_: Decision) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    bench.phases.script["01-work"] = [ValueError("no network")]
    assert type(bench.workflow(decide=decide).run()) is WorkflowPaused


def test_a_policy_decides(bench: Any, make_outcome: Any) -> None:
    """A configured policy decides where no callback does."""
    bench.phases.script["01-work"] = [ValueError("no network"), make_outcome("02-check")]
    result = bench.workflow(policy=Policy(phase_error="retry")).run()
    taken = [each.event.by for each in result.records if each.event.name == "decision:taken"]
    assert (result.status, taken) == ("done", ["policy"])


def test_the_same_phase_halts(bench: Any) -> None:
    """A phase that fails more than five times in a row halts, whatever policy and callback say."""
    domain = bench.domain_with(cascade=CascadeRule(threshold=50, window=50))
    bench.phases.script["01-work"] = [ValueError("no network")]
    options: dict[str, Any] = {"domain": domain, "policy": Policy(phase_error="retry"), "decide": lambda _: "retry"}
    halted = bench.workflow(**options).run()
    counted = (halted.decision.about, halted.state["retry_count"], bench.phases.executed.count("01-work"))
    assert counted == ("halted", 6, 6)
    again = bench.workflow(**options).resume("epic-1", "retry")
    assert (again.decision.about, again.state["retry_count"]) == ("halted", 7)


def test_a_cascade(bench: Any, make_outcome: Any) -> None:
    """Three failures of the last five are a cascade: diagnosed, in the state, and cleared by the decision."""
    bench.phases.script["01-work"] = [*[ValueError("no network")] * 3, make_outcome("02-check")]
    paused = bench.workflow(policy=Policy(phase_error="retry")).run()
    assert (paused.decision.about, paused.decision.options) == ("cascade", ("fix", "skip", "abort"))
    assert paused.state["cascade_detected"] is True
    found = next(each.event for each in paused.records if each.event.name == "cascade:detected")
    assert (found.failures_in_window, found.threshold, found.window, bool(found.diagnosis)) == (3, 3, 5, True)
    done = bench.workflow().resume("epic-1", "fix")
    assert (done.status, done.state["cascade_detected"]) == ("done", False)


def test_successes_move_the_window(bench: Any, make_outcome: Any) -> None:
    """Failures that successes have moved out of the window are no cascade."""
    turns: list[object] = []
    for _ in range(4):
        turns += [ValueError("no network"), make_outcome("01-work"), make_outcome("01-work")]
    bench.phases.script["01-work"] = [*turns, make_outcome("02-check")]
    result = bench.workflow(policy=Policy(phase_error="retry")).run()
    assert (result.status, bench.phases.executed.count("01-work")) == ("done", 13)


def test_nothing_to_decide(bench: Any) -> None:
    """A choice for a workflow that waits for nothing is refused."""
    bench.workflow().run()
    with pytest.raises(Exception, match="it is done"):
        bench.workflow().resume("epic-1", "retry")


def test_the_same_phase_halts_in_a_cascade(bench: Any, make_outcome: Any) -> None:
    """At the default cascade rule, too, the sixth failure in a row halts: no callback has the phase run again."""
    bench.phases.script["01-work"] = [*[ValueError("no network")] * 6, make_outcome("02-check")]
    bench.phases.script["02-check"] = [ValueError("no disk")]

    def decide(decision: Decision) -> str:
        return "fix" if "fix" in decision.options else "retry"

    halted = bench.workflow(decide=decide).run()
    names = [each.event.name for each in halted.records]
    counted = (bench.phases.executed.count("01-work"), halted.state["retry_count"], names.count("cascade:detected"))
    assert (halted.decision.about, halted.decision.options, counted) == (
        "halted",
        ("retry", "skip", "abort"),
        (6, 6, 2),
    )
    assert "goes round in circles" in halted.decision.message
    following = bench.workflow().resume("epic-1", "retry")
    assert (following.phase, following.decision.about) == ("02-check", "phase error")
