"""Signing in: the password, an invitation, the code of the second factor; and signing out."""

import io
from urllib.parse import quote

import segno

from payrelay.console.web.asked import SIGN_IN, START, Asked, next_of_text
from payrelay.console.web.rendering import asset, redirect
from payrelay.core.console.exchange import ConsoleAnswer
from payrelay.core.console.operator import OperatorTextError, Stage
from payrelay.core.console.second_factor import enrolment_address
from payrelay.core.secret import Secret
from payrelay.flows.console.sign_in import (
    Failure,
    SignedIn,
    accept_invitation,
    confirm_code,
    invited_by,
    secret_to_enrol,
    sign_in,
    sign_out,
)

_SENTENCES = {
    Failure.WRONG: "E-mail address or password is wrong.",
    Failure.TOO_OFTEN: "Too many tries. Wait for a quarter of an hour.",
    Failure.OVER: "That took too long. Begin again.",
    Failure.NO_PASSWORDS: "Passwords open nothing here. Sign in with your company's account.",
    Failure.PROVIDER_DOWN: "Your company's sign-in can't be reached, or doesn't know this console. Try again later.",
    Failure.PROVIDER_REFUSED: "Your company's sign-in let nobody in. Begin again.",
    Failure.NOT_INVITED: "Your company's account opens nothing here. Ask an administrator to invite you, with the"
    " e-mail address of that account.",
}
_STATUSES = {
    Failure.WRONG: 403,
    Failure.TOO_OFTEN: 429,
    Failure.OVER: 410,
    Failure.NO_PASSWORDS: 403,
    Failure.PROVIDER_DOWN: 503,
    Failure.PROVIDER_REFUSED: 403,
    Failure.NOT_INVITED: 403,
}


async def style_sheet(asked: Asked) -> ConsoleAnswer:  # noqa: ARG001 - one shape for all pages
    """Gives the style sheet."""
    return asset("console.css", "text/css")


async def live_script(asked: Asked) -> ConsoleAnswer:  # noqa: ARG001 - one shape for all pages
    """Gives the script of live pages."""
    return asset("live.js", "text/javascript")


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
        return await _invitation(asked, _SENTENCES[found], _STATUSES[found])
    return led_on(asked, found, asked.next)


async def show_code(asked: Asked) -> ConsoleAnswer:
    """Asks for a code; shows the QR code first, where there is no second factor yet."""
    return await _code(asked)


async def take_code(asked: Asked) -> ConsoleAnswer:
    """Takes a code, and opens the session."""
    if asked.is_open and asked.visited.operator.second_factor is not None:
        return redirect(START)
    code = asked.form.get("code", "")
    found = await confirm_code(asked.parts, asked.visited, code, asked.browser, token=asked.cookie)
    if isinstance(found, Failure):
        error = "The code is wrong, or was used before." if found is Failure.WRONG else _SENTENCES[found]
        return await _code(asked, error, _STATUSES[found])
    return led_on(asked, found, asked.next)


async def leave(asked: Asked) -> ConsoleAnswer:
    """Ends the session."""
    await sign_out(asked.parts, asked.visited)
    return asked.without_session(redirect(SIGN_IN))


def led_on(asked: Asked, found: SignedIn, wanted: str) -> ConsoleAnswer:
    """Leads whoever has a new session to the page that they wanted, or to the second factor first."""
    way = wanted if found.session.stage is Stage.OPEN else f"/console/code?next={quote(wanted, safe='')}"
    return asked.with_session(redirect(way), found.token.reveal())


def form_after(asked: Asked, failure: Failure | None = None) -> ConsoleAnswer:
    """Shows the form for the password, with what went wrong before."""
    return asked.page(
        "sign_in.html",
        status=200 if failure is None else _STATUSES[failure],
        error=None if failure is None else _SENTENCES[failure],
        email=asked.form.get("email", ""),
        next=next_of_text(asked.form.get("next", "")),
        has_provider=asked.parts.provider is not None,
        takes_passwords=asked.parts.takes_passwords,
    )


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


async def _code(asked: Asked, error: str | None = None, status: int = 200) -> ConsoleAnswer:
    operator = asked.visited.operator
    if asked.is_open and operator.second_factor is not None:
        return redirect(asked.next)
    secret = None if operator.second_factor is not None else await secret_to_enrol(asked.parts, operator)
    return asked.page(
        "code.html",
        status=status,
        error=error,
        next=asked.next,
        picture=None if secret is None else picture_of(enrolment_address(secret, operator.email)),
        letters=None if secret is None else " ".join(_fours(secret.reveal())),
    )


def picture_of(address: Secret) -> str:
    """Draws a QR code as SVG without styles or scripts; its text is encoded, so nothing of it is markup."""
    out = io.BytesIO()
    segno.make(address.reveal(), error="m", micro=False).save(
        out, kind="svg", scale=5, border=4, xmldecl=False, svgns=False, light="#fff", dark="#000", omitsize=False
    )
    return out.getvalue().decode()


def _fours(text: str) -> list[str]:
    return [text[start : start + 4] for start in range(0, len(text), 4)]
