"""The OAuth access token: one for all callers in all processes, renewed before its end, never shown.

One request at a time asks the gateway for it, however many callers wait. A caller asks for the token before it sends
anything, so every failure here is a safe one. Where the shared token store can't be reached, each process has a token
of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, assert_never

from payrelay.clock import Clock
from payrelay.core.gateways.shared_token import SharedToken
from payrelay.errors import Code, SettingsError, StoreError
from payrelay.gateways.http.exchange import CallHeaders, Exchanger, Loss
from payrelay.gateways.pacing.rate_limiter import Permit, Priority, RateLimiter
from payrelay.gateways.payhere.account import Account
from payrelay.gateways.payhere.permits import end_permit, take_permit, used
from payrelay.gateways.payhere.wire.reply_shapes import Cause, RejectedCall
from payrelay.gateways.payhere.wire.requests import basic_authorization, form_headers_of, headers_of, token_request
from payrelay.gateways.payhere.wire.token_replies import TokenGrant, read_grant
from payrelay.gateways.token_store import TokenStore

RENEWED_BEFORE_END_S: Final = 60.0
"""Half of the remaining life where that is shorter: the gateway gives out an unexpired token again, with less life."""
RENEWALS_APART_S: Final = 1.0
"""A token is used at least this long before it is renewed, so that the last second of its life brings no burst of
renewals."""
REFUSAL_KEPT_S: Final = 1.0
"""How long all callers get the gateway's refusal before it is asked again, because each request takes a call from the
budget."""

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
"""How long other processes leave the fetching to one process that stores nothing. It may have died, and a second fetch
costs only a call."""
POLL_AGAIN_S: Final = 0.2
"""How often a process checks whether the one that fetches has stored a token."""
UNREACHABLE_SENTENCE: Final = "there is no connection to the gateway; nothing was executed"


class UnsharedTokenStore:
    """The token store of a process that shares its token with no other. It is always empty."""

    async def read(self) -> SharedToken | None:
        """Finds nothing."""
        return None

    async def lease(self, for_s: float) -> bool:  # noqa: ARG002, no other process wants it
        """Gives the lease."""
        return True

    async def put(self, text: str, left_s: float) -> None:
        """Does nothing."""

    async def give_up(self, for_s: float) -> None:
        """Does nothing."""

    async def drop(self, text: str) -> None:
        """Does nothing."""


class Token:
    """An access token with the headers that carry it. Its ``repr`` hides the text."""

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
    """Keeps the access token of one account. Raises SettingsError for an OAuth pair that can't be put into a header.

    Args:
        account: the account.
        pool: sends the token request.
        rate_limiter: gives the request its permit.
        clock: tells the time.
        token_store: shares the token with other processes.
        pause: waits a number of seconds while another process fetches.
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
        self._pool = pool
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
        """Gives a token, or the reason why there is none; waits until ``until_s`` (by ``clock.boot_s``) at most."""
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
        # The old token is valid to its last second, so a renewal that fails early stops no caller.
        is_old_valid = self._token is not None and self._clock.boot_s() < self._token.ends_at_s
        return self._token if isinstance(outcome, RejectedCall) and is_old_valid and self._token else outcome

    def drop(self, token: Token) -> None:
        """Forgets a token that the gateway called invalid, unless another one has replaced it already."""
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
            found = await self._find_shared()
            if found is None and await self._may_fetch():
                # Between look and lease another process may have stored a token and ended its own lease.
                found = await self._find_shared()
                if found is None:
                    return await self._fetch()
                with suppress(StoreError):  # it ends by itself
                    await self._token_store.give_up(0.0)
            if found is not None:
                self._token = found
                return found
            if self._clock.boot_s() >= until_s:
                return NOT_IN_TIME
            await self._pause(POLL_AGAIN_S)

    async def _find_shared(self) -> Token | None:
        """Finds the token that another process fetched, where it needs no renewal yet."""
        try:
            if self._dropped is not None:
                await self._token_store.drop(self._dropped)
            shared = await self._token_store.read()
        except StoreError:
            return None
        if shared is None or shared.text == self._dropped:
            return None
        now_s = self._clock.boot_s()
        token = Token(shared.text, now_s, shared.left_s, age_s=shared.age_s)
        return token if now_s < min(token.renew_at_s, token.ends_at_s) else None

    async def _may_fetch(self) -> bool:
        try:
            return await self._token_store.lease(LEASE_S)
        except StoreError:
            return True

    async def _fetch(self) -> Token | RejectedCall:
        permit = await take_permit(self._rate_limiter, self._clock.boot_s() + self._queue_s, Priority.TOKEN)
        outcome = permit if isinstance(permit, RejectedCall) else self._token_of(await self._request(permit))
        with suppress(StoreError):  # the other processes fetch their own
            if isinstance(outcome, Token):
                await self._token_store.put(outcome.text, outcome.ends_at_s - self._clock.boot_s())
            else:
                await self._token_store.give_up(REFUSAL_KEPT_S)
        return outcome

    async def _request(self, permit: Permit) -> TokenGrant | RejectedCall | Loss:
        with used(permit):
            reply = await self._pool.exchange(token_request(), self._headers, send_by_s=permit.send_by_s)
            outcome = reply if isinstance(reply, Loss) else read_grant(reply.http_status, reply.body)
            end_permit(permit, reply, None if isinstance(outcome, TokenGrant) else outcome.cause)
        return outcome

    def _token_of(self, outcome: TokenGrant | RejectedCall | Loss) -> Token | RejectedCall:
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
                return _rejection_of(outcome)
            case _:
                assert_never(outcome)


def _headers_of(account: Account) -> CallHeaders:
    try:
        authorization = basic_authorization(account.app_id, account.app_secret.reveal())
    except UnicodeEncodeError:
        # Without the cause, which would show the text.
        name = account.name.upper()
        raise SettingsError(f"PAYRELAY_GATEWAYS__{name}__APP_ID and __APP_SECRET must be UTF-8 text") from None
    return form_headers_of(authorization)


def _rejection_of(loss: Loss) -> RejectedCall:
    """Says why no token came. Whatever became of the token request, the caller's own call was not sent."""
    if loss.is_sent:
        return RejectedCall(code=Code.UNAVAILABLE, cause=loss.cause, msg=NOT_IN_TIME.msg)
    return RejectedCall(code=Code.GATEWAY_UNREACHABLE, cause=loss.cause, msg=UNREACHABLE_SENTENCE)
