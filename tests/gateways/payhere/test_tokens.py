import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec
import pytest

from payrelay.clock import Clock
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.gateways.shared_token import SharedToken
from payrelay.core.secret import Secret
from payrelay.errors import Code, SettingsError, StoreUnavailable
from payrelay.gateways.http.exchange import CallHeaders, Exchanger, Loss, LossCause, OutgoingRequest, Reply
from payrelay.gateways.pacing.rate_limiter import RateLimiter
from payrelay.gateways.payhere.account import Account
from payrelay.gateways.payhere.tokens import LEASE_S, Token, Tokens
from payrelay.gateways.payhere.wire.reply_shapes import RejectedCall

ACCOUNT: Final = Account(
    name="shop",
    environment="sandbox",
    base_url="http://gateway.invalid",
    app_id="app",
    app_secret=Secret("app-secret"),
    queue_s=0.0,
)
SOON_S: Final = 5.0


class HandClock(Clock):
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def boot_s(self) -> float:
        """Gives the time that it was moved to."""
        return self.now_s


class ScriptedPool:
    """Gives prepared replies to the token requests, the last one again and again; waits while it is held."""

    def __init__(self, *replies: Reply | Loss) -> None:
        self.replies = list(replies)
        self.authorizations: list[str | None] = []
        self.is_asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_paused = asyncio.Event()

    async def pause(self, _seconds: float) -> None:
        """Goes on with the reply when another one has begun to wait for it."""
        self.is_paused.set()
        self.gate.set()
        await asyncio.sleep(0)

    async def exchange(
        self, request: OutgoingRequest, headers: CallHeaders, *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Gives the next reply."""
        assert (request.path, send_by_s is not None) == ("/merchant/v1/oauth/token", True)
        self.authorizations.append(headers.authorization)
        self.is_asked.set()
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        await self.gate.wait()
        return reply


def granted(text: str, expires_in: int = 599) -> Reply:
    """Writes a reply that gives a token."""
    document = {"access_token": text, "token_type": "bearer", "expires_in": expires_in, "scope": "SANDBOX"}
    return Reply(http_status=200, body=json.dumps(document).encode())


DENIED: Final = Reply(http_status=401, body=b'{"error":"invalid_client","error_description":"Bad client credentials"}')
Make = Callable[..., Tokens]
Pause = Callable[[float], Awaitable[None]]


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands still."""
    return HandClock()


@pytest.fixture
async def make(clock: HandClock) -> AsyncIterator[Make]:
    """Makes what is tested, with a pool, and closes it."""
    made: list[Tokens] = []

    def tokens(
        pool: Exchanger,
        limit: RateLimit | None = None,
        token_store: MemoryTokenStore | None = None,
        pause: Pause = asyncio.sleep,
    ) -> Tokens:
        made.append(Tokens(ACCOUNT, pool, RateLimiter(limit, clock), clock, token_store=token_store, pause=pause))
        return made[-1]

    yield tokens
    for each in made:
        await each.close()


async def text_of(tokens: Tokens, clock: HandClock) -> str:
    """Gives the text of a token that must be there."""
    token = await tokens.current(clock.now_s + SOON_S)
    assert isinstance(token, Token)
    return token.text


async def refusal_of(tokens: Tokens, clock: HandClock) -> RejectedCall:
    """Gives the reason why there is no token."""
    refusal = await tokens.current(clock.now_s + SOON_S)
    assert isinstance(refusal, RejectedCall)
    return refusal


async def test_all_callers_wait_for_one_request(make: Make, clock: HandClock) -> None:
    """Twenty charges at start would otherwise use up the budget for their tokens alone."""
    pool = ScriptedPool(granted("token-one"), granted("token-two"))
    tokens = make(pool)
    texts = await asyncio.gather(*(text_of(tokens, clock) for _ in range(20)))
    assert set(texts) == {"token-one"}
    assert pool.authorizations == ["Basic YXBwOmFwcC1zZWNyZXQ="]


async def test_a_token_is_used_until_a_minute_before_its_end(make: Make, clock: HandClock) -> None:
    """Renewed too early it costs calls, and too late it costs a charge its time."""
    tokens = make(ScriptedPool(granted("token-one"), granted("token-two")))
    assert await text_of(tokens, clock) == "token-one"
    clock.now_s += 538.9
    assert await text_of(tokens, clock) == "token-one"
    clock.now_s += 0.2
    assert await text_of(tokens, clock) == "token-two"


async def test_the_same_token_with_less_life_is_no_storm(make: Make, clock: HandClock) -> None:
    """The gateway may give the same token until its end: the last minute takes a few requests, not thousands."""
    pool = ScriptedPool(granted("token-one"))
    tokens = make(pool)
    end_s = clock.now_s + 599
    while clock.now_s < end_s:
        pool.replies = [granted("token-one", expires_in=int(end_s - clock.now_s))]
        await text_of(tokens, clock)
        clock.now_s += 0.25
    assert len(pool.authorizations) <= 10


async def test_a_token_without_life_is_used_for_a_moment(make: Make, clock: HandClock) -> None:
    """A gateway that gives tokens with no life left must not be asked for each call."""
    pool = ScriptedPool(granted("token-one", expires_in=0))
    tokens = make(pool)
    for _ in range(5):
        assert await text_of(tokens, clock) == "token-one"
    assert len(pool.authorizations) == 1


async def test_a_dropped_token_is_not_given_again(make: Make, clock: HandClock) -> None:
    """The gateway called it invalid."""
    tokens = make(ScriptedPool(granted("token-one"), granted("token-two")))
    token = await tokens.current(clock.now_s + SOON_S)
    assert isinstance(token, Token)
    tokens.drop(token)
    assert await text_of(tokens, clock) == "token-two"


async def test_an_old_token_drops_no_newer_one(make: Make, clock: HandClock) -> None:
    """Of twenty calls that find the same token invalid, one renews it and nineteen come after."""
    pool = ScriptedPool(granted("token-one"), granted("token-two"), granted("token-three"))
    tokens = make(pool)
    old = await tokens.current(clock.now_s + SOON_S)
    assert isinstance(old, Token)
    tokens.drop(old)
    await text_of(tokens, clock)
    tokens.drop(old)
    assert await text_of(tokens, clock) == "token-two"


async def test_a_token_is_renewed_in_vain_and_still_good(make: Make, clock: HandClock) -> None:
    """A failing renewal ahead of time stops nobody while the old token lives."""
    lost = Loss(is_sent=True, cause=LossCause.TIMEOUT)
    tokens = make(ScriptedPool(granted("token-one"), lost))
    await text_of(tokens, clock)
    clock.now_s += 550
    assert await text_of(tokens, clock) == "token-one"
    clock.now_s += 50
    assert (await refusal_of(tokens, clock)).code is Code.UNAVAILABLE


@pytest.mark.parametrize(
    ("reply", "code", "cause"),
    [
        (Loss(is_sent=False, cause=LossCause.NO_CONNECTION), Code.GATEWAY_UNREACHABLE, "no_connection"),
        (Loss(is_sent=True, cause=LossCause.TIMEOUT), Code.UNAVAILABLE, "timeout"),
        (DENIED, Code.GATEWAY_REFUSED_US, "credentials_refused"),
        (Reply(http_status=429, body=b""), Code.GATEWAY_BUSY, "rate_limited"),
        (Reply(http_status=500, body=b""), Code.UNAVAILABLE, "server_error"),
    ],
)
async def test_why_there_is_no_token(make: Make, clock: HandClock, reply: Reply | Loss, code: Code, cause: str) -> None:
    """The client hears whether to come again, and the operator what to do."""
    refusal = await refusal_of(make(ScriptedPool(reply)), clock)
    assert (refusal.code, refusal.cause) == (code, cause)


async def test_a_refusal_is_not_asked_for_again_at_once(make: Make, clock: HandClock) -> None:
    """Wrong credentials would otherwise cost a call for every request that comes in."""
    pool = ScriptedPool(DENIED, granted("token-one"))
    tokens = make(pool)
    for _ in range(5):
        await refusal_of(tokens, clock)
    assert len(pool.authorizations) == 1
    clock.now_s += 1
    assert await text_of(tokens, clock) == "token-one"


async def test_a_token_request_takes_a_permit(make: Make, clock: HandClock) -> None:
    """It is a call like any other to the gateway that counts them."""
    pool = ScriptedPool(granted("token-one", expires_in=2), granted("token-two", expires_in=2), granted("token-three"))
    tokens = make(pool, RateLimit(2, 10.0))
    await text_of(tokens, clock)
    clock.now_s += 2
    await text_of(tokens, clock)
    clock.now_s += 2
    assert (await refusal_of(tokens, clock)).code is Code.GATEWAY_BUSY
    clock.now_s += 10
    assert await text_of(tokens, clock) == "token-three"


async def test_nobody_waits_for_a_token_beyond_their_time(make: Make, clock: HandClock) -> None:
    """An effect that may not be sent any more has no use for it; the renewal itself goes on for the others."""
    pool = ScriptedPool(granted("token-one"))
    pool.gate.clear()
    tokens = make(pool)
    refusal = await tokens.current(clock.now_s + 0.01)
    assert isinstance(refusal, RejectedCall)
    assert refusal.code is Code.UNAVAILABLE
    pool.gate.set()
    assert await text_of(tokens, clock) == "token-one"
    assert len(pool.authorizations) == 1


async def test_who_goes_away_does_not_end_the_request_of_the_others(make: Make, clock: HandClock) -> None:
    """The first in line started it, and all the others wait for it."""
    pool = ScriptedPool(granted("token-one"))
    pool.gate.clear()
    tokens = make(pool)
    first = asyncio.create_task(text_of(tokens, clock))
    second = asyncio.create_task(text_of(tokens, clock))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    pool.gate.set()
    assert await second == "token-one"


async def test_a_token_is_never_printed(make: Make, clock: HandClock) -> None:
    """It ends in no log and no traceback."""
    token = await make(ScriptedPool(granted("token-one"))).current(clock.now_s + SOON_S)
    assert "token-one" not in f"{token} {token!r}"
    assert "app-secret" not in repr(ACCOUNT)


def test_a_pair_that_no_header_can_hold_ends_the_start(clock: HandClock) -> None:
    """A secret with stray bytes in the environment is found at start, and the line doesn't show it."""
    broken = msgspec.structs.replace(ACCOUNT, app_secret=Secret("abc\udcff"))
    with pytest.raises(SettingsError, match="APP_SECRET") as caught:
        Tokens(broken, ScriptedPool(DENIED), RateLimiter(None, clock), clock)
    assert "abc" not in str(caught.value)


async def test_a_request_under_way_ends_with_the_program(clock: HandClock) -> None:
    """A stop doesn't wait for the gateway; the call may have been sent, so its permit rests."""
    pool = ScriptedPool(granted("token-one"))
    pool.gate.clear()
    rate_limiter = RateLimiter(RateLimit(2, 10.0), clock)
    tokens = Tokens(ACCOUNT, pool, rate_limiter, clock)
    waiting = asyncio.create_task(tokens.current(clock.now_s + SOON_S))
    await pool.is_asked.wait()
    await tokens.close()
    assert isinstance(await waiting, RejectedCall)
    assert [await rate_limiter.take_now() is None for _ in range(2)] == [False, True]


class MemoryTokenStore:
    """The store that processes share, with its interface; ``lasts_s`` is how long a lease lasts here."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.kept: tuple[str, float, float] | None = None
        self.leased_until_s = 0.0
        self.is_down = False
        self.before_lease: str | None = None
        """What another process puts there between a look and the next lease."""

    async def read(self) -> SharedToken | None:
        """Gives what is there."""
        self._require()
        if self.kept is None:
            return None
        text, put_at_s, ends_at_s = self.kept
        return SharedToken(text, self.clock.now_s - put_at_s, ends_at_s - self.clock.now_s)

    async def lease(self, for_s: float) -> bool:
        """Gives it to one at a time."""
        self._require()
        if self.before_lease is not None:
            text, self.before_lease = self.before_lease, None
            await self.put(text, 600.0)
        is_free = self.leased_until_s <= self.clock.now_s
        if is_free:
            self.leased_until_s = self.clock.now_s + for_s
        return is_free

    async def put(self, text: str, left_s: float) -> None:
        """Keeps it."""
        self._require()
        self.kept, self.leased_until_s = (text, self.clock.now_s, self.clock.now_s + left_s), 0.0

    async def give_up(self, for_s: float) -> None:
        """Lets another one try."""
        self._require()
        self.leased_until_s = self.clock.now_s + for_s

    async def drop(self, text: str) -> None:
        """Forgets it."""
        self._require()
        if self.kept is not None and self.kept[0] == text:
            self.kept = None

    def _require(self) -> None:
        if self.is_down:
            raise StoreUnavailable("down")


@pytest.fixture
def token_store(clock: HandClock) -> MemoryTokenStore:
    """An empty token_store."""
    return MemoryTokenStore(clock)


async def test_a_process_uses_the_token_that_another_one_fetched(
    make: Make, clock: HandClock, token_store: MemoryTokenStore
) -> None:
    """Ten processes would otherwise make ten calls every ten minutes, and ten tokens."""
    pool = ScriptedPool(granted("token-one"), granted("token-two"))
    assert [await text_of(make(pool, token_store=token_store), clock) for _ in range(3)] == ["token-one"] * 3
    assert len(pool.authorizations) == 1


async def test_a_shared_token_is_renewed_a_minute_before_its_end(
    make: Make, clock: HandClock, token_store: MemoryTokenStore
) -> None:
    """By the one that comes first then; the others find the new one."""
    pool = ScriptedPool(granted("token-one"), granted("token-two"))
    one, other = make(pool, token_store=token_store), make(pool, token_store=token_store)
    await text_of(one, clock)
    clock.now_s += 530
    assert await text_of(other, clock) == "token-one"
    clock.now_s += 10
    assert [await text_of(tokens, clock) for tokens in (other, one)] == ["token-two", "token-two"]
    assert len(pool.authorizations) == 2


async def test_while_one_process_fetches_the_others_wait_for_it(
    make: Make, clock: HandClock, token_store: MemoryTokenStore
) -> None:
    """One call, whoever asks meanwhile."""
    pool = ScriptedPool(granted("token-one"), granted("token-two"))
    pool.gate.clear()
    first = asyncio.create_task(text_of(make(pool, token_store=token_store), clock))
    await pool.is_asked.wait()
    second = asyncio.create_task(text_of(make(pool, token_store=token_store, pause=pool.pause), clock))
    await pool.is_paused.wait()
    assert (await first, await second) == ("token-one", "token-one")
    assert len(pool.authorizations) == 1


async def test_a_token_that_came_between_the_look_and_the_lease_is_used(
    make: Make, clock: HandClock, token_store: MemoryTokenStore
) -> None:
    """The other process has just ended its lease: a second fetch would take a call of the budget for nothing."""
    token_store.before_lease = "token-of-another"
    pool = ScriptedPool(granted("token-one"))
    assert await text_of(make(pool, token_store=token_store), clock) == "token-of-another"
    assert not pool.authorizations
    assert await token_store.lease(LEASE_S), "the lease that nobody needed must be free"


async def test_a_process_that_died_while_it_fetched_is_not_waited_for_long(
    make: Make, clock: HandClock, token_store: MemoryTokenStore
) -> None:
    """Its lease ends by itself."""
    await token_store.lease(LEASE_S)

    async def pause(seconds: float) -> None:
        clock.now_s += seconds

    began_s = clock.now_s
    assert (
        await text_of(make(ScriptedPool(granted("token-one")), token_store=token_store, pause=pause), clock)
        == "token-one"
    )
    assert LEASE_S <= clock.now_s - began_s < LEASE_S + 1


async def test_one_that_never_comes_back_is_not_waited_for_without_end(
    make: Make, clock: HandClock, token_store: MemoryTokenStore
) -> None:
    """Others may lease it again and again; each waits no longer than a fetch of its own would take."""

    async def pause(seconds: float) -> None:
        clock.now_s += seconds
        token_store.leased_until_s = clock.now_s + LEASE_S

    await token_store.lease(LEASE_S)
    refusal = await refusal_of(make(ScriptedPool(granted("token-one")), token_store=token_store, pause=pause), clock)
    assert refusal.cause == "token_timeout"


async def test_a_token_that_is_called_invalid_leaves_the_shelf(
    make: Make, clock: HandClock, token_store: MemoryTokenStore
) -> None:
    """And no process takes it again; but one that took its place stays."""
    pool = ScriptedPool(granted("token-one"), granted("token-two"))
    one, other = make(pool, token_store=token_store), make(pool, token_store=token_store)
    olds = [await tokens.current(clock.now_s + SOON_S) for tokens in (one, other)]
    for tokens, old in zip((one, other), olds, strict=True):
        assert isinstance(old, Token)
        tokens.drop(old)
    assert [await text_of(tokens, clock) for tokens in (one, other)] == ["token-two", "token-two"]
    assert len(pool.authorizations) == 2


async def test_who_gets_no_token_lets_others_try_soon(
    make: Make, clock: HandClock, token_store: MemoryTokenStore
) -> None:
    """Not at once: wrong credentials would cost each process a call for every request."""
    await refusal_of(make(ScriptedPool(DENIED), token_store=token_store), clock)
    assert not await token_store.lease(LEASE_S)
    clock.now_s += 1
    assert await token_store.lease(LEASE_S)


async def test_without_the_shelf_each_process_has_its_own(
    make: Make, clock: HandClock, token_store: MemoryTokenStore
) -> None:
    """The store is down, and a token is not what fails for it."""
    token_store.is_down = True
    pool = ScriptedPool(granted("token-one"), granted("token-two"))
    assert [await text_of(make(pool, token_store=token_store), clock) for _ in range(2)] == ["token-one", "token-two"]
