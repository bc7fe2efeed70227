"""The start, and an operator's own account: sessions, and the second factor."""

import msgspec

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.flows.passkeys import list_passkeys
from payrelay.console.flows.sign_in import may_set_up, own_sessions
from payrelay.console.web.asked import Asked
from payrelay.console.web.cookies import zones
from payrelay.console.web.rendering import redirect
from payrelay.errors import Code, Refusal
from payrelay.flows.operators.manage_operators import end_own_session


async def start(asked: Asked) -> ConsoleAnswer:
    """Shows the start, from where somebody looks for an order."""
    return asked.page("start.html", given=asked.form)


async def show(asked: Asked) -> ConsoleAnswer:
    """Shows the operator's own second factors and sessions."""
    parts, visitor, party = asked.parts, asked.visited, asked.party
    return asked.page(
        "account.html",
        sessions=await own_sessions(parts, visitor),
        own=visitor.session.id,
        zones=sorted(zones()),
        passkeys=await list_passkeys(parts, visitor.operator),
        host=None if party is None else party.host,
        is_fresh=may_set_up(visitor, parts.clock.now_ms()),
    )


async def choose_zone(asked: Asked) -> ConsoleAnswer:
    """Keeps the reader's time zone, in a cookie of this browser."""
    zone = asked.form.get("zone", "")
    if zone not in zones():
        raise Refusal(Code.INVALID_REQUEST, "the service knows no time zone of that name")
    answer = redirect("/console/account")
    return msgspec.structs.replace(answer, headers=(*answer.headers, asked.site.cookies.set_zone(zone)))


async def end_session(asked: Asked) -> ConsoleAnswer:
    """Ends one of the operator's own sessions; the next request of that browser is led to the sign-in."""
    await end_own_session(asked.parts, asked.visited.operator, asked.names[0], asked.actor)
    return redirect("/console/account")
