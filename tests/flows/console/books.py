"""Books to look into: one order on which everything has happened, with texts that a test chooses."""

from typing import Final
from urllib.parse import quote

import msgspec
from tests.flows.console.desk import START_MS, Desk
from tests.samples import ASKED, CHECKOUT, ENDPOINT, NOTIFICATION, OPERATION
from tests.store.test_customers import APPROVAL

from payrelay.core.calls import Charge
from payrelay.core.checkouts.checkout import CheckoutState, Details
from payrelay.core.customers.customer import approved
from payrelay.core.events.event import OutgoingEvent
from payrelay.core.notifications.notification import NotificationReason, NotificationState
from payrelay.core.orders.chargeback import Chargeback
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, JournalEntry, Kind, Operation, Retention, advance
from payrelay.core.secret import Secret
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState
from payrelay.store.payments.journal import AcceptedOperation
from payrelay.store.subscriptions import SubscriptionOwner

MERCHANT: Final = OPERATION.merchant
PAYMENT: Final = "320025000001"
PLAN: Final = "420075000001"
CHARGE: Final = Charge(
    order_id="A-1", items="Tea", currency="LKR", amount_minor=100_000, customer_token="t", authorize=False
)
RETENTION: Final = Retention(keyed_ms=60_000, unkeyed_ms=60_000)


def id_at(prefix: str, at_ms: int, number: int = 0) -> str:
    """Makes an id as the service does, with a number in place of chance."""
    return f"{prefix}_{at_ms:012x}{number:020x}"


async def operation(desk: Desk, number: int, *, at_ms: int = START_MS, **members: object) -> Operation:
    """Stores an operation that is being sent, as it is named."""
    usual: dict[str, object] = {
        "id": id_at("op", at_ms, number),
        "subject": f"order/{number}",
        "guard": f"order/{number}",
        "claim": f"key/k-{number}",
        "idempotency_key": f"k-{number}",
        "request_id": f"req_{number}",
        "created_at_ms": at_ms,
        "updated_at_ms": at_ms,
    }
    row = msgspec.structs.replace(OPERATION, **(usual | members))
    entry = JournalEntry(version=1, at_ms=at_ms, event=None, state=row.state, evidence=Evidence())
    accepted = await desk.relay.journal.accept(row, entry, CHARGE, conflicts_with=None, now_ms=at_ms)
    assert isinstance(accepted, AcceptedOperation)
    return accepted.operation


async def ended(desk: Desk, row: Operation, event: Event, at_ms: int, evidence: Evidence, **known: object) -> Operation:
    """Stores what became of an operation."""
    row = msgspec.structs.replace(row, **known)
    changed, entry = advance(row, event, at_ms=at_ms, retention=RETENTION, evidence=evidence)
    return await desk.relay.journal.record(changed, entry, None)


async def everything(desk: Desk, order_id: str = "A-1", text: str = "plain") -> None:
    """Stores an order with one of each noun; every field that somebody outside fills has ``text`` in it."""
    await _page(desk, order_id, text)
    await _operations(desk, order_id, text)
    await _notification(desk, order_id, text)
    await subscribed(desk, order_id)
    await _chargeback(desk, order_id, text)
    await _told(desk, text, START_MS + 11_000)


async def _page(desk: Desk, order_id: str, text: str) -> None:
    relay, at = desk.relay, START_MS
    checkout = msgspec.structs.replace(
        CHECKOUT,
        id=id_at("chk", at),
        order_id=order_id,
        guard=order_id,
        key_hash=relay.checkouts.key_hash(f"page {text}"),
        reference_hash=relay.checkouts.reference_hash(f"person {text}"),
        request_id="req_page",
        created_at_ms=at,
        updated_at_ms=at,
    )
    assert await relay.checkouts.add(checkout, Details(asked=ASKED, secret="s"), reference=f"person {text}")
    assert await relay.checkouts.mark_opened(checkout.id, at + 1_000, left_open_ms=0)
    completed = msgspec.structs.replace(
        checkout,
        state=CheckoutState.COMPLETED,
        version=2,
        payment_id=PAYMENT,
        subscription_id=PLAN,
        updated_at_ms=at + 4_000,
    )
    await relay.checkouts.change(completed, has_event=True)
    customer = approved(
        msgspec.structs.replace(APPROVAL, order_id=order_id, reference=f"person {text}", label=text),
        id_at("cus", at),
        at_ms=at + 2_000,
    )
    assert await relay.customers.add(customer, APPROVAL)


async def _operations(desk: Desk, order_id: str, text: str) -> None:
    at = START_MS
    named = {"order_id": order_id, "subject": f"order/{order_id}", "guard": f"order/{order_id}"}
    named |= {"idempotency_key": f"key {text}", "claim": f"key/key {text}", "customer_id": id_at("cus", at)}
    charge = await operation(desk, 1, at_ms=at + 5_000, **named)
    words = Evidence(gateway_msg=text, operator=text, reason=text, http_status=200)
    await ended(desk, charge, Event.DECLINED, at + 6_000, words, payment_id="320025000002")
    refund = await operation(
        desk,
        2,
        at_ms=at + 7_000,
        kind=Kind.REFUND,
        order_id=None,
        payment_id=PAYMENT,
        subject=f"payment/{PAYMENT}",
        guard=f"payment/{PAYMENT}",
        amount_minor=2_500,
    )
    await ended(desk, refund, Event.SUCCEEDED, at + 8_000, Evidence(gateway_msg=text))


async def _notification(desk: Desk, order_id: str, text: str) -> None:
    relay, at = desk.relay, START_MS
    notification = msgspec.structs.replace(
        NOTIFICATION,
        id=id_at("ntf", at),
        order_id=order_id,
        payment_id=PAYMENT,
        received_at_ms=at + 3_000,
        last_at_ms=at + 3_000,
    )
    assert await relay.inbox.put(notification, text.encode())
    await relay.inbox.record(
        msgspec.structs.replace(
            notification,
            state=NotificationState.APPLIED,
            reason=NotificationReason.CHECKOUT_FINISHED,
            version=2,
            next_at_ms=None,
            accepted_by=text,
            accepted_because=text,
            accepted_at_ms=at,
        )
    )


async def subscribed(desk: Desk, order_id: str) -> None:
    """Stores a subscription with an installment that was paid."""
    relay, at = desk.relay, START_MS
    owner = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal="shop")
    fact = Fact(
        subscription_id=PLAN,
        at_ms=at + 9_000,
        is_seen=True,
        order_id=order_id,
        currency="LKR",
        amount_minor=100_000,
        state=SubscriptionState.ACTIVE,
        payment="320025000003",
        is_paid=True,
        payment_minor=100_000,
    )
    await relay.subscriptions.note(owner, [fact], now_ms=at + 9_000)


async def _chargeback(desk: Desk, order_id: str, text: str) -> None:
    relay, at = desk.relay, START_MS
    event = OutgoingEvent(
        id=id_at("evt", at),
        type="payment.charged_back",
        account="gateway",
        merchant=MERCHANT,
        principal="shop",
        subject=f"payment:{PAYMENT}",
        at_ms=at + 10_000,
        data={"order_id": order_id, "why": text},
    )
    chargeback = Chargeback(
        merchant=MERCHANT,
        payment_id=PAYMENT,
        order_id=order_id,
        account="gateway",
        principal="shop",
        operation_id=None,
        amount_minor=100_000,
        currency="LKR",
        notification_id=id_at("ntf", at),
        noted_at_ms=at + 10_000,
    )
    assert await relay.money.chargebacks.keep(chargeback, event)


async def _told(desk: Desk, text: str, at_ms: int) -> None:
    """Registers an endpoint, publishes what happened, and has the first event accepted."""
    endpoint = msgspec.structs.replace(
        ENDPOINT, url=f"https://shop.example/{quote(text)}", label=text, created_at_ms=at_ms, updated_at_ms=at_ms
    )
    dispatch = desk.relay.dispatch
    assert await dispatch.endpoints.add(endpoint, Secret("whsec_x"))
    await dispatch.feed.publish(at_ms)
    leases = await dispatch.deliveries.lease_due("end_1", at_ms, leased_until_ms=at_ms + 60_000, limit=1)
    await dispatch.deliveries.delivered("end_1", leases, status=200, now_ms=at_ms)
