"""Signs an operator in by the OpenID Connect provider: leads the browser there, and takes what it brings back.

Rules:

1. What a browser brings back counts once, for the browser that was led there, and for ten minutes. Each way there is
   counted as a try; whatever else somebody has a browser bring is no try, and is refused.
2. Only an operator gets in, whom somebody invited. The first time they are found by an address that the provider
   says is verified; from then on they are known by the provider's subject, and by nothing else.
3. The second factor is asked for as after a password, unless the provider says that it has asked for one that counts.
"""

from typing import NamedTuple

from payrelay.console.flows.parts import Browser, ConsoleParts, new_session
from payrelay.console.flows.provider_link import BY_PROVIDER, keep_subject
from payrelay.console.flows.sign_in import Failure, SignedIn, got_in
from payrelay.console.rules.sign_in.provider import (
    ProviderPerson,
    TryKeys,
    authorization_address,
)
from payrelay.console.rules.sign_in.tries import of_address
from payrelay.console.runtime.provider_calls import ProviderDown, ProviderRefused
from payrelay.core.operators.operator import (
    UNFINISHED_MS,
    ConsoleSession,
    Operator,
    OperatorState,
    Stage,
    is_open,
    token_hash,
)
from payrelay.core.operators.roles import Act
from payrelay.core.secret import Secret
from payrelay.errors import Outdated
from payrelay.flows.operators.parts import acting, new_token, next_of
from payrelay.store.operators.operators import OperatorChange


class LedAway(NamedTuple):
    """Where at the provider a browser goes on, and the cookie that it needs to come back."""

    address: str
    cookie: Secret


class BroughtBack(NamedTuple):
    """What the provider has a browser bring back; each is empty where it is missing."""

    state: str
    code: str
    issuer: str


class LetIn(NamedTuple):
    """A new session, and the page that its browser wanted in the first place."""

    signed_in: SignedIn
    way: str


async def lead_to_provider(parts: ConsoleParts, way: str, cookie: str | None, browser: Browser) -> LedAway | Failure:
    """Begins to sign in by the provider; ``way`` is the page to go on to, ``cookie`` the one of an earlier try.

    Raises StoreError.
    """
    now_ms = parts.clock.now_ms()
    if parts.provider is None:
        return Failure.PROVIDER_DOWN
    counted = of_address(browser.client)
    if not await parts.tries.take(now_ms, counted):
        return Failure.TOO_OFTEN
    try:
        metadata = await parts.provider.metadata()
    except ProviderDown:
        await parts.tries.give_back(counted, now_ms)
        return Failure.PROVIDER_DOWN
    keys = TryKeys(new_token().reveal(), cookie or new_token().reveal())
    name, bearer = token_hash(keys.state), token_hash(keys.cookie)
    await parts.challenges.add(name, bearer, way, now_ms=now_ms, ends_at_ms=now_ms + UNFINISHED_MS)
    address = authorization_address(metadata, parts.provider.rules, parts.provider.way_back, keys)
    return LedAway(address, Secret(keys.cookie))


async def take_from_provider(
    parts: ConsoleParts, brought: BroughtBack, cookie: str | None, browser: Browser
) -> LetIn | Failure:
    """Signs in by what the browser brings back from the provider. Raises StoreError."""
    now_ms = parts.clock.now_ms()
    if parts.provider is None:
        return Failure.PROVIDER_DOWN
    keys = TryKeys(brought.state, cookie or "")
    way = None
    if cookie is not None and brought.state:
        way = await parts.challenges.take(token_hash(keys.state), token_hash(keys.cookie), now_ms)
    if way is None:
        return Failure.OVER
    person = await _person(parts, brought, keys)
    if isinstance(person, Failure):
        if person is Failure.PROVIDER_DOWN:
            await parts.tries.give_back(of_address(browser.client), now_ms)
        return person
    found = await _let_in(parts, person, browser)
    return found if isinstance(found, Failure) else LetIn(found, way)


async def _person(parts: ConsoleParts, brought: BroughtBack, keys: TryKeys) -> ProviderPerson | Failure:
    provider = parts.provider
    if provider is None or not brought.code:
        return Failure.PROVIDER_REFUSED
    try:
        metadata = await provider.metadata()
        # Another provider's answer must not be taken for this one's (RFC 9207).
        is_needed = metadata.authorization_response_iss_parameter_supported
        if (brought.issuer or is_needed) and brought.issuer != provider.rules.issuer:
            return Failure.PROVIDER_REFUSED
        return await provider.person(brought.code, keys)
    except ProviderDown:
        return Failure.PROVIDER_DOWN
    except ProviderRefused:
        return Failure.PROVIDER_REFUSED


async def _let_in(parts: ConsoleParts, person: ProviderPerson, browser: Browser) -> SignedIn | Failure:
    operator = await parts.operators.by_subject(person.subject_hash)
    if operator is None:
        operator = None if person.email is None else await parts.operators.by_email(person.email)
        if operator is None or operator.provider_subject is not None:
            return Failure.NOT_INVITED
    stage = _stage(parts, operator, person)
    session, token = new_session(operator.id, stage, browser, parts.clock.now_ms())
    change = await _change(parts, operator, person, session)
    if change is None:
        return Failure.NOT_INVITED
    if stage is not Stage.OPEN:
        await keep_subject(parts, session, token, person.subject_hash)
    try:
        await parts.operators.carry_out(change)
    except Outdated:  # the operator was changed, or the invitation ended, at the same moment
        return Failure.OVER
    if stage is Stage.OPEN:
        await got_in(parts, operator, session)
    return SignedIn(change.changed or operator, session, token)


def _stage(parts: ConsoleParts, operator: Operator, person: ProviderPerson) -> Stage:
    if person.has_second_factor:
        return Stage.OPEN
    if operator.second_factor is not None:
        return Stage.CODE
    return Stage.ENROL if parts.needs_second_factor else Stage.OPEN


async def _change(
    parts: ConsoleParts, operator: Operator, person: ProviderPerson, session: ConsoleSession
) -> OperatorChange | None:
    """Gives what a sign-in changes: the first one links the provider's subject; None for who may not get in."""
    now_ms, subject = session.began_at_ms, person.subject_hash
    details = f"{BY_PROVIDER}from {session.client}"
    actor = acting(operator)
    if operator.state is OperatorState.DISABLED:
        return None
    if operator.state is OperatorState.INVITED:
        invitation = await parts.operators.invitation_of(operator.id)
        if invitation is None or not is_open(invitation, now_ms):
            return None
        return OperatorChange(
            at_ms=now_ms,
            act=actor.did(Act.ACCEPT_INVITATION, operator.id, at_ms=now_ms, details=details),
            changed=next_of(operator, now_ms, state=OperatorState.ACTIVE, provider_subject=subject),
            ends_invitation=invitation.id,
            ends_everything=True,
            session=session,
        )
    if operator.provider_subject is None and session.stage is not Stage.CODE:  # else once the code was shown
        act = actor.did(Act.LINK_PROVIDER, operator.id, at_ms=now_ms, details=details)
        changed = next_of(operator, now_ms, provider_subject=subject)
        return OperatorChange(at_ms=now_ms, act=act, changed=changed, session=session)
    is_open_now = session.stage is Stage.OPEN
    signed_in = actor.did(Act.SIGN_IN, session.id, at_ms=now_ms, details=details)
    return OperatorChange(at_ms=now_ms, act=signed_in if is_open_now else None, found=operator, session=session)
