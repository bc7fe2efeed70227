"""What the unit of work that stores a capture or a void does to the checkout of its hold, on each engine."""

import asyncio
from typing import Any, Final

import msgspec
import pytest
from tests.digests import digests_of
from tests.samples import ASKED, CHECKOUT, NOTIFICATION

from payrelay.core.answers import Answer
from payrelay.core.checkouts.checkout import Checkout, CheckoutEvent, CheckoutKind, CheckoutState, Details, advance
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.payments.operation import Event, Kind, Operation
from payrelay.core.secret import secret_hash
from payrelay.store.checkouts import Checkouts
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.inbox import Inbox

Book = Any  # conftest.Book; test folders are not packages, so that it can't be imported
SEAL: Final = Seal((b"k" * 32,))
HOSTED: Final = msgspec.structs.replace(CHECKOUT, kind=CheckoutKind.AUTHORIZATION)
TYPES: Final = query("SELECT type FROM outbox ORDER BY seq")
RACES: Final = 10


def rows_of(statement: Statement) -> Unit[list[Row]]:
    """Reads rows."""
    return (yield statement)


def notified(checkout: Checkout) -> Checkout:
    """Gives a checkout whose authorization was reported."""
    changed = advance(checkout, CheckoutEvent.NOTIFIED, at_ms=2_000)
    assert changed is not None
    return changed


async def accepted(book: Book, number: int, **members: object) -> Operation:
    """Stores a capture of the whole authorization of order A-<number>, which is being sent."""
    subject = f"authorization/{secret_hash(f'token-{number}')}"
    own = {"kind": Kind.CAPTURE, "subject": subject, "guard": subject, "amount_minor": 100_000, "currency": "LKR"}
    capture: Operation = book.new(number, **(own | members))
    await book.accept(capture)
    return capture


async def opened(database: Database, number: int) -> Checkout:
    """Stores a checkout of order A-<number> and the token of its authorization."""
    order_id = f"A-{number}"
    checkout = msgspec.structs.replace(HOSTED, id=f"chk_{number:026}", order_id=order_id, guard=order_id)
    assert await Checkouts(database, SEAL, digests_of(database)).add(checkout, Details(secret="s", asked=ASKED))
    notification = msgspec.structs.replace(NOTIFICATION, order_id=order_id)
    kind = NotificationKind.AUTHORIZATION
    assert await Inbox(database, SEAL, digests_of(database)).accept_token(
        notification, kind, f"token-{number}", at_ms=1
    )
    return checkout


@pytest.mark.parametrize(
    ("members", "state"),
    [
        ({}, CheckoutState.COMPLETED),
        ({"merchant": "f" * 16}, CheckoutState.NOTIFIED),
        ({"order_id": "A-125"}, CheckoutState.NOTIFIED),
        ({"order_id": None}, CheckoutState.NOTIFIED),
        ({"currency": "USD"}, CheckoutState.NOTIFIED),
        ({"subject": "authorization/other"}, CheckoutState.NOTIFIED),
    ],
    ids=str,
)
async def test_a_capture_completes_the_checkout_that_it_proves(
    book: Book, database: Database, answer: Answer, members: dict[str, object], state: CheckoutState
) -> None:
    """With its event, in one unit of work; a capture of anything else leaves it alone."""
    checkouts = Checkouts(database, SEAL, digests_of(database))
    await checkouts.change(notified(await opened(database, 1)), has_event=True)
    await book.advance(await accepted(book, 1, **members), Event.SUCCEEDED, answer)

    (checkout,) = await checkouts.of_order(CHECKOUT.merchant, "A-1")
    assert (checkout.state, checkout.guard) == (state, "A-1")
    types = [row[0] for row in await database.read(rows_of(Statement(TYPES, ())))]
    assert ("checkout.completed" in types) is (state is CheckoutState.COMPLETED)


@pytest.mark.parametrize(
    ("members", "state"),
    [
        ({}, CheckoutState.CANCELLED),
        ({"amount_minor": 100_000}, CheckoutState.CANCELLED),
        ({"amount_minor": 40_000}, CheckoutState.NOTIFIED),
        ({"merchant": "f" * 16}, CheckoutState.NOTIFIED),
        ({"order_id": "A-125"}, CheckoutState.NOTIFIED),
        ({"order_id": None}, CheckoutState.NOTIFIED),
        ({"subject": "authorization/other"}, CheckoutState.NOTIFIED),
    ],
    ids=str,
)
async def test_the_void_of_a_whole_hold_ends_its_checkout(
    book: Book, database: Database, answer: Answer, members: dict[str, object], state: CheckoutState
) -> None:
    """With its event, in one unit of work: else the order stays taken for good, and can't be paid another way."""
    checkouts = Checkouts(database, SEAL, digests_of(database))
    await checkouts.change(notified(await opened(database, 1)), has_event=True)
    whole = {"kind": Kind.VOID, "amount_minor": None}
    await book.advance(await accepted(book, 1, **(whole | members)), Event.SUCCEEDED, answer)

    (checkout,) = await checkouts.of_order(CHECKOUT.merchant, "A-1")
    is_ended = state is CheckoutState.CANCELLED
    assert (checkout.state, checkout.guard, checkout.reason) == (
        state,
        *((None, "closed") if is_ended else ("A-1", None)),
    )
    types = [row[0] for row in await database.read(rows_of(Statement(TYPES, ())))]
    assert ("checkout.cancelled" in types) is is_ended


async def test_a_capture_and_its_notification_do_not_miss_each_other(
    book: Book, database: Database, answer: Answer
) -> None:
    """Both are stored at the same moment: the capture sees the notified checkout, or whoever notes it the capture."""
    checkouts = Checkouts(database, SEAL, digests_of(database))

    async def noted(checkout: Checkout) -> bool:
        await checkouts.change(notified(checkout), has_event=True)
        token_hash = secret_hash(f"token-{int(checkout.id.removeprefix('chk_'))}")
        return await book.journal.capture_of(token_hash, checkout.merchant) is not None

    for number in range(1, RACES + 1):
        checkout = await opened(database, number)
        capture = await accepted(book, number)
        is_seen, _ = await asyncio.gather(noted(checkout), book.advance(capture, Event.SUCCEEDED, answer))
        (stored,) = await checkouts.of_order(CHECKOUT.merchant, checkout.order_id)
        assert is_seen or stored.state is CheckoutState.COMPLETED
