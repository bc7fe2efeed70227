"""The commands for principals: who acts together, under which names, beside a running server."""

from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited, examples, group
from payrelay.cli.terminal.messages import DONE, say, show_json
from payrelay.clock import Clock

if TYPE_CHECKING:
    from payrelay.cli.terminal.pages import Cell
    from payrelay.flows.operators.manage_principals import PrincipalSummary

app = group("principals", "Principals: who owns what, and who acts together.")

Members = Annotated[list[str], typer.Argument(metavar="PRINCIPAL", help="The names, as `principals list` shows them.")]


@app.command("list", epilog=examples("payrelay principals list", "payrelay principals list --json"))
@awaited
async def list_all(*, as_json: Json = False) -> int:
    """List the principals and their groups."""
    from payrelay.cli.terminal.pages import Page, table
    from payrelay.flows.operators.manage_principals import list_principals

    async with session(read_settings()) as relay:
        summaries = await list_principals(relay.access.principals)
    if as_json:
        show_json({"principals": summaries})
        return DONE
    empty = "Nothing here: no key was made yet."
    Page().write(table(("name", "stored as", "group"), map(_row, summaries), empty=empty))
    return DONE


@app.command("group", epilog=examples("payrelay principals group shop web support"))
@awaited
async def put_into_group(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The group's name; a new one makes a group.")],
    principals: Members,
    *,
    move: Annotated[bool, typer.Option("--move", help="Take those of other groups out of them.")] = False,
) -> int:
    """Let principals act as one owner.

    Each may then read and change the payments, authorizations, plans and orders of the others. Operations, checkouts,
    customers, events and Idempotency-Keys stay with each.
    """
    from payrelay.flows.operators.manage_principals import group_principals

    async with session(read_settings()) as relay:
        members = await group_principals(relay.access.principals, Clock(), name, principals, may_move=move)
    say(f"The group {name} has {len(members)} principals: {', '.join(members)}.")
    return DONE


@app.command(epilog=examples("payrelay principals ungroup support"))
@awaited
async def ungroup(principals: Members) -> int:
    """Take principals out of their group."""
    from payrelay.flows.operators.manage_principals import ungroup_principals

    async with session(read_settings()) as relay:
        taken = await ungroup_principals(relay.access.principals, principals)
    say(f"Taken out of their group: {', '.join(taken)}." if taken else "Nothing changed: none of them was in a group.")
    return DONE


@app.command(epilog=examples("payrelay principals rename web shop"))
@awaited
async def rename(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that it has now.")],
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="The name for keys from now on.")],
) -> int:
    """Give a principal another name.

    What is stored keeps the first name, and so do its Idempotency-Keys.
    """
    from payrelay.flows.operators.manage_principals import rename_principal

    async with session(read_settings()) as relay:
        stored = await rename_principal(relay.access.principals, Clock(), name, new_name)
    say(f"{new_name} is {stored}: keys that are made for either name act as {stored}, and own what it owns.")
    return DONE


def _row(summary: "PrincipalSummary") -> "tuple[Cell, ...]":
    stored_as = "" if summary.stored_as == summary.name else summary.stored_as
    return summary.name, stored_as, summary.group or "-"
