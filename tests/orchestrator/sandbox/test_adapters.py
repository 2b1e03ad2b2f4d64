"""What programs as generators and evaluators promise in a sandbox, and without one."""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from orchestrator.adapter_errors import EvaluationError, GenerationError
from orchestrator.agent.ports import CallRequest
from orchestrator.agent.workspace import RunCommand, Workspace
from orchestrator.candidate import Candidate
from orchestrator.engine import Orchestrator
from orchestrator.errors import IsolationRefusedError
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.generators.command import CommandGenerator
from orchestrator.generators.process import ProcessGenerator
from orchestrator.narration import told
from orchestrator.ports import Generation, Request, Submission, Verdict
from orchestrator.process import CONTAINMENT
from orchestrator.sandbox.choice import SandboxChoice
from orchestrator.spec import EvalCase, MergedSpec
from orchestrator.testing import RecordingSubscriber, ScriptedEvaluator
from orchestrator.workspace import UnsafeFileError, file_in_archive, read_archive
from orchestrator_events.budget import Budget
from orchestrator_events.run import AttemptFailed

REQUEST = Request(
    run_id="run",
    attempt=1,
    prompt="Do it.",
    parameters=MappingProxyType({}),
    language="python",
    max_tokens=None,
    seconds=20,
    idempotency_key="run:1",
    spec_digest="ab",
)
PASSING = '{"protocol": "orchestrator.report/1", "cases": [{"id": "a", "status": "passed"}]}'
FAILING = PASSING.replace("passed", "failed")
STRONG = SandboxChoice(backend="bubblewrap")


def generate(command: list[str], **options: Any) -> Generation:
    """Ask a program once, in bubblewrap unless told otherwise."""
    generator = CommandGenerator(command, **{"sandbox": STRONG, **options})
    try:
        return asyncio.run(generator.generate(REQUEST))
    except IsolationRefusedError as error:
        pytest.skip(str(error))


def judge(program: str, *words: str, suite: Path | Mapping[str, str] = MappingProxyType({}), **options: Any) -> Verdict:
    """What a suite that is a Python program says, in bubblewrap unless told otherwise."""
    evaluator = CommandEvaluator(
        ["{python}", "-c", program, *words],
        suite=suite,
        candidate_file="a.py",
        report="json",
        report_file="report.json",
        **{"sandbox": STRONG, **options},
    )
    spec = MergedSpec(intent="Do it.", evals=(EvalCase(name="a"),))
    submission = Submission(
        run_id="run", attempt=1, candidate=Candidate("x"), spec=spec, language="python", seconds=None
    )
    try:
        return asyncio.run(evaluator.evaluate(submission))
    except IsolationRefusedError as error:
        pytest.skip(str(error))


def writing(path: str, text: str) -> str:
    """A program that writes a file."""
    return f"open({path!r}, 'w').write({text!r})\n"


LEVELS = pytest.mark.parametrize("options", [{}, {"launcher": CONTAINMENT}], ids=["strong", "basic"])


@LEVELS
def test_files_come_out(options: dict[str, Any]) -> None:
    """Every plain file that a generator leaves, whatever its permissions and however deep."""
    program = "import os; os.makedirs('a/b'); " + writing("a/b/c.py", "ü\n") + "os.chmod('a/b/c.py', 0o400)"
    generation = generate([sys.executable, "-c", program], output="files", **options)
    assert generation == Generation(candidate=Candidate(files={"a/b/c.py": "ü\n"}))


@LEVELS
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os; os.symlink('/etc/passwd', 'a')", "left 'a', which is not a regular file"),
        ("import os; os.mkfifo('a')", "left 'a', which is not a regular file"),
        ("open('a', 'wb').write(b'\\xff')", "left 'a', which is not UTF-8 at byte 0"),
        ("open('a', 'w').write('x' * 2000)", "left 'a', which is too large"),
        ("[open(str(number), 'w').write('x') for number in range(1200)]", "left more than|which is too large"),
        ("open('CON', 'w').write('x')", "reserved name"),
        ("import os; open('a', 'w').write('x'); os.link('a', 'b')", "which is (not a regular file|a hard link)"),
    ],
)
def test_what_is_no_plain_file_is_refused(options: dict[str, Any], program: str, reason: str) -> None:
    """Links, pipes, binary data and floods cost the attempt, and nothing of them is used."""
    with pytest.raises(GenerationError, match=reason):
        generate([sys.executable, "-c", program], output="files", output_limit=1000, **options)


def archive(**members: tuple[bytes, bytes]) -> bytes:
    """A tar stream of members: type and content by name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        for name, (kind, content) in members.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("up", ".."))
            member.type, member.size, member.linkname = kind, len(content), "/etc/passwd"
            file.addfile(member, io.BytesIO(content))
    return stream.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        archive(up__a=(tarfile.REGTYPE, b"x")),
        archive(__etc__a=(tarfile.REGTYPE, b"x")),
        archive(a=(tarfile.LNKTYPE, b"")),
        archive(a=(tarfile.SYMTYPE, b"")),
        archive(a=(tarfile.CHRTYPE, b"")),
        archive(a=(tarfile.GNUTYPE_SPARSE, b"x" * 600)),
        archive(a=(tarfile.REGTYPE, b"x")) [:1024] + archive(a=(tarfile.REGTYPE, b"y")),
        archive(a=(tarfile.REGTYPE, b"x" * 2000))[:1500],
        b"x" * 1024,
        b"\x80" + b"\xff" * 511,
    ],
)  # fmt: skip
def test_an_archive_is_not_trusted(data: bytes) -> None:
    """Names that lead out, links, devices, holes, doubles and rubbish are all refused before anything is used."""
    with pytest.raises(GenerationError):
        read_archive(data, 1000)


def test_one_file_of_an_archive_is_taken_only_when_it_is_plain() -> None:
    """Absent, twice, a link and too large are told apart."""
    twice = archive(a=(tarfile.REGTYPE, b"x"))[:1024] + archive(a=(tarfile.REGTYPE, b"y"))
    assert file_in_archive(archive(a=(tarfile.REGTYPE, b"x")), "a", 1) == b"x"
    with pytest.raises(FileNotFoundError):
        file_in_archive(b"", "a", 1)
    for data, reason in (
        (twice, "more than once"),
        (archive(a=(tarfile.SYMTYPE, b"")), "not a regular file"),
        (archive(a=(tarfile.REGTYPE, b"xy")), "too large"),
    ):
        with pytest.raises(UnsafeFileError, match=reason):
            file_in_archive(data, "a", 1)


@LEVELS
def test_a_report_may_come_by_the_pipe_or_lie_beside_the_suite(options: dict[str, Any]) -> None:
    """With `{report}` in the command it is written to the pipe, without it to the report file."""
    by_pipe = judge(f"import sys; open(sys.argv[1], 'w').write({PASSING!r})", "{report}", **options)
    beside = judge(writing("report.json", PASSING), **options)
    assert [result.status.value for result in (*by_pipe.results, *beside.results)] == ["passed", "passed"]
    assert by_pipe.isolation == beside.isolation


def test_a_suite_is_read_only_or_a_copy() -> None:
    """Writes beside the suite fail where the report comes by the pipe, unless scratch is chosen; TMPDIR is free."""
    program = (
        "import os, sys, tempfile\n"
        "tempfile.mkstemp()\n"
        "try: open('beside', 'w')\n"
        f"except OSError: text = {FAILING!r}\n"
        f"else: text = {PASSING!r}\n"
        "open(sys.argv[1], 'w').write(text)"
    )
    found = [judge(program, "{report}", work=work).results[0].status.value for work in ("", "scratch")]
    assert found == ["failed", "passed"]


def test_a_suite_that_was_changed_gives_no_verdict(tmp_path: Path) -> None:
    """Where nothing keeps a candidate from the suite's files, they are compared; new files are nobody's concern."""
    (tmp_path / "cases.txt").write_text("all")
    honest = judge(writing("new", "x") + writing("report.json", PASSING), suite=tmp_path, launcher=CONTAINMENT)
    assert honest.results[0].status.value == "passed"
    with pytest.raises(EvaluationError, match=r"own files were changed while it ran: cases\.txt"):
        judge(writing("cases.txt", "none") + writing("report.json", PASSING), suite=tmp_path, launcher=CONTAINMENT)
    assert (tmp_path / "cases.txt").read_text() == "all"


def test_a_program_that_misses_something_gets_a_hint(tmp_path: Path) -> None:
    """The host learns what is visible, and how to show more; the words that a prompt shows are the program's own."""
    tool = tmp_path / "data"
    tool.write_text("x")
    program = f"print(open({str(tool)[1:]!r}.join(['/', ''])).read())"
    with pytest.raises(GenerationError, match=r"(?s)No such file or directory: '[^']*'\Z") as caught:
        generate([sys.executable, "-c", program], cwd=Path("/usr"))
    assert re.fullmatch(r"\(in the sandbox it sees .*`readable`.*\)", caught.value.remedy)
    assert generate([sys.executable, "-c", program], cwd=Path("/usr"), readable=[tool]).candidate.text == "x\n"


def test_a_program_that_just_fails_gets_the_remedies_too() -> None:
    """Many programs do not say that a file or a variable of theirs is missing."""
    with pytest.raises(GenerationError) as caught:
        generate([sys.executable, "-c", "print('Please log in'); raise SystemExit(1)"])
    _, said = str(caught.value).splitlines()
    remedies = [f"`{name}`" in caught.value.remedy for name in ("readable", "environment", "sandbox")]
    assert (said, remedies) == ("Please log in", [True, True, True])


def test_a_program_that_misses_the_network_gets_a_hint() -> None:
    """A generator without network cannot even reach the loopback."""
    program = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"
    with pytest.raises(GenerationError) as caught:
        generate([sys.executable, "-c", program], network="none")
    assert caught.value.remedy == "(in the sandbox it has no network)"


@pytest.mark.parametrize("kind", ["command", "function"])
def test_a_remedy_is_for_the_host_alone(kind: str, tmp_path: Path) -> None:
    """Journal, result and the words for people hold it; the prompt that follows tells what the program said alone."""
    (tmp_path / "failing.py").write_text("def candidate(request):\n    open('/hidden/away')\n")
    made: Any = (
        CommandGenerator([sys.executable, "-c", "open('/hidden/away')"], cwd=tmp_path, sandbox=STRONG)
        if kind == "command"
        else ProcessGenerator("failing:candidate", path=[tmp_path], cwd=tmp_path, sandbox=STRONG)
    )
    recorder = RecordingSubscriber()
    orchestrator = Orchestrator(generator=made, evaluator=ScriptedEvaluator([]), budget=Budget(attempts=2))
    orchestrator.bus.subscribe(recorder)
    try:
        result = orchestrator.run(MergedSpec(intent="Do it.", evals=(EvalCase(name="a"),)))
    except IsolationRefusedError as error:
        pytest.skip(str(error))
    failures = [record.event for record in recorder.records if isinstance(record.event, AttemptFailed)]
    remedy, prompt = failures[0].remedy, result.history[1].prompt
    assert re.fullmatch(r"\(in the sandbox it sees .*`readable`.*\)", remedy)
    assert [each["remedy"] for each in result.as_json()["history"]] == [remedy, remedy]
    assert remedy in told(failures[0])
    assert ["No such file or directory: '/hidden/away'" in prompt, "in the sandbox" in prompt] == [True, False]


def test_a_hidden_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in the home directory is visible by itself; its neighbours are not."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, script in (("tool", '#!/bin/sh\n"$(dirname "$0")/other"\n'), ("other", "#!/bin/sh\necho x\n")):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    with pytest.raises(GenerationError) as caught:
        generate([str(tmp_path / "tool")], cwd=Path("/usr"))
    assert "`readable`" in caught.value.remedy
    shown = generate([str(tmp_path / "tool")], cwd=Path("/usr"), readable=["~/other"])
    assert shown == Generation(candidate=Candidate("x\n"))


def test_isolation_is_found_before_the_first_call_and_may_be_refused() -> None:
    """The level is required before anything is spent."""
    for adapter in (
        CommandGenerator("true", launcher=CONTAINMENT),
        CommandEvaluator("true", suite={}, launcher=CONTAINMENT),
    ):
        assert asyncio.run(adapter.isolate("basic")) == CONTAINMENT.isolation
        with pytest.raises(IsolationRefusedError, match=r"strong is required, and the launcher .* basic"):
            asyncio.run(adapter.isolate("strong"))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: CommandGenerator("true", network="some"), "choose host or none"),  # type: ignore[arg-type]
        (lambda: CommandEvaluator("true", suite={}, work="free"), "choose read-only or scratch"),  # type: ignore[arg-type]
        (lambda: CommandGenerator("true", readable="/opt"), "must be a list of paths"),
    ],
)
def test_wrong_options_are_refused_at_once(make: Any, reason: str) -> None:
    """The message lists what there is."""
    with pytest.raises((ValueError, TypeError), match=reason):
        make()


def test_nothing_is_left_on_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither files nor mounts nor descriptors stay behind."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    judge("pass", "{report}")
    before, mounts = set(os.listdir("/proc/self/fd")), Path("/proc/self/mounts").read_text()
    judge("pass", "{report}")
    generate([sys.executable, "-c", writing("a", "x")], output="files")
    assert (set(os.listdir("/proc/self/fd")), Path("/proc/self/mounts").read_text()) == (before, mounts)
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_told_what_its_command_cannot_see_and_no_setting(tmp_path: Path) -> None:
    """What to change about the sandbox is the host's to know; the model that asked for the command gets the fact."""
    run = RunCommand(Workspace(tmp_path), sandbox=STRONG)
    request = CallRequest(run_id="run", call_id="call", arguments={"command": "cat /hidden/away"}, seconds=20)
    try:
        outcome = asyncio.run(run.call(request))
    except IsolationRefusedError as error:
        pytest.skip(str(error))
    said = str(outcome.output).splitlines()
    assert said[-1] == "(in the sandbox it sees the system and its own directory, and writes there and to /tmp only)"
