"""The OAuth access token: one for all callers in all processes, renewed before its end, never shown.

One request at a time asks for it, however many callers wait. Nobody who asks here has sent anything yet, so that every
failure is a safe one. Where the shelf that processes share can't be reached, each has a token of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, assert_never

from multidict import CIMultiDict

from payrelay.clock import Clock
from payrelay.errors import Code, SettingsError, StoreError
from payrelay.gateways.pacing.rate_limiter import Permit, Priority, RateLimiter
from payrelay.gateways.payhere.account import Account
from payrelay.gateways.payhere.connections import Exchanger, Loss, form_headers_of, headers_of
from payrelay.gateways.payhere.permits import end_permit, take_permit, used
from payrelay.gateways.payhere.wire.grants import TokenGrant, read_grant
from payrelay.gateways.payhere.wire.replies import Cause, RejectedCall
from payrelay.gateways.payhere.wire.requests import basic_authorization, token_request
from payrelay.gateways.token_store import SharedToken, TokenStore

RENEWED_BEFORE_END_S: Final = 60.0
"""Half of the life that is left where that is less: the gateway gives out the same token again, with less life."""
RENEWALS_APART_S: Final = 1.0
"""A token is used at least this long before it is renewed, so that the last second of its life is no storm."""
REFUSAL_KEPT_S: Final = 1.0
"""How long everybody hears that we aren't let in before it is tried again: each try takes a call from the budget."""

TOKEN_REFUSED: Final = RejectedCall(
    code=Code.GATEWAY_REFUSED_US,
    cause=Cause.INVALID_TOKEN,
    msg="the gateway does not accept the access token that it gave us; nothing was executed",
)
NOT_IN_TIME: Final = RejectedCall(
    code=Code.UNAVAILABLE,
    cause=Cause.TOKEN_TIMEOUT,
    msg="the gateway gave no access token in time; nothing was executed",
)
LEASE_S: Final = 10.0
"""How long others leave the fetching to one process that says nothing more; it may have died, and a second fetch costs
no more than a call."""
POLL_AGAIN_S: Final = 0.2
"""How often a process looks whether the one that fetches has come back."""
UNREACHABLE_SENTENCE: Final = "there is no connection to the gateway; nothing was executed"


class UnsharedTokenStore:
    """For a process that shares its token with nobody: there is never anything on it."""

    async def read(self) -> SharedToken | None:
        """Finds nothing."""
        return None

    async def lease(self, for_s: float) -> bool:  # noqa: ARG002, nobody else wants it
        """Lets it be fetched."""
        return True

    async def put(self, text: str, left_s: float) -> None:
        """Does nothing."""

    async def give_up(self, for_s: float) -> None:
        """Does nothing."""

    async def drop(self, text: str) -> None:
        """Does nothing."""


class Token:
    """An access token with the headers that carry it. It prints without its text."""

    __slots__ = ("ends_at_s", "headers", "renew_at_s", "text")

    def __init__(self, text: str, now_s: float, left_s: float, *, age_s: float = 0.0) -> None:
        self.text = text
        self.headers = headers_of(f"Bearer {text}")
        self.ends_at_s = now_s + left_s
        early_s = min(RENEWED_BEFORE_END_S, (age_s + left_s) / 2)
        self.renew_at_s = max(self.ends_at_s - early_s, now_s - age_s + RENEWALS_APART_S)

    def __repr__(self) -> str:
        return "Token(********)"


class Tokens:
    """Keeps the access token of one account. Raises SettingsError for a pair that can't be put into a header.

    Args:
        account: whose it is.
        pool: carries the request.
        rate_limiter: gives it a place.
        clock: tells the time.
        token_store: where other processes find the token.
        pause: waits a number of seconds, while another process fetches.
    """

    def __init__(
        self,
        account: Account,
        pool: Exchanger,
        rate_limiter: RateLimiter,
        clock: Clock,
        *,
        token_store: TokenStore | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._queue_s = account.queue_s
        self._fetch_s = account.queue_s + account.timeout_s
        self._headers = _headers_of(account)
        self._lane = pool
        self._rate_limiter = rate_limiter
        self._clock = clock
        self._token_store = token_store or UnsharedTokenStore()
        self._pause = pause
        self._token: Token | None = None
        self._dropped: str | None = None
        self._refusal: RejectedCall | None = None
        self._refused_until_s = 0.0
        self._renewal: asyncio.Task[Token | RejectedCall] | None = None

    def at_once(self) -> Token | None:
        """Gives the token where there is one that needs no renewal yet; waits for nothing."""
        if self._token is not None and self._clock.boot_s() < self._token.renew_at_s:
            return self._token
        return None

    async def current(self, until_s: float) -> Token | RejectedCall:
        """Gives a token, or why there is none; waits for one no longer than until then (by ``clock.boot_s``)."""
        token = self.at_once()
        if token is not None:
            return token
        now_s = self._clock.boot_s()
        if self._refusal is not None and now_s < self._refused_until_s:
            return self._refusal
        if self._renewal is None:
            self._renewal = asyncio.get_running_loop().create_task(self._renew())
            self._renewal.add_done_callback(self._end_renewal)
        renewal = self._renewal
        await asyncio.wait({renewal}, timeout=max(0.0, until_s - now_s))
        outcome = renewal.result() if renewal.done() and not renewal.cancelled() else NOT_IN_TIME
        # The old one is good to its last second: a failed renewal ahead of time stops nobody.
        is_old_good = self._token is not None and self._clock.boot_s() < self._token.ends_at_s
        return self._token if isinstance(outcome, RejectedCall) and is_old_good and self._token else outcome

    def drop(self, token: Token) -> None:
        """Forgets a token that the gateway called invalid, unless another one has taken its place already."""
        if self._token is token:
            self._token = None
            self._dropped = token.text

    async def close(self) -> None:
        """Ends a renewal that is under way."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)

    def _end_renewal(self, _: object) -> None:
        self._renewal = None

    async def _renew(self) -> Token | RejectedCall:
        until_s = self._clock.boot_s() + self._fetch_s
        while True:
            found = await self._look()
            if found is not None:
                self._token = found
                return found
            if await self._may_fetch():
                return await self._fetch()
            if self._clock.boot_s() >= until_s:
                return NOT_IN_TIME
            await self._pause(POLL_AGAIN_S)

    async def _look(self) -> Token | None:
        """Finds the token that another process fetched, where it needs no renewal yet."""
        try:
            if self._dropped is not None:
                await self._token_store.drop(self._dropped)
            kept = await self._token_store.read()
        except StoreError:
            return None
        if kept is None or kept.text == self._dropped:
            return None
        now_s = self._clock.boot_s()
        token = Token(kept.text, now_s, kept.left_s, age_s=kept.age_s)
        return token if now_s < min(token.renew_at_s, token.ends_at_s) else None

    async def _may_fetch(self) -> bool:
        try:
            return await self._token_store.lease(LEASE_S)
        except StoreError:
            return True

    async def _fetch(self) -> Token | RejectedCall:
        permit = await take_permit(self._rate_limiter, self._clock.boot_s() + self._queue_s, Priority.TOKEN)
        outcome = permit if isinstance(permit, RejectedCall) else self._kept(await self._ask(permit))
        with suppress(StoreError):  # the others fetch one for themselves
            if isinstance(outcome, Token):
                await self._token_store.put(outcome.text, outcome.ends_at_s - self._clock.boot_s())
            else:
                await self._token_store.give_up(REFUSAL_KEPT_S)
        return outcome

    async def _ask(self, permit: Permit) -> TokenGrant | RejectedCall | Loss:
        with used(permit):
            reply = await self._lane.exchange(token_request(), self._headers, send_by_s=permit.send_by_s)
            outcome = reply if isinstance(reply, Loss) else read_grant(reply.http_status, reply.body)
            end_permit(permit, reply, None if isinstance(outcome, TokenGrant) else outcome.cause)
        return outcome

    def _kept(self, outcome: TokenGrant | RejectedCall | Loss) -> Token | RejectedCall:
        now_s = self._clock.boot_s()
        match outcome:
            case TokenGrant():
                self._refusal = None
                self._dropped = None
                self._token = Token(outcome.access_token, now_s, outcome.expires_in_s)
                return self._token
            case RejectedCall():
                self._refusal, self._refused_until_s = outcome, now_s + REFUSAL_KEPT_S
                return outcome
            case Loss():
                return _of_loss(outcome)
            case _:
                assert_never(outcome)


def _headers_of(account: Account) -> CIMultiDict[str]:
    try:
        authorization = basic_authorization(account.app_id, account.app_secret.reveal())
    except UnicodeEncodeError:
        # Without the cause: it would show the text.
        name = account.name.upper()
        raise SettingsError(f"PAYRELAY_GATEWAYS__{name}__APP_ID and __APP_SECRET must be UTF-8 text") from None
    return form_headers_of(authorization)


def _of_loss(loss: Loss) -> RejectedCall:
    """Tells why no token came; with or without a reply to *this* call, nothing of the caller's was sent."""
    if loss.is_sent:
        return RejectedCall(code=Code.UNAVAILABLE, cause=loss.cause, msg=NOT_IN_TIME.msg)
    return RejectedCall(code=Code.GATEWAY_UNREACHABLE, cause=loss.cause, msg=UNREACHABLE_SENTENCE)
