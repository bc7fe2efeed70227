"""Pages that customers pay: what becomes of them is told in the day, or in a correction, whatever told it and when."""

from datetime import timedelta

import msgspec
import pytest
from tests.flows.reconciliation.test_day import ANN, DAY, PAID, Office, office, told
from tests.samples import ASKED, CHECKOUT

from payrelay.core.checkouts.checkout import Checkout, CheckoutState, Details
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState
from payrelay.errors import Refusal
from payrelay.reconciliation.flows.close import close_day
from payrelay.reconciliation.rules.verdicts import Aspect, BooksVerdict, Concern
from payrelay.store.subscriptions import SubscriptionOwner

__all__ = ["office"]
NEXT = DAY + timedelta(days=1)


async def offered(office: Office, **members: object) -> Checkout:
    """Shows a customer the page of the order that PAID is of."""
    now_ms = office.world.clock.now_ms()
    checkout = msgspec.structs.replace(
        CHECKOUT,
        id=f"chk_{now_ms:012x}{1:020x}",
        merchant=office.scope.merchant,
        created_at_ms=now_ms,
        updated_at_ms=now_ms,
        **members,
    )
    assert await office.relay.checkouts.add(checkout, Details(asked=ASKED, secret="s"))
    return checkout


async def notified(office: Office, checkout: Checkout, **members: object) -> None:
    """Tells that the page was paid, now."""
    known = {"version": 2, "payment_id": "320025000001", "updated_at_ms": office.world.clock.now_ms()}
    paid = msgspec.structs.replace(checkout, state=CheckoutState.COMPLETED, guard=None, **(known | members))
    await office.relay.checkouts.change(paid, has_event=False)


async def installment(office: Office, *, at_ms: int) -> None:
    """Tells that the payment is of a subscription, as the gateway's record has it from a time before."""
    owner = SubscriptionOwner(account="gateway", merchant=office.scope.merchant, principal="shop")
    now_ms = office.world.clock.now_ms()
    fact = Fact(
        subscription_id="420075000001",
        at_ms=now_ms,
        is_seen=True,
        order_id="A-1",
        currency="LKR",
        amount_minor=100_000,
        state=SubscriptionState.ACTIVE,
        payment="320025000001",
        is_paid=True,
        payment_minor=100_000,
        payment_at_ms=at_ms,
    )
    await office.relay.subscriptions.note(owner, [fact], now_ms=now_ms)


async def test_a_payment_of_a_page_that_nobody_told_us_of_is_a_difference(office: Office) -> None:
    """The customer paid, and no notification came: the file alone knows it."""
    await offered(office)
    await office.feed(PAID)
    report = await office.run()
    assert told(report) == [("320025000001", BooksVerdict.DIFFERENT)]


async def test_money_for_a_page_that_we_call_expired_concerns_somebody_at_once(office: Office) -> None:
    """The shop was told that its customer had not paid."""
    page = await offered(office)
    ended = msgspec.structs.replace(page, state=CheckoutState.EXPIRED, version=2, guard=None)
    await office.relay.checkouts.change(ended, has_event=False)
    await office.feed(PAID)
    [found] = (await office.run()).listed
    assert (found.verdict, found.concern) == (BooksVerdict.DIFFERENT, Concern.TAKEN_THOUGH_FAILED)


async def test_a_page_that_is_paid_on_a_later_day_is_told_on_that_day(office: Office) -> None:
    """It was opened on the eve, and a line of the next day has its payment."""
    await offered(office)
    await office.feed(PAID.replace("2023-11-15", str(NEXT)), covers=False)
    office.wait(1)
    assert told(await office.run()) == []
    assert told(await office.run(NEXT)) == [("320025000001", BooksVerdict.DIFFERENT)]


async def test_a_notification_after_the_closing_is_a_correction(office: Office) -> None:
    """No new line says so: the statement had the payment all along, and our books learnt of it too late."""
    page = await offered(office)
    await office.feed(PAID)
    await office.run()
    office.wait(1)
    closed = await close_day(office.relay, office.scope, DAY, ANN, "month end")
    assert told(closed) == [("320025000001", BooksVerdict.DIFFERENT)]
    office.wait(1)
    await notified(office, page)
    [correction] = (await office.run(NEXT)).corrections
    assert (correction.verdict, correction.count, correction.booked_minor) == (BooksVerdict.AGREED, 1, 100_000)


async def test_what_is_learnt_again_of_a_paid_page_is_no_correction(office: Office) -> None:
    """Its payment was agreed on in the closed day, and would be booked twice."""
    page = await offered(office)
    await notified(office, page)
    await office.feed(PAID)
    await office.run()
    office.wait(1)
    await close_day(office.relay, office.scope, DAY, ANN, "month end")
    office.wait(1)
    await notified(office, page, version=3, customer_id="cus_1")
    later = await office.run(NEXT)
    assert (later.sums, later.corrections, later.taken_back) == ((), (), ())


async def test_a_notification_within_the_minute_of_the_closing_waits(office: Office) -> None:
    """Another process's clock may be behind, for pages as for charges."""
    page = await offered(office)
    await office.feed(PAID)
    office.wait(1)
    await notified(office, page)
    await office.run()
    with pytest.raises(Refusal, match="changed within this minute"):
        await close_day(office.relay, office.scope, DAY, ANN, "month end")


async def test_the_first_payment_of_a_plan_is_booked_once(office: Office) -> None:
    """Its page and its subscription both have it, and the money came once."""
    page = await offered(office, kind=CheckoutKind.RECURRING)
    await notified(office, page)
    await installment(office, at_ms=office.world.clock.now_ms() + 1_000)
    await office.feed(PAID)
    [agreed] = (await office.run()).sums
    assert (agreed.verdict, agreed.count, agreed.booked_minor) == (BooksVerdict.AGREED, 1, 100_000)


async def test_an_installment_that_is_learnt_after_the_closing_is_a_correction(office: Office) -> None:
    """The gateway's record has the time of the payment, which is long before we saw it."""
    at_ms = office.world.clock.now_ms()
    await office.feed(PAID)
    await office.run()
    office.wait(1)
    closed = await close_day(office.relay, office.scope, DAY, ANN, "month end")
    assert told(closed) == [("320025000001", BooksVerdict.ONLY_THEIRS)]
    office.wait(1)
    await installment(office, at_ms=at_ms)
    later = await office.run(NEXT)
    assert [(each.verdict, each.count) for each in later.corrections] == [(BooksVerdict.AGREED, 1)]
    assert later.taken_back == ()


async def test_an_installment_of_a_closed_page_is_not_booked_beside_it(office: Office) -> None:
    """Its page was agreed on; the subscription has the same payment, and is read later."""
    page = await offered(office, kind=CheckoutKind.RECURRING)
    await notified(office, page)
    await office.feed(PAID)
    await office.run()
    office.wait(1)
    await close_day(office.relay, office.scope, DAY, ANN, "month end")
    office.wait(1)
    await installment(office, at_ms=page.created_at_ms)
    assert (await office.run(NEXT)).corrections == ()


async def test_a_page_takes_back_the_installment_that_was_agreed_on(office: Office) -> None:
    """The subscription was known first, and its day closed; the page that has the same payment takes its place."""
    page = await offered(office, kind=CheckoutKind.RECURRING)
    await installment(office, at_ms=page.created_at_ms)
    await office.feed(PAID)
    await office.run()
    office.wait(1)
    await close_day(office.relay, office.scope, DAY, ANN, "month end")
    office.wait(1)
    await notified(office, page)
    later = await office.run(NEXT)
    booked = sum(each.booked_minor for each in later.corrections) - sum(each.booked_minor for each in later.taken_back)
    assert booked == 0


FEE = PAID.replace("1000.00", "10.00")


async def approved(office: Office, amount_minor: int | None) -> None:
    """Has a customer approve a card on a page."""
    kind = CheckoutKind.PREAPPROVAL
    page = await offered(office, kind=kind, amount_minor=amount_minor, first_minor=amount_minor)
    await notified(office, page, payment_id=None if amount_minor is None else "320025000001")


@pytest.mark.parametrize("state", ["RECEIVED", "REFUNDED", "REFUND REQUESTED"])
async def test_the_fee_of_an_approval_is_known(office: Office, state: str) -> None:
    """The gateway takes it and gives it back by itself. Called a stranger's payment, each approval rang an alarm."""
    await approved(office, None)
    await office.feed(FEE.replace("RECEIVED", state))
    report = await office.run()
    assert told(report) == []
    [agreed] = report.sums
    assert (agreed.verdict, agreed.booked_minor) == (BooksVerdict.AGREED, 1_000 if state == "RECEIVED" else 0)


async def test_no_statement_lacks_the_fee_of_an_approval(office: Office) -> None:
    """Whether it is listed is the gateway's business."""
    await approved(office, None)
    await office.feed()
    assert (await office.run()).sums == ()


async def test_an_approval_explains_nothing_but_its_fee(office: Office) -> None:
    """A payment of another amount on its order is one that nobody here made."""
    await approved(office, None)
    await office.feed(PAID)
    [found] = (await office.run()).listed
    assert (found.verdict, found.aspects) == (BooksVerdict.DIFFERENT, (Aspect.AMOUNT,))


async def test_what_an_approval_charges_is_a_payment_of_ours(office: Office) -> None:
    """It was asked for with the approval, and the gateway showed it."""
    await approved(office, 100_000)
    await office.feed(PAID)
    [agreed] = (await office.run()).sums
    assert (agreed.verdict, agreed.booked_minor) == (BooksVerdict.AGREED, 100_000)


@pytest.mark.parametrize("state", [CheckoutState.CANCELLED, CheckoutState.FAILED, CheckoutState.EXPIRED])
async def test_a_word_that_nobody_knows_is_told_of_a_page_that_has_ended(office: Office, state: CheckoutState) -> None:
    """The customer may have paid after all, and the word may say so."""
    page = await offered(office)
    ended = msgspec.structs.replace(page, state=state, version=2, guard=None)
    await office.relay.checkouts.change(ended, has_event=False)
    await office.feed(PAID.replace("RECEIVED", "SETTLED"))
    [found] = (await office.run()).listed
    assert (found.verdict, found.aspects, found.concern) == (BooksVerdict.DIFFERENT, (Aspect.STATE,), None)
    assert '"SETTLED"' in found.why
