"""The list of known payments: each once, newest first, by whatever it is known and however it is filtered."""

import itertools
from typing import Final

import pytest
from tests.digests import digests_of

from payrelay.core.payments.payment import PaymentStatus
from payrelay.store.engine.database import Database, Statement, Unit, Value, all_rows
from payrelay.store.engine.queries import Query, query
from payrelay.store.payments.known_payments import KnownPayments, PaymentFilter

SEEN: Final = query(
    """
    INSERT INTO payments_seen (merchant, payment_id, order_id, status, currency, amount_minor, seen_at_ms)
    VALUES ($1, $2, $3, $4, 'LKR', 1, 1)""",
)
OPERATION: Final = query(
    """
    INSERT INTO operations (
        id, account, merchant, principal, kind, state, version, subject, fingerprint, request_id, order_id, payment_id,
        currency, amount_minor, created_at_ms, updated_at_ms, send_by_ms, sealed_call
    )
    VALUES ($1, 'a', $2, 'p', $3, $4, 1, 's', 'f', 'r', $5, $6, 'LKR', 1, 1, 1, 1, $7)""",
)
CHECKOUT: Final = query(
    """
    INSERT INTO checkouts (
        id, account, merchant, principal, kind, state, version, order_id, currency, secret_hash, request_id, payment_id,
        created_at_ms, updated_at_ms, expires_at_ms, ends_at_ms, look_at_ms
    )
    VALUES ($1, 'a', $2, 'p', 'payment', 'completed', 1, $3, 'LKR', 's', 'r', $4, 1, 1, 1, 1, 1)""",
)
SUBSCRIPTION: Final = query(
    "INSERT INTO subscriptions (merchant, subscription_id, account, order_id, version) VALUES ($1, $2, 'a', $3, 1)",
)
INSTALLMENT: Final = query(
    "INSERT INTO installments (merchant, subscription_id, payment, is_paid, at_ms) VALUES ($1, $2, $3, $4, 1)",
)

Known = tuple[str, str, str, str | None]
"""Merchant, payment, order, and the status that was seen."""


def known() -> list[Known]:
    """Gives each combination of merchant, order and source that a filter could confuse with another."""
    found: list[Known] = []
    for number, (merchant, order, status) in enumerate(
        itertools.product(("m1", "m2"), ("A", "B"), ("RECEIVED", "REFUNDED", None)), 1
    ):
        found += [(merchant, str(7 * 10**each + number), order, status) for each in (0, 1, 2, 9)]
    return found


def put(rows: list[Known]) -> Unit[None]:
    """Stores payments: each by one source, by its number, and those with a status also as seen."""
    for merchant, order in {(merchant, order) for merchant, _, order, _ in rows}:
        yield Statement(SUBSCRIPTION, (merchant, f"sub-{order}", order))
    for number, (merchant, payment, order, status) in enumerate(rows):
        if status is not None:
            yield Statement(SEEN, (merchant, payment, order, status))
        yield Statement(*source(number, merchant, payment, order))
        yield Statement(OPERATION, (f"op_refund_{number}", merchant, "refund", "succeeded", order, f"9{payment}", b""))
        yield Statement(OPERATION, (f"op_failed_{number}", merchant, "charge", "declined", order, f"8{payment}", b""))
        yield Statement(INSTALLMENT, (merchant, f"sub-{order}", f"ntf:{number}", 1))
        yield Statement(INSTALLMENT, (merchant, f"sub-{order}", f"6{payment}", 0))


def source(number: int, merchant: str, payment: str, order: str) -> tuple[Query, tuple[Value, ...]]:
    """Gives the statement that makes a payment known."""
    return (
        (OPERATION, (f"op_{number}", merchant, "charge", "succeeded", order, payment, b"")),
        (CHECKOUT, (f"chk_{number}", merchant, order, payment)),
        (INSTALLMENT, (merchant, f"sub-{order}", payment, 1)),
        (OPERATION, (f"op_{number}", merchant, "capture", "unknown", order, payment, b"")),
    )[number % 4]


@pytest.mark.parametrize("limit", [1, 5, 1_000])
async def test_each_filter_gives_what_it_names_newest_first(database: Database, limit: int) -> None:
    """An operator who looks for a payment must not miss one, whatever table knows it."""
    rows = known()
    await database.write(put(rows))
    payments = KnownPayments(database, digests_of(database))
    orders, merchants = (None, "A", "B", "C"), (None, "m1", "m2", "m3")
    statuses = (None, PaymentStatus.RECEIVED, PaymentStatus.REFUNDED, PaymentStatus.CHARGED_BACK)

    for merchant, order, status, payment in itertools.product(merchants, orders, statuses, (None, rows[0][1], "0")):
        wanted = PaymentFilter(merchant=merchant, order_id=order, status=status, payment_id=payment)
        fitting = [
            (each[0], each[1])
            for each in rows
            if merchant in {None, each[0]} and order in {None, each[2]} and payment in {None, each[1]}
            if status is None or status == each[3]
        ]
        expected = sorted(sorted(fitting), key=lambda each: (len(each[1]), each[1]), reverse=True)[:limit]
        listed = await payments.list(wanted, limit=limit)
        assert [(each.merchant, each.payment_id) for each in listed] == expected, wanted


async def test_a_payment_that_several_know_is_listed_once(database: Database) -> None:
    """Seen at the gateway, and made by two operations: a retry that was charged back and its charge, say."""
    for number in range(3):
        parameters = (f"op_{number}", "m1", "charge", "succeeded", "A", "700", b"")
        await database.write(all_rows(Statement(OPERATION, parameters)))
    await database.write(all_rows(Statement(OPERATION, ("op_9", "m1", "charge", "succeeded", "A", "70", b""))))
    await database.write(all_rows(Statement(SEEN, ("m1", "700", "A", "RECEIVED"))))

    listed = await KnownPayments(database, digests_of(database)).list(PaymentFilter(), limit=2)

    assert [each.payment_id for each in listed] == ["700", "70"]
