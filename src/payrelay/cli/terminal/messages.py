"""What commands say, the one way in which they fail, and their exit codes.

Standard output is for what was asked for; everything else goes to standard error.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Final, TypeVar

DONE: Final = 0
REFUSED: Final = 1
"""The exit code where the state of things forbids what was asked, or where the operator declined at the question."""
FAULTY: Final = 1
"""The exit code of a command that looks for faults and found one."""
UNUSABLE: Final = 2
"""The exit code of a command that could not begin: a wrong option, setting or database."""
NOT_FOUND: Final = 2
"""The exit code where nothing of the given name or id exists."""
UNCOVERED: Final = 3
"""The exit code of a command that found no fault, but could not look at everything."""
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C: 128 and the number of SIGINT, as of every program in a shell."""
PIPE_CLOSED: Final = 141
"""The exit code where the reader of the output went away: 128 and the number of SIGPIPE."""

STANDARD_STREAMS: Final = 3
PACKAGES_BESIDE: Final = {"payrelay_simulator": "simulator", "payrelay_tools": "tools"}
"""Packages of ours that are installed beside this one, each with the extra that brings it."""

FoundT = TypeVar("FoundT")


class CommandError(Exception):
    """Ends a command with one line on standard error.

    Args:
        text: what is wrong, without the name of the program in front.
        code: the exit code.
    """

    def __init__(self, text: str, code: int = UNUSABLE) -> None:
        super().__init__(text)
        self.code = code


def not_found(kind: str, name: str) -> CommandError:
    """Makes the error for a name or id that nothing has."""
    return CommandError(f"there is no {kind} {name}", NOT_FOUND)


def missing_package(error: ModuleNotFoundError) -> str:
    """Says which of the packages beside this one is missing, and how to install it; raises any other error again."""
    extra = PACKAGES_BESIDE.get(error.name or "")
    if extra is None:
        raise error
    return f"payrelay-{extra} is needed, which is not installed: pip install 'payrelay[{extra}]'"


def require_found(found: FoundT | None, kind: str, name: str) -> FoundT:
    """Gives what was found; raises CommandError where nothing, or nothing in a list, has the name or id."""
    if not found:
        raise not_found(kind, name)
    return found


def complain(text: str) -> None:
    """Writes on standard error, in one line, why something was not done."""
    sys.stderr.write(f"payrelay: {_plain(text)}\n")


def say(text: str) -> None:
    """Writes on standard error, in one line, what was done."""
    sys.stderr.write(f"{_plain(text)}\n")


def show(text: str) -> None:
    """Writes what was asked for on standard output, with a line break behind it."""
    sys.stdout.write(f"{text}\n")


def show_json(value: object) -> None:
    """Writes a value as JSON on standard output, for programs."""
    import msgspec

    show(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def logs_json(arguments: Sequence[str]) -> bool:
    """Tells whether a command line starts the service with a log of JSON, as ``serve`` decides it."""
    if arguments[:1] != ["serve"] or {"-h", "--help"} & set(arguments):
        return False
    formats = [*arguments, ""]
    named = next((after for one, after in zip(arguments, formats[1:], strict=False) if one == "--log-format"), "")
    named = next((one.partition("=")[2] for one in arguments if one.startswith("--log-format=")), named)
    return named == "json" or (named != "text" and not sys.stdout.isatty())


def show_version() -> None:
    """Writes the version of the program on standard output."""
    from importlib import metadata

    show(f"payrelay {metadata.version('payrelay')}")


def require_answerable(*, is_sure: bool, undone: str) -> None:
    """Raises CommandError where a question must be answered and nobody can: without ``--yes`` and without a terminal.

    ``undone`` says what was not done, such as ``nothing was erased``.
    """
    if not is_sure and not sys.stdin.isatty():
        raise CommandError(f"--yes is missing, and there is no terminal to ask on: {undone}")


def is_confirmed(question: str) -> bool:
    """Asks on standard error; only ``y`` or ``yes`` is a yes.

    Ctrl-C must end the question at once. The event loop would only note the signal and go on reading.
    """
    import signal

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    answer = ""
    try:
        sys.stderr.write(f"{question} [y/N]: ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)
        if not answer.endswith("\n"):
            sys.stderr.write("\n")
    return answer.strip().lower() in {"y", "yes"}


def _plain(text: str) -> str:
    """Gives a text in one line, without anything that a terminal would obey."""
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in text)


def prepare_streams() -> None:
    """Makes the standard streams safe to use, whatever started this program.

    A closed stream is replaced by the null device: otherwise the next file that is opened, such as the database, would
    get its number. A character that the encoding of the terminal lacks is written as an escape.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) < STANDARD_STREAMS:
        pass
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a test may have put something simpler there
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def abandon_output() -> None:
    """Sends what is left of the output nowhere, so that Python does not complain of a closed pipe when it ends."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123  a device
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
