"""Finds what has exactly the id that somebody typed, whatever kind of thing it is."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from payrelay.console.flows.cases import hits
from payrelay.console.flows.cases.parts import CaseParts
from payrelay.console.rules.finding import Hit, Thing
from payrelay.console.store.searches import FOUND_MAX
from payrelay.core.checkouts.checkout import CheckoutFilter
from payrelay.core.customers.customer import Customer, CustomerFilter
from payrelay.core.moments import spoken
from payrelay.core.notifications.notification import NotificationFilter
from payrelay.core.operators.roles import Field
from payrelay.core.payments.operation import OperationFilter
from payrelay.errors import OperationForged
from payrelay.store.subscriptions import SubscriptionFilter

CARD_DIGITS: Final = 4
"""The last digits of a card, which a customer can read out."""
CARDS_MAX: Final = 1_000
"""Stored customers whose cards are opened in one search."""
CARDS_AT_ONCE: Final = 100
"""Cards that are opened before other requests have their turn: some 5 ms."""
CUSTOMERS_MAX: Final = 20
"""Customers of one reference or card whose payments are found too."""
_TOO_MANY: Final = f"More than {FOUND_MAX} of one kind have this id; the newest {FOUND_MAX} are shown."
_FORGED: Final = (
    "The stored record of the operation with this id was changed by something other than the service, and is not shown."
)

_Sees: TypeAlias = Callable[[Field], bool]


class Findings:
    """Collects hits: each thing once, with what it was found by first."""

    def __init__(self) -> None:
        self._hits: dict[tuple[Thing, str, str], Hit] = {}
        self.notes: list[str] = []

    @property
    def hits(self) -> list[Hit]:
        """What was found."""
        return list(self._hits.values())

    def add(self, found: Iterable[Hit]) -> None:
        """Adds what one look found."""
        added = list(found)
        if len(added) >= FOUND_MAX and _TOO_MANY not in self.notes:
            self.notes.append(_TOO_MANY)
        for hit in added:
            self._hits.setdefault((hit.noun, hit.account, hit.id), hit)


async def find_by_text(parts: CaseParts, text: str, *, sees: _Sees, account: str | None) -> Findings:
    """Looks for a text in every column that has an index for it, and whose field is seen. Raises StoreUnavailable."""
    findings = Findings()
    await _operations(parts, text, findings)
    await _checkouts(parts, text, findings)
    await _notifications(parts, text, findings)
    await _subscriptions(parts, text, findings)
    await _seen(parts, text, findings)
    if sees(Field.IDEMPOTENCY_KEY):
        await _of_keys(parts, text, findings)
    if sees(Field.CUSTOMER):
        checkouts = await parts.searches.checkouts_of_reference(text)
        findings.add(hits.of_checkout(each, "customer's reference") for each in checkouts)
    await _customers(parts, text, findings, sees=sees, account=account)
    return findings


async def _operations(parts: CaseParts, text: str, findings: Findings) -> None:
    journal = parts.relay.journal
    if text.startswith("op_"):
        try:
            operation = await journal.get(text)
        except OperationForged:
            findings.notes.append(_FORGED)
        else:
            findings.add([] if operation is None else [hits.of_operation(operation, "operation id")])
    for found_by, wanted in (
        ("order id", OperationFilter(order_id=text)),
        ("payment id", OperationFilter(payment_id=text)),
        ("subscription id", OperationFilter(subscription_id=text)),
    ):
        rows = await journal.list(wanted, before=None, limit=FOUND_MAX)
        findings.add(hits.of_operation(each, found_by) for each in rows)
    rows = await parts.searches.operations_of_request(text)
    findings.add(hits.of_operation(each, "request id") for each in rows)


async def _checkouts(parts: CaseParts, text: str, findings: Findings) -> None:
    if text.startswith("chk_"):
        checkout = await parts.relay.checkouts.get(text)
        findings.add([] if checkout is None else [hits.of_checkout(checkout, "checkout id")])
    of_order = await parts.relay.checkouts.list(CheckoutFilter(order_id=text), before=None, limit=FOUND_MAX)
    findings.add(hits.of_checkout(each, "order id") for each in of_order)
    for column in ("payment_id", "subscription_id", "request_id"):
        rows = await parts.searches.checkouts_of(column, text)
        findings.add(hits.of_checkout(each, column.replace("_", " ")) for each in rows)


async def _notifications(parts: CaseParts, text: str, findings: Findings) -> None:
    inbox = parts.relay.inbox
    if text.startswith("ntf_"):
        notification = await inbox.get(text)
        findings.add([] if notification is None else [hits.of_notification(notification, "notification id")])
    for found_by, wanted in (
        ("order id", NotificationFilter(order_id=text)),
        ("payment id", NotificationFilter(payment_id=text)),
    ):
        rows = await inbox.list(wanted, before=None, limit=FOUND_MAX)
        findings.add(hits.of_notification(each, found_by) for each in rows)


async def _subscriptions(parts: CaseParts, text: str, findings: Findings) -> None:
    subscriptions = parts.relay.subscriptions
    findings.add(hits.of_subscription(each, "subscription id") for each in await subscriptions.of_id(text))
    wanted = SubscriptionFilter(order_id=text)
    of_order = await subscriptions.list_for_operator(wanted, after=("", ""), limit=FOUND_MAX)
    findings.add(hits.of_subscription(each, "order id") for each in of_order)
    for merchant, subscription_id in await parts.searches.plans_of_payment(text):
        summary = await subscriptions.summary(merchant, subscription_id)
        findings.add([] if summary is None else [hits.of_subscription(summary, "payment id of an installment")])


async def _seen(parts: CaseParts, text: str, findings: Findings) -> None:
    """Finds a payment that the gateway has shown, and that nothing else of what was found names."""
    is_named = any(
        hit.found_by.startswith("payment id") and hit.noun is not Thing.NOTIFICATION for hit in findings.hits
    )
    if not text.isdecimal() or is_named:
        return
    for name, gateway in parts.relay.accounts.items():
        known = await parts.relay.money.known_payments.get(gateway.merchant, text)
        if known is not None:
            hit = Hit(
                noun=Thing.PAYMENT,
                id=text,
                found_by="payment id",
                account=name,
                at_ms=0,
                state=known.status,
                order_id=known.order_id,
                payment_id=text,
                currency=known.currency,
            )
            findings.add([hit])


async def _of_keys(parts: CaseParts, text: str, findings: Findings) -> None:
    of_person = parts.relay.access.person_names.key_as_stored(text)
    for key in (text,) if of_person is None else (text, of_person):
        operations = await parts.searches.operations_of_key(key)
        findings.add(hits.of_operation(each, "idempotency key") for each in operations)
    checkouts = await parts.searches.checkouts_of_key(text)
    findings.add(hits.of_checkout(each, "idempotency key") for each in checkouts)


async def _customers(parts: CaseParts, text: str, findings: Findings, *, sees: _Sees, account: str | None) -> None:
    customers = parts.relay.customers
    found: list[tuple[Customer, str]] = []
    if sees(Field.CUSTOMER):
        customer = await customers.get(text) if text.startswith("cus_") else None
        found += [] if customer is None else [(customer, "customer id")]
        of_reference = await customers.list(CustomerFilter(reference=text), before=None, limit=FOUND_MAX)
        found += [(each, "customer's reference") for each in of_reference]
    if len(text) == CARD_DIGITS and text.isdecimal() and sees(Field.CARD):
        found += [(each, "last digits of the card") for each in await _of_card(parts, text, findings, account)]
    findings.add(hits.of_customer(each, found_by) for each, found_by in found)
    if len(found) > CUSTOMERS_MAX:
        findings.notes.append(f"Of {len(found)} customers, the payments of the newest {CUSTOMERS_MAX} are shown.")
    for customer, found_by in found[:CUSTOMERS_MAX]:
        wanted = OperationFilter(customer_id=customer.id)
        operations = await parts.relay.journal.list(wanted, before=None, limit=FOUND_MAX)
        findings.add(hits.of_operation(each, found_by) for each in operations)
        for column in ("customer_id", "bound_customer_id"):
            checkouts = await parts.searches.checkouts_of(column, customer.id)
            findings.add(hits.of_checkout(each, found_by) for each in checkouts)


async def _of_card(parts: CaseParts, digits: str, findings: Findings, account: str | None) -> list[Customer]:
    """Opens the cards of the newest stored customers, a few at a time: they lie sealed, and no index leads to them."""
    found: list[Customer] = []
    newest: list[Customer] = []
    wanted = CustomerFilter(account=account)
    for _ in range(CARDS_MAX // CARDS_AT_ONCE):
        before = newest[-1].id if newest else None
        page = await parts.relay.customers.list(wanted, before=before, limit=CARDS_AT_ONCE)
        found += [each for each in page if (each.card_no_masked or "").endswith(digits)]
        newest += page
        if len(page) < CARDS_AT_ONCE:
            findings.notes.append(_CARDS.format(which=f"all {len(newest)}" if newest else "no", since=""))
            return found
        await asyncio.sleep(0)
    since = f", back to {spoken(newest[-1].created_at_ms)} UTC"
    findings.notes.append(_CARDS.format(which=f"the newest {len(newest)}", since=since))
    return found


_CARDS: Final = (
    "For the card's last digits, the cards of {which} stored customers were compared{since}. Cards that a customer used"
    " on the gateway's page without being stored lie sealed, and aren't searched."
)
