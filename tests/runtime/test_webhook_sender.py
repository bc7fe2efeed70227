"""One event to one address: what is called, and what never."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from tests.runtime.receivers import LOOPBACK, OWNER, Receiver, SetClock, event, receiving

from payrelay.core.events.delivery import AttemptResult, Endpoint, EndpointState
from payrelay.core.events.destinations import AllowedDestinations, allowed_of
from payrelay.core.events.event import PublishedEvent
from payrelay.core.secret import Secret
from payrelay.runtime.clients.webhooks import ANSWER_BYTES_MAX
from payrelay.runtime.webhook_sender import SEND_MAX_S, Secrets, Signer, WebhookSender

SIGNER = Signer(Secrets(Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")))


class Names(AbstractResolver):
    """Leads every name to some addresses, each time to the next ones."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Gives the next answer, the last one again and again."""
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not answer:
            raise OSError("no such name")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
            for address in answer
        ]

    async def close(self) -> None:
        """Has nothing to let go of."""


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Listens."""
    async with receiving() as made:
        yield made


def endpoint(url: str) -> Endpoint:
    """Gives an endpoint at an address."""
    return Endpoint(
        id="end_1",
        account=OWNER.account,
        merchant=OWNER.merchant,
        principal=OWNER.principal,
        url=url,
        types=("*",),
        label=None,
        state=EndpointState.ACTIVE,
        reason=None,
        older_ends_at_ms=None,
        failing_since_ms=None,
        deferred_until_ms=0,
        created_at_ms=0,
        updated_at_ms=0,
    )


def published() -> PublishedEvent:
    """Gives an event that has its position."""
    one = event(1)
    return PublishedEvent(position=1, **{name: getattr(one, name) for name in one.__struct_fields__})


def public_at(port: int) -> AllowedDestinations:
    """Gives what is allowed where only the port of public addresses is another one."""
    return AllowedDestinations(ports=frozenset({port}))


async def send(
    url: str, *, allowed: AllowedDestinations = LOOPBACK, resolver: AbstractResolver | None = None, limit_s: float = 5
) -> AttemptResult:
    """Sends one event."""
    sender = WebhookSender(allowed, SetClock(), limit_s=limit_s, resolver=resolver)
    try:
        return await sender.send(endpoint(url), SIGNER, published())
    finally:
        await sender.close()


async def test_a_name_that_leads_to_a_private_address_is_not_called(receiver: Receiver) -> None:
    """Whoever owns a name may lead it to our own network."""
    names = Names(("127.0.0.1",))
    tried = await send(f"https://hooks.example:{receiver.port}/", allowed=public_at(receiver.port), resolver=names)

    assert tried == AttemptResult(failure="has a name that leads to an address that is not public")
    assert names.asked == ["hooks.example"]
    assert receiver.received == []


@pytest.mark.parametrize("addresses", [("8.8.8.8", "10.0.0.1"), ("::ffff:127.0.0.1",), ("169.254.169.254",)])
async def test_one_private_address_among_others_is_enough(addresses: tuple[str, ...]) -> None:
    """Which of them would be called is chance."""
    tried = await send("https://hooks.example/", allowed=AllowedDestinations(), resolver=Names(addresses))

    assert tried.failure == "has a name that leads to an address that is not public"


async def test_a_name_that_changes_its_address_is_checked_each_time(receiver: Receiver) -> None:
    """What was checked is what is connected to: a second answer is never asked for in between."""
    names = Names(("8.8.8.8",), ("127.0.0.1",))
    sender = WebhookSender(public_at(receiver.port), SetClock(), limit_s=0.2, resolver=names)
    for _ in range(3):
        tried = await sender.send(endpoint(f"https://hooks.example:{receiver.port}/"), SIGNER, published())
        assert not tried.is_delivered
    await sender.close()

    assert receiver.received == []


async def test_events_that_load_the_client_together_are_sent_by_one(receiver: Receiver) -> None:
    """After a start several endpoints have events. A second client would be left open when the first is closed."""
    sender = WebhookSender(LOOPBACK, SetClock())
    url = f"http://127.0.0.1:{receiver.port}/"
    tried = await asyncio.gather(*(sender.send(endpoint(url), SIGNER, published()) for _ in range(3)))
    await sender.close()
    gc.collect()  # an open client would complain here

    assert all(each.is_delivered for each in tried)


async def test_a_name_that_is_allowed_may_lead_anywhere(receiver: Receiver) -> None:
    """The operator said so."""
    url = f"http://hooks.internal:{receiver.port}/"
    allowed = allowed_of(["hooks.internal"])

    assert (await send(url, allowed=allowed, resolver=Names(("127.0.0.1",)))).is_delivered
    assert receiver.received[0].headers["host"] == f"hooks.internal:{receiver.port}"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "10.0.0.1", "[::ffff:127.0.0.1]"])
async def test_a_private_address_that_was_allowed_once_is_not_called(host: str) -> None:
    """A setting that was withdrawn also counts for registered endpoints."""
    tried = await send(f"https://{host}/", allowed=AllowedDestinations())

    assert tried.failure == "its address must be a public address"


async def test_http_that_was_allowed_once_is_not_spoken() -> None:
    """The same for what isn't secret on its way."""
    tried = await send("http://hooks.example/", allowed=AllowedDestinations(), resolver=Names(("8.8.8.8",)))

    assert tried.failure == "its address must be an https address"


@pytest.mark.parametrize(
    ("answer", "failure"),
    [((), "has a name that leads nowhere"), (("127.0.0.1",), "could not be reached")],
)
async def test_a_receiver_that_is_not_there_is_named(answer: tuple[str, ...], failure: str) -> None:
    """Its owner reads it in the deliveries."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert (
        await send(f"http://hooks.internal:{port}/", allowed=allowed_of(["hooks.internal"]), resolver=Names(answer))
    ) == (AttemptResult(failure=failure))


async def test_who_speaks_no_tls_is_not_trusted(receiver: Receiver) -> None:
    """Anybody could be in between."""
    tried = await send(f"https://127.0.0.1:{receiver.port}/")
    assert tried.failure == "did not agree on TLS: it must have the curve P-256"

    assert not tried.is_delivered
    assert receiver.received == []


async def test_of_a_long_answer_only_the_status_counts(receiver: Receiver) -> None:
    """A receiver that answers with a film costs us no memory."""
    receiver.answers = [web.Response(body=b"x" * (50 * ANSWER_BYTES_MAX)), web.Response(status=500, body=b"CANARY")]

    assert await send(receiver.url) == AttemptResult(status=200)
    assert "CANARY" not in repr(await send(receiver.url))


async def test_an_answer_that_never_ends_is_left() -> None:
    """Once the status is known, a receiver that sends nothing more keeps nobody waiting until the time of the whole."""
    has_left = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        while await reader.read(65_536):
            pass
        has_left.set()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, asyncio.timeout(SEND_MAX_S):
        host, port = server.sockets[0].getsockname()
        assert await send(f"http://{host}:{port}/", limit_s=10 * SEND_MAX_S) == AttemptResult(status=200)
        await has_left.wait()


async def test_patience_is_heard(receiver: Receiver) -> None:
    """From the header of the answer."""
    receiver.answers = [web.Response(status=503, headers={"Retry-After": "7"})]

    assert (await send(receiver.url)).retry_after_s == 7


def test_a_signature_is_that_of_the_standard() -> None:
    """The example of its page, by its own secret."""
    headers = SIGNER.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330_999, '{"test": 2432232314}')

    assert headers["webhook-timestamp"] == "1614265330"
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
