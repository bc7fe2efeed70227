"""Checkouts from before a loss of commits: no form goes out until the gateway shows that nothing was paid meanwhile."""

import json
from dataclasses import replace
from datetime import date

import msgspec
import pytest
from tests.flows.checkouts.test_visit_checkout import came_back, visited
from tests.flows.hosted import current, data_of, hosting, new
from tests.flows.hosted import opened as opened_checkout
from tests.flows.inbox_world import SHOWN_PLAN
from tests.flows.recovery.lost_world import LOOKED_MS, LOST, MOST_MS, RECOVERING, LostWorld
from tests.flows.world import CREDENTIAL, asked
from tests.samples import PAYMENT

from payrelay.core.access.credential import Scope
from payrelay.core.checkouts.checkout import Checkout, CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind, Plan
from payrelay.core.checkouts.shown import Shown
from payrelay.core.outcomes import Reading
from payrelay.errors import Code, Refusal, UndecidedError
from payrelay.flows.alerts.alert_messages import MESSAGES
from payrelay.flows.checkouts.close_checkout import close_checkout
from payrelay.flows.checkouts.decide_after_loss import decide_checkout
from payrelay.flows.checkouts.finish_checkout import end_checkouts
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.checkouts.show_checkout import DOUBT_SENTENCE, show_checkout
from payrelay.flows.relay import Relay
from payrelay.recovery.rules.lost_payments import PageDecision
from payrelay.store.alerts import Alert, AlertSubject

DAY_S = 86_400
PAID = msgspec.structs.replace(PAYMENT, at_ms=MOST_MS)
WANTED = new(expires_in_s=DAY_S)
LATER = Plan(recurrence="1 Month", duration="1 Year", starts_on=date(2030, 1, 1))
OF_ANOTHER = {**SHOWN_PLAN, "order_id": "A-9"}
OTHERS_ONLY = Reading(code=None, msg="Found", raw_data=msgspec.json.encode([OF_ANOTHER]))
CONTRADICTING = {**SHOWN_PLAN, "amount": 1.0}


async def _relay_and_page(lost: LostWorld, **members: object) -> tuple[Relay, Checkout]:
    """A checkout whose page a customer opened before the loss, which has happened by now."""
    relay = hosting(lost.world)
    lost.account.environment = "live"
    checkout = await opened_checkout(relay, new(expires_in_s=DAY_S, **members), key="k-page")
    assert (await visited(relay, checkout.id)).shown is Shown.FORM
    lost.lose()
    return hosting(lost.world), checkout


async def _repeated(relay: Relay) -> dict[str, object]:
    return data_of(await open_checkout(relay, asked("k-page"), WANTED))


async def _let_charge(relay: Relay) -> None:
    key = msgspec.structs.replace(CREDENTIAL, scopes=frozenset({Scope.PAYMENTS_CHARGE}))
    await relay.access.credentials.add(key)


async def test_no_form_goes_out_before_the_gateway_can_show_the_lost_time(lost: LostWorld) -> None:
    """The customer paid a minute before the loss, and nobody here knows: a second form is a second payment."""
    relay, checkout = await _relay_and_page(lost)
    lost.lose(now_ms=LOOKED_MS - 1)
    page, repeated = await visited(relay, checkout.id), await _repeated(relay)
    assert (page.shown, page.link_to_gateway, page.is_awaited) == (Shown.PAUSED, None, True)
    assert (repeated["form"], repeated["state"], repeated["explanation"]) == (None, "open", DOUBT_SENTENCE)
    assert repeated["url"] is not None
    assert data_of(await show_checkout(relay, asked(), checkout.id))["explanation"] == DOUBT_SENTENCE
    assert lost.account.searched == []


async def test_no_page_is_closed_before_the_gateway_can_show_the_lost_time(lost: LostWorld) -> None:
    """It doesn't end by its time any earlier: its order would be free, although the customer may have paid."""
    relay, checkout = await _relay_and_page(lost)
    lost.lose(now_ms=LOOKED_MS - 1)
    with pytest.raises(Refusal) as refused:
        await close_checkout(relay, asked(), checkout.id)

    assert (refused.value.code, refused.value.msg) == (Code.UNAVAILABLE, DOUBT_SENTENCE)
    assert (await current(relay, checkout.id)).state is CheckoutState.OPEN
    assert lost.account.searched == []


@pytest.mark.parametrize("is_paid", [True, False])
async def test_a_page_is_closed_once_the_gateway_can_show_the_lost_time(lost: LostWorld, *, is_paid: bool) -> None:
    """The look of the closing finds what was paid within it."""
    relay, checkout = await _relay_and_page(lost)
    if is_paid:
        lost.account.shown.append((PAID, 0))
        with pytest.raises(Refusal, match="is completed already"):
            await close_checkout(relay, asked(), checkout.id)
    else:
        assert data_of(await close_checkout(relay, asked(), checkout.id))["reason"] == "closed"


async def test_a_page_that_was_paid_in_the_lost_time_says_so(lost: LostWorld) -> None:
    """The customer reloads, and sees that it is paid; where nobody could charge, the payment can only be the page's."""
    relay, checkout = await _relay_and_page(lost)
    lost.account.shown.append((PAID, 0))
    assert (await visited(relay, checkout.id)).shown is Shown.COMPLETED
    assert (await current(relay, checkout.id)).payment_id == PAID.payment_id


async def test_a_page_that_nobody_paid_leads_on_after_one_look(lost: LostWorld) -> None:
    """Customers who didn't pay aren't kept from it, and each further visit costs no call."""
    relay, checkout = await _relay_and_page(lost)
    assert (await visited(relay, checkout.id)).shown is Shown.FORM
    looked = len(lost.account.searched)
    assert (await visited(relay, checkout.id)).shown is Shown.FORM
    assert (await _repeated(relay))["form"] is not None
    assert len(lost.account.searched) == looked


@pytest.mark.parametrize("fault", ["is_blind", "is_away"])
async def test_a_search_that_shows_nothing_at_all_ends_no_doubt(lost: LostWorld, fault: str) -> None:
    """An index that is away shows no payment either; the control query tells."""
    relay, checkout = await _relay_and_page(lost)
    lost.account.shown.append((PAID, LOOKED_MS + 60_000))
    setattr(lost.account, fault, True)
    for _ in range(3):
        assert (await visited(relay, checkout.id)).shown is Shown.PAUSED
        lost.world.clock.passed_ms += 30_000
    setattr(lost.account, fault, False)
    assert (await visited(relay, checkout.id)).shown is Shown.COMPLETED


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        (CheckoutKind.PAYMENT, {"amount_minor": 1}),
        (CheckoutKind.AUTHORIZATION, {}),
        (CheckoutKind.PREAPPROVAL, {}),
        (CheckoutKind.RECURRING, {}),
    ],
)
async def test_a_payment_that_settles_nothing_keeps_the_page_closed_and_calls_an_operator_once(
    lost: LostWorld, kind: CheckoutKind, members: dict[str, object]
) -> None:
    """A lost request made it: an authorization that was captured, an approval, a charge of another amount."""
    plan = LATER if kind is CheckoutKind.RECURRING else None
    relay, checkout = await _relay_and_page(lost, kind=kind, plan=plan)
    lost.account.shown.append((msgspec.structs.replace(PAID, **members), 0))
    lost.account.readings.extend([OTHERS_ONLY] * 3)
    for _ in range(3):
        assert (await visited(relay, checkout.id)).shown is Shown.PAUSED
        lost.world.clock.passed_ms += 60_000
    assert lost.world.log_events.count("checkout_payment_unknown") == 1


@pytest.mark.parametrize(
    ("reading", "shown"),
    [
        (OTHERS_ONLY, Shown.FORM),
        (Reading(code=None, msg="Found", raw_data=msgspec.json.encode([OF_ANOTHER, CONTRADICTING])), Shown.PAUSED),
        (Reading(code=None, msg="Found", raw_data=b"[]"), Shown.PAUSED),
        (Reading(code=Code.NOT_FOUND, msg="none"), Shown.PAUSED),
    ],
    ids=["others only", "one of the order", "none at all", "not found"],
)
async def test_of_a_plan_that_begins_later_the_list_of_subscriptions_must_show_that_there_is_none(
    lost: LostWorld, reading: Reading, shown: Shown
) -> None:
    """It has no payment by which a search of the order could find it."""
    relay, checkout = await _relay_and_page(lost, kind=CheckoutKind.RECURRING, plan=LATER)
    lost.account.readings.extend([reading])
    assert (await visited(relay, checkout.id)).shown is shown


async def test_a_payment_that_a_lost_charge_may_have_made_completes_no_checkout(lost: LostWorld) -> None:
    """The shop charged a stored card for the order after all: its answer is that charge, and the row of it is lost."""
    relay, checkout = await _relay_and_page(lost)
    await _let_charge(relay)
    lost.account.shown.append((PAID, 0))
    assert (await visited(relay, checkout.id)).shown is Shown.PAUSED
    assert (await current(relay, checkout.id)).state is CheckoutState.OPEN
    assert "checkout_payment_unknown" in lost.world.log_events


async def test_apps_of_an_identity_provider_may_have_charged_too(lost: LostWorld) -> None:
    """They have no key in the database."""
    relay, checkout = await _relay_and_page(lost)
    relay = replace(relay, settings=replace(relay.settings, can_apps_charge=True))
    lost.account.shown.append((PAID, 0))
    assert (await visited(relay, checkout.id)).shown is Shown.PAUSED


async def test_neither_an_acknowledgement_nor_the_end_of_the_recovery_ends_the_doubt(lost: LostWorld) -> None:
    """Neither brings a row back, and no principal knows what its customers paid."""
    relay, checkout = await _relay_and_page(lost)
    lost.account.is_blind = True
    ended = msgspec.structs.replace(RECOVERING, acknowledged={"shop": 1}, ended_recovery_at_ms=LOST.until_ms + 1)
    lost.lose(incarnation=ended)
    assert (await visited(relay, checkout.id)).shown is Shown.PAUSED


async def test_a_page_that_was_opened_after_the_loss_is_in_no_doubt(lost: LostWorld) -> None:
    """What happened to it is in the database."""
    lost.lose()
    relay = hosting(lost.world)
    checkout = await opened_checkout(relay)
    looked = len(lost.account.searched)
    assert (await visited(relay, checkout.id)).shown is Shown.FORM
    assert len(lost.account.searched) == looked


async def test_a_checkout_does_not_end_before_the_gateway_can_show_the_lost_time(lost: LostWorld) -> None:
    """Its last inquiry would be too early, and its order free for another page."""
    relay = hosting(lost.world)
    checkout = await opened_checkout(relay)
    lost.lose(now_ms=LOOKED_MS - 1)
    assert await end_checkouts(relay) == 1
    await relay.background.finish(5)
    assert (await current(relay, checkout.id)).state is CheckoutState.OPEN
    lost.account.shown.append((msgspec.structs.replace(PAID, at_ms=MOST_MS), 0))
    lost.world.clock.passed_ms += 300_000
    assert await end_checkouts(relay) == 1
    await relay.background.finish(5)
    assert (await current(relay, checkout.id)).state is CheckoutState.COMPLETED


async def test_a_customer_who_comes_back_from_the_gateway_sees_no_form(lost: LostWorld) -> None:
    """The page on which they wait was opened before the loss, and they have just paid."""
    relay, checkout = await _relay_and_page(lost)
    lost.account.is_blind = True
    assert (await came_back(relay, checkout.id)).link_to_gateway is None


async def test_an_operator_says_that_the_payment_is_the_checkouts(lost: LostWorld) -> None:
    """The gateway's portal or the customer tells; the service only sees that the payment fits."""
    relay, checkout = await _relay_and_page(lost)
    await _let_charge(relay)
    lost.account.shown.append((PAID, 0))
    paid = {"operator": "dana", "reason": "portal", "payment_id": PAID.payment_id}
    lost.account.is_away = True
    with pytest.raises(UndecidedError, match="can't be asked"):
        await decide_checkout(relay, checkout, PageDecision.PAID, **paid)
    lost.account.is_away = False
    with pytest.raises(UndecidedError, match="doesn't show"):
        await decide_checkout(relay, checkout, PageDecision.PAID, **paid | {"payment_id": "7"})
    decided = await decide_checkout(relay, checkout, PageDecision.PAID, **paid)
    assert (decided.state, decided.payment_id) == (CheckoutState.COMPLETED, PAID.payment_id)
    assert await decide_checkout(relay, decided, PageDecision.PAID, **paid) == decided
    with pytest.raises(UndecidedError, match="already"):
        await decide_checkout(relay, decided, PageDecision.UNPAID, operator="dana", reason="no")
    assert "checkout_decided" in lost.world.log_events


async def test_an_operator_says_that_the_customer_did_not_pay_on_the_page(lost: LostWorld) -> None:
    """A charge made the payment: the page ends, and no second one opens while nothing explains the payment."""
    relay, checkout = await _relay_and_page(lost)
    await _let_charge(relay)
    lost.account.shown.append((PAID, 0))
    decided = await decide_checkout(relay, checkout, PageDecision.UNPAID, operator="dana", reason="a charge")
    assert decided.state is CheckoutState.EXPIRED
    with pytest.raises(Exception, match="an operator must"):
        await open_checkout(relay, asked(), WANTED)


async def test_nothing_else_is_decided(lost: LostWorld) -> None:
    """A checkout that went through no loss has its rules, and no payment alone gives a plan or an approval."""
    relay, checkout = await _relay_and_page(lost, kind=CheckoutKind.AUTHORIZATION)
    with pytest.raises(UndecidedError, match="more than a payment"):
        await decide_checkout(relay, checkout, PageDecision.PAID, operator="d", reason="r", payment_id="1")
    lost.recovery.incarnations = lost.recovery.incarnations[:1]
    lost.world.clock.passed_ms += 2_000
    with pytest.raises(UndecidedError, match="nothing to decide"):
        await decide_checkout(relay, checkout, PageDecision.UNPAID, operator="d", reason="r")


async def test_the_alert_names_the_payment_until_the_checkout_has_it(lost: LostWorld) -> None:
    """Who gets it at night must see what to look for, and need not look once it is decided."""
    relay, checkout = await _relay_and_page(lost)
    await _let_charge(relay)
    lost.account.shown.append((PAID, 0))
    await visited(relay, checkout.id)
    alert = Alert(
        subject_id=checkout.id,
        version=-int(PAID.payment_id),
        created_at_ms=MOST_MS,
        leased_until_ms=0,
        attempts=0,
        given_to=frozenset(),
    )
    message = json.loads(await MESSAGES[AlertSubject.CHECKOUT](relay, alert) or b"")
    assert (message["kind"], message["payment_id"], message["subscription_id"]) == (
        "checkout_payment_unknown",
        PAID.payment_id,
        None,
    )
    paid = {"operator": "dana", "reason": "portal", "payment_id": PAID.payment_id}
    await decide_checkout(relay, checkout, PageDecision.PAID, **paid)
    assert await MESSAGES[AlertSubject.CHECKOUT](relay, alert) is None
