"""Operators' passkeys: added, shown in place of a code, listed and removed.

Rules:

1. A challenge is made of the token in the browser's cookie and of what the store keeps once. So an answer counts in one
   session, for one purpose, once.
2. Operator and passkeys change together, with the line of the history. So an operator's row always says truly what
   the second factor is.
3. Of a second factor that is required the last one can't be removed.
"""

import secrets

import msgspec

from payrelay.console.flows.parts import Browser, ConsoleParts
from payrelay.console.flows.sign_in import Factor, Failure, SignedIn, Visitor, completed, may_set_up
from payrelay.console.rules.sign_in.passkeys import (
    PasskeyError,
    Purpose,
    RelyingParty,
    ShownPasskey,
    asked_to_make,
    asked_to_show,
    challenge_of,
    made_passkey,
    passkey_name_of,
    shown_passkey,
    usable,
)
from payrelay.console.rules.sign_in.tries import PASSKEY, Counted
from payrelay.core.operators.operator import (
    PASSKEYS_MAX,
    UNFINISHED_MS,
    Operator,
    Passkey,
    PasskeyChange,
    Stage,
    second_factor_of,
    token_hash,
)
from payrelay.core.operators.roles import Act
from payrelay.core.text.operator_text import named
from payrelay.errors import Code, Outdated, Refusal
from payrelay.flows.operators.parts import CHANGED_MEANWHILE, acting, next_of
from payrelay.runtime.ids import new_id
from payrelay.store.operators.operators import OperatorChange

NOT_FRESH = "sign in again first: a second factor is changed within ten minutes of a sign-in"
LAST_ONE = "this is your only second factor, and one is required; set another one up first"
_NONCE_BYTES = 32


class PasskeyAnswer(msgspec.Struct, frozen=True):
    """What a browser brings back.

    Attributes:
        text: the device's answer, as JSON.
        token: of the cookie that came with it.
        party: the console at the address that the browser has asked; None where no browser makes passkeys.
        browser: where it comes from.
        shown_for: what the page that asked said is done then; empty where it opens a session.
    """

    text: str
    token: str
    party: RelyingParty | None
    browser: Browser
    shown_for: str = ""


async def ask_to_make(parts: ConsoleParts, visitor: Visitor, party: RelyingParty, token: str) -> str:
    """Returns what the browser is asked, to make a passkey; ``token`` is in its cookie. Raises StoreError."""
    known = await parts.operators.passkeys.of(visitor.operator.id)
    challenge = await _challenge(parts, visitor, Purpose.ADD, token)
    return asked_to_make(party, visitor.operator, known, challenge)


async def ask_to_show(
    parts: ConsoleParts, visitor: Visitor, party: RelyingParty | None, token: str, *, shown_for: str = ""
) -> str | None:
    """Returns what the browser is asked, to sign with a passkey; None where none of the operator's would count.

    The answer counts for ``shown_for`` alone. Raises StoreError.
    """
    known = usable(await parts.operators.passkeys.of(visitor.operator.id), party)
    if party is None or not known:
        return None
    return asked_to_show(party, known, await _challenge(parts, visitor, Purpose.SHOW, token, shown_for))


async def add_passkey(
    parts: ConsoleParts, visitor: Visitor, answer: PasskeyAnswer, name: str
) -> SignedIn | Visitor | Failure:
    """Adds a passkey, and gives the session that it opens; within an open session the visitor as before.

    Raises OperatorTextError for a name that can't be shown; Refusal (conflict) where there are too many, or where
    somebody has this one; StoreError.
    """
    operator, now_ms = visitor.operator, parts.clock.now_ms()
    name, party = passkey_name_of(name), answer.party
    if party is None or not may_set_up(visitor, now_ms):
        return Failure.OVER
    if not await parts.tries.take(now_ms, Counted(PASSKEY, operator.id)):
        return Failure.TOO_OFTEN
    challenge = await _asked_of(parts, visitor, Purpose.ADD, answer)
    if challenge is None:
        return Failure.OVER
    try:
        made = made_passkey(answer.text, party, operator, challenge)
    except PasskeyError:
        return Failure.WRONG
    if not await _take(parts, visitor, Purpose.ADD):
        return Failure.OVER
    if len(await parts.operators.passkeys.of(operator.id)) >= PASSKEYS_MAX:
        raise Refusal(Code.CONFLICT, f"there are {PASSKEYS_MAX} passkeys already; remove one that you don't use")
    passkey = Passkey(
        id=new_id("psk", now_ms),
        operator_id=operator.id,
        credential_id=made.credential_id,
        credential=made.credential,
        host=party.host,
        name=name,
        sign_count=made.sign_count,
        made_at_ms=now_ms,
        used_at_ms=None,
        copied_at_ms=None,
        version=1,
        act=0,
    )
    await parts.tries.give_back(Counted(PASSKEY, operator.id), now_ms)
    kind = second_factor_of(totp=operator.has_totp, passkeys=True)
    factor = Factor(next_of(operator, now_ms, second_factor=kind), is_new=True, passkey=PasskeyChange(added=passkey))
    if visitor.session.stage is not Stage.OPEN:
        return await completed(parts, visitor, factor, answer.browser, token=answer.token)
    details = f"passkey {named(name)}, from {answer.browser.client}"
    act = acting(*visitor).did(Act.ENROL_SECOND_FACTOR, passkey.id, at_ms=now_ms, details=details)
    change = OperatorChange(at_ms=now_ms, act=act, changed=factor.changed, passkey=factor.passkey)
    await _carry_out(parts, change)
    return Visitor(factor.changed, visitor.session)


async def confirm_passkey(parts: ConsoleParts, visitor: Visitor, answer: PasskeyAnswer) -> SignedIn | Failure:
    """Completes a sign-in by a passkey; within an open session it is shown again. Raises StoreError."""
    operator, party, now_ms = visitor.operator, answer.party, parts.clock.now_ms()
    if party is None:
        return Failure.OVER
    if not await parts.tries.take(now_ms, Counted(PASSKEY, operator.id)):
        return Failure.TOO_OFTEN
    challenge = await _asked_of(parts, visitor, Purpose.SHOW, answer)
    if challenge is None:
        return Failure.OVER
    known = usable(await parts.operators.passkeys.of(operator.id), party)
    try:
        shown = shown_passkey(answer.text, party, operator, known, challenge)
    except PasskeyError:
        return Failure.WRONG
    if not await _take(parts, visitor, Purpose.SHOW):
        return Failure.OVER
    if shown.is_copied:
        if shown.passkey.used_at_ms is not None and visitor.session.began_at_ms < shown.passkey.used_at_ms:
            return Failure.OVER  # it may have signed before that: two browsers at one moment are no copy
        return await _locked(parts, visitor, shown, answer.browser)
    used = _next(shown.passkey, sign_count=shown.sign_count, used_at_ms=now_ms)
    factor = Factor(next_of(operator, now_ms), is_new=False, passkey=PasskeyChange(changed=used))
    found = await completed(parts, visitor, factor, answer.browser, token=answer.token)
    if isinstance(found, SignedIn):
        await parts.tries.forget(Counted(PASSKEY, operator.id))
    return found


async def list_passkeys(parts: ConsoleParts, operator: Operator) -> list[Passkey]:
    """Returns an operator's passkeys, the oldest first. Raises StoreError."""
    return await parts.operators.passkeys.of(operator.id)


async def remove_passkey(parts: ConsoleParts, visitor: Visitor, passkey_id: str) -> None:
    """Removes one of the visitor's own passkeys; nothing happens where it is gone.

    Raises Refusal: forbidden long after the sign-in; conflict for the last second factor where one is required, and
    where the operator was changed at the same moment. Raises StoreError.
    """
    operator, now_ms = visitor.operator, parts.clock.now_ms()
    _require_fresh(parts, visitor)
    known = await parts.operators.passkeys.of(operator.id)
    gone = next((each for each in known if each.id == passkey_id), None)
    if gone is None:
        return
    kind = second_factor_of(totp=operator.has_totp, passkeys=len(known) > 1)
    _require_another(parts, has_another=kind is not None)
    act = acting(*visitor).did(Act.REMOVE_SECOND_FACTOR, gone.id, at_ms=now_ms, details=f"passkey {named(gone.name)}")
    changed = next_of(operator, now_ms, second_factor=kind)
    await _carry_out(parts, OperatorChange(at_ms=now_ms, act=act, changed=changed, passkey=PasskeyChange(removed=gone)))


async def remove_totp(parts: ConsoleParts, visitor: Visitor) -> None:
    """Removes the visitor's own authenticator app, and destroys its secret; nothing happens where there is none.

    Raises what ``remove_passkey`` raises.
    """
    operator, now_ms = visitor.operator, parts.clock.now_ms()
    _require_fresh(parts, visitor)
    if not operator.has_totp:
        return
    _require_another(parts, has_another=operator.has_passkeys)
    kind = second_factor_of(totp=False, passkeys=operator.has_passkeys)
    details = "authenticator app"
    act = acting(*visitor).did(Act.REMOVE_SECOND_FACTOR, operator.id, at_ms=now_ms, details=details)
    changed = next_of(operator, now_ms, second_factor=kind)
    await _carry_out(parts, OperatorChange(at_ms=now_ms, act=act, changed=changed, removes_totp=True))


async def _locked(parts: ConsoleParts, visitor: Visitor, shown: ShownPasskey, browser: Browser) -> Failure:
    """Keeps a passkey from opening anything, because there are two of it; and ends this sign-in."""
    operator, session = visitor
    now_ms = parts.clock.now_ms()
    locked = _next(shown.passkey, copied_at_ms=now_ms)
    counted = f"counted {shown.sign_count} after {locked.sign_count}"
    details = f"passkey {named(locked.name)}, {counted}, from {browser.client}"
    act = acting(operator).did(Act.LOCK_PASSKEY, locked.id, at_ms=now_ms, details=details)
    change = OperatorChange(at_ms=now_ms, act=act, passkey=PasskeyChange(changed=locked), ends_session=session.id)
    try:
        await parts.operators.carry_out(change)
    except Outdated:
        return Failure.OVER
    return Failure.COPIED


async def _challenge(parts: ConsoleParts, visitor: Visitor, purpose: Purpose, token: str, shown_for: str = "") -> bytes:
    session, now_ms = visitor.session, parts.clock.now_ms()
    nonce = await parts.challenges.kept(
        _name(visitor, purpose),
        session.token_hash,
        secrets.token_urlsafe(_NONCE_BYTES),
        now_ms=now_ms,
        ends_at_ms=min(now_ms + UNFINISHED_MS, session.ends_at_ms),
    )
    return challenge_of(token, purpose, nonce, shown_for)


async def _asked_of(parts: ConsoleParts, visitor: Visitor, purpose: Purpose, answer: PasskeyAnswer) -> bytes | None:
    """Gives the challenge that an answer must be to; None where this session has none. It is left until one is."""
    nonce = await parts.challenges.way(_name(visitor, purpose), visitor.session.token_hash, parts.clock.now_ms())
    return None if nonce is None else challenge_of(answer.token, purpose, nonce, answer.shown_for)


async def _take(parts: ConsoleParts, visitor: Visitor, purpose: Purpose) -> bool:
    """Uses a challenge up, by an answer that is one to it; False where another answer was quicker."""
    name, bearer = _name(visitor, purpose), visitor.session.token_hash
    return await parts.challenges.take(name, bearer, parts.clock.now_ms()) is not None


def _name(visitor: Visitor, purpose: Purpose) -> str:
    return token_hash(f"passkey/{purpose}/{visitor.session.id}")


def _next(passkey: Passkey, **members: object) -> Passkey:
    return msgspec.structs.replace(passkey, version=passkey.version + 1, **members)


def _require_fresh(parts: ConsoleParts, visitor: Visitor) -> None:
    if not (visitor.session.stage is Stage.OPEN and may_set_up(visitor, parts.clock.now_ms())):
        raise Refusal(Code.FORBIDDEN, NOT_FRESH)


def _require_another(parts: ConsoleParts, *, has_another: bool) -> None:
    if parts.needs_second_factor and not has_another:
        raise Refusal(Code.CONFLICT, LAST_ONE)


async def _carry_out(parts: ConsoleParts, change: OperatorChange) -> None:
    try:
        await parts.operators.carry_out(change)
    except Outdated:
        raise Refusal(Code.CONFLICT, CHANGED_MEANWHILE) from None
