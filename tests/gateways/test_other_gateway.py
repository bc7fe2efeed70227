"""One flow each of what a gateway that is not like PayHere does otherwise, through the flows that know neither."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.flows.world import CHARGE, World, asked, opened
from tests.gateways.other_gateway import KEYS_KEPT_MS, OtherGateway, Record, Webhook, signed
from tests.samples import ASKED

from payrelay.api.http.incoming_request import Headers
from payrelay.api.public.caller import Caller
from payrelay.api.public.checkout_pages import checkout_page
from payrelay.api.public.notifications import receive_notification
from payrelay.api.public.refused_senders import RefusedSenders
from payrelay.core.answers import Answer
from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import NewCheckout
from payrelay.core.gateways.pauses import Pause
from payrelay.core.notifications.notification import Authenticity, NotificationFilter, NotificationState
from payrelay.core.payments.operation import State
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.notifications.work_inbox import begin_inbox
from payrelay.flows.payments.charge import charge
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.resolve import resolve_due
from payrelay.gateways.pacing.rate_limiter import PAYRELAY, Permit, Priority, RateLimiter, Requester
from payrelay.store.gateways.pauses import Pauses

PAID: Final = Record(
    id="900", reference="A-1", state="captured", minor=100_000, cur="LKR", made="2023-11-14T22:13:21+00:00", note="Tea"
)
LATER_MS: Final = 60_000


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Gives a store and a clock."""
    world = World(await opened(tmp_path / "payrelay.db"), tmp_path / "payrelay.db")
    yield world
    await world.relay.background.finish(0)
    await world.database.close()


@pytest.fixture
def gateway(world: World) -> OtherGateway:
    """Gives the other gateway."""
    return OtherGateway(world.clock)


@pytest.fixture
def relay(world: World, gateway: OtherGateway) -> Relay:
    """Gives a relay that knows no other one."""
    world.accounts["gateway"] = gateway
    return replace(world.relay, settings=replace(world.relay.settings, public_url="https://pay.example"))


async def post(relay: Relay, body: bytes, headers: dict[str, str]) -> None:
    """Posts a notification to the public address."""

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    pairs.append((b"content-length", str(len(body)).encode()))
    caller = Caller(
        account="gateway",
        segments=(),
        headers=Headers(pairs),
        receive=receive,
        query_string=b"",
        client="192.0.2.1",
        refused_senders=RefusedSenders(),
        request_id="req_1",
    )
    await receive_notification(relay, caller)


async def opened_checkout(relay: Relay) -> dict[str, Any]:
    """Opens a checkout, and gives the answer."""
    answer: Answer = await open_checkout(relay, asked(None), NewCheckout(payment=ASKED, expires_in_s=600))
    data: dict[str, Any] = json.loads(answer.body)["data"]
    return data


async def test_a_charge_goes_out_under_the_operations_id(world: World, relay: Relay, gateway: OtherGateway) -> None:
    """It is the one name that is the same each time that one operation is sent, and never another one's."""
    answer = await charge(relay, asked(), CHARGE)

    assert answer.http_status == 200
    assert gateway.done == {(await world.operation()).id: CHARGE}


async def test_a_lost_reply_is_asked_for_under_the_same_key(world: World, relay: Relay, gateway: OtherGateway) -> None:
    """No search is needed where the gateway itself knows what it did, and nothing is charged twice."""
    gateway.lost = 1
    assert (await charge(relay, asked(), CHARGE)).http_status == 202
    world.clock.passed_ms += LATER_MS

    assert await resolve_due(relay) == 1

    operation = await world.operation()
    assert (operation.state, operation.payment_id) == (State.SUCCEEDED, "900")
    assert len(gateway.records) == 1


async def test_nothing_is_sent_under_a_key_while_the_account_is_paused(
    world: World, relay: Relay, gateway: OtherGateway
) -> None:
    """Where the first sending never arrived, the second would be the first: an operator wants no new money to move."""
    gateway.lost = 1
    await charge(relay, asked(), CHARGE)
    gateway.done.clear()
    await Pauses(world.database).add(Pause(account="gateway", since_ms=1, reason="wrong prices", operator="ann"))
    world.clock.passed_ms += LATER_MS

    await resolve_due(relay)

    assert ((await world.operation()).state, gateway.done) == (State.UNKNOWN, {})


class PausedMeanwhile(RateLimiter):
    """Gives a permit only after an operator has paused the account."""

    def __init__(self, world: World) -> None:
        super().__init__(None, world.clock)
        self._world = world

    async def take(
        self,
        until_s: float,
        *,
        priority: Priority = Priority.CHARGE,
        requester: Requester = PAYRELAY,
    ) -> Permit | None:
        """Waits, and is overtaken by a pause."""
        await Pauses(self._world.database).add(Pause(account="gateway", since_ms=1, reason="stop", operator="ann"))
        self._world.clock.passed_ms += LATER_MS
        return await super().take(until_s + LATER_MS, priority=priority, requester=requester)


async def test_a_pause_that_comes_while_a_permit_is_waited_for_counts(
    world: World, relay: Relay, gateway: OtherGateway
) -> None:
    """The wait may last a minute: what was true before it is no permission any more."""
    gateway.lost = 1
    await charge(relay, asked(), CHARGE)
    gateway.done.clear()
    world.clock.passed_ms += LATER_MS
    gateway.rate_limiter = PausedMeanwhile(world)

    await resolve_due(relay)

    assert ((await world.operation()).state, gateway.done) == (State.UNKNOWN, {})


async def test_once_the_key_may_be_forgotten_it_is_searched_for(
    world: World, relay: Relay, gateway: OtherGateway
) -> None:
    """Sent again then, it would be a second charge."""
    gateway.lost = 1
    await charge(relay, asked(), CHARGE)
    sent, gateway.done = gateway.done, {}
    world.clock.passed_ms += KEYS_KEPT_MS

    await resolve_due(relay)

    assert ((await world.operation()).state, len(gateway.records)) == (State.SUCCEEDED, 1)
    assert (len(sent), len(gateway.done)) == (1, 0)


async def test_a_checkout_leads_to_an_address(relay: Relay, gateway: OtherGateway) -> None:
    """The page has a link inplaceof a form, the same one each time; nobody is told a form that isn't there."""
    data = await opened_checkout(relay)
    secret = data["url"].rpartition("/")[2]

    pages = [await checkout_page(relay, "gateway", data["id"], secret) for _ in range(2)]

    assert data["form"] is None
    assert list(gateway.pages) == [data["id"]]
    for page in pages:
        assert b'href="https://tide.example/p/1"' in page.body
        assert b"<form" not in page.body


async def test_a_notification_that_its_header_signs_is_believed(
    world: World, relay: Relay, gateway: OtherGateway
) -> None:
    """The adapter gets the headers, and the stored authenticity outlives them."""
    data = await opened_checkout(relay)
    body = msgspec.json.encode(Webhook(event="payment.captured", payment=PAID))
    await post(relay, body, signed(body))
    await relay.background.finish(20)
    gateway.records.append(PAID)  # shown only after the first inquiry: by then the headers are gone
    world.clock.passed_ms += LATER_MS
    await begin_inbox(relay)
    await relay.background.finish(20)

    (notification,) = await relay.inbox.list(NotificationFilter(), before=None, limit=10)
    assert (notification.authenticity, notification.state) == (Authenticity.GENUINE, NotificationState.APPLIED)
    checkout = await relay.checkouts.get(data["id"])
    assert checkout is not None
    assert (checkout.state, checkout.payment_id) == (CheckoutState.COMPLETED, "900")


@pytest.mark.parametrize("headers", [signed(b"another body"), {"content-type": "application/json"}])
async def test_one_that_its_header_does_not_sign_is_refused(relay: Relay, headers: dict[str, str]) -> None:
    """The body alone says nothing of who sent it."""
    body = msgspec.json.encode(Webhook(event="payment.captured", payment=PAID))
    with pytest.raises(Refusal) as refused:
        await post(relay, body, headers)

    assert refused.value.code is Code.FORBIDDEN
    (notification,) = await relay.inbox.list(NotificationFilter(), before=None, limit=10)
    assert (notification.authenticity, notification.state) == (Authenticity.FORGED, NotificationState.REFUSED)


async def test_the_notification_address_accepts_the_gateways_own_media_type(relay: Relay) -> None:
    """A form is none of this gateway's."""
    body = b"order_id=A-1"
    with pytest.raises(Refusal, match="application/json"):
        await post(relay, body, signed(body) | {"content-type": "application/x-www-form-urlencoded"})
