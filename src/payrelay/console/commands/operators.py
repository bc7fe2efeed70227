"""The commands for the operators of the console: add the first one, and end what one may do."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.session import operator_from, read_settings, reason_from
from payrelay.cli.terminal.declaring import By, Json, Reason, awaited, examples, group
from payrelay.cli.terminal.messages import DONE, CommandError, say, show, show_json
from payrelay.clock import Clock
from payrelay.core.moments import rfc3339
from payrelay.core.operators.operator import INVITATION_MS, Operator, OperatorTextError, email_of, operator_name_of
from payrelay.core.operators.roles import Role

if TYPE_CHECKING:
    from payrelay.flows.operators.manage_operators import Invited
    from payrelay.flows.operators.parts import Actor

app = group("operators", "Operators: the people who may use the console.")

_DATE = len("2026-11-24")

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The operator's e-mail address.")]


@app.command(epilog=examples('payrelay operators add a@shop.example --name Ada --reason "new"'))
@awaited
async def add(
    email: Email,
    *,
    name: Annotated[str, typer.Option(metavar="NAME", help="The operator's name, as the history shows it.")],
    role: Annotated[Role, typer.Option(help="What the operator may do.")] = Role.VIEWER,
    reason: Reason = "",
    by: By = None,
) -> int:
    """Add an operator, and print the invitation.

    It is a path behind the console's address, and works once, within three days.
    """
    from payrelay.app_commands import opened_operators
    from payrelay.flows.operators.manage_operators import NewOperator, add_operator

    settings, actor, why = read_settings(), _actor(by), reason_from(reason)
    new = NewOperator(email=_email(email), name=_name(name), role=role)
    async with opened_operators(settings, Clock(), may_make=True) as parts:
        invited = await add_operator(parts, actor, new, why)
    _show_invitation(invited, settings.console.public_url)
    return DONE


@app.command("list", epilog=examples("payrelay operators list", "payrelay operators list --json"))
@awaited
async def list_all(*, as_json: Json = False) -> int:
    """List the operators."""
    from payrelay.app_commands import opened_operators
    from payrelay.cli.terminal.pages import Page, table
    from payrelay.flows.operators.manage_operators import list_operators

    async with opened_operators(read_settings(), Clock()) as parts:
        rows = [_shown(operator) for operator in await list_operators(parts, _actor(None))]
    if as_json:
        show_json(rows)
        return DONE
    titles = ("email", "name", "role", "state", "second factor", "account", "since")
    rows = [row | {"created_at": str(row["created_at"])[:_DATE]} for row in rows]
    names = ("email", "name", "role", "state", "second_factor", "company_account", "created_at")
    lines = [[str(row[name] or "none") for name in names] for row in rows]
    Page().write(table(titles, lines, empty="Nothing here: no operator was added yet."))
    return DONE


@app.command(epilog=examples('payrelay operators disable ada@shop.example --reason "has left"'))
@awaited
async def disable(email: Email, *, reason: Reason = "", by: By = None) -> int:
    """Disable an operator, and end every session."""
    from payrelay.app_commands import opened_operators
    from payrelay.flows.operators.manage_operators import disable_operator

    actor, why, whom = _actor(by), reason_from(reason), _email(email)
    async with opened_operators(read_settings(), Clock()) as parts:
        await disable_operator(parts, actor, whom, why)
    say(f"{whom} is disabled, and has no session any more.")
    return DONE


@app.command("reset-password", epilog=examples('payrelay operators reset-password ada@shop.example --reason "lost"'))
@awaited
async def reset(email: Email, *, reason: Reason = "", by: By = None) -> int:
    """Take password and second factor away, and invite anew.

    It ends every session, and prints what `add` prints.
    """
    from payrelay.app_commands import opened_operators
    from payrelay.flows.operators.manage_operators import reset_password

    settings, actor, why, whom = read_settings(), _actor(by), reason_from(reason), _email(email)
    async with opened_operators(settings, Clock()) as parts:
        invited = await reset_password(parts, actor, whom, why)
    _show_invitation(invited, settings.console.public_url)
    return DONE


@app.command("end-sessions", epilog=examples('payrelay operators end-sessions ada@shop.example --reason "lost phone"'))
@awaited
async def end(email: Email, *, reason: Reason = "", by: By = None) -> int:
    """End every session of an operator."""
    from payrelay.app_commands import opened_operators
    from payrelay.flows.operators.manage_operators import end_sessions

    actor, why, whom = _actor(by), reason_from(reason), _email(email)
    async with opened_operators(read_settings(), Clock()) as parts:
        count = await end_sessions(parts, actor, whom, why)
    say(f"{whom}: {count} sessions ended.")
    return DONE


def _show_invitation(invited: "Invited", public_url: str | None) -> None:
    show(f"{public_url or ''}/console/invitations/{invited.token.reveal()}")
    hours = timedelta(milliseconds=INVITATION_MS) // timedelta(hours=1)
    say(
        f"{invited.operator.email} chooses a password there, once, within {hours} hours."
        " It is shown this once; send it like a password."
    )


def _actor(by: str | None) -> "Actor":
    from payrelay.flows.operators.parts import Actor

    return Actor(name=operator_from(by))


def _email(text: str) -> str:
    try:
        return email_of(text)
    except OperatorTextError as error:
        raise CommandError(f"EMAIL {error}") from None


def _name(text: str) -> str:
    try:
        return operator_name_of(text)
    except OperatorTextError as error:
        raise CommandError(f"--name {error}") from None


def _shown(operator: Operator) -> dict[str, object]:
    """Gives an operator as programs and tables show one."""
    return {
        "id": operator.id,
        "email": operator.email,
        "name": operator.name,
        "role": operator.role.value,
        "state": operator.state.value,
        "second_factor": None if operator.second_factor is None else operator.second_factor.value,
        "company_account": None if operator.provider_subject is None else "linked",
        "created_at": rfc3339(operator.created_at_ms, "seconds"),
    }
