"""The second factor: shown after a password, set up before the first session or later, and removed."""

import io

import segno

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.flows.passkeys import (
    NOT_FRESH,
    PasskeyAnswer,
    add_passkey,
    ask_to_make,
    ask_to_show,
    confirm_passkey,
    remove_passkey,
    remove_totp,
)
from payrelay.console.flows.sign_in import Failure, SignedIn, confirm_code, may_set_up, secret_to_enrol
from payrelay.console.pages.sign_in.password import SENTENCES, STATUSES, led_on, told_when
from payrelay.console.rules.sign_in.second_factor import enrolment_address
from payrelay.console.web.asked import SIGN_IN, START, Asked
from payrelay.console.web.rendering import PASSKEY_SCRIPT_PATH, redirect
from payrelay.core.operators.operator import OperatorTextError
from payrelay.core.secret import Secret
from payrelay.errors import Code, Refusal

ACCOUNT = "/console/account"


async def show_code(asked: Asked) -> ConsoleAnswer:
    """Asks for a passkey or a code; lets one be set up first, where there is no second factor yet."""
    return redirect(asked.next) if asked.is_open else await _page(asked)


async def show_set_up(asked: Asked) -> ConsoleAnswer:
    """Lets another second factor be set up, shortly after a sign-in. Raises Refusal (forbidden) later."""
    return await _page(asked)


async def take_code(asked: Asked) -> ConsoleAnswer:
    """Takes a code, and opens the session."""
    if asked.is_open and asked.visited.operator.has_totp:
        return redirect(START)
    code = asked.form.get("code", "")
    found = await confirm_code(asked.parts, asked.visited, code, asked.browser, token=asked.cookie)
    return await _after(asked, found, "The code is wrong, or was used before.")


async def take_passkey(asked: Asked) -> ConsoleAnswer:
    """Takes what a device has signed, and opens the session."""
    if asked.is_open:
        return redirect(START)
    found = await confirm_passkey(asked.parts, asked.visited, _answer(asked))
    if found is Failure.COPIED:
        return asked.without_session(redirect(f"{SIGN_IN}?why={found}"))
    return await _after(asked, found, "That was not one of your passkeys.")


async def add(asked: Asked) -> ConsoleAnswer:
    """Takes a passkey that a device has made; opens the session where it is the first second factor."""
    try:
        found = await add_passkey(asked.parts, asked.visited, _answer(asked), asked.form.get("name", ""))
    except OperatorTextError as error:
        return await _page(asked, f"A name {error}.", 422)
    if isinstance(found, SignedIn | Failure):
        return await _after(asked, found, "The device's answer can't be used. Try again.")
    return redirect(ACCOUNT)


async def remove(asked: Asked) -> ConsoleAnswer:
    """Removes one of the own passkeys."""
    await remove_passkey(asked.parts, asked.visited, asked.names[0])
    return redirect(ACCOUNT)


async def remove_app(asked: Asked) -> ConsoleAnswer:
    """Removes the own authenticator app."""
    await remove_totp(asked.parts, asked.visited)
    return redirect(ACCOUNT)


def picture_of(address: Secret) -> str:
    """Draws a QR code as SVG without styles or scripts; its text is encoded, so nothing of it is markup."""
    out = io.BytesIO()
    segno.make(address.reveal(), error="m", micro=False).save(
        out, kind="svg", scale=5, border=4, xmldecl=False, svgns=False, light="#fff", dark="#000", omitsize=False
    )
    return out.getvalue().decode()


async def _after(asked: Asked, found: SignedIn | Failure, wrong: str) -> ConsoleAnswer:
    if isinstance(found, SignedIn):
        return led_on(asked, found, asked.next)
    page = await _page(asked, wrong if found is Failure.WRONG else SENTENCES[found], STATUSES[found])
    return told_when(page, found)


async def _page(asked: Asked, error: str | None = None, status: int = 200) -> ConsoleAnswer:
    parts, visitor, party = asked.parts, asked.visited, asked.party
    operator = visitor.operator
    sets_up = may_set_up(visitor, parts.clock.now_ms())
    if asked.is_open and not sets_up:
        raise Refusal(Code.FORBIDDEN, NOT_FRESH)
    asked_to_make = asked_to_show = secret = None
    if sets_up and party is not None:
        asked_to_make = await ask_to_make(parts, visitor, party, asked.cookie)
    if sets_up and not operator.has_totp:
        secret = await secret_to_enrol(parts, visitor, asked.cookie)
    if not asked.is_open:
        asked_to_show = await ask_to_show(parts, visitor, party, asked.cookie)
    return asked.page(
        "code.html",
        status=status,
        script=PASSKEY_SCRIPT_PATH if asked_to_make or asked_to_show else None,
        error=error,
        next=ACCOUNT if asked.is_open else asked.next,
        sets_up=sets_up,
        asked_to_make=asked_to_make,
        asked_to_show=asked_to_show,
        takes_code=secret is not None or (operator.has_totp and not asked.is_open),
        picture=None if secret is None else picture_of(enrolment_address(secret, operator.email)),
        letters=None if secret is None else " ".join(_fours(secret.reveal())),
        name=asked.form.get("name", ""),
    )


def _answer(asked: Asked) -> PasskeyAnswer:
    return PasskeyAnswer(asked.form.get("answer", ""), asked.cookie, asked.party, asked.browser)


def _fours(text: str) -> list[str]:
    return [text[start : start + 4] for start in range(0, len(text), 4)]
