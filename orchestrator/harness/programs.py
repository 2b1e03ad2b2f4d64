"""What single programs do to paths and to the machine, as far as their arguments tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from orchestrator.harness.danger import Danger
from orchestrator.harness.invocations import Invocation, found_by
from orchestrator.harness.place import Place
from orchestrator.harness.words import Word

__all__ = ["dangers_of_program"]

Judge: TypeAlias = Callable[[Invocation, Place], Iterator[Danger]]

_INSIDE = "do it with the rights you have, inside the workspace"
_FORBIDDEN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("sudo", "doas", "su", "pkexec", "runuser"), "takes the rights of another user"),
    **dict.fromkeys(("chroot", "unshare", "nsenter", "mount", "umount"), "changes what the file system is"),
    **dict.fromkeys(
        ("fdisk", "sfdisk", "cfdisk", "parted", "wipefs", "mkswap", "blkdiscard", "mke2fs"), "destroys disks"
    ),
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff", "telinit", "init"), "stops the machine"),
    "killall5": "ends every process",
}
_STOPPING = frozenset({"poweroff", "reboot", "halt", "kexec", "rescue", "emergency", "suspend", "hibernate", "isolate"})
_OCTAL = re.compile(r"[0-7]{3,5}")
_SYMBOLIC = re.compile(r"([ugoa]*)[+=]([rwxXst]*)")
_CHMOD_OPTION = re.compile(r"-[Rvcf]+|--.*")
_OUTPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "curl": ("-o", "--output", "--output-dir"),
    "wget": ("-O", "--output-document", "-P", "--directory-prefix"),
    "tar": ("-C", "--directory"),
    "unzip": ("-d",),
    "sort": ("-o", "--output"),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++", "ld"), ("-o",)),
}
"""Options whose value is where a program writes."""


def dangers_of_program(invocation: Invocation, place: Place) -> Iterator[Danger]:
    """The dangers of one program; it is judged by its name, its options and its operands."""
    program = invocation.program
    if program in _FORBIDDEN or program.startswith("mkfs"):
        yield Danger(f"{program} {_FORBIDDEN.get(program, 'destroys disks')}", _INSIDE)
    if program in _JUDGES:
        yield from _JUDGES[program](invocation, place)
    for word in _outputs(invocation):
        yield from place.written(word)


def _removing(invocation: Invocation, place: Place) -> Iterator[Danger]:
    is_recursive = invocation.has_flag("rR", "--recursive")
    if invocation.has_flag("", "--no-preserve-root"):
        yield Danger("it asks to remove the root directory", "leave --no-preserve-root out")
    for word in invocation.operands:
        yield from place.removed(word, is_recursive=is_recursive)


def _unlinking(invocation: Invocation, place: Place) -> Iterator[Danger]:
    for word in invocation.operands:
        yield from place.removed(word, is_recursive=False)


def _moving(invocation: Invocation, place: Place) -> Iterator[Danger]:
    for word in invocation.operands:
        yield from place.changed(word, "moves")
    yield from _into_directory(invocation, place)


def _copying(invocation: Invocation, place: Place) -> Iterator[Danger]:
    for word in invocation.operands[-1:] if len(invocation.operands) > 1 else ():
        # A remote target of rsync or scp is no path of this machine.
        if not re.match(r"[\w.@-]+:", word.text):
            yield from place.written(word)
    yield from _into_directory(invocation, place)


def _into_directory(invocation: Invocation, place: Place) -> Iterator[Danger]:
    for word in _values(invocation, ("-t", "--target-directory")):
        yield from place.written(word)


def _writing(invocation: Invocation, place: Place) -> Iterator[Danger]:
    for word in invocation.operands:
        yield from place.written(word)


def _touching(invocation: Invocation, place: Place) -> Iterator[Danger]:
    skipped = {word.raw for word in _values(invocation, ("-d", "-t", "-r", "-s", "-m", "--size", "--date", "--mode"))}
    for word in invocation.operands:
        if word.raw not in skipped:
            yield from place.written(word)


def _editing(invocation: Invocation, place: Place) -> Iterator[Danger]:
    if not invocation.has_flag("i", "--in-place"):
        return
    scripts = list(_values(invocation, ("-e", "-f", "--expression", "--file")))
    operands = [word for word in invocation.operands if not any(word is script for script in scripts)]
    for word in operands[0 if scripts else 1 :]:
        yield from place.changed(word, "edits")


def _duplicating(invocation: Invocation, place: Place) -> Iterator[Danger]:
    for word in invocation.arguments:
        if word.text.startswith("of="):
            yield from place.written(attrs.evolve(word, text=word.text.removeprefix("of=")))


def _permitting(invocation: Invocation, place: Place) -> Iterator[Danger]:
    words = [word for word in invocation.arguments if not _CHMOD_OPTION.fullmatch(word.text)]
    if words and _is_for_everyone(words[0].text):
        yield Danger("it lets everyone write", "give the owner alone the right: chmod u+w")
    for word in words[1:]:
        yield from place.changed(word, "changes the rights of")


def _is_for_everyone(mode: str) -> bool:
    if _OCTAL.fullmatch(mode):
        return bool(int(mode[-1]) & 2)
    clauses = (_SYMBOLIC.match(clause) for clause in mode.split(","))
    return any(match and set(match[1]) & set("oa") and "w" in match[2] for match in clauses)


def _owning(invocation: Invocation, place: Place) -> Iterator[Danger]:
    for word in invocation.operands[1:]:
        yield from place.changed(word, "changes the owner of")


def _killing(invocation: Invocation, place: Place) -> Iterator[Danger]:  # noqa: ARG001 -- a judge's signature
    texts = [word.text for word in invocation.arguments if word.text != "--"]
    if texts[:1] == ["-s"] or texts[:1] == ["-n"]:
        texts = texts[2:]
    elif len(texts) > 1 and texts[0].startswith("-"):
        texts = texts[1:]
    if any(text in ("-1", "1", "0") for text in texts):
        yield Danger("it ends every process there is", "give the id of the process that you started")


def _controlling(invocation: Invocation, place: Place) -> Iterator[Danger]:  # noqa: ARG001 -- a judge's signature
    if any(word.text in _STOPPING for word in invocation.operands):
        yield Danger("it stops the machine", "leave the machine as it is")


def _finding(invocation: Invocation, place: Place) -> Iterator[Danger]:
    if any(word.text == "-delete" for word in invocation.arguments):
        for found in found_by(invocation.arguments):
            yield from place.removed(found, is_recursive=True)
    for word in _values(invocation, ("-fprint", "-fprint0", "-fprintf", "-fls")):
        yield from place.written(word)


def _synchronising(invocation: Invocation, place: Place) -> Iterator[Danger]:
    yield from _copying(invocation, place)
    if invocation.has_flag("", "--delete", "--delete-after", "--delete-excluded"):
        for word in invocation.operands[-1:]:
            yield from place.removed(word, is_recursive=True)


def _values(invocation: Invocation, options: tuple[str, ...]) -> Iterator[Word]:
    """The values of options, written apart from them or joined to them."""
    for index, word in enumerate(invocation.arguments):
        if word.text in options:
            yield from invocation.arguments[index + 1 : index + 2]
            continue
        for option in options:
            joint = option + "=" if option.startswith("--") else option
            if word.text.startswith(joint) and len(word.text) > len(joint) and not word.text.startswith("--" + option):
                yield attrs.evolve(word, text=word.text.removeprefix(joint))


def _outputs(invocation: Invocation) -> Iterator[Word]:
    for word in _values(invocation, _OUTPUTS.get(invocation.program, ())):
        # `-` is the output of the program itself.
        if word.text != "-":
            yield word


_JUDGES: Final[Mapping[str, Judge]] = {
    "rm": _removing,
    **dict.fromkeys(("rmdir", "unlink", "shred"), _unlinking),
    "mv": _moving,
    **dict.fromkeys(("cp", "ln", "install", "scp"), _copying),
    "rsync": _synchronising,
    **dict.fromkeys(("tee", "mkdir", "mkfifo"), _writing),
    **dict.fromkeys(("touch", "truncate"), _touching),
    "sed": _editing,
    "dd": _duplicating,
    "chmod": _permitting,
    **dict.fromkeys(("chown", "chgrp"), _owning),
    "kill": _killing,
    "systemctl": _controlling,
    "find": _finding,
}
