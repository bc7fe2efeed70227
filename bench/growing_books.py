"""Books of any size for ``growth.py``: what operations there are, what becomes of them, and what the worker leaves.

Whatever the size, the newest operations are alike: one every four seconds, of the same kinds. A larger database only
has more that is older. What waits for somebody is the oldest of each, and as many.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec
from tests.flows.console.desk import START_MS
from tests.samples import OPERATION

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.calls import Charge
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, JournalEntry, Kind, Operation, Retention, State, advance
from payrelay.flows.audit.audit import anchor
from payrelay.flows.relay import Relay
from payrelay.store import open_database
from payrelay.store.engine.database import Database
from payrelay.store.payments.journal import AcceptedOperation, Journal

BETWEEN_MS: Final = 4_000
OPEN: Final = 20
"""Of the oldest, those in each of two open states."""
DAY_MS: Final = 86_400_000
RETENTION: Final = Retention(keyed_ms=30 * DAY_MS, unkeyed_ms=DAY_MS, are_keys_free_again=False)
PRUNED_AT_ONCE: Final = 5_000
TAKES_MS: Final = 731
FIRST_PAYMENT: Final = 320_025_000_000
CALL: Final = Charge(
    authorize=False,
    order_id="ORDER-2026-000001",
    items="Monthly plan of the gym, with a towel",
    currency="LKR",
    amount_minor=450_000,
    customer_token="59AFEE022CC69CA39D325E1B59130862",  # noqa: S106 - a made-up one
)
BODY: Final = msgspec.json.encode(
    {
        "status": 1,
        "msg": "Automatic payment charged successfully",
        "data": {
            "order_id": "ORDER-2026-000001",
            "items": "Monthly plan of the gym, with a towel",
            "currency": "LKR",
            "amount": 4500.0,
            "custom_1": None,
            "custom_2": None,
            "payment_id": 320025000005,
            "status_code": 2,
            "status_message": "Successfully completed the payment.",
            "md5sig": "0A1B2C3D4E5F60718293A4B5C6D7E8F9",
            "authorization_token": None,
        },
    }
)
ANSWER: Final = Answer(http_status=200, body=BODY)
EVIDENCE: Final = Evidence(http_status=200, gateway_msg="Automatic payment charged successfully", elapsed_ms=731)


class Books(NamedTuple):
    """The operations of one database: how many there are, the last of them being the newest, and how far apart."""

    operations: int
    between_ms: int = BETWEEN_MS

    def at_ms(self, number: int) -> int:
        """Gives when an operation began."""
        return START_MS - (self.operations - number + 1) * self.between_ms

    def order(self, number: int) -> str:
        """Gives the order that an operation is about."""
        return f"ORDER-2026-{self.operations - number:09}"

    def key(self, number: int) -> str:
        """Gives an operation's Idempotency-Key, which looks as random as those of clients."""
        return hashlib.sha256(f"key {self.operations - number}".encode()).hexdigest()[:32]

    def id(self, number: int) -> str:
        """Gives an operation's id, as random as those of the service behind its time."""
        return f"op_{self.at_ms(number):012x}{self.key(number)[:20]}"

    def new(self, number: int) -> Operation:
        """Gives an operation as it is when it is about to be sent."""
        at_ms, order, key = self.at_ms(number), self.order(number), self.key(number)
        named = msgspec.structs.replace(
            OPERATION,
            id=self.id(number),
            principal="app" if number % 10 == 3 else "shop",
            state=State.SENDING,
            subject=f"order/{order}",
            guard=f"order/{order}",
            claim=f"key/{key}",
            idempotency_key=key,
            fingerprint=hashlib.sha256(order.encode()).hexdigest(),
            request_id=f"req_{key[:24]}",
            order_id=order,
            amount_minor=100_000 + number % 1_000 * 100,
            created_at_ms=at_ms,
            updated_at_ms=at_ms,
            send_by_ms=at_ms + 10_000,
        )
        if number % 30 != 11:
            return named
        payment = str(FIRST_PAYMENT + number - 1)
        subject = f"payment/{payment}"
        return msgspec.structs.replace(
            named, kind=Kind.REFUND, order_id=None, payment_id=payment, subject=subject, guard=subject
        )

    def event(self, number: int) -> Event:
        """Gives what becomes of an operation."""
        if number < 2 * OPEN:
            return Event.UNKNOWN if number % 2 else Event.DIFFERED
        return Event.DECLINED if number % 33 == 10 else Event.SUCCEEDED


def entry_of(operation: Operation) -> JournalEntry:
    """Gives the first entry of a new operation."""
    return JournalEntry(
        version=1, at_ms=operation.created_at_ms, event=None, state=operation.state, evidence=Evidence()
    )


async def accepted(journal: Journal, operation: Operation) -> Operation:
    """Stores an operation that is about to be sent; raises TypeError where something is in its way."""
    at_ms = operation.created_at_ms
    found = await journal.accept(operation, entry_of(operation), CALL, conflicts_with=None, now_ms=at_ms)
    if not isinstance(found, AcceptedOperation):
        raise TypeError(f"{operation.id} was not accepted")
    return found.operation


def changed_by(operation: Operation, event: Event, payment_id: str) -> tuple[Operation, JournalEntry, Answer | None]:
    """Gives what becomes of an operation by an event: the operation, its entry, and the answer where it is final."""
    changed, entry = advance(
        operation, event, at_ms=operation.created_at_ms + TAKES_MS, retention=RETENTION, evidence=EVIDENCE
    )
    if event is Event.UNKNOWN:  # nobody turns to it while the bench measures
        changed = msgspec.structs.replace(changed, inquire_at_ms=START_MS + 100 * DAY_MS)
    elif operation.payment_id is None:
        changed = msgspec.structs.replace(changed, payment_id=payment_id)
    return changed, entry, None if event is Event.UNKNOWN else ANSWER


async def recorded(journal: Journal, operation: Operation, event: Event, payment_id: str) -> None:
    """Stores what became of an operation, with the answer where it is final."""
    await journal.record(*changed_by(operation, event, payment_id))


async def finished(relay: Relay, now_ms: int) -> None:
    """Ends claims that have lapsed, publishes events, forgets those that are old, and anchors the journal."""
    feed = relay.dispatch.feed
    await _all(lambda: relay.journal.prune(now_ms, PRUNED_AT_ONCE))
    await _all(lambda: feed.publish(now_ms))
    await _all(lambda: feed.forget(now_ms - 30 * DAY_MS, PRUNED_AT_ONCE))
    await _all(lambda: anchor(relay.journal.trail, now_ms))


async def _all(batch: Callable[[], Awaitable[object]]) -> None:
    while await batch():
        pass


async def opened(url: str) -> Database:
    """Opens a database as a service does."""
    return await open_database(url, clock=Clock(), owner=True)
