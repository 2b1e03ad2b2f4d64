"""The adapter for pytest and unittest suites that judge from a process the candidate is not in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from orchestrator.adapter_errors import EvaluationError
from orchestrator.candidate import Candidate
from orchestrator.commandline import ending, shorter
from orchestrator.environment import DEFAULT_ALLOWED, clean_environment, variable_names
from orchestrator.evaluators.reports import read_json
from orchestrator.evaluators.separate.conversation import Conversation, Endings
from orchestrator.evaluators.separate.layout import Layout, module_names
from orchestrator.evaluators.suite_run import SuiteRun
from orchestrator.excerpt import tail
from orchestrator.ports import Submission, Verdict
from orchestrator.sandbox.choice import SandboxChoice, absolute_paths, chosen, hint
from orchestrator.sandbox.port import EVAL, Launcher, Limits, Place, Profile
from orchestrator.workspace import fresh_directory
from orchestrator_events.isolation import Isolation
from orchestrator_events.verdict import CaseResult

__all__ = ["SeparateEvaluator"]

INTEGRITY: Final = "separate"
GONE: Final = "the candidate's process ended"
"""How the judge says that nobody answers any more; how it ended is known here alone."""


@attrs.define(eq=False, kw_only=True)
class SeparateEvaluator:
    """Runs a pytest or unittest suite in one process and the candidate in another.

    In the judge's process the candidate's modules stand in for themselves: what the suite calls runs in the
    candidate's process, and what comes back crosses by value and is compared where the suite is. Neither the
    suite nor the report's pipe can be reached from the candidate's process. Case ids are those of JUnit.
    """

    suite: Path | Mapping[str, str]
    """A directory to copy, or relative path to text; a candidate may have none of its paths."""
    candidate_file: str = ""
    """Where a candidate that is one text is written."""
    modules: tuple[str, ...] = ()
    """Modules that the suite imports of the candidate; by default the one that `candidate_file` makes, and for
    a candidate of several files those of its modules that nothing else has the name of."""
    shared: tuple[str, ...] = ()
    """Files of the suite that the candidate may read too, such as data it imports."""
    framework: Literal["pytest", "unittest"] = "pytest"
    arguments: tuple[str, ...] = ()
    """pytest: its options and paths; unittest: files, modules or cases. By default all that is found."""
    name: str = ""
    """Identifies it in records and over a resume; by default the framework and a digest of what decides."""
    seconds: float | None = 60
    """Time of one evaluation; the shorter of this and what the run has left holds."""
    call_seconds: float | None = None
    """Time of one call of the candidate; a case in which a call takes longer is an error."""
    output_limit: int = 4_000_000
    """What each process may write to each output stream, bytes; one that writes more is stopped."""
    environment: tuple[str, ...] = attrs.field(default=(), converter=variable_names)
    """Names of variables to pass on beside the harmless ones; a trailing `*` stands for any ending."""
    extra_environment: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    work: Literal["read-only", "scratch"] = "read-only"
    """How each process sees its directory in a sandbox: read-only, or as a copy that it may write beside."""
    readable: tuple[Path, ...] = attrs.field(default=(), converter=absolute_paths)
    limits: Limits = EVAL.limits
    sandbox: SandboxChoice = attrs.field(factory=SandboxChoice)
    launcher: Launcher | None = None
    """What starts both processes, each on its own; None: the best that works, which is found at the first use."""

    def __attrs_post_init__(self) -> None:
        if self.framework not in ("pytest", "unittest"):
            raise ValueError(f"{self.framework!r} is no framework: choose pytest or unittest")
        decisive = [self.framework, self.arguments, self.modules, self.shared, self.candidate_file]
        digest = sha256(json.dumps(decisive).encode()).hexdigest()
        self.name = self.name or f"separate-{self.framework}#{digest[:8]}"

    @property
    def profile(self) -> Profile:
        """What judge and candidate may do; neither has a network, nor anything of the host that it could change."""
        return attrs.evolve(EVAL, readable=self.readable, limits=self.limits)

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the suite and the candidate, found by trying at the first call.

        Raises IsolationRefusedError, which says what to install, when that is weaker than `require`.
        """
        self.launcher = await chosen(self.launcher, self.profile, self.sandbox, require)
        return self.launcher.isolation

    async def evaluate(self, submission: Submission) -> Verdict:
        """What the suite reported of the candidate.

        A candidate that hangs, dies or breaks the protocol fails the case at hand and all after it. Raises
        CandidateRefusedError when the candidate cannot be written, EvaluationError when the suite gives no verdict.
        """
        isolation = await self.isolate()
        launcher = self.launcher
        assert launcher is not None
        seconds = shorter(self.seconds, submission.seconds)
        with fresh_directory() as directory:
            layout = Layout(directory)
            before = layout.lay_out(self.suite, submission.candidate, self.candidate_file, self.shared)
            conversation = Conversation(
                launcher=launcher,
                layout=layout,
                judge_place=Place(directory=layout.suite, profile=self.profile, work=self.work),
                candidate_place=Place(directory=layout.candidate, profile=self.profile, work=self.work),
                environment=clean_environment((*DEFAULT_ALLOWED, *self.environment), self.extra_environment),
                seconds=seconds,
                output_limit=self.output_limit,
            )
            endings = await self._held(conversation, submission.candidate)
            layout.refuse_changed(before)
            judge = suite_run(endings, seconds, submission, hint(launcher, self.profile, endings.judge.stderr))
            results = results_of(judge, endings, str(directory))
        return Verdict(results, isolation.label, integrity=INTEGRITY)

    async def _held(self, conversation: Conversation, candidate: Candidate) -> Endings:
        named = self.modules or module_names([self.candidate_file])
        options: dict[str, Any] = {
            "framework": self.framework,
            "arguments": list(self.arguments),
            "modules": list(named),
            "others": [] if self.modules else list(module_names(candidate.files)),
            "call_seconds": self.call_seconds,
        }
        try:
            return await conversation.held(options)
        except (OSError, ValueError) as error:
            raise EvaluationError(f"judge and candidate cannot be started: {error}") from error


def suite_run(endings: Endings, seconds: float | None, submission: Submission, told: str) -> SuiteRun:
    """How the judge ended."""
    return SuiteRun(
        completed=endings.judge,
        seconds=seconds,
        expected=submission.expected,
        report_file="its report",
        hint=told,
    )


def results_of(judge: SuiteRun, endings: Endings, directory: str) -> tuple[CaseResult, ...]:
    """The cases of the judge's report.

    A judge that ended by itself without one is at fault itself: EvaluationError.
    """
    completed = judge.completed
    if not completed.report or completed.exceeded == "report":
        if judge.was_cut_off:
            return judge.without_report()
        said = " ".join(filter(None, (tail(completed.stderr, 2_000) or tail(completed.stdout, 2_000), judge.hint)))
        raise EvaluationError(f"the judge {ending(completed, judge.seconds) or 'ended'} and reported nothing\n{said}")
    results = read_json(completed.report.replace(directory.encode(), b"."))
    if not results:
        return judge.without_report()
    how = "" if endings.candidate is None else ending(endings.candidate, judge.seconds) or "ended with status 0"
    return judge.confirmed(tuple(with_ending(result, how) for result in results))


def with_ending(result: CaseResult, how: str) -> CaseResult:
    """The result, with how the candidate's process ended where that is its reason."""
    if not how or not result.message.startswith(GONE):
        return result
    return attrs.evolve(result, message=result.message.replace(GONE, f"the candidate's process {how}", 1))
