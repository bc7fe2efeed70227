import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final, TypeVar

import pytest
from tests.gateways.http.servers import listening

from payrelay.clock import Clock
from payrelay.core.calls import AllSubscriptions, Charge, PaymentsOfOrder, Refund
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.outcomes import Evidence, Outcome, OutcomeKind
from payrelay.core.payments.explanations import CAUSE_PHRASES
from payrelay.core.secret import Secret
from payrelay.errors import Code, StoreUnavailable
from payrelay.gateways.gateway import ExpectedReply, Sending
from payrelay.gateways.http.exchange import CallHeaders, Loss, OutgoingRequest, Reply
from payrelay.gateways.pacing.circuit_breaker import ENDED_MIN
from payrelay.gateways.pacing.rate_limiter import SEND_WITHIN_S, RateLimiter
from payrelay.gateways.payhere.account import Account
from payrelay.gateways.payhere.client import PayHere
from payrelay.gateways.payhere.connections import GatewayConnections

T = TypeVar("T")

FIRST: Final = "aaaaaaaa-741c-489a-b69e-fd73155ca34e"
SECOND: Final = "bbbbbbbb-741c-489a-b69e-fd73155ca34e"
THIRD: Final = "cccccccc-741c-489a-b69e-fd73155ca34e"
CUSTOMER: Final = "59AFEE022CC69CA39D325E1B59130862"
CHARGE: Final = Charge(
    authorize=False, order_id="A-1", items="Taxi", currency="LKR", amount_minor=34567, customer_token=CUSTOMER
)
CHARGED: Final = (
    b'{"status":1,"msg":"Automatic payment charged successfully","data":{"order_id":"A-1","items":"Taxi",'
    b'"currency":"LKR","amount":345.67,"payment_id":320025021815,"status_code":2,"authorization_token":null}}'
)
NONE_FOUND: Final = b'{"status":-1,"msg":"No payments found","data":null}'
TWENTY: Final = RateLimit(20, 10.0)
ORDER: Final = PaymentsOfOrder(order_id="A-1")


def invalid(token: str) -> tuple[int, bytes]:
    """Writes the reply that turns a token away."""
    document = {"error": "invalid_token", "error_description": f"Access token expired: {token}"}
    return 401, json.dumps(document).encode()


class Gateway:
    """A gateway on a real socket that answers requests from a list; None closes the connection inplaceof a reply.

    Token requests have their own list. The last entry of each is repeated.
    """

    def __init__(self) -> None:
        self.tokens = [FIRST]
        self.token_replies: list[tuple[int, bytes]] = []
        self.replies: list[tuple[int, bytes] | None] = [(200, CHARGED)]
        self.calls: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.tokens_given = 0
        self.has_call = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while (reply := await self._reply_to(*await _request(reader))) is not None:
                http_status, body = reply
                writer.write(f"HTTP/1.1 {http_status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        writer.close()
        self._tasks.discard(task)

    async def _reply_to(self, head: list[str], body: bytes) -> tuple[int, bytes] | None:
        if "/oauth/token" in head[0]:
            self.tokens_given += 1
            return _next(self.token_replies) if self.token_replies else _granted(_next(self.tokens))
        bearer = next(line.partition("Bearer ")[2] for line in head if line.startswith("Authorization:"))
        self.calls.append((head[0], bearer))
        self.has_call.set()
        self.bodies.append(body)
        await self.gate.wait()
        return _next(self.replies)

    async def end(self) -> None:
        """Ends what is still going on."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> tuple[list[str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    length = sum(int(line.partition(":")[2]) for line in head if line.lower().startswith("content-length:"))
    return head, await reader.readexactly(length)


def _next(replies: list[T]) -> T:
    return replies.pop(0) if len(replies) > 1 else replies[0]


def _granted(token: str) -> tuple[int, bytes]:
    return 200, json.dumps({"access_token": token, "token_type": "bearer", "expires_in": 599}).encode()


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    """A gateway on a real socket."""
    served = Gateway()
    async with listening(served):
        yield served


Make = Callable[..., PayHere]


@pytest.fixture
async def make(gateway: Gateway) -> AsyncIterator[Make]:
    """Makes clients of the gateway, and closes them."""
    made: list[PayHere] = []

    def client(
        *, url: str | None = None, limit: RateLimit | None = None, timeout_s: float = 30.0, clock: Clock | None = None
    ) -> PayHere:
        account = Account(
            name="shop",
            environment="sandbox",
            base_url=url or gateway.url,
            app_id="app",
            app_secret=Secret("app-secret"),
            limit=limit,
            timeout_s=timeout_s,
            queue_s=0.0,
        )
        clock = clock or Clock()
        connections = GatewayConnections(account.base_url, clock, timeout_s=account.timeout_s)
        made.append(PayHere(account, clock=clock, connections=connections))
        return made[-1]

    yield client
    for each in made:
        await each.close()


class Journal:
    """Notes what is about to be sent again, and allows it or not."""

    def __init__(self, *, allows: bool = True, error: Exception | None = None) -> None:
        self.noted: list[Evidence] = []
        self._allows = allows
        self._error = error

    async def journal_resend(self, evidence: Evidence) -> bool:
        """Allows a second sending."""
        self.noted.append(evidence)
        if self._error is not None:
            raise self._error
        return self._allows


async def send(
    client: PayHere,
    call: Charge | Refund = CHARGE,
    *,
    journal: Journal | None = None,
    within_s: float = 10.0,
    notify_url: str | None = None,
) -> Outcome:
    """Sends an effect on a place of the client's rate limiter."""
    permit = await client.rate_limiter.take_now()
    assert permit is not None
    sending = Sending(
        operation_id="op_1",
        permit=permit,
        send_by_s=Clock().boot_s() + within_s,
        journal_resend=(journal or Journal()).journal_resend,
        notify_url=notify_url,
    )
    return await client.effect(call, ExpectedReply(), sending)


async def free_permits(rate_limiter: RateLimiter) -> int:
    """Counts the permits that are free at this moment, by taking them."""
    count = 0
    while await rate_limiter.take_now() is not None:
        count += 1
    return count


class ScriptedNetwork:
    """In place of all connections: gives prepared replies, one after the other."""

    def __init__(self, *replies: tuple[int, bytes]) -> None:
        self.effects = self.reads = self
        self.replies = list(replies)
        self.is_closed = False
        self.send_by_s: list[float] = []

    async def exchange(
        self, _request: OutgoingRequest, _headers: CallHeaders, *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Gives the next reply."""
        assert send_by_s is not None
        self.send_by_s.append(send_by_s)
        http_status, body = self.replies.pop(0)
        return Reply(http_status=http_status, body=body)

    async def close(self) -> None:
        """Notes it."""
        self.is_closed = True


async def test_the_way_to_the_gateway_can_be_another() -> None:
    """A simulation takes the place of the network, and of nothing else."""
    network = ScriptedNetwork(_granted(FIRST), (200, NONE_FOUND))
    account = Account(
        name="shop", environment="sandbox", base_url="http://x.invalid", app_id="app", app_secret=Secret("app-secret")
    )
    client = PayHere(account, clock=Clock(), connections=network)
    assert (await client.read(ORDER)).code is Code.NOT_FOUND
    await client.close()
    assert network.is_closed


async def test_a_charge_succeeds(gateway: Gateway, make: Make) -> None:
    """The whole way: token, call, reply, outcome."""
    outcome = await send(make(), notify_url="https://ours.example/n")
    assert (outcome.kind, outcome.facts.payment_id) == (OutcomeKind.SUCCEEDED, "320025021815")
    assert gateway.calls == [("POST /merchant/v1/payment/charge HTTP/1.1", FIRST)]
    assert json.loads(gateway.bodies[0])["notify_url"] == "https://ours.example/n"
    assert outcome.evidence.elapsed_ms is not None


async def test_one_token_serves_many_calls(gateway: Gateway, make: Make) -> None:
    """A token for each call would cost half of the budget."""
    client = make()
    gateway.replies = [(200, NONE_FOUND)]
    await asyncio.gather(*(client.read(ORDER) for _ in range(10)))
    assert (gateway.tokens_given, len(gateway.calls)) == (1, 10)


async def test_a_burst_that_takes_every_permit_does_not_wait_for_itself(gateway: Gateway, make: Make) -> None:
    """Getting the token takes a permit too: held by those who wait for it, none of them would ever be sent."""
    client = make(limit=RateLimit(3, 60.0))
    outcomes = await asyncio.gather(*(send(client, within_s=0.5) for _ in range(3)))
    assert sorted(outcome.kind for outcome in outcomes) == [
        OutcomeKind.NOT_SENT,
        OutcomeKind.SUCCEEDED,
        OutcomeKind.SUCCEEDED,
    ]
    assert (gateway.tokens_given, len(gateway.calls)) == (1, 2)


async def test_an_ended_token_is_renewed_and_the_charge_sent_once_more(gateway: Gateway, make: Make) -> None:
    """The gateway proved that it did nothing; the second sending is journaled before it is made."""
    gateway.tokens, gateway.replies = [FIRST, SECOND], [invalid(FIRST), (200, CHARGED)]
    journal = Journal()
    outcome = await send(make(), journal=journal)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert [token for _, token in gateway.calls] == [FIRST, SECOND]
    assert [each.cause for each in journal.noted] == ["invalid_token"]
    assert gateway.bodies[0] == gateway.bodies[1]


async def test_a_charge_is_sent_at_most_twice(gateway: Gateway, make: Make) -> None:
    """A gateway that accepts none of its own tokens is not asked without end."""
    gateway.tokens, gateway.replies = [FIRST, SECOND, THIRD], [invalid(FIRST), invalid(SECOND)]
    outcome = await send(make())
    assert (outcome.kind, outcome.code) == (OutcomeKind.NOT_EXECUTED, Code.GATEWAY_REFUSED_US)
    assert len(gateway.calls) == 2


@pytest.mark.parametrize("journal", [Journal(allows=False), Journal(error=StoreUnavailable("down"))])
async def test_what_is_not_journaled_is_not_sent_again(gateway: Gateway, make: Make, journal: Journal) -> None:
    """After a crash the journal must know of every sending that there may have been."""
    gateway.tokens, gateway.replies = [FIRST, SECOND], [invalid(FIRST), (200, CHARGED)]
    client = make(limit=RateLimit(5, 60.0))
    outcome = await send(client, journal=journal)
    assert (outcome.kind, outcome.code) == (OutcomeKind.NOT_EXECUTED, Code.UNAVAILABLE)
    assert len(gateway.calls) == 1
    # Two tokens and one charge: the permit for the second charge came back.
    assert await free_permits(client.rate_limiter) == 2


async def test_without_a_permit_it_is_not_sent_again(gateway: Gateway, make: Make) -> None:
    """The budget holds for the second sending as for the first."""
    gateway.tokens, gateway.replies = [FIRST, SECOND], [invalid(FIRST), (200, CHARGED)]
    journal = Journal()
    outcome = await send(make(limit=RateLimit(3, 60.0)), journal=journal, within_s=0.5)
    assert (outcome.kind, outcome.code) == (OutcomeKind.NOT_EXECUTED, Code.GATEWAY_BUSY)
    assert (len(gateway.calls), journal.noted) == (1, [])


async def test_without_a_second_token_it_is_not_sent_again(gateway: Gateway, make: Make) -> None:
    """It was sent once, and provably nothing was executed: the client may come again."""
    gateway.token_replies, gateway.replies = [_granted(FIRST), (500, b"")], [invalid(FIRST), (200, CHARGED)]
    outcome = await send(make())
    assert (outcome.kind, outcome.code) == (OutcomeKind.NOT_EXECUTED, Code.UNAVAILABLE)
    assert len(gateway.calls) == 1


class SlowJournal(Journal):
    """Takes so long that the time to send is over; moves the clock that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = JumpClock()

    async def journal_resend(self, evidence: Evidence) -> bool:
        """Allows a second sending, too late."""
        self.clock.ahead_s = 60.0
        return await super().journal_resend(evidence)


class JumpClock(Clock):
    """Runs like any other, until it is set ahead."""

    ahead_s = 0.0

    def boot_s(self) -> float:
        """Gives the time with what it was set ahead."""
        return super().boot_s() + self.ahead_s


async def test_the_second_sending_has_no_later_time_than_the_first(gateway: Gateway, make: Make) -> None:
    """Journaling may take long; what was promised to be sent by then isn't sent after."""
    gateway.tokens, gateway.replies = [FIRST, SECOND], [invalid(FIRST), (200, CHARGED)]
    journal = SlowJournal()
    outcome = await send(make(clock=journal.clock), journal=journal)
    assert (outcome.kind, outcome.code) == (OutcomeKind.NOT_EXECUTED, Code.UNAVAILABLE)
    assert (len(gateway.calls), len(journal.noted)) == (1, 1)


async def test_another_calls_token_turned_away_is_unknown(gateway: Gateway, make: Make) -> None:
    """The reply isn't about what we sent, so it proves nothing about it."""
    gateway.replies = [invalid(THIRD), (200, CHARGED)]
    outcome = await send(make())
    assert (outcome.kind, outcome.evidence.cause) == (OutcomeKind.UNKNOWN, "oauth_error")
    assert len(gateway.calls) == 1


async def test_a_lost_reply_is_unknown_and_never_sent_again(gateway: Gateway, make: Make) -> None:
    """The money may have moved."""
    gateway.replies = [None]
    outcome = await send(make())
    assert (outcome.kind, outcome.code) == (OutcomeKind.UNKNOWN, Code.OUTCOME_UNKNOWN)
    assert outcome.evidence.cause == "connection_lost"
    assert len(gateway.calls) == 1


async def test_a_slow_reply_is_unknown(gateway: Gateway, make: Make) -> None:
    """After the time-out nobody waits any more; what became of it is found out later."""
    gateway.gate.clear()
    outcome = await send(make(timeout_s=0.3))
    assert (outcome.kind, outcome.evidence.cause) == (OutcomeKind.UNKNOWN, "timeout")


async def test_without_a_connection_nothing_was_sent(make: Make) -> None:
    """The client may simply come again, and the permit goes back unused."""
    client = make(url="http://127.0.0.1:1", limit=RateLimit(2, 60.0))
    outcome = await send(client)
    assert (outcome.kind, outcome.code) == (OutcomeKind.NOT_SENT, Code.GATEWAY_UNREACHABLE)
    assert await free_permits(client.rate_limiter) == 2


@pytest.mark.parametrize(
    ("token_reply", "code"),
    [
        ((401, b'{"error":"invalid_client","error_description":"Bad client credentials"}'), Code.GATEWAY_REFUSED_US),
        ((401, b'{"status":-1,"msg":"Access denied for the domain","data":null}'), Code.GATEWAY_REFUSED_US),
        ((429, b""), Code.GATEWAY_BUSY),
        ((500, b""), Code.UNAVAILABLE),
        ((200, b"<html>"), Code.UNAVAILABLE),
    ],
)
async def test_without_a_token_nothing_was_sent(
    gateway: Gateway, make: Make, token_reply: tuple[int, bytes], code: Code
) -> None:
    """Whatever the token request came to, the charge never left."""
    gateway.token_replies = [token_reply]
    client = make(limit=RateLimit(3, 60.0))
    outcome = await send(client)
    assert (outcome.kind, outcome.code) == (OutcomeKind.NOT_SENT, code)
    assert gateway.calls == []
    # The token request rests, the charge's own permit is free; after a 429 none is, for anybody.
    assert await free_permits(client.rate_limiter) == (0 if token_reply[0] == 429 else 2)


async def test_nothing_is_sent_after_its_time(gateway: Gateway, make: Make) -> None:
    """The last look at the clock is the sender's own."""
    client = make(limit=RateLimit(5, 60.0))
    await send(client)
    outcome = await send(client, within_s=-1.0)
    assert (outcome.kind, outcome.code, outcome.evidence.cause) == (
        OutcomeKind.NOT_SENT,
        Code.UNAVAILABLE,
        "too_late",
    )
    assert len(gateway.calls) == 1
    assert await free_permits(client.rate_limiter) == 3


async def test_a_used_permit_rests(make: Make) -> None:
    """A token, a charge: two of the five permits are used for a window."""
    client = make(limit=RateLimit(5, 60.0))
    await send(client)
    assert await free_permits(client.rate_limiter) == 3


async def test_a_cancelled_charge_keeps_its_permit_used(gateway: Gateway, make: Make) -> None:
    """It may have been sent."""
    gateway.gate.clear()
    client = make(limit=RateLimit(5, 60.0))
    task = asyncio.create_task(send(client))
    await gateway.has_call.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await free_permits(client.rate_limiter) == 3


async def test_a_text_that_no_bytes_can_hold_is_not_sent(gateway: Gateway, make: Make) -> None:
    """It can't come in through JSON; if it comes another way, nothing is raised and nothing leaves.

    The cause says so of the request: there was no reply that could be blamed.
    """
    client = make()
    outcome = await send(client, Refund(payment_id="1", description="\ud800"))
    assert (outcome.kind, outcome.code) == (OutcomeKind.NOT_SENT, Code.INTERNAL)
    assert CAUSE_PHRASES[outcome.evidence.cause or ""] == "the request had text that is not valid Unicode"
    reading = await client.read(PaymentsOfOrder(order_id="\ud800"))
    assert (reading.code, reading.evidence.cause) == (Code.GATEWAY_BAD_REPLY, outcome.evidence.cause)
    assert gateway.calls == []


async def test_a_read_is_made_again_with_a_new_token(gateway: Gateway, make: Make) -> None:
    """A read changes nothing, so nobody is asked."""
    gateway.tokens, gateway.replies = [FIRST, SECOND], [invalid(FIRST), (200, NONE_FOUND)]
    reading = await make().read(ORDER)
    assert reading.code is Code.NOT_FOUND
    assert [token for _, token in gateway.calls] == [FIRST, SECOND]


async def test_a_read_whose_tokens_are_all_refused(gateway: Gateway, make: Make) -> None:
    """It ends, and says whose fault it is."""
    gateway.tokens, gateway.replies = [FIRST, SECOND, THIRD], [invalid(FIRST), invalid(SECOND)]
    assert (await make().read(ORDER)).code is Code.GATEWAY_REFUSED_US
    assert len(gateway.calls) == 2


async def test_a_read_that_was_lost_is_made_again_on_its_own_permit(gateway: Gateway, make: Make) -> None:
    """The kept-alive connection had closed; the second reading is counted like the first."""
    gateway.replies = [None, (200, NONE_FOUND)]
    client = make(limit=RateLimit(5, 60.0))
    assert (await client.read(ORDER)).code is Code.NOT_FOUND
    assert await free_permits(client.rate_limiter) == 2


@pytest.mark.parametrize(
    ("replies", "code"),
    [([None], Code.GATEWAY_BAD_REPLY), ([(502, b"<html>")], Code.GATEWAY_BAD_REPLY), ([(429, b"")], Code.GATEWAY_BUSY)],
)
async def test_why_a_read_failed(
    gateway: Gateway, make: Make, replies: list[tuple[int, bytes] | None], code: Code
) -> None:
    """A gateway that is not there is distinguished from one that talks nonsense."""
    gateway.replies = replies
    assert (await make().read(ORDER)).code is code


async def test_a_read_without_a_connection(make: Make) -> None:
    """Nothing was sent, and the client may come again."""
    reading = await make(url="http://127.0.0.1:1").read(AllSubscriptions())
    assert reading.code is Code.GATEWAY_UNREACHABLE


async def test_a_read_without_a_permit(gateway: Gateway, make: Make) -> None:
    """Reads wait no longer than configured, and take no permit from an effect."""
    client = make(limit=RateLimit(2, 60.0))
    gateway.replies = [(200, NONE_FOUND)]
    await client.read(ORDER)
    assert (await client.read(ORDER)).code is Code.GATEWAY_BUSY
    assert len(gateway.calls) == 1


async def test_a_slow_read_is_not_made_again(gateway: Gateway, make: Make) -> None:
    """Whoever waits has waited long enough."""
    gateway.gate.clear()
    reading = await make(timeout_s=0.3).read(ORDER)
    assert (reading.code, reading.evidence.cause, len(gateway.calls)) == (Code.GATEWAY_BAD_REPLY, "timeout", 1)


async def test_an_outcome_holds_none_of_our_secrets(gateway: Gateway, make: Make) -> None:
    """What is stored and shown gives nobody our access."""
    gateway.tokens, gateway.replies = [FIRST, SECOND], [invalid(FIRST), (200, CHARGED)]
    journal = Journal()
    client = make()
    seen = repr((await send(client, journal=journal), journal.noted, vars(client), await client.read(ORDER)))
    assert not [secret for secret in (FIRST, SECOND, "app-secret") if secret in seen]


@pytest.mark.parametrize(
    ("token_reply", "text"),
    [
        ((401, b'{"error":"invalid_client"}'), "APP_ID"),
        ((401, b'{"status":-1,"msg":"Access denied for the domain","data":null}'), "domain"),
        ((404, b"<html>"), "BASE_URL"),
        ((200, b"<html>"), "BASE_URL"),
        ((301, b""), "BASE_URL"),
        ((500, b""), "failing"),
    ],
)
async def test_check_says_why_there_is_no_token(
    gateway: Gateway, make: Make, token_reply: tuple[int, bytes], text: str
) -> None:
    """An operator at their first start reads what to do."""
    gateway.token_replies = [token_reply]
    (result,) = await make().check()
    assert not result.is_right
    assert text in result.text


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ((200, NONE_FOUND), "answers our calls"),
        ((401, b'{"status":-1,"msg":"Access denied for the domain","data":null}'), "domain"),
        ((200, b'{"status":-2,"msg":"Authentication error","data":null}'), "permissions"),
        ((502, b""), "failing"),
        ((418, b""), "BASE_URL"),
        ((401, b'{"error":"insufficient_scope"}'), "could not be understood"),
    ],
)
async def test_check_says_whether_calls_are_answered(
    gateway: Gateway, make: Make, reply: tuple[int, bytes], text: str
) -> None:
    """A token alone proves little; a search for an order that can't be there changes nothing and shows nobody."""
    gateway.replies = [reply]
    token, search = await make().check()
    assert (token.is_right, search.is_right) == (True, reply[1] is NONE_FOUND)
    assert text in search.text
    assert [call for call, _ in gateway.calls] == ["GET /merchant/v1/payment/search?order_id=payrelay-check HTTP/1.1"]


async def test_check_of_an_address_where_nobody_is(make: Make) -> None:
    """The first thing that goes wrong at a new machine."""
    (result,) = await make(url="http://127.0.0.1:1").check()
    assert "No connection" in result.text


async def test_a_failing_gateway_is_called_less_than_eleven_times_for_ten(gateway: Gateway, make: Make) -> None:
    """Reads are made again when their connection is lost, but not all of them when all are lost; then none is made."""
    gateway.replies = [None]
    client = make()
    read_cache = [await client.read(ORDER) for _ in range(100)]
    assert len(gateway.calls) <= 1.1 * ENDED_MIN
    assert read_cache[-1].code is Code.UNAVAILABLE
    assert read_cache[-1].evidence.cause == "gateway_failing"
    assert read_cache[-1].retry_after_s is not None


async def test_an_effect_that_has_its_permit_does_not_go_out_to_a_gateway_that_was_found_failing(
    gateway: Gateway, make: Make
) -> None:
    """Nothing left, and the client may come again."""
    client = make()
    await send(client)
    permit = await client.rate_limiter.take_now()
    assert permit is not None
    gateway.replies = [(500, b"")]
    for _ in range(ENDED_MIN + 1):
        await client.read(ORDER)
    made = len(gateway.calls)
    journal_resend, send_by_s = Journal().journal_resend, Clock().boot_s() + 10
    sending = Sending(operation_id="op_1", permit=permit, send_by_s=send_by_s, journal_resend=journal_resend)
    outcome = await client.effect(CHARGE, ExpectedReply(), sending)
    assert (outcome.kind, outcome.code) == (OutcomeKind.NOT_SENT, Code.UNAVAILABLE)
    assert len(gateway.calls) == made


async def test_a_read_is_not_sent_on_a_permit_that_has_lapsed() -> None:
    """A process that slept must not use what is another one's by now; nor may its token request."""
    network = ScriptedNetwork(_granted(FIRST), (200, NONE_FOUND))
    account = Account(
        name="shop", environment="x", base_url="http://x.invalid", app_id="app", app_secret=Secret("s"), limit=TWENTY
    )
    client = PayHere(account, clock=Clock(), connections=network)
    await client.read(ORDER)
    now_s = Clock().boot_s()
    assert [now_s < send_by_s <= now_s + SEND_WITHIN_S for send_by_s in network.send_by_s] == [True, True]
    await client.close()


async def test_a_gateway_that_says_too_many_is_left_alone_for_a_window(gateway: Gateway, make: Make) -> None:
    """Whatever our books say."""
    gateway.replies = [(429, b"")]
    client = make(limit=RateLimit(9, 60.0))
    assert (await client.read(ORDER)).code is Code.GATEWAY_BUSY
    assert (await client.read(ORDER)).evidence.cause == "no_place"
    assert len(gateway.calls) == 1
