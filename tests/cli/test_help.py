"""What help says of each command: its purpose, and examples that are right."""

import re
import shlex
from collections.abc import Iterator

import pytest
import typer
from tests.cli.commands import Run
from typer.core import TyperCommand, TyperGroup

from payrelay.cli.main import FILES, commands

WIDTH = 80


def walked(group: TyperGroup, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    """Gives every command with the names by which it is typed."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from walked(command, (*names, name))
        else:
            assert isinstance(command, TyperCommand)
            yield (*names, name), command


COMMANDS = dict(walked(commands))


def calls(text: str) -> list[list[str]]:
    """Gives the arguments of each call of an example, without what the shell does around it."""
    lines = text.replace("\\\n", " ").splitlines()[2:]
    return [shlex.split(call, comments=True)[1:] for line in lines for call in re.findall(r"payrelay [^)>]*", line)]


def parsed(arguments: list[str]) -> tuple[str, ...]:
    """Parses a call without running it; gives the names of its command. Raises where the command has no such option."""
    names: tuple[str, ...] = ()
    rest, group = arguments, commands
    context = group.make_context("payrelay", list(arguments))
    while rest:
        name, command, rest = group.resolve_command(context, rest)
        assert command is not None
        names = (*names, str(name))
        if not isinstance(command, TyperGroup):
            command.make_context(str(name), rest, parent=context)
            break
        group = command
    return names


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_every_command_has_a_purpose_and_examples_that_can_be_copied(names: tuple[str, ...]) -> None:
    """An example with an option that is gone is worse than none; this one parses it as the program would."""
    command = COMMANDS[names]

    assert (command.help or "").partition("\n\n")[0].endswith(".")
    found = calls(command.epilog or "")
    assert found != []
    assert {parsed(arguments) for arguments in found} == {names}


@pytest.mark.parametrize("names", [(), *(tuple(name.split()) for name in FILES), *COMMANDS], ids=" ".join)
def test_help_is_readable_on_a_usual_terminal(run: Run, names: tuple[str, ...]) -> None:
    """No line is wider than 80 columns, no sentence of a list is cut off, and ``-h`` is enough everywhere."""
    ran = run(*names, "-h", COLUMNS=str(WIDTH))

    assert (ran.code, ran.err) == (0, "")
    below_usage = ran.out.partition("\n\n")[2].splitlines()
    assert [line for line in below_usage if len(line) > WIDTH or line.endswith("...")] == []
    assert run(*names, "--help", COLUMNS=str(WIDTH)) == ran
