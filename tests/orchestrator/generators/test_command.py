"""What a program as a generator promises."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import attrs
import pytest

from orchestrator.adapter_errors import CandidateRefusedError, GenerationError, GeneratorUnavailableError
from orchestrator.candidate import Candidate
from orchestrator.generators.command import CommandGenerator
from orchestrator.ports import Generation, Generator, Request
from orchestrator.process import CONTAINMENT
from orchestrator_events.budget import Usage

REQUEST = Request(
    run_id="run",
    attempt=2,
    prompt="Write ü.\n",
    parameters=MappingProxyType({"temperature": 0.5}),
    language="python",
    max_tokens=100,
    seconds=20,
    idempotency_key="run:2",
    spec_digest="ab",
)


def python(program: str) -> list[str]:
    """The command that runs a Python program given as text."""
    return [sys.executable, "-c", program]


def generate(generator: Generator, request: Request = REQUEST) -> Generation:
    """Ask a generator once."""
    return asyncio.run(generator.generate(request))


def test_the_prompt_goes_in_and_the_candidate_comes_out_byte_for_byte() -> None:
    """Nothing is added, stripped or translated on either way."""
    program = "import sys; sys.stdout.buffer.write(b'\\r\\n' + sys.stdin.buffer.read() + b' \\n')"
    assert generate(CommandGenerator(python(program))) == Generation(candidate=Candidate("\r\nWrite ü.\n \n"))


def test_a_command_may_be_one_text_but_no_shell_runs() -> None:
    """Quotes group words as in a shell; everything else is passed as it is written."""
    generator = CommandGenerator("printf '%s|' 'two words' $HOME ; *")
    assert generate(generator) == Generation(candidate=Candidate("two words|$HOME|;|*|"))


def test_the_whole_request_can_go_in_as_json() -> None:
    """One object with the fields of the request and the name of the protocol; the shorter time holds."""
    generator = CommandGenerator(python("import sys; sys.stdout.write(sys.stdin.read())"), input="json", seconds=7)
    assert json.loads(generate(generator).candidate.text) == {
        "protocol": "orchestrator.request/1",
        "run_id": "run",
        "attempt": 2,
        "prompt": "Write ü.\n",
        "parameters": {"temperature": 0.5},
        "language": "python",
        "max_tokens": 100,
        "seconds": 7,
        "idempotency_key": "run:2",
        "spec_digest": "ab",
    }


def answering(text: str) -> CommandGenerator:
    """A generator that answers with a JSON text."""
    return CommandGenerator([*python("import sys; sys.stdout.write(sys.argv[1])"), text], output="json")


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        ('{"candidate": "x\\r\\n"}', Generation(candidate=Candidate("x\r\n"))),
        ('{"files": {"a/b.py": "x"}}', Generation(candidate=Candidate(files={"a/b.py": "x"}))),
        (
            '{"candidate": "x", "usage": {"input_tokens": 1, "output_tokens": 0}}',
            Generation(candidate=Candidate("x"), usage=Usage(input_tokens=1, output_tokens=0)),
        ),
    ],
)
def test_an_answer_can_come_as_json(text: str, generation: Generation) -> None:
    """A candidate of one text or of files, and what the call used."""
    assert generate(answering(text)) == generation


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not json", "line 1, column 1"),
        ("[]", "expected a table, found an array"),
        ("{}", 'either "candidate" or "files"'),
        ('{"candidate": "x", "files": {"a": "x"}}', 'either "candidate" or "files"'),
        ('{"candidate": 7}', r"\$\.candidate: expected a string, found an integer 7"),
        ('{"candidate": "x", "candidates": "y"}', r"\$\.candidates: unknown key \(did you mean 'candidate'"),
        ('{"candidate": "x", "candidate": "y"}', "given more than once"),
        ('{"candidate": "\\ud800"}', "lone surrogate"),
        ('{"candidate": "x", "usage": {"input_tokens": true}}', "found a boolean True"),
        ('{"candidate": "x", "usage": {"input_tokens": -1}}', "must be 0 or more, found -1"),
        ('{"candidate": "x", "usage": {"input_tokens": 1.5}}', "found a number 1.5"),
        ('{"candidate": "x", "usage": {"input_tokens": NaN}}', "not finite"),
        ('{"candidate": "x", "usage": {"input_tokens": 1e999}}', "not finite"),
        ('{"candidate": "x", "usage": {"input_tokens": ' + "9" * 4301 + "}}", "beyond 2"),
        ('{"candidate": "x", "usage": {"input_tokens": "1"}}', "found a string '1'"),
        ("[" * 60_000, "nested deeper"),
        ('{"candidate": "x"} {"candidate": "y"}', "Extra data"),
        ('{"files": {"../a": "x"}}', "as a part of its path"),
        ('{"files": {"a": 1}}', r"\$\.files\.a: expected a string"),
    ],
)
def test_json_that_is_not_an_answer_is_a_failed_generation(text: str, reason: str) -> None:
    """Every way in which JSON can be wrong or ambiguous is told as a reason, with its place."""
    with pytest.raises(GenerationError, match=reason):
        generate(answering(text))


def test_files_are_what_the_program_leaves_in_an_empty_directory(tmp_path: Path) -> None:
    """Whatever it prints is not the candidate; the directory is gone afterwards."""
    program = (
        "import os, pathlib\n"
        "assert os.listdir() == []\n"
        "pathlib.Path('pack').mkdir(); pathlib.Path('pack/a.py').write_text('x')\n"
        f"pathlib.Path({str(tmp_path / 'where')!r}).write_text(os.getcwd())\n"
        "print('chatter')"
    )
    generation = generate(CommandGenerator(python(program), output="files", launcher=CONTAINMENT))
    assert generation == Generation(candidate=Candidate(files={"pack/a.py": "x"}))
    assert not Path((tmp_path / "where").read_text()).exists()


def test_a_relative_program_is_found_although_it_starts_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In files mode `./generate` still is the one beside the host."""
    script = tmp_path / "generate"
    script.write_text("#!/bin/sh\necho x > a.py\n")
    script.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    generation = generate(CommandGenerator("./generate", output="files"))
    assert generation == Generation(candidate=Candidate(files={"a.py": "x\n"}))
    assert sorted(os.listdir(tmp_path)) == ["generate"]


def test_files_that_are_no_plain_files_are_refused() -> None:
    """A link to something of the host is not read."""
    program = "import os; os.symlink('/etc/passwd', 'a.py')"
    with pytest.raises(GenerationError, match="not a regular file"):
        generate(CommandGenerator(python(program), output="files"))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("sys.stderr.write('\\x1b[31mno key\\x1b[0m\\n'); print('half')", "mine ended with status 3:\nno key"),
        ("print('Please log in')", "mine ended with status 3:\nPlease log in"),
        ("print('Please log in'); sys.stderr.write(' \\n')", "mine ended with status 3:\nPlease log in"),
        ("pass", "mine ended with status 3"),
    ],
)
def test_a_failing_program_is_quoted(program: str, reason: str) -> None:
    """Exit status and last words are in the reason, whichever stream they are on, and nothing a terminal acts on."""
    generator = CommandGenerator(python(f"import sys; {program}; sys.exit(3)"), name="mine", launcher=CONTAINMENT)
    with pytest.raises(GenerationError) as caught:
        generate(generator)
    assert caught.value.reason == reason


@pytest.mark.parametrize("output", ["text", "files"])
def test_a_program_without_its_executable_bit_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: Literal["text", "files"]
) -> None:
    """The remedy is the command to type, and nothing about a sandbox."""
    (tmp_path / "model.sh").write_text("#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GeneratorUnavailableError) as caught:
        generate(CommandGenerator("./model.sh", output=output))
    named = "./model.sh" if output == "text" else str(tmp_path / "model.sh")
    assert str(caught.value) == f"{named!r} cannot be started: it is not executable: chmod +x {named}"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os; os.abort()", "mine was killed by SIGABRT"),
        ("import os; os.kill(os.getpid(), 9)", "mine was killed by SIGKILL"),
        ("raise SystemExit(137)", "mine ended with status 137"),
        ("pass", "mine ended well but wrote nothing to standard output"),
        ("print()", "mine ended well but wrote nothing to standard output"),
        ("import os; os.write(1, b'ok\\xff')", "mine wrote what is not UTF-8 at byte 2"),
        ("import time; time.sleep(60)", "mine timed out after 0.3 s"),
        ("while True: print('x' * 999)", "mine was stopped because it wrote too much to stdout"),
        (
            "import os\nwhile True: os.write(2, b'x' * 9999)",
            "mine was stopped because it wrote too much to stderr",
        ),
    ],
)  # fmt: skip
def test_every_bad_ending_has_its_own_reason(program: str, reason: str) -> None:
    """A crash, a kill, a forged status, silence, rubbish, a hang and a flood are told apart."""
    quick = attrs.evolve(REQUEST, seconds=0.3) if "timed out" in reason else REQUEST
    with pytest.raises(GenerationError) as caught:
        generate(CommandGenerator(python(program), name="mine", output_limit=50_000), quick)
    assert caught.value.reason.partition(":\n")[0] == reason


@pytest.mark.parametrize("command", ["no-such-program-anywhere", "/etc/passwd", "/no/such/program"])
def test_a_program_that_cannot_start_makes_the_generator_unavailable(command: str) -> None:
    """Trying again would not help, and the message names the program."""
    with pytest.raises(GeneratorUnavailableError, match=command):
        generate(CommandGenerator(command))


def test_only_named_variables_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator gets its own key and no other secret."""
    monkeypatch.setenv("MY_KEY", "mine")
    monkeypatch.setenv("OTHER_KEY", "secret")
    program = "import os; print([os.environ.get(name) for name in ('MY_KEY', 'OTHER_KEY', 'ADDED')])"
    generator = CommandGenerator(python(program), environment=["MY_KEY"], extra_environment={"ADDED": "a"})
    assert generate(generator).candidate.text == "['mine', None, 'a']\n"
    assert "extra_environment" not in repr(generator)


def test_it_runs_where_it_is_told(tmp_path: Path) -> None:
    """`cwd` is the program's working directory."""
    assert generate(CommandGenerator("pwd", cwd=tmp_path)).candidate.text == f"{tmp_path}\n"


def test_its_name_tells_commands_apart_without_quoting_them() -> None:
    """The default name holds no argument, since arguments may be secret; equal commands have equal names."""
    one, same, other = (CommandGenerator(f"/usr/bin/llm -k {key}").name for key in ("a", "a", "b"))
    assert (one, one[:4], one == other) == (same, "llm#", False)


def test_it_says_what_it_runs_under() -> None:
    """Nothing is claimed before it was found; the level is known as soon as it was asked for."""
    generator = CommandGenerator("true", max_prompt_characters=10, launcher=CONTAINMENT)
    before = generator.isolation
    asyncio.run(generator.isolate())
    found = (before, generator.isolation, generator.max_prompt_characters)
    assert found == ("none", "basic (containment)", 10)


@pytest.mark.parametrize("command", ["", [], [""], ["a\0b"], "'unclosed"])
def test_a_command_that_cannot_be_is_refused_at_once(command: str | list[str]) -> None:
    """An empty or malformed command is the host's mistake, told where it is made."""
    with pytest.raises(ValueError, match=r"command|quotation"):
        CommandGenerator(command)


def test_a_form_that_does_not_exist_is_refused_at_once() -> None:
    """The message lists what there is."""
    with pytest.raises(ValueError, match="choose one of text, json, files"):
        CommandGenerator("true", output="yaml")  # type: ignore[arg-type] # the mistake under test
    with pytest.raises(TypeError, match="must be a list of names"):
        CommandGenerator("true", environment="KEY")


def test_an_unsafe_file_name_is_the_candidates_fault() -> None:
    """What the program leaves is held to the same rules as what it names in JSON."""
    program = "open('CON', 'w').write('x')"
    with pytest.raises(CandidateRefusedError, match="reserved name"):
        generate(CommandGenerator(python(program), output="files"))
