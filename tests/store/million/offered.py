"""Every filter that a list offers, with values that are usual, rare, and absent in ``filling``."""

import itertools
from collections.abc import Iterator
from typing import Final

import msgspec

from payrelay.console.store.searches import LOOKED_MAX
from payrelay.core.checkouts.checkout import CheckoutFilter
from payrelay.core.customers.customer import CustomerFilter
from payrelay.core.notifications.notification import NotificationFilter
from payrelay.core.payments.operation import OperationFilter
from payrelay.store import customers
from payrelay.store.access import client_tokens
from payrelay.store.engine.database import Statement, Value
from payrelay.store.events import feed
from payrelay.store.payments.known_payments import PaymentFilter
from payrelay.store.statements import checkouts, inbox, subscriptions
from payrelay.store.statements.events import deliveries
from payrelay.store.statements.pagination import Listing, ListWindow, page_of, window_of
from payrelay.store.statements.payments import known_payments, operations

LIMIT: Final = 100
ABSENT: Final = "absent"

_VALUES: Final[dict[str, tuple[Value, ...]]] = {
    "account": ("main", "second", ABSENT),
    "merchant": ("1200001", "1200002", ABSENT),
    "principal": ("shop", "small", "rare", ABSENT),
    "state": ("succeeded", "declined", "needs_attention", "pending", "held", "sending"),
    "kind": ("charge", "refund", "release"),
    "order_id": ("A-7", ABSENT),
    "payment_id": ("320000000007", ABSENT),
    "subscription_id": ("4200000007", ABSENT),
    "customer_id": ("cus_4", ABSENT),
    "reference_hash": ("person-7", ABSENT),
    "id": ("cus_4", ABSENT),
    "status": ("RECEIVED", "CHARGEBACKED", "REFUNDED", ABSENT),
}
_STATES: Final = {
    "checkouts": ("completed", "expired", "notified", "open", "failed"),
    "notifications": ("applied", "ignored", "refused", "needs_attention", "waiting", "received"),
    "customers": ("active", "removed", "erased"),
}
_LISTS: Final = (
    (operations.LIST_OPERATIONS, OperationFilter),
    (checkouts.LIST_CHECKOUTS, CheckoutFilter),
    (inbox.LIST_NOTIFICATIONS, NotificationFilter),
    (customers.LIST_CUSTOMERS, CustomerFilter),
)


def listings() -> dict[str, Listing]:
    """Gives all lists that are read page by page."""
    return {each.table: each for each, _ in _LISTS} | {"client_tokens": client_tokens.LIST_CLIENT_TOKENS}


def offered() -> Iterator[tuple[str, Statement]]:
    """Gives each combination of filters, in words and as the statement of its first page."""
    for listing, kind in _LISTS:
        columns = ["reference_hash" if name == "reference" else name for name in _fields(kind)]
        for equal in _combinations(listing.table, columns):
            if _is_offered(listing.table, equal):
                yield _words(listing.table, equal), page_of(listing, equal, before=None, limit=LIMIT)
    for equal in _combinations("client_tokens", ["principal", "account", "customer_id"]):
        if {"principal", "account"} <= set(equal):
            page = page_of(client_tokens.LIST_CLIENT_TOKENS, equal, before=None, limit=LIMIT)
            yield _words("client_tokens", equal), page
    yield from _windows()
    yield from _payments()
    yield from _others()


def _windows() -> Iterator[tuple[str, Statement]]:
    """Gives what the console's filter asks for: each combination, at the newest end, in between, and at the oldest."""
    values = _VALUES | {"amount_minor": (100_000, 1), "account": ("main", ABSENT)}
    for listing, columns in (
        (operations.LIST_OPERATIONS, ["account", "state", "kind", "amount_minor"]),
        (checkouts.LIST_CHECKOUTS, ["account", "state", "amount_minor"]),
    ):
        middle, first = _id(listing, 500_000), _id(listing, 100)
        ends = (ListWindow(), ListWindow(before=middle), ListWindow(first=first, before=_id(listing, 100_000)))
        for equal in _combinations(listing.table, columns, values):
            for within in ends:
                words = f"{_words(listing.table, equal)} in {within}"
                for statement in window_of(listing, equal, within, looked_max=LOOKED_MAX, limit=LIMIT):
                    yield words, statement


def _id(listing: Listing, number: int) -> str:
    """Gives an id of the filling."""
    return f"{'op' if listing.table == 'operations' else 'chk'}_{number:026}"


def _fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return kind.__struct_fields__


def _is_offered(table: str, equal: dict[str, Value]) -> bool:
    """Whether clients or operators can ask for it: an operator names no kind, and an account has one merchant."""
    if table == "operations":
        return "account" in equal or not equal.keys() & {"principal", "kind", "subscription_id", "customer_id"}
    if table == "customers":
        merchants = {"main": "1200001", "second": "1200002"}
        is_of_account = equal.get("merchant") == merchants.get(str(equal.get("account")), equal.get("merchant"))
        return "merchant" not in equal or ("principal" in equal and is_of_account)
    return True


def _combinations(
    table: str, columns: list[str], values: dict[str, tuple[Value, ...]] = _VALUES
) -> Iterator[dict[str, Value]]:
    for size in range(len(columns) + 1):
        for names in itertools.combinations(columns, size):
            choices = [_STATES.get(table, values["state"]) if name == "state" else values[name] for name in names]
            for chosen in itertools.product(*choices):
                yield dict(zip(names, chosen, strict=True))


def _words(table: str, equal: dict[str, Value]) -> str:
    return f"{table} of {', '.join(f'{name} {value!s}' for name, value in equal.items()) or 'any kind'}"


def _payments() -> Iterator[tuple[str, Statement]]:
    columns = [name for name in _fields(PaymentFilter) if name != "merchant"]
    for merchant in _VALUES["merchant"]:
        for equal in _combinations("payments", columns):
            for source in known_payments.sources_for(tuple(equal)):
                query = known_payments.newest_of(source, tuple(equal))
                words = f"{_words('payments', equal)} of {merchant!s} in {source.table}"
                yield words, Statement(query, (merchant, *equal.values(), LIMIT))
    yield "merchants with payments", Statement(known_payments.MERCHANTS_OF_PAYMENTS, ())


def _others() -> Iterator[tuple[str, Statement]]:
    for merchant, principal in itertools.product(_VALUES["merchant"], _VALUES["principal"]):
        page = ("merchant", merchant, "principal", principal)
        place = (merchant, "", LIMIT)
        yield f"subscriptions of {page}", Statement(subscriptions.LIST_OF_PRINCIPAL, (*place, principal))
        yield f"subscriptions of {page}, of nobody", Statement(subscriptions.LIST_OF_NOBODY, place)
        yield f"events of {page}", Statement(feed.READ_FEED, (merchant, principal, 0, LIMIT))
    for equal in _combinations("subscriptions", ["account", "order_id"]):
        query = subscriptions.LIST_FOR_OPERATOR[tuple(equal)]
        yield _words("subscriptions", equal), Statement(query, ("", "", LIMIT, *equal.values()))
    for endpoint in ("ep_1", "ep_3", ABSENT):
        yield f"deliveries of {endpoint}", Statement(deliveries.LIST_DELIVERIES, (endpoint, 1 << 62, LIMIT))
        for state, query in deliveries.LIST_DELIVERIES_IN.items():
            yield f"deliveries of {endpoint} in {state}", Statement(query, (endpoint, 1 << 62, LIMIT, state))
