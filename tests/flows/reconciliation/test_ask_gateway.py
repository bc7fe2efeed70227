"""Searches at the gateway for a day: once for each order, resumed after an end, left alone while the gateway fails."""

from typing import Final

import msgspec
import pytest
from tests.flows.console.books import PLAN
from tests.flows.reconciliation.test_day import DAY, Office, office, told
from tests.flows.world import CHARGE, START_MS, outcome_of
from tests.flows.world import asked as by_key

from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.payment import NoObservation, NothingShown, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState
from payrelay.errors import Code, Refusal
from payrelay.flows.payments.charge import charge
from payrelay.reconciliation.flows.ask_gateway import STATES, AskedOrders, ask_gateway
from payrelay.reconciliation.rules.verdicts import Basis, BooksVerdict
from payrelay.store.subscriptions import SubscriptionOwner

__all__ = ["office"]

FAILED: Final = NoObservation(code=Code.GATEWAY_BUSY, evidence=Evidence())


def seen(amount_minor: int = 100_000, payment_id: str = "320025000001", order_id: str = "A-1") -> PaymentsSeen:
    """Gives what a search for the order shows."""
    payment = Payment(
        payment_id=payment_id,
        order_id=order_id,
        at_ms=START_MS,
        description="Tea",
        status=PaymentStatus.RECEIVED,
        currency="LKR",
        amount_minor=amount_minor,
    )
    return PaymentsSeen(payments=(payment,), evidence=Evidence())


async def asked(office: Office) -> AskedOrders:
    """Asks for the day, without a pause."""

    async def pause(_seconds: float) -> None:
        return None

    return await ask_gateway(office.relay, office.scope, DAY, pause=pause)


async def test_a_search_makes_the_own_orders_agree(office: Office) -> None:
    """What only the gateway has stays unknown, as no search lists it."""
    await office.pay()
    office.wait(1)
    office.world.account.observations.append(seen())
    assert (await asked(office)).asked == 1
    report = await office.run()
    assert told(report) == []
    assert report.count(BooksVerdict.AGREED) == 1
    assert "payment" in {each.movement for each in report.unseen}
    assert report.rests_on == ("searches at the gateway, for 1 of what is listed or summed up",)


async def test_an_order_is_searched_for_once(office: Office) -> None:
    """A day that was interrupted goes on where it was."""
    await office.pay()
    office.wait(1)
    office.world.account.observations.append(seen())
    await asked(office)
    again = await asked(office)
    assert (again.asked, again.known) == (0, 1)


async def paid_before(office: Office) -> None:
    """Makes a payment of another order on the day before, by which a control query can tell that searches work."""
    office.world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id="320025000000"))
    office.wait(-1)
    await charge(office.relay, by_key("k-before"), msgspec.structs.replace(CHARGE, order_id="A-0"))
    office.wait(1)


async def test_what_the_gateway_does_not_show_is_only_ours(office: Office) -> None:
    """It was asked for this very order, after its day, and showed another one that is known to be paid."""
    await paid_before(office)
    await office.pay()
    office.wait(1)
    office.world.account.observations += [NothingShown(evidence=Evidence()), seen(order_id="A-0")]
    assert await asked(office) == AskedOrders(asked=1)
    assert told(await office.run()) == [("320025000001", BooksVerdict.ONLY_OURS)]


async def test_an_empty_search_alone_proves_nothing(office: Office) -> None:
    """A gateway whose search finds nothing at all would make every payment a missing one."""
    await paid_before(office)
    await office.pay()
    office.wait(1)
    office.world.account.observations += [NothingShown(evidence=Evidence()), NothingShown(evidence=Evidence())]
    assert await asked(office) == AskedOrders(failed=1)
    assert told(await office.run()) == [("320025000001", BooksVerdict.UNKNOWABLE)]


async def test_where_no_other_order_is_known_nothing_is(office: Office) -> None:
    """The first order of all has no other beside it that could show whether the search works."""
    await office.pay()
    office.wait(1)
    assert await asked(office) == AskedOrders(unproved=1)
    [found] = (await office.run()).listed
    assert (found.verdict, found.basis) == (BooksVerdict.UNKNOWABLE, Basis.BOOKS)
    assert "no search that is known to work" in found.why


async def with_installments(office: Office, *payments: str) -> None:
    """Stores installments of a subscription, paid on the day."""
    owner = SubscriptionOwner(account="gateway", merchant=office.scope.merchant, principal="shop")
    facts = [
        Fact(
            subscription_id=PLAN,
            at_ms=START_MS + number,
            is_seen=True,
            order_id="S-1",
            currency="LKR",
            amount_minor=100_000,
            state=SubscriptionState.ACTIVE,
            payment=payment,
            is_paid=True,
            payment_minor=100_000,
        )
        for number, payment in enumerate(payments)
    ]
    await office.relay.subscriptions.note(owner, facts, now_ms=START_MS)


async def test_installments_are_compared_with_the_list_of_their_subscription(office: Office) -> None:
    """A search for the order needn't show them. One that the list lacks is only ours."""
    await with_installments(office, "320025000003", "320025000004")
    office.wait(1)
    office.world.account.observations.append(seen(payment_id="320025000003", order_id="S-1"))
    assert await asked(office) == AskedOrders(asked=1)
    assert (await asked(office)).known == 1
    report = await office.run()
    assert report.count(BooksVerdict.AGREED) == 1
    [missing] = report.listed
    assert (missing.identity, missing.verdict) == ("320025000004", BooksVerdict.ONLY_OURS)
    assert missing.why == "the gateway was asked for its subscription, and doesn't show it"


async def test_an_empty_list_of_a_subscription_proves_nothing(office: Office) -> None:
    """No other subscription shows that this one's list works."""
    await paid_before(office)
    await with_installments(office, "320025000003")
    office.wait(1)
    assert await asked(office) == AskedOrders(unproved=1)
    assert told(await office.run()) == [("320025000003", BooksVerdict.UNKNOWABLE)]


async def test_the_searches_end_where_none_works(office: Office) -> None:
    """Three in a row, and the budget is left to others."""
    await paid_before(office)
    for number in range(5):
        office.world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id=f"32002500010{number}"))
        await charge(office.relay, by_key(f"k-{number}"), msgspec.structs.replace(CHARGE, order_id=f"N-{number}"))
    office.wait(1)
    assert await asked(office) == AskedOrders(failed=3, is_ended_early=True)


@pytest.mark.parametrize("unreadable", [{"amount_minor": None}, {"at_ms": None}])
async def test_a_payment_that_cant_be_read_is_not_missing(office: Office, unreadable: dict[str, None]) -> None:
    """The gateway showed it: whoever says that it isn't there has read the answer as another one."""
    await office.pay()
    office.wait(1)
    shown = seen()
    office.world.account.observations.append(
        msgspec.structs.replace(shown, payments=(msgspec.structs.replace(shown.payments[0], **unreadable),))
    )
    assert await asked(office) == AskedOrders(unreadable=1)
    assert told(await office.run()) == [("320025000001", BooksVerdict.UNKNOWABLE)]


async def test_a_state_that_the_gateway_does_not_document_is_a_difference(office: Office) -> None:
    """Its record may have a word tomorrow that nobody here has heard of."""
    await office.pay()
    office.wait(1)
    shown = seen()
    odd = msgspec.structs.replace(shown.payments[0], status=PaymentStatus.OTHER)
    office.world.account.observations.append(msgspec.structs.replace(shown, payments=(odd,)))
    assert await asked(office) == AskedOrders(asked=1)
    [found] = (await office.run()).listed
    assert (found.verdict, found.basis) == (BooksVerdict.DIFFERENT, Basis.SEARCH)
    assert found.why.endswith("the gateway's record has it in a state that isn't known here")


async def test_a_search_that_fails_shows_nothing(office: Office) -> None:
    """A gateway that can't be asked has not said that the payment isn't there."""
    await office.pay()
    office.wait(1)
    office.world.account.observations.append(FAILED)
    assert (await asked(office)).failed == 1
    assert told(await office.run()) == [("320025000001", BooksVerdict.UNKNOWABLE)]


async def test_a_day_that_is_not_over_is_not_asked_for(office: Office) -> None:
    """A search in the morning says nothing of the evening."""
    with pytest.raises(Refusal, match="is not over"):
        await asked(office)


def test_each_status_of_the_gateways_has_its_state() -> None:
    """A status without one would end a whole day's searches."""
    assert STATES.keys() == set(PaymentStatus)
