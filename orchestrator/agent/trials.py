"""Tools that try what stands in an agent's workspace: a command that runs in it, an eval suite that judges it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from orchestrator.adapter_errors import GenerationError
from orchestrator.agent.ports import CallRequest, ToolOutcome
from orchestrator.agent.toolcalls import done, failed, schema_of, text_in
from orchestrator.agent.workplace import FILE_LIMIT, Workspace, candidate_in
from orchestrator.commandline import ending, shorter
from orchestrator.environment import DEFAULT_ALLOWED, clean_environment, variable_names
from orchestrator.evaluators.callable import as_evaluator
from orchestrator.excerpt import excerpt
from orchestrator.isolating import isolation_of
from orchestrator.jsondata import JSON
from orchestrator.judgement import Expectation, judge
from orchestrator.paths import MOST_FILES
from orchestrator.ports import Evaluator, Submission
from orchestrator.process import Completed, run_process
from orchestrator.sandbox.choice import SandboxChoice, absolute_paths, chosen, hint
from orchestrator.sandbox.port import ALL_FILES, GENERATOR, Launcher, Limits, Place, Profile
from orchestrator.spec import MergedSpec
from orchestrator.verdicts import checked_verdict
from orchestrator_events.isolation import Isolation

__all__ = ["RunCommand", "VerifyProgress"]

SHOWN_CASES: Final = 20
"""Failing cases that a verification shows."""
ARCHIVE_OVERHEAD: Final = 2048 * MOST_FILES
"""What a tar stream of files takes beside their content, bytes."""


@attrs.define(eq=False)
class RunCommand:
    """Runs a shell command in the workspace, in the best sandbox that works here.

    In a sandbox it works on a copy, which nothing of the host can be changed from; the plain files that it leaves
    are brought out when it has ended, and nothing of a command that had to be stopped. Without one it works in the
    directory itself. The exit status is in the structured result.
    """

    workspace: Workspace
    name: str = attrs.field(default="run_command", kw_only=True)
    seconds: float = attrs.field(default=60.0, kw_only=True)
    """What one command may take; the shorter of this and what the call has holds."""
    output_limit: int = attrs.field(default=1_000_000, kw_only=True)
    """What it may write to each output stream, bytes; one that writes more is stopped."""
    environment: tuple[str, ...] = attrs.field(default=(), converter=variable_names, kw_only=True)
    """Names of variables to pass on beside the harmless ones."""
    network: bool = attrs.field(default=False, kw_only=True)
    readable: tuple[Path, ...] = attrs.field(default=(), converter=absolute_paths, kw_only=True)
    """What a command may read beside the workspace and the system: compilers, libraries."""
    workspace_limit: int = attrs.field(default=64_000_000, kw_only=True)
    """Largest sum of the files that a command leaves, bytes."""
    limits: Limits = attrs.field(default=GENERATOR.limits, kw_only=True)
    sandbox: SandboxChoice = attrs.field(default=SandboxChoice(), kw_only=True)
    launcher: Launcher | None = attrs.field(default=None, kw_only=True)
    description: str = attrs.field(
        default="Run a shell command in the workspace and read what it writes.", kw_only=True
    )
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: schema_of({"command": {"type": "string"}}), kw_only=True)
    is_idempotent: bool = attrs.field(default=False, init=False)

    @property
    def profile(self) -> Profile:
        """What a command may do."""
        return Profile(
            name="agent",
            network=self.network,
            readable=self.readable,
            limits=self.limits,
            owns_files=False,
        )

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the commands, found by trying; IsolationRefusedError when it is weaker than `require`."""
        self.launcher = await chosen(self.launcher, self.profile, self.sandbox, require)
        return self.launcher.isolation

    async def call(self, request: CallRequest) -> ToolOutcome:
        """Run it to its end."""
        try:
            command = text_in(request, "command")
        except ValueError as error:
            return failed(error)
        if "\0" in command:
            return ToolOutcome(is_success=False, output="the command holds a NUL character: leave it out")
        await self.isolate()
        launcher, seconds = self.launcher, shorter(self.seconds, request.seconds)
        assert launcher is not None
        completed = await self.run(launcher, command, seconds)
        problems = [ending(completed, seconds)]
        if launcher.collects:
            problems += self.brought_out(completed)
        said = (
            excerpt(each.decode(errors="replace"), self.output_limit) for each in (completed.stdout, completed.stderr)
        )
        told = [f"(the command {problems[0]})"] if problems[0] else []
        told += [f"(left out: {problem})" for problem in problems[1:]]
        told.append(hint(launcher, self.profile, completed.stderr, is_for_model=True))
        status: JSON = {"status": completed.returncode, "timed_out": completed.timed_out, "cut_off": completed.exceeded}
        output = "\n".join(filter(None, (*(text.strip() for text in said), *told))) or "(it wrote nothing)"
        return ToolOutcome(is_success=not problems[0], output=output, data=status)

    async def run(self, launcher: Launcher, command: str, seconds: float | None) -> Completed:
        """Run it to its end."""
        directory = self.workspace.directory
        return await run_process(
            ["/bin/sh", "-c", command],
            cwd=directory,
            environment=clean_environment((*DEFAULT_ALLOWED, *self.environment)),
            seconds=seconds,
            stdout_limit=self.output_limit,
            stderr_limit=self.output_limit,
            launcher=launcher,
            place=Place(directory=directory, profile=self.profile, work="scratch", collects=ALL_FILES),
            report_limit=self.workspace_limit + ARCHIVE_OVERHEAD if launcher.collects else None,
        )

    def brought_out(self, completed: Completed) -> list[str]:
        """Take what a command left in its copy; what of it stays out, and why."""
        if completed.timed_out or completed.exceeded or not completed.report:
            return ["every change that it made, since it was stopped"]
        try:
            return list(self.workspace.take(completed.report))
        except ValueError as error:
            return [str(error)]


@attrs.define(eq=False)
class VerifyProgress:
    """Runs an eval suite on the files as they stand; the counts are structured, and no text is ever parsed for them.

    Done means that there is a verdict, whatever it is; `data` has `passed`, `total` and `failing`. An empty suite
    is no verdict.
    """

    workspace: Workspace
    evaluator: Evaluator = attrs.field(converter=as_evaluator)
    spec: MergedSpec
    name: str = attrs.field(default="verify_progress", kw_only=True)
    expected: frozenset[str] | None = attrs.field(default=None, kw_only=True)
    """Ids that must pass; None: those that the spec names, or whichever are reported."""
    language: str = attrs.field(default="python", kw_only=True)
    candidate_file: str = attrs.field(default="", kw_only=True)
    """The one file that is judged, as a text; empty: all of them."""
    limit: int = attrs.field(default=FILE_LIMIT, kw_only=True)
    """Largest sum of all files, bytes."""
    description: str = attrs.field(default="Run the tests on the workspace and say which fail.", kw_only=True)
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: schema_of({}), kw_only=True)
    is_idempotent: bool = attrs.field(default=True, init=False)

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the suite; IsolationRefusedError when it is weaker than `require`."""
        return await isolation_of(self.evaluator, "the evaluator", require)

    async def call(self, request: CallRequest) -> ToolOutcome:
        """What the suite says."""
        try:
            candidate = candidate_in(self.workspace, self.candidate_file, self.limit)
        except (GenerationError, ValueError, OSError) as error:
            return failed(error)
        expected = self.expected or self.spec.expected_cases
        verdict = await self.evaluator.evaluate(
            Submission(
                run_id=request.run_id,
                attempt=1,
                candidate=candidate,
                spec=self.spec,
                expected=expected,
                language=self.language,
                seconds=request.seconds,
            )
        )
        rule = Expectation(expected=expected, controls=frozenset(), severity_of=self.spec.severity_of)
        judgement = judge(checked_verdict(verdict, expected), rule)
        passed, failing = len(judgement.passed), judgement.failing
        cases: list[JSON] = [{"id": case.id, "status": str(case.status), "message": case.message} for case in failing]
        lines = [f"{passed} of {passed + len(failing)} cases passed"]
        lines += [f"- {case.id} {case.status}: {excerpt(case.message, 500)}" for case in failing[:SHOWN_CASES]]
        lines += [f"- and {len(failing) - SHOWN_CASES} more"] if len(failing) > SHOWN_CASES else []
        return done("\n".join(lines), {"passed": passed, "total": passed + len(failing), "failing": cases})
