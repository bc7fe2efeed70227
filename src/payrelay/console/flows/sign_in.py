"""Signs an operator in: the password, then the second factor; and finds whose session a cookie is.

Rules:

1. A try is counted before it is made (``console.rules.sign_in.tries``). Whoever has tried too often is refused, also
   with the right password. Who gets in is taken off once the session is open, and no sooner.
2. What was wrong isn't said: neither whether an operator has the address, nor whether the password was right.
3. Each stage has a session with a token of its own. So a token that somebody planted, or saw before, opens nothing.
"""

import secrets
from enum import StrEnum
from typing import NamedTuple

import msgspec

from payrelay.console.flows.parts import Browser, ConsoleParts, new_session
from payrelay.console.flows.provider_link import BY_PROVIDER, began_by_provider, kept_subject
from payrelay.console.rules.sign_in.second_factor import new_secret, step_of_code
from payrelay.console.rules.sign_in.tries import CODE, PASSWORD, Counted, of_address
from payrelay.console.runtime.passwords import NoPlace
from payrelay.core.operators.operator import (
    SEEN_EVERY_MS,
    TOKEN_BYTES,
    UNFINISHED_MS,
    ConsoleSession,
    Invitation,
    Operator,
    OperatorState,
    OperatorTextError,
    PasskeyChange,
    Stage,
    email_of,
    is_fresh,
    is_live,
    is_open,
    require_password,
    second_factor_of,
    token_hash,
)
from payrelay.core.operators.roles import Act
from payrelay.core.secret import Secret
from payrelay.core.text.operator_text import named
from payrelay.errors import Outdated, StoreUnusable
from payrelay.flows.operators.parts import acting, next_of
from payrelay.store.operators.operators import OperatorChange


class Failure(StrEnum):
    """Why somebody was not let in."""

    WRONG = "wrong"
    TOO_OFTEN = "too_often"
    BUSY = "busy"
    """So many sign in at this moment that no more passwords are looked at."""
    OVER = "over"
    """The sign-in, or the invitation, took too long, or was ended."""
    NO_PASSWORDS = "no_passwords"
    """Only the provider lets anybody in."""
    PROVIDER_DOWN = "provider_down"
    PROVIDER_REFUSED = "provider_refused"
    """The provider has signed nobody in, or its answer can't be believed."""
    COPIED = "copied"
    """The passkey's device counted a number that was seen before."""
    NOT_INVITED = "not_invited"
    """The provider has signed somebody in who is no operator, or is disabled, or whose address isn't verified."""


class SignedIn(NamedTuple):
    """A new session, with its operator, and the token for the cookie."""

    operator: Operator
    session: ConsoleSession
    token: Secret


class Visitor(NamedTuple):
    """Whose session a cookie is."""

    operator: Operator
    session: ConsoleSession


class Factor(NamedTuple):
    """A second factor that was shown, or set up.

    Attributes:
        changed: the operator's next version, with what the second factor changes.
        is_new: whether it was set up.
        passkey: the passkey that it is; None for a code.
        totp_secret: the secret of an authenticator app that was set up.
    """

    changed: Operator
    is_new: bool
    passkey: PasskeyChange | None = None
    totp_secret: Secret | None = None


async def visitor_of(parts: ConsoleParts, token: str, *, is_use: bool = True) -> Visitor | None:
    """Returns whose session this is; None where it is nobody's, or over. Raises StoreError.

    Notes the use of the session, unless nobody uses it: a page that only stays open doesn't keep a session from ending.
    """
    session = await parts.operators.session(token_hash(token))
    operator = None if session is None else await parts.operators.get(session.operator_id)
    now_ms = parts.clock.now_ms()
    if session is None or operator is None or not is_live(session, operator, now_ms):
        return None
    if not parts.takes_passwords and session.stage is Stage.OPEN and not await began_by_provider(parts, session):
        return None
    if is_use and now_ms - session.seen_at_ms >= SEEN_EVERY_MS:
        session = await parts.operators.see(session, now_ms)
    return Visitor(operator, session)


async def sign_in(parts: ConsoleParts, email: str, password: str, browser: Browser) -> SignedIn | Failure:
    """Begins a session by a password; its stage says whether a second factor is still to come. Raises StoreError."""
    if not parts.takes_passwords:
        return Failure.NO_PASSWORDS
    try:
        email = email_of(email)
    except OperatorTextError:
        email = ""
    try:
        with parts.passwords.place(browser.client):
            return await _by_password(parts, email, password, browser)
    except NoPlace:
        return Failure.BUSY


async def _by_password(parts: ConsoleParts, email: str, password: str, browser: Browser) -> SignedIn | Failure:
    counts = (of_address(browser.client), Counted(PASSWORD, email))
    if not await parts.tries.take(parts.clock.now_ms(), *counts):
        return Failure.TOO_OFTEN
    operator = await parts.operators.by_email(email)
    is_active = operator is not None and operator.state is OperatorState.ACTIVE
    known_hash = operator.password_hash if operator is not None and is_active else None
    if not await parts.passwords.fits(known_hash, password) or operator is None:
        return Failure.WRONG
    if operator.second_factor is not None:
        return await _begun(parts, operator, Stage.CODE, browser)
    return await _begun(parts, operator, Stage.ENROL if parts.needs_second_factor else Stage.OPEN, browser)


async def confirm_code(
    parts: ConsoleParts, visitor: Visitor, code: str, browser: Browser, *, token: str
) -> SignedIn | Failure:
    """Completes a sign-in by a code of the second factor, or sets up by its first code what this session was shown.

    Within an open session the code is shown again: a new session takes its place. ``token`` is what the cookie of the
    session has. Raises StoreError.
    """
    operator, now_ms = visitor.operator, parts.clock.now_ms()
    is_new = not operator.has_totp
    if is_new and not may_set_up(visitor, now_ms):
        return Failure.OVER
    if not await parts.tries.take(now_ms, Counted(CODE, operator.id)):
        return Failure.TOO_OFTEN
    secret = await (_secret_shown(parts, visitor, token) if is_new else _secret_of(parts, operator))
    step = None if secret is None else step_of_code(secret, code, now_ms, operator.totp_step)
    if step is None:
        return Failure.WRONG
    kind = second_factor_of(totp=True, passkeys=operator.has_passkeys)
    changed = next_of(operator, now_ms, totp_step=step, second_factor=kind)
    factor = Factor(changed, is_new, totp_secret=secret if is_new else None)
    found = await completed(parts, visitor, factor, browser, token=token)
    if isinstance(found, SignedIn):
        await parts.challenges.take(_to_enrol(visitor), visitor.session.token_hash, now_ms)
        await parts.tries.forget(Counted(CODE, operator.id))
    return found


def may_set_up(visitor: Visitor, now_ms: int) -> bool:
    """Tells whether the visitor may set up a second factor now: the first one to get in, others shortly after that.

    Whoever has the password alone can't, once there is a second factor.
    """
    operator, session = visitor
    if session.stage is Stage.ENROL:
        return operator.second_factor is None
    return session.stage is Stage.OPEN and is_fresh(session, now_ms)


async def completed(
    parts: ConsoleParts, visitor: Visitor, factor: Factor, browser: Browser, *, token: str
) -> SignedIn | Failure:
    """Opens a session in place of the visitor's, once the second factor was shown or set up.

    One in place of an open session ends when that would have ended. Links whom the provider has named to the operator.
    Raises StoreError.
    """
    operator, session = visitor
    now_ms = factor.changed.changed_at_ms
    if session.stage is Stage.OPEN:
        subject_hash, is_by_provider = None, await began_by_provider(parts, session)
    else:
        subject_hash = await kept_subject(parts, session, token, now_ms)
        is_by_provider = subject_hash is not None
    if not (is_by_provider or parts.takes_passwords):
        return Failure.NO_PASSWORDS
    changed, did, details = factor.changed, Act.SIGN_IN, f"from {browser.client}"
    if factor.passkey is not None:
        details = f"by passkey {named(factor.passkey.name)}, {details}"
    if is_by_provider:
        details = f"{BY_PROVIDER}{details}"
        if subject_hash is not None and operator.provider_subject is None:
            did, changed = Act.LINK_PROVIDER, msgspec.structs.replace(changed, provider_subject=subject_hash)
    if factor.is_new:
        did = Act.ENROL_SECOND_FACTOR
    opened, opened_token = new_session(operator.id, Stage.OPEN, browser, now_ms)
    if session.stage is Stage.OPEN:
        opened = msgspec.structs.replace(opened, ends_at_ms=session.ends_at_ms)
    act = acting(operator).did(did, opened.id, at_ms=now_ms, details=details)
    change = OperatorChange(
        at_ms=now_ms,
        act=act,
        changed=changed,
        passkey=factor.passkey,
        totp_secret=factor.totp_secret,
        ends_session=session.id,
        session=opened,
    )
    try:
        await parts.operators.carry_out(change)
    except Outdated:  # the same code at the same moment, or a session that was ended
        return Failure.OVER
    if session.stage is not Stage.OPEN:
        await got_in(parts, operator, session)
    return SignedIn(changed, opened, opened_token)


async def got_in(parts: ConsoleParts, operator: Operator, begun: ConsoleSession) -> None:
    """Takes off what a sign-in counted that has come to its end; ``begun`` is its first session. Raises StoreError."""
    await parts.tries.give_back(of_address(begun.client), begun.began_at_ms)
    await parts.tries.forget(Counted(PASSWORD, operator.email))


async def secret_to_enrol(parts: ConsoleParts, visitor: Visitor, token: str) -> Secret:
    """Returns the secret that an operator's authenticator app is to get; a reload in this session gets the same one.

    No other session does, and nothing has it before its first code was right; ``token`` is what the session's cookie
    has. Only for an operator without an app: the secret of one that counts is never shown again. Raises StoreError.
    """
    operator, session = visitor
    if operator.has_totp:
        raise ValueError("the secret of a second factor is shown once")
    now_ms = parts.clock.now_ms()
    nonce = await parts.challenges.kept(
        _to_enrol(visitor),
        session.token_hash,
        secrets.token_urlsafe(TOKEN_BYTES),
        now_ms=now_ms,
        ends_at_ms=min(now_ms + UNFINISHED_MS, session.ends_at_ms),
    )
    return new_secret(token, nonce)


async def _secret_shown(parts: ConsoleParts, visitor: Visitor, token: str) -> Secret | None:
    nonce = await parts.challenges.way(_to_enrol(visitor), visitor.session.token_hash, parts.clock.now_ms())
    return None if nonce is None else new_secret(token, nonce)


async def _secret_of(parts: ConsoleParts, operator: Operator) -> Secret | None:
    try:
        return await parts.operators.totp_secret(operator.id)
    except StoreUnusable:
        return None


def _to_enrol(visitor: Visitor) -> str:
    return token_hash(f"authenticator/{visitor.session.id}")


async def invited_by(parts: ConsoleParts, token: str) -> tuple[Invitation, Operator] | None:
    """Returns the open invitation with this token, and whom it invites; None where there is none. Raises StoreError."""
    invitation = await parts.operators.invitation(token_hash(token))
    if invitation is None or not is_open(invitation, parts.clock.now_ms()):
        return None
    operator = await parts.operators.get(invitation.operator_id)
    return None if operator is None or operator.state is OperatorState.DISABLED else (invitation, operator)


async def accept_invitation(parts: ConsoleParts, token: str, password: str, browser: Browser) -> SignedIn | Failure:
    """Gives the invited operator a password, once, and begins a session.

    Raises OperatorTextError for a password that is quickly guessed, StoreError.
    """
    if not parts.takes_passwords:
        return Failure.NO_PASSWORDS
    try:
        with parts.passwords.place(browser.client):
            return await _accepted(parts, token, password, browser)
    except NoPlace:
        return Failure.BUSY


async def _accepted(parts: ConsoleParts, token: str, password: str, browser: Browser) -> SignedIn | Failure:
    now_ms = parts.clock.now_ms()
    if not await parts.tries.take(now_ms, of_address(browser.client)):
        return Failure.TOO_OFTEN
    found = await invited_by(parts, token)
    if found is None:
        return Failure.OVER
    invitation, operator = found
    try:
        require_password(password, operator)
    except OperatorTextError:
        await parts.tries.give_back(of_address(browser.client), now_ms)
        raise
    password_hash = await parts.passwords.hash(password)
    now_ms = parts.clock.now_ms()
    changed = next_of(
        operator,
        now_ms,
        state=OperatorState.ACTIVE,
        password_hash=password_hash,
        second_factor=None,
    )
    stage = Stage.ENROL if parts.needs_second_factor else Stage.OPEN
    session, session_token = new_session(operator.id, stage, browser, now_ms)
    act = acting(operator).did(Act.ACCEPT_INVITATION, operator.id, at_ms=now_ms, details=f"from {browser.client}")
    change = OperatorChange(
        at_ms=now_ms,
        act=act,
        changed=changed,
        ends_everything=True,
        ends_invitation=invitation.id,
        session=session,
    )
    try:
        await parts.operators.carry_out(change)
    except Outdated:
        return Failure.OVER
    if stage is Stage.OPEN:
        await got_in(parts, operator, session)
    return SignedIn(changed, session, session_token)


async def own_sessions(parts: ConsoleParts, visitor: Visitor) -> list[ConsoleSession]:
    """Returns the sessions of the visitor that go on, newest first. Raises StoreError."""
    operator, now_ms = visitor.operator, parts.clock.now_ms()
    return [each for each in await parts.operators.sessions_of(operator.id) if is_live(each, operator, now_ms)]


async def sign_out(parts: ConsoleParts, visitor: Visitor) -> None:
    """Ends the session of the visitor. Raises StoreError."""
    now_ms = parts.clock.now_ms()
    act = acting(visitor.operator).did(Act.SIGN_OUT, visitor.session.id, at_ms=now_ms)
    try:
        await parts.operators.carry_out(OperatorChange(at_ms=now_ms, act=act, ends_session=visitor.session.id))
    except Outdated:
        return  # somebody has ended it


async def _begun(parts: ConsoleParts, operator: Operator, stage: Stage, browser: Browser) -> SignedIn | Failure:
    now_ms = parts.clock.now_ms()
    session, token = new_session(operator.id, stage, browser, now_ms)
    act = None
    if stage is Stage.OPEN:
        act = acting(operator).did(Act.SIGN_IN, session.id, at_ms=now_ms, details=f"from {browser.client}")
    try:
        await parts.operators.carry_out(OperatorChange(at_ms=now_ms, act=act, found=operator, session=session))
    except Outdated:  # the password was taken away while it was compared, or a second factor was set up
        return Failure.WRONG
    if stage is Stage.OPEN:
        await got_in(parts, operator, session)
    return SignedIn(operator, session, token)
