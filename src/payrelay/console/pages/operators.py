"""The operators, for administrators: invite, give another role, disable; and the history of what operators did."""

from collections.abc import Callable

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.web.asked import Asked
from payrelay.console.web.rendering import redirect
from payrelay.core.operators.operator import OperatorTextError, email_of, operator_name_of
from payrelay.core.operators.roles import Role
from payrelay.core.text.operator_text import WordsError, reason_of
from payrelay.errors import Code, Refusal
from payrelay.flows.operators.manage_operators import (
    Invited,
    NewOperator,
    add_operator,
    change_role,
    disable_operator,
    end_sessions,
    list_operators,
    list_sessions,
    read_acts,
    reset_password,
)

ACTS_ON_PAGE = 50


async def show_all(asked: Asked) -> ConsoleAnswer:
    """Lists the operators, with a form that invites another."""
    return await _list(asked)


async def invite(asked: Asked) -> ConsoleAnswer:
    """Adds an operator, and shows the invitation once."""
    try:
        new = NewOperator(
            email=_read("The e-mail address", email_of, asked.form.get("email", "")),
            name=_read("The name", operator_name_of, asked.form.get("name", "")),
            role=_role(asked),
        )
        invited = await add_operator(asked.parts, asked.actor, new, _reason(asked))
    except Refusal as refusal:
        return await _list(asked, refusal.msg)
    return _shown(asked, invited)


async def show_one(asked: Asked) -> ConsoleAnswer:
    """Shows one operator with the sessions that go on, and what can be done about them."""
    everybody = await list_operators(asked.parts, asked.actor)
    one = next((each for each in everybody if each.email == asked.names[0]), None)
    if one is None:
        raise Refusal(Code.NOT_FOUND, "no operator has this address")
    sessions = await list_sessions(asked.parts, asked.actor, one)
    return asked.page("operator.html", one=one, roles=list(Role), sessions=sessions)


async def give_role(asked: Asked) -> ConsoleAnswer:
    """Gives an operator another role."""
    await change_role(asked.parts, asked.actor, asked.names[0], _role(asked), _reason(asked))
    return redirect("/console/operators")


async def disable(asked: Asked) -> ConsoleAnswer:
    """Disables an operator."""
    await disable_operator(asked.parts, asked.actor, asked.names[0], _reason(asked))
    return redirect("/console/operators")


async def reset(asked: Asked) -> ConsoleAnswer:
    """Takes the password away, and shows the new invitation once."""
    return _shown(asked, await reset_password(asked.parts, asked.actor, asked.names[0], _reason(asked)))


async def end_all_sessions(asked: Asked) -> ConsoleAnswer:
    """Ends the sessions of an operator."""
    await end_sessions(asked.parts, asked.actor, asked.names[0], _reason(asked))
    return redirect("/console/operators")


async def about(asked: Asked) -> list[tuple[str, str]]:
    """Reads whom a form is about, as the store has them now, and which role it gives."""
    one = await asked.parts.operators.by_email(asked.names[0]) if asked.names else None
    if one is None:
        told = [("Person", asked.form.get("name", "")), ("E-mail address", asked.form.get("email", ""))]
    else:
        told = [("Person", one.name), ("E-mail address", one.email), ("Role now", one.role)]
    if one is None or asked.request.path.endswith(b"/role"):
        told.append(("New role", asked.form.get("role", "")))
    return [*told, ("Why", asked.form.get("reason", ""))]


async def show_acts(asked: Asked) -> ConsoleAnswer:
    """Shows what operators did, newest first."""
    before = asked.form.get("before", "")
    number = int(before) if before.isdecimal() and len(before) < 18 else None  # noqa: PLR2004  as many as a number has
    acts = await read_acts(asked.parts, asked.actor, before=number, limit=ACTS_ON_PAGE)
    older = acts[-1].number if len(acts) == ACTS_ON_PAGE else None
    return asked.page("acts.html", acts=acts, older=older)


async def _list(asked: Asked, error: str | None = None) -> ConsoleAnswer:
    return asked.page(
        "operators.html",
        status=200 if error is None else 422,
        error=error,
        operators=await list_operators(asked.parts, asked.actor),
        roles=list(Role),
        given=asked.form,
    )


def _shown(asked: Asked, invited: Invited) -> ConsoleAnswer:
    path = f"{asked.site.origin or ''}/console/invitations/{invited.token.reveal()}"
    return asked.page("invited.html", invited=invited.operator, path=path, ends_at_ms=invited.invitation.expires_at_ms)


def _role(asked: Asked) -> Role:
    try:
        return Role(asked.form.get("role", ""))
    except ValueError:
        raise Refusal(Code.INVALID_REQUEST, f"the role must be one of {', '.join(Role)}") from None


def _reason(asked: Asked) -> str:
    try:
        return reason_of(asked.form.get("reason", ""))
    except WordsError as error:
        raise Refusal(Code.INVALID_REQUEST, f"the reason {error}") from None


def _read(what: str, reader: Callable[[str], str], text: str) -> str:
    try:
        return reader(text)
    except OperatorTextError as error:
        raise Refusal(Code.INVALID_REQUEST, f"{what} {error}") from None
