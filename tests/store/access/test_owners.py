from typing import Final

import msgspec
import pytest
from tests.digests import digests_of
from tests.samples import CHECKOUT, NOTIFICATION, OPERATION, PAYMENT
from tests.store.conftest import Book, Tamper
from tests.store.test_checkouts import DETAILS
from tests.store.test_subscriptions import paid

from payrelay.core.access.ownership import OrderOwners
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.payments.operation import OPEN_STATES, WITHOUT_EFFECT, Kind, Operation, State
from payrelay.core.secret import secret_hash
from payrelay.runtime.ids import new_id
from payrelay.store.access.owners import NOT_TOLD, Owners
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.checkouts import Checkouts
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.inbox import Inbox
from payrelay.store.signed_texts import SignedTexts
from payrelay.store.subscriptions import SubscriptionOwner, Subscriptions

MERCHANT: Final = OPERATION.merchant
SEAL: Final = Seal((b"k" * 32,))
PAYMENT_ID: Final = "320025000001"
PLAN_ID: Final = "420075044317"
NONE: Final[frozenset[str]] = frozenset()
SHOP: Final = frozenset({"shop"})


class OwnersTwice(Owners):
    """Reads an order's owners and payments together as well, which must always agree."""

    async def of_order(
        self, merchant: str, order_id: str, *, before_ms: int | None = None, but_for: str = ""
    ) -> OrderOwners:
        """Reads both ways, unless something is left out."""
        found = await super().of_order(merchant, order_id, before_ms=before_ms, but_for=but_for)
        if before_ms is None and not but_for:
            unpaged = msgspec.structs.replace(found, open_pages=(), operations=frozenset(), has_more=False)
            assert (await self.of_order_and_payments(merchant, order_id))[0] == unpaged
        return found

    async def payments_of_order(self, merchant: str, order_id: str) -> dict[str, frozenset[str]]:
        """Reads both ways."""
        found = await super().payments_of_order(merchant, order_id)
        assert (await self.of_order_and_payments(merchant, order_id))[1] == found
        return found


class Shelf:
    """A database, and short words for putting there what has an owner."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.owners = OwnersTwice(book.database, digests_of(book.database))
        self.checkouts = Checkouts(book.database, SEAL, digests_of(book.database))
        self.inbox = Inbox(book.database, SEAL, digests_of(book.database))
        self.subscriptions = Subscriptions(book.database, new_id, digests_of(book.database))
        self.signed_texts = SignedTexts(book.database, digests_of(book.database), secret=b"c" * 32)
        self.readings = ReadingStore(book.database, SEAL, digests_of(book.database))
        self._number = 0

    async def operation(self, **members: object) -> Operation:
        """Stores an operation that has succeeded, but for what is named."""
        self._number += 1
        own = {"state": State.SUCCEEDED, "guard": None, "claim": None, "idempotency_key": None, "order_id": "A-1"}
        operation = self.book.new(self._number, **(own | members))
        await self.book.accept(operation)
        return operation

    async def checkout(self, *, is_given_out: bool = False, **members: object) -> Checkout:
        """Stores a checkout, and the text of its form where that is given out."""
        self._number += 1
        own = {"id": f"chk_{self._number:026}", "guard": None}
        checkout = msgspec.structs.replace(CHECKOUT, **(own | members))
        assert await self.checkouts.add(checkout, DETAILS)
        if is_given_out:
            assert checkout.first_minor is not None
            text = SignedText(order_id=checkout.order_id, amount_minor=checkout.first_minor, currency=checkout.currency)
            await self.signed_texts.keep_form(checkout, [text], at_ms=checkout.created_at_ms)
        return checkout

    async def seen(self, order_id: str, payment_id: str = PAYMENT_ID) -> None:
        """Notes that the gateway showed a payment for an order."""
        payment = msgspec.structs.replace(PAYMENT, payment_id=payment_id, order_id=order_id)
        await self.readings.note_payments(MERCHANT, [payment], 1_000, 1_000)


@pytest.fixture
def shelf(book: Book) -> Shelf:
    """Gives an empty database."""
    return Shelf(book)


async def test_what_nobody_made_has_no_owner(shelf: Shelf) -> None:
    """So it stays open to all keys of the account."""
    owners = shelf.owners

    assert await owners.of_payment(MERCHANT, PAYMENT_ID) == NONE
    assert await owners.of_authorization(MERCHANT, secret_hash("token")) == NONE
    assert await owners.of_plan(MERCHANT, PLAN_ID) == NONE
    assert await owners.of_order(MERCHANT, "A-1") == OrderOwners()
    assert await owners.payments_of_order(MERCHANT, "A-1") == {}
    assert await owners.of_plans(MERCHANT, {PLAN_ID: "A-1", "420075044318": None}) == {
        PLAN_ID: NONE,
        "420075044318": NONE,
    }


async def test_before_a_time_an_order_is_owned_by_what_was_made_then_and_holds_it_for_good(shelf: Shelf) -> None:
    """After a loss of commits what is newer tells nothing, and what was open then may have ended since."""
    made_ms = OPERATION.created_at_ms
    await shelf.operation()
    await shelf.operation(order_id="A-2", state=State.UNKNOWN, guard="A-2")
    await shelf.operation(order_id="A-3", state=State.DECLINED)
    await shelf.checkout(order_id="A-4", guard="A-4", state=CheckoutState.OPEN)
    given_out = await shelf.checkout(order_id="A-5", state=CheckoutState.EXPIRED, is_given_out=True)
    await shelf.seen("A-1")
    owners = shelf.owners
    for order_id, later_ms in (("A-1", made_ms + 1), ("A-5", given_out.created_at_ms + 1)):
        assert (await owners.of_order(MERCHANT, order_id, before_ms=later_ms)).all == SHOP
        assert (await owners.of_order(MERCHANT, order_id, before_ms=later_ms - 1)).all == NONE
    for order_id in ("A-2", "A-3", "A-4"):
        assert (await owners.of_order(MERCHANT, order_id, before_ms=2**62)).all == NONE
    assert await owners.of_payment(MERCHANT, PAYMENT_ID) == SHOP
    assert await owners.of_payment(MERCHANT, PAYMENT_ID, before_ms=made_ms) == NONE
    assert await owners.of_plans(MERCHANT, {PLAN_ID: "A-1"}, before_ms=made_ms) == {PLAN_ID: NONE}
    assert await owners.of_plans(MERCHANT, {PLAN_ID: "A-1"}, before_ms=made_ms + 1) == {PLAN_ID: SHOP}


@pytest.mark.parametrize("kind", [Kind.CHARGE, Kind.CAPTURE, Kind.RETRY, Kind.AUTHORIZATION])
async def test_an_operation_owns_its_payment(shelf: Shelf, kind: Kind) -> None:
    """Of its own merchant account only: numbers of two gateways may be equal."""
    await shelf.operation(kind=kind, payment_id=PAYMENT_ID)

    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == SHOP
    assert await shelf.owners.of_payment("f" * 16, PAYMENT_ID) == NONE
    assert await shelf.owners.payments_of_order(MERCHANT, "A-1") == {PAYMENT_ID: SHOP}


@pytest.mark.parametrize("kind", [Kind.REFUND, Kind.VOID, Kind.CANCEL])
async def test_whoever_refunds_owns_nothing(shelf: Shelf, kind: Kind) -> None:
    """Otherwise one refund would shut out the others from an old payment, or from an order."""
    await shelf.operation(kind=kind, payment_id=PAYMENT_ID)

    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == NONE
    assert await shelf.owners.of_order(MERCHANT, "A-1") == OrderOwners()


@pytest.mark.parametrize("state", sorted(WITHOUT_EFFECT))
async def test_an_attempt_without_effect_owns_nothing(shelf: Shelf, state: State) -> None:
    """Whoever could own an order by a declined charge could spoil any order of another's."""
    await shelf.operation(state=state, payment_id=PAYMENT_ID)

    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == NONE
    found = await shelf.owners.of_order(MERCHANT, "A-1")
    assert (found.all, found.operations) == (NONE, frozenset())


@pytest.mark.parametrize("state", State)
async def test_what_may_have_paid_an_order_is_told_to_a_charge_of_it(shelf: Shelf, state: State) -> None:
    """Also what counts as failed, which may reappear beside the charge: then the order was paid again."""
    await shelf.operation(state=state)
    assert (await shelf.owners.of_order(MERCHANT, "A-1")).has_more is (state not in WITHOUT_EFFECT - {State.FAILED})


async def test_a_plan_that_nobody_began_is_told_to_a_charge_of_its_order(shelf: Shelf) -> None:
    """It makes nobody an owner, and a charge beside its payments is a further payment."""
    owner = SubscriptionOwner(account="gateway", merchant=MERCHANT)
    await shelf.subscriptions.note(owner, [paid(1)], now_ms=1)
    found = await shelf.owners.of_order(MERCHANT, "A-1")
    assert (found.all, found.has_more) == (NONE, True)


@pytest.mark.parametrize("state", sorted(OPEN_STATES))
async def test_an_open_charge_holds_its_order(shelf: Shelf, state: State) -> None:
    """It may have been paid already, and the gateway may show the payment before anybody knows its number here."""
    await shelf.operation(state=state)
    await shelf.seen("A-1")

    owners = await shelf.owners.of_order(MERCHANT, "A-1")
    assert (owners.settled, owners.charging, len(owners.operations)) == (NONE, SHOP, 1)
    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == SHOP


async def test_an_operation_can_be_left_out(shelf: Shelf) -> None:
    """One that has just got the order's guard asks who else has it, and would prove its own row for nothing."""
    other = await shelf.operation(principal="kiosk")
    own = await shelf.operation()

    assert (await shelf.owners.of_order(MERCHANT, "A-1", but_for=own.id)).settled == {"kiosk"}
    assert (await shelf.owners.of_order(MERCHANT, "A-1", but_for=other.id)).settled == SHOP


@pytest.mark.parametrize("state", list(CheckoutState))
async def test_whoever_gave_out_a_form_owns_its_order(shelf: Shelf, state: CheckoutState) -> None:
    """A customer whose first card was declined tries another one on the same page, whatever Payrelay calls it."""
    await shelf.checkout(state=state, is_given_out=True)
    await shelf.checkout(state=state, order_id="A-2", opened_at_ms=2_000)
    await shelf.seen("A-1")

    assert (await shelf.owners.of_order(MERCHANT, "A-1")).settled == SHOP
    assert (await shelf.owners.of_order(MERCHANT, "A-2")).settled == SHOP
    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == SHOP


@pytest.mark.parametrize("state", list(CheckoutState))
async def test_a_checkout_without_a_form_owns_its_order_while_it_holds_it(shelf: Shelf, state: CheckoutState) -> None:
    """One that was withdrawn before anybody got its form can't be paid, and lets go of the order."""
    await shelf.checkout(state=state)
    holds = state in {CheckoutState.OPEN, CheckoutState.NOTIFIED, CheckoutState.COMPLETED}

    assert (await shelf.owners.of_order(MERCHANT, "A-1")).settled == (SHOP if holds else NONE)


async def test_a_late_payment_of_an_ended_checkout_owns_its_order(shelf: Shelf) -> None:
    """A customer may pay after the checkout lost its order to another one."""
    await shelf.checkout(state=CheckoutState.EXPIRED, payment_id=PAYMENT_ID)

    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == SHOP
    assert await shelf.owners.of_order(MERCHANT, "A-1") == OrderOwners(settled=SHOP, has_more=True)


async def test_a_reported_number_gives_nobody_anothers_payment(shelf: Shelf) -> None:
    """The payment id of a notification isn't signed: a customer could write that of another shop's order there."""
    await shelf.checkout(
        principal="kiosk", kind=CheckoutKind.AUTHORIZATION, state=CheckoutState.COMPLETED, payment_id=PAYMENT_ID
    )
    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == {"kiosk"}
    await shelf.seen("A-2")
    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == NONE
    await shelf.operation(payment_id=PAYMENT_ID, order_id="A-2")
    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == SHOP


async def test_whoever_began_a_plan_owns_it_and_its_installments(shelf: Shelf) -> None:
    """No operation makes an installment; the gateway showed it as one of the plan."""
    owner = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal="shop")
    await shelf.subscriptions.note(owner, [paid(1)], now_ms=1_000)

    assert await shelf.owners.of_plan(MERCHANT, PLAN_ID) == SHOP
    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == SHOP
    assert await shelf.owners.payments_of_order(MERCHANT, "A-1") == {PAYMENT_ID: SHOP}
    assert await shelf.owners.of_plans(MERCHANT, {PLAN_ID: "A-9"}) == {PLAN_ID: SHOP}


async def test_a_plan_that_was_only_read_belongs_to_its_orders_owner(shelf: Shelf) -> None:
    """The gateway may show it before its notification came; without a known order it stays open."""
    owner = SubscriptionOwner(account="gateway", merchant=MERCHANT)
    await shelf.subscriptions.note(owner, [paid(1)], now_ms=1_000)
    assert await shelf.owners.of_plan(MERCHANT, PLAN_ID) == NONE
    await shelf.checkout(kind=CheckoutKind.RECURRING)

    assert await shelf.owners.of_plan(MERCHANT, PLAN_ID) == SHOP
    assert await shelf.owners.of_plans(MERCHANT, {PLAN_ID: None}) == {PLAN_ID: SHOP}


async def test_a_plan_that_nothing_is_known_of_belongs_to_the_owner_of_the_order_that_is_shown(shelf: Shelf) -> None:
    """The list of all subscriptions is the only place where the gateway tells the order of such a plan."""
    await shelf.operation()

    assert await shelf.owners.of_plan(MERCHANT, PLAN_ID) == NONE
    assert await shelf.owners.of_plans(MERCHANT, {PLAN_ID: "A-1"}) == {PLAN_ID: SHOP}


async def test_an_installment_that_failed_is_nobodys_payment(shelf: Shelf) -> None:
    """Its number was only reported."""
    owner = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal="shop")
    await shelf.subscriptions.note(owner, [paid(1, is_paid=False)], now_ms=1_000)

    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == NONE
    assert await shelf.owners.payments_of_order(MERCHANT, "A-1") == {}


async def test_whoever_asked_for_an_authorization_owns_it(shelf: Shelf) -> None:
    """By an operation whose reply had the token; a token that is reported for another's order later changes nothing."""
    token_hash = secret_hash("token")
    await shelf.operation(kind=Kind.AUTHORIZATION, result_ref=token_hash)
    await shelf.checkout(principal="kiosk", kind=CheckoutKind.AUTHORIZATION, order_id="A-2")
    notification = msgspec.structs.replace(NOTIFICATION, order_id="A-2")
    assert await shelf.inbox.accept_token(notification, NotificationKind.AUTHORIZATION, "token", at_ms=2_000)

    assert await shelf.owners.of_authorization(MERCHANT, token_hash) == SHOP


async def test_the_first_order_that_a_token_was_accepted_for_owns_it(shelf: Shelf) -> None:
    """A hosted authorization has no operation: its checkout had the token accepted."""
    for number, principal in ((1, "shop"), (2, "kiosk")):
        await shelf.checkout(principal=principal, kind=CheckoutKind.AUTHORIZATION, order_id=f"A-{number}")
        notification = msgspec.structs.replace(NOTIFICATION, order_id=f"A-{number}")
        kind = NotificationKind.AUTHORIZATION
        assert await shelf.inbox.accept_token(notification, kind, "token", at_ms=1_000 * number)

    assert await shelf.owners.of_authorization(MERCHANT, secret_hash("token")) == SHOP


async def test_of_several_checkouts_the_notified_one_has_the_token(shelf: Shelf) -> None:
    """In books of before: another principal opened a page of the order after the customer's card was declined."""
    kind = CheckoutKind.AUTHORIZATION
    await shelf.checkout(kind=kind, state=CheckoutState.NOTIFIED)
    await shelf.checkout(principal="kiosk", kind=kind, state=CheckoutState.CANCELLED)
    accepted = NotificationKind.AUTHORIZATION
    order = msgspec.structs.replace(NOTIFICATION, order_id="A-1")
    assert await shelf.inbox.accept_token(order, accepted, "token", at_ms=1_000)

    assert await shelf.owners.of_authorization(MERCHANT, secret_hash("token")) == SHOP


async def test_several_may_own_what_they_made_together(shelf: Shelf, database: Database) -> None:
    """In books of before: an authorization of one principal that another captured, and an order that both charged."""
    assert shelf.book.database is database
    await shelf.operation(payment_id=PAYMENT_ID)
    await shelf.operation(principal="kiosk", kind=Kind.CAPTURE, payment_id=PAYMENT_ID)

    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == {"shop", "kiosk"}
    assert (await shelf.owners.of_order(MERCHANT, "A-1")).settled == {"shop", "kiosk"}


async def notified(shelf: Shelf, number: int, **members: object) -> str:
    """Stores a notification of the order that has been worked on; gives its id."""
    own = {"id": f"ntf_{number:04}", "digest": f"{number:064x}", "next_at_ms": None, "payment_id": None}
    notification = msgspec.structs.replace(NOTIFICATION, **(own | members))
    await shelf.inbox.put(notification, b"card_holder_name=S+Perera")
    return notification.id


async def left_of(shelf: Shelf, principal: str, *ids: str) -> list[bool]:
    """Forgets a principal's bodies of the order; tells for each notification whether its body is left."""
    await shelf.inbox.forget_bodies_of_order(MERCHANT, "A-1", principal)
    return [await shelf.inbox.body_of(id_) is not None for id_ in ids]


async def test_what_was_paid_is_its_makers_to_forget(shelf: Shelf) -> None:
    """By the operation, the checkout or the plan that made the payment, whoever had the order first."""
    await shelf.checkout(principal="kiosk", state=CheckoutState.EXPIRED, payment_id="320025000009", created_at_ms=1)
    await shelf.operation(payment_id=PAYMENT_ID, created_at_ms=2)
    owner = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal="shop")
    await shelf.subscriptions.note(owner, [paid(2)], now_ms=1_000)
    numbers = (PAYMENT_ID, "320025000002", "320025000009")
    ids = [await notified(shelf, each, payment_id=number) for each, number in enumerate(numbers)]

    assert await left_of(shelf, "kiosk", *ids) == [True, True, False]
    assert await left_of(shelf, "shop", *ids) == [False, False, False]


async def test_what_was_not_paid_is_for_who_had_taken_the_order_last(shelf: Shelf) -> None:
    """A failed attempt names a customer too: its shop must be able to erase it, and no other shop can."""
    await shelf.checkout(principal="kiosk", state=CheckoutState.FAILED, created_at_ms=1_000)
    await shelf.checkout(state=CheckoutState.FAILED, created_at_ms=3_000)
    ids = [await notified(shelf, at_ms, received_at_ms=at_ms) for at_ms in (500, 2_000, 4_000)]

    assert await left_of(shelf, "kiosk", *ids) == [False, False, True]
    assert await left_of(shelf, "shop", *ids) == [False, False, False]


async def test_a_declined_attempt_takes_no_order_to_be_forgotten(shelf: Shelf) -> None:
    """Else whoever has one charge declined could have another shop's notifications deleted."""
    await shelf.checkout(created_at_ms=1_000)
    await shelf.operation(principal="kiosk", state=State.DECLINED, created_at_ms=2_000)
    id_ = await notified(shelf, 1, received_at_ms=3_000)

    assert await left_of(shelf, "kiosk", id_) == [True]


@pytest.mark.parametrize("kind", [NotificationKind.AUTHORIZATION, NotificationKind.PREAPPROVAL])
async def test_a_token_is_its_checkouts_to_forget(shelf: Shelf, kind: NotificationKind) -> None:
    """In books of before another principal may have opened a page of the order since, and turned back."""
    await shelf.checkout(kind=CheckoutKind(kind), state=CheckoutState.COMPLETED, created_at_ms=1_000)
    await shelf.checkout(principal="kiosk", state=CheckoutState.CANCELLED, created_at_ms=2_000)
    id_ = await notified(shelf, 1, received_at_ms=3_000, payment_id=PAYMENT_ID)
    order = msgspec.structs.replace(NOTIFICATION, id=id_, order_id="A-1")
    assert await shelf.inbox.accept_token(order, kind, "token", at_ms=3_000)

    assert await left_of(shelf, "kiosk", id_) == [True]
    assert await left_of(shelf, "shop", id_) == [False]


async def test_an_installment_that_failed_claims_no_notification(shelf: Shelf) -> None:
    """Its number was only reported: it could be that of another principal's payment."""
    await shelf.operation(created_at_ms=1)
    await shelf.subscriptions.note(
        SubscriptionOwner(account="gateway", merchant=MERCHANT, principal="kiosk"), [paid(1, is_paid=False)], now_ms=1
    )
    id_ = await notified(shelf, 1, payment_id=PAYMENT_ID)

    assert await left_of(shelf, "kiosk", id_) == [True]
    assert await left_of(shelf, "shop", id_) == [False]


@pytest.mark.parametrize("forgery", ["principal = 'kiosk'", "row_digest = ''", "state = 'declined'"])
async def test_what_a_forged_row_owned_is_open_to_nobody(shelf: Shelf, tamper: Tamper, forgery: str) -> None:
    """Neither to whom the row names now, nor to all, as what nobody made would be."""
    await shelf.operation(payment_id=PAYMENT_ID, result_ref="hash")
    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == SHOP
    await tamper(f"UPDATE operations SET {forgery}")  # noqa: S608, the forgeries are named above
    owners = shelf.owners

    assert await owners.of_payment(MERCHANT, PAYMENT_ID) == {NOT_TOLD}
    assert await owners.of_authorization(MERCHANT, "hash") == {NOT_TOLD}
    assert (await owners.of_order(MERCHANT, "A-1")).all == {NOT_TOLD}
    assert await owners.payments_of_order(MERCHANT, "A-1") == {PAYMENT_ID: {NOT_TOLD}}


@pytest.mark.parametrize("forgery", ["principal = 'kiosk'", "row_digest = ''"])
async def test_a_forged_checkout_owns_nothing(shelf: Shelf, tamper: Tamper, forgery: str) -> None:
    """It is only joined, and never read by itself: without its digest its principal is nobody's owner."""
    await shelf.checkout(
        kind=CheckoutKind.RECURRING,
        state=CheckoutState.COMPLETED,
        payment_id=PAYMENT_ID,
        subscription_id=PLAN_ID,
        order_id="A-1",
    )
    assert await shelf.owners.of_plan(MERCHANT, PLAN_ID) == SHOP
    await tamper(f"UPDATE checkouts SET {forgery}")  # noqa: S608, the forgeries are named above

    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == {NOT_TOLD}
    assert await shelf.owners.of_plan(MERCHANT, PLAN_ID) == {NOT_TOLD}
    assert (await shelf.owners.of_order(MERCHANT, "A-1")).all == {NOT_TOLD}


async def test_a_row_that_somebody_wrote_beside_an_owners_takes_nothing_from_it(shelf: Shelf, tamper: Tamper) -> None:
    """Whoever may write could shut every owner out otherwise, by one row; it is an alert."""
    await shelf.operation(payment_id=PAYMENT_ID)
    await shelf.checkout(kind=CheckoutKind.PAYMENT, order_id="zzz", principal="kiosk")
    await tamper(f"UPDATE checkouts SET payment_id = '{PAYMENT_ID}'")  # noqa: S608, a number that is named above

    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == SHOP
    due = await Alerts(shelf.book.database, AlertSubject.ROW).lease_due(2**60, leased_until_ms=2**61, limit=10)
    assert [alert.subject_id.partition("/")[0] for alert in due] == ["checkouts"]


@pytest.mark.parametrize(
    ("table", "forgery"),
    [
        ("subscriptions", "principal = 'kiosk'"),
        ("installments", "subscription_id = 'other'"),
        ("installments", "row_digest = ''"),
    ],
)
async def test_a_forged_plan_or_installment_makes_nobody_an_owner(
    shelf: Shelf, tamper: Tamper, table: str, forgery: str
) -> None:
    """A payment is its plan's by these two rows alone."""
    owner = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal="shop")
    for plan_id in (PLAN_ID, "other"):
        fact = msgspec.structs.replace(paid(1), subscription_id=plan_id, payment=PAYMENT_ID)
        await shelf.subscriptions.note(owner, [fact], now_ms=1)
    await tamper(f"DELETE FROM installments WHERE subscription_id = 'other'; UPDATE {table} SET {forgery}")  # noqa: S608

    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == {NOT_TOLD}


@pytest.mark.parametrize("forgery", ["order_id = 'zzz'", "accepted_at_ms = 0"])
async def test_a_forged_accepted_token_gives_no_authorization_away(shelf: Shelf, tamper: Tamper, forgery: str) -> None:
    """The earliest row would name the owner: one that somebody wrote names nobody."""
    await shelf.checkout(kind=CheckoutKind.AUTHORIZATION, order_id="A-1")
    await shelf.checkout(kind=CheckoutKind.AUTHORIZATION, order_id="zzz", principal="kiosk")
    told = msgspec.structs.replace(NOTIFICATION, merchant=MERCHANT, order_id="A-1")
    assert await shelf.inbox.accept_token(told, NotificationKind.AUTHORIZATION, "token", at_ms=1)
    assert await shelf.owners.of_authorization(MERCHANT, secret_hash("token")) == SHOP
    await tamper(f"UPDATE accepted_tokens SET {forgery}")  # noqa: S608, the forgeries are named above

    assert await shelf.owners.of_authorization(MERCHANT, secret_hash("token")) == {NOT_TOLD}


async def test_a_forged_record_of_a_payment_leads_to_no_order(shelf: Shelf, tamper: Tamper) -> None:
    """A payment that nobody is known to have made is its order's: the order is not whatever somebody wrote."""
    await shelf.operation(order_id="A-1")
    await shelf.operation(order_id="zzz", principal="kiosk")
    await shelf.seen("A-1")
    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == SHOP
    await tamper("UPDATE payments_seen SET order_id = 'zzz'")

    assert await shelf.owners.of_payment(MERCHANT, PAYMENT_ID) == {NOT_TOLD}
