"""Signing in by a password, or by an invitation; and signing out."""

from urllib.parse import quote

import msgspec

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.flows.sign_in import (
    Failure,
    SignedIn,
    accept_invitation,
    invited_by,
    sign_in,
    sign_out,
)
from payrelay.console.rules.sign_in.tries import WINDOW_MS
from payrelay.console.web.asked import SIGN_IN, START, Asked, next_of_text
from payrelay.console.web.rendering import redirect
from payrelay.core.operators.operator import OperatorTextError, Stage

SENTENCES = {
    Failure.WRONG: "E-mail address or password is wrong.",
    Failure.TOO_OFTEN: "Too many tries. Wait for a quarter of an hour. Trying again meanwhile makes it no longer.",
    Failure.BUSY: "Many people sign in at this moment. What you typed was not looked at: try again in a few seconds.",
    Failure.OVER: "That took too long. Begin again.",
    Failure.NO_PASSWORDS: "Passwords open nothing here. Sign in with your company's account.",
    Failure.PROVIDER_DOWN: "Your company's sign-in can't be reached, or doesn't know this console. Try again later.",
    Failure.PROVIDER_REFUSED: "Your company's sign-in let nobody in. Begin again.",
    Failure.NOT_INVITED: "Your company's account opens nothing here. Ask an administrator to invite you, with the"
    " e-mail address of that account.",
    Failure.COPIED: "Somebody has a copy of this passkey, so it opens nothing any more. Sign in with another second"
    " factor, and tell an administrator.",
}
"""What a page says of each."""
STATUSES = {
    Failure.WRONG: 403,
    Failure.TOO_OFTEN: 429,
    Failure.BUSY: 429,
    Failure.OVER: 410,
    Failure.NO_PASSWORDS: 403,
    Failure.PROVIDER_DOWN: 503,
    Failure.PROVIDER_REFUSED: 403,
    Failure.NOT_INVITED: 403,
    Failure.COPIED: 403,
}
"""The status of the page that says so."""
RETRY_AFTER_S = {Failure.TOO_OFTEN: WINDOW_MS // 1000, Failure.BUSY: 5}
"""After how many seconds at most it is worth trying again, of those that end by themselves."""


async def show_form(asked: Asked) -> ConsoleAnswer:
    """Shows the form for the password; leads on whoever is signed in."""
    if asked.is_open:
        return redirect(asked.next)
    why = asked.form.get("why", "")
    return form_after(asked, Failure(why) if why in set(Failure) else None)


async def take_password(asked: Asked) -> ConsoleAnswer:
    """Signs in by a password."""
    found = await sign_in(asked.parts, asked.form.get("email", ""), asked.form.get("password", ""), asked.browser)
    if isinstance(found, Failure):
        return form_after(asked, found)
    return led_on(asked, found, asked.next)


async def show_invitation(asked: Asked) -> ConsoleAnswer:
    """Shows the form for a first password. Opening it uses nothing up: a mail program may do that too."""
    return await _invitation(asked)


async def take_invitation(asked: Asked) -> ConsoleAnswer:
    """Takes the first password."""
    password = asked.form.get("password", "")
    if password != asked.form.get("again", ""):
        return await _invitation(asked, "The two passwords differ.")
    try:
        found = await accept_invitation(asked.parts, asked.names[0], password, asked.browser)
    except OperatorTextError as error:
        return await _invitation(asked, f"A password {error}.")
    if isinstance(found, Failure):
        return told_when(await _invitation(asked, SENTENCES[found], STATUSES[found]), found)
    return led_on(asked, found, asked.next)


async def leave(asked: Asked) -> ConsoleAnswer:
    """Ends the session; whoever wants to sign in again is led on from there."""
    await sign_out(asked.parts, asked.visited)
    return asked.without_session(redirect(sign_in_for(asked)))


def sign_in_for(asked: Asked) -> str:
    """Gives the address of the sign-in page, from which the way leads on to where somebody wanted to go."""
    return SIGN_IN if asked.next == START else f"{SIGN_IN}?next={quote(asked.next, safe='')}"


def led_on(asked: Asked, found: SignedIn, wanted: str) -> ConsoleAnswer:
    """Leads whoever has a new session to the page that they wanted, or to the second factor first."""
    way = wanted if found.session.stage is Stage.OPEN else f"/console/code?next={quote(wanted, safe='')}"
    return asked.with_session(redirect(way), found.token.reveal())


def form_after(asked: Asked, failure: Failure | None = None) -> ConsoleAnswer:
    """Shows the form for the password, with what went wrong before."""
    page = asked.page(
        "sign_in.html",
        status=200 if failure is None else STATUSES[failure],
        error=None if failure is None else SENTENCES[failure],
        email=asked.form.get("email", ""),
        next=next_of_text(asked.form.get("next", "")),
        has_provider=asked.parts.provider is not None,
        takes_passwords=asked.parts.takes_passwords,
    )
    return page if failure is None else told_when(page, failure)


def told_when(page: ConsoleAnswer, failure: Failure) -> ConsoleAnswer:
    """Adds after how long to try again, where that is known, for programs; people read it on the page."""
    if failure not in RETRY_AFTER_S:
        return page
    return msgspec.structs.replace(page, headers=(*page.headers, (b"retry-after", b"%d" % RETRY_AFTER_S[failure])))


async def _invitation(asked: Asked, error: str | None = None, status: int = 422) -> ConsoleAnswer:
    found = await invited_by(asked.parts, asked.names[0])
    if found is None:
        text = "Ask for another one. An invitation can be used once, and for three days."
        return asked.page("message.html", status=410, title="This invitation is over", text=text)
    _, invited = found
    return asked.page(
        "invitation.html",
        status=200 if error is None else status,
        error=error,
        invited=invited,
        has_provider=asked.parts.provider is not None,
        takes_passwords=asked.parts.takes_passwords,
    )
