"""Takes over what a shop had before Payrelay: card tokens, subscriptions and payments, each once.

Rules:

1. Nothing is sent to a gateway, and nobody is told of what the shop knows already: an import writes no event, but for
   the customers that it makes.
2. Each item is one small unit of work, and finds what is there already. So an import that was killed is begun again,
   and leads to the same end.
3. What Payrelay may have made itself, and what another principal owns, is refused. A removed customer stays removed.
4. The payments come first. An installment that was imported is then no news when its subscription gets its owner.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec

from payrelay.core.customers.customer import Approval, CustomerState
from payrelay.core.operators.roles import Act
from payrelay.core.payments.imported import ImportedPayment, ImportVerdict
from payrelay.core.secret import secret_hash
from payrelay.core.subscriptions.subscription import Fact
from payrelay.core.views import with_members_of
from payrelay.flows.customers.approve_customer import approve
from payrelay.flows.operators.parts import Actor
from payrelay.flows.relay import Relay
from payrelay.imports.rules.items import CardItem, Item, NoItem, PaymentItem, PlanItem
from payrelay.store.imports.payments import BATCH, CONTRADICTS
from payrelay.store.subscriptions import SubscriptionOwner, SubscriptionSummary

REMOVED: Final = "its customer was removed here, and an import brings nobody back"
FOREIGN_ORDER: Final = "its order is another principal's"
FOREIGN: Final = "it is another principal's"


class ImportScope(msgspec.Struct, frozen=True, kw_only=True):
    """What an import is for.

    Attributes:
        account: the configured name of the account.
        merchant: its merchant.
        principal: the name under which the owner of all items is stored.
        source: names the file or the database, in what is stored and told.
        actor: who imports.
        is_dry: nothing is stored, and what would become of each item is told.
        told_dry: what was new in a dry run, so that it is known when it comes again.
    """

    account: str
    merchant: str
    principal: str
    source: str
    actor: Actor
    is_dry: bool = False
    told_dry: dict[str, int] = {}


class ImportedItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item with what became of it: the reason where it was refused or passed over, a card's customer."""

    item: Item
    verdict: ImportVerdict
    reason: str = ""
    customer_id: str | None = None


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an import came to: how many items of each kind had which verdict."""

    counts: dict[tuple[str, ImportVerdict], int]

    def of(self, verdict: ImportVerdict) -> dict[str, int]:
        """Gives how many items of each kind had a verdict."""
        return {kind: number for (kind, found), number in sorted(self.counts.items()) if found is verdict}


KINDS: Final = {CardItem: "cards", PlanItem: "subscriptions", PaymentItem: "payments", NoItem: "lines"}
"""The kinds of items, for people."""

Told = Callable[[ImportedItem], None]


async def import_existing(relay: Relay, scope: ImportScope, items: AsyncIterator[Item], told: Told) -> ImportReport:
    """Imports items, and tells of each what became of it. May be repeated, and must be where it was interrupted.

    A line of the operators' history says who began it, and another one how it ended. Raises StoreError, and what
    reading the items raises; what was stored until then stays.
    """
    counts: Counter[tuple[str, ImportVerdict]] = Counter()
    await _noted(relay, scope, "begun")

    def count(imported: ImportedItem) -> None:
        counts[KINDS[type(imported.item)], imported.verdict] += 1
        told(imported)

    batch: list[Item] = []
    async for item in items:
        batch.append(item)
        if len(batch) >= BATCH:
            await _import_batch(relay, scope, batch, count)
            batch = []
    await _import_batch(relay, scope, batch, count)
    report = ImportReport(counts=dict(counts))
    said = ", ".join(f"{number} {kind} {verdict}" for (kind, verdict), number in sorted(counts.items()))
    await _noted(relay, scope, f"done: {said or 'nothing'}")
    return report


async def _noted(relay: Relay, scope: ImportScope, what: str) -> None:
    """Adds a line to the operators' history, unless nothing is stored."""
    if scope.is_dry:
        return
    act = scope.actor.did(
        Act.IMPORT_EXISTING,
        f"{scope.account}/{scope.principal}",
        at_ms=relay.clock.now_ms(),
        details=f"{scope.source}: {what}",
    )
    await relay.acts.written(lambda: relay.acts.appended(act))


async def _import_batch(relay: Relay, scope: ImportScope, batch: Sequence[Item], told: Told) -> None:
    """Imports a batch: payments first, then subscriptions, then cards; tells of each in the order of the file."""
    done: dict[int, ImportedItem] = {}
    payments = [(number, item) for number, item in enumerate(batch) if isinstance(item, PaymentItem)]
    done |= await _import_payments(relay, scope, payments)
    for number, item in enumerate(batch):
        if isinstance(item, PlanItem):
            done[number] = await _import_plan(relay, scope, item)
        elif isinstance(item, CardItem):
            done[number] = await _import_card(relay, scope, item)
        elif isinstance(item, NoItem):
            verdict = ImportVerdict.REFUSED if item.is_refused else ImportVerdict.PASSED_OVER
            done[number] = ImportedItem(item=item, verdict=verdict, reason=item.reason)
    for number in range(len(batch)):
        told(_told_again(scope, done[number]) if scope.is_dry else done[number])


def _told_again(scope: ImportScope, imported: ImportedItem) -> ImportedItem:
    """Tells what a dry run makes of an item that came before in the same file: the real one finds it stored."""
    item = imported.item
    if imported.verdict is not ImportVerdict.NEW or isinstance(item, NoItem):
        return imported
    if isinstance(item, PaymentItem):
        name, facts = item.name, hash((item.order_id, item.currency, item.amount_minor, item.subscription_id))
    else:
        name, facts = secret_hash(item.token.reveal()) if isinstance(item, CardItem) else item.name, 0
    before = scope.told_dry.get(name)
    scope.told_dry.setdefault(name, facts)
    if before is None:
        return imported
    if before != facts:
        return msgspec.structs.replace(imported, verdict=ImportVerdict.REFUSED, reason=CONTRADICTS)
    return msgspec.structs.replace(imported, verdict=ImportVerdict.KNOWN)


async def _import_payments(
    relay: Relay, scope: ImportScope, numbered: Sequence[tuple[int, PaymentItem]]
) -> dict[int, ImportedItem]:
    done, wanted = {}, []
    for number, item in numbered:
        verdict, reason = await _owned(relay, scope, item)
        if verdict is not None:
            done[number] = ImportedItem(item=item, verdict=verdict, reason=reason)
        else:
            wanted.append((number, item))
    now_ms = relay.clock.now_ms()
    taken = await relay.money.imported_payments.take(
        [_row(scope, item, now_ms) for _, item in wanted], is_dry=scope.is_dry
    )
    for (number, item), (verdict, reason) in zip(wanted, taken, strict=True):
        done[number] = ImportedItem(item=item, verdict=verdict, reason=reason)
    return done


def _row(scope: ImportScope, item: PaymentItem, now_ms: int) -> ImportedPayment:
    return with_members_of(
        item,
        ImportedPayment,
        merchant=scope.merchant,
        principal=scope.principal,
        account=scope.account,
        imported_at_ms=now_ms,
        imported_by=scope.actor.name,
        place=f"{scope.source}, {item.place}",
    )


async def _owned(relay: Relay, scope: ImportScope, item: PaymentItem) -> tuple[ImportVerdict | None, str]:
    """Tells whether a payment, or its order, is somebody's already; None as the verdict where it is to be imported."""
    acting = await relay.access.principals.acts_for(scope.principal) | {scope.principal}
    makers = await relay.access.owners.of_payment(scope.merchant, item.payment_id)
    if makers and await relay.money.imported_payments.get(scope.merchant, item.payment_id) is None:
        return (ImportVerdict.KNOWN, "") if makers & acting else (ImportVerdict.REFUSED, FOREIGN)
    of_order = await relay.access.owners.of_order(scope.merchant, item.order_id)
    if of_order.all and not of_order.all & acting:
        return ImportVerdict.REFUSED, FOREIGN_ORDER
    return None, ""


async def _import_plan(relay: Relay, scope: ImportScope, item: PlanItem) -> ImportedItem:
    acting = await relay.access.principals.acts_for(scope.principal) | {scope.principal}
    owners = await relay.access.owners.of_plan(scope.merchant, item.subscription_id)
    if owners and not owners & acting:
        return ImportedItem(item=item, verdict=ImportVerdict.REFUSED, reason=FOREIGN)
    of_order = (await relay.access.owners.of_order(scope.merchant, item.order_id)).all
    if of_order and not of_order & acting:
        return ImportedItem(item=item, verdict=ImportVerdict.REFUSED, reason=FOREIGN_ORDER)
    known = await relay.subscriptions.summary(scope.merchant, item.subscription_id)
    if known is not None and known.subscription.order_id not in {None, item.order_id}:
        reason = f"it is known here for the order {known.subscription.order_id}"
        return ImportedItem(item=item, verdict=ImportVerdict.REFUSED, reason=reason)
    if not scope.is_dry:
        owner = SubscriptionOwner(account=scope.account, merchant=scope.merchant, principal=scope.principal)
        now_ms = relay.clock.now_ms()
        fact = _fact(await _own_installment(relay, scope, item), known, now_ms)
        await relay.subscriptions.note(owner, [fact], now_ms=now_ms, is_news=False)
    return ImportedItem(item=item, verdict=ImportVerdict.NEW if known is None else ImportVerdict.KNOWN)


async def _own_installment(relay: Relay, scope: ImportScope, item: PlanItem) -> PlanItem:
    """Returns the item without its installment, unless that was imported for the same principal and subscription.

    Otherwise a line whose payment was refused would make its owner by way of the subscription.
    """
    if item.payment_id is None:
        return item
    known = await relay.money.imported_payments.get(scope.merchant, item.payment_id)
    is_own = known is not None and (known.principal, known.subscription_id) == (scope.principal, item.subscription_id)
    return item if is_own else msgspec.structs.replace(item, payment_id=None)


def _fact(item: PlanItem, known: SubscriptionSummary | None, now_ms: int) -> Fact:
    """Makes the fact that an item is; one that counts no installments knows as many as are known already."""
    at_ms = now_ms if item.at_ms is None else min(item.at_ms, now_ms)
    counted = 0 if known is None else known.subscription.notified_paid or 0
    return Fact(
        subscription_id=item.subscription_id,
        at_ms=at_ms,
        is_seen=False,
        order_id=item.order_id,
        currency=item.currency,
        amount_minor=item.amount_minor,
        state=item.state,
        paid=counted if item.paid is None else item.paid,
        next_on=item.next_on,
        payment=item.payment_id,
        is_paid=item.payment_id is not None,
        payment_minor=item.amount_minor if item.payment_id is not None else None,
        payment_at_ms=at_ms if item.payment_id is not None else None,
    )


async def _import_card(relay: Relay, scope: ImportScope, item: CardItem) -> ImportedItem:
    known = await relay.customers.of_token(scope.merchant, scope.principal, item.token)
    if known is not None and known.state is not CustomerState.ACTIVE:
        return ImportedItem(item=item, verdict=ImportVerdict.REFUSED, reason=REMOVED, customer_id=known.id)
    if known is not None:
        return ImportedItem(item=item, verdict=ImportVerdict.KNOWN, customer_id=known.id)
    if scope.is_dry:
        return ImportedItem(item=item, verdict=ImportVerdict.NEW)
    approval = with_members_of(
        item, Approval, account=scope.account, merchant=scope.merchant, principal=scope.principal
    )
    customer = await approve(relay, approval)
    return ImportedItem(item=item, verdict=ImportVerdict.NEW, customer_id=customer.id)
