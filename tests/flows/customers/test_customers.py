"""The merchant's own customers: seen by no other principal, renamed, removed, erased."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.digests import digests_of
from tests.flows.hosted import hosting, new, opened
from tests.flows.vault import MERCHANT, SEAL, TOKEN, approved_in, charge_by, stored, told
from tests.flows.world import World, asked, outcome_of

from payrelay.core.access.credential import Bound
from payrelay.core.answers import Answer
from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutOutcome, CheckoutState
from payrelay.core.customers.customer import Customer, CustomerEvent, CustomerFilter, CustomerState, ExistingApproval
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.notifications.notification import (
    Authenticity,
    Notification,
    NotificationKind,
    NotificationReason,
    NotificationState,
    ReportedStatus,
)
from payrelay.core.outcomes import OutcomeKind, Reading
from payrelay.core.secret import Secret
from payrelay.errors import Code, Outdated, Refusal, StoreUnavailable
from payrelay.flows.checkouts.finish_checkout import finish_by_notification
from payrelay.flows.customers.approve_customer import ATTEMPTS_MAX
from payrelay.flows.customers.change_customer import NewNames, change_customer
from payrelay.flows.customers.erase_customer import ORDERS_AT_ONCE, erase_customer, remove_customer
from payrelay.flows.customers.import_customer import import_customer
from payrelay.flows.customers.list_customers import list_customers
from payrelay.flows.customers.show_customer import show_customer
from payrelay.flows.payments.charge import charge
from payrelay.flows.relay import Relay, Request
from payrelay.store.customers import Customers
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.gateways.readings import ReadingStore

OTHERS = [{"principal": "other"}, {"bound": Bound(customer_id="cus_9")}, {"bound": Bound(order_id="A-1")}]


Story = Callable[[Relay, Request, str], Awaitable[Answer]]
Before = Callable[[World, str], Awaitable[None]]


def data_of(answer: Answer) -> dict[str, Any]:
    """Gives what an answer carries."""
    return msgspec.convert(json.loads(answer.body)["data"], dict[str, Any])


def page_of(answer: Answer) -> list[dict[str, Any]]:
    """Gives what a list carries."""
    return msgspec.convert(json.loads(answer.body)["data"], list[dict[str, Any]])


async def test_a_customer_is_shown_without_its_secrets(world: World) -> None:
    """The mask is enough to recognize the card; no answer has the token or the card holder."""
    customer = await approved_in(world, label="Blue card")
    answer = await show_customer(world.relay, asked(world.relay), customer.id)

    assert data_of(answer) == {
        "id": customer.id,
        "state": "active",
        "explanation": "The customer can be charged.",
        "version": 1,
        "account": "gateway",
        "principal": "shop",
        "reference": "person-7",
        "label": "Blue card",
        "method": "VISA",
        "card_no_masked": "************1292",
        "card_expiry": "0129",
        "has_holder": True,
        "order_id": "APPROVED-1",
        "payment_id": None,
        "created_at": "2023-11-14T22:13:20.000Z",
        "updated_at": "2023-11-14T22:13:20.000Z",
    }
    assert b"CANARY" not in answer.body


@pytest.mark.parametrize("members", OTHERS)
@pytest.mark.parametrize("story", [show_customer, remove_customer, erase_customer])
async def test_no_other_principal_reaches_a_customer(world: World, story: Story, members: dict[str, Any]) -> None:
    """Another principal, or an app with another customer's token, gets the answer for an unknown id."""
    customer = await approved_in(world)
    messages = []
    for customer_id in (customer.id, "cus_unknown"):
        with pytest.raises(Refusal) as caught:
            await story(world.relay, asked(world.relay, **members), customer_id)
        messages.append((caught.value.code, caught.value.msg))

    assert messages == [(Code.NOT_FOUND, "there is no such customer")] * 2
    assert await stored(world) == [customer]


async def test_no_other_principal_renames_a_customer(world: World) -> None:
    """The same for a change."""
    customer = await approved_in(world)
    with pytest.raises(Refusal) as caught:
        await change_customer(world.relay, asked(world.relay, principal="other"), customer.id, NewNames(label="x"))

    assert caught.value.code is Code.NOT_FOUND


async def test_a_client_token_sees_its_own_customer(world: World) -> None:
    """An app shows the cards of its own customer."""
    customer = await approved_in(world)
    await approved_in(world, token=Secret("another"), order_id="APPROVED-2")
    bound = asked(world.relay, bound=Bound(customer_id=customer.id))

    assert data_of(await show_customer(world.relay, bound, customer.id))["id"] == customer.id
    page = await list_customers(world.relay, bound, CustomerFilter(), before=None, limit=10)
    assert [entry["id"] for entry in page_of(page)] == [customer.id]
    orders = asked(world.relay, bound=Bound(order_id="A-1"))
    assert page_of(await list_customers(world.relay, orders, CustomerFilter(), before=None, limit=10)) == []


async def test_a_list_is_read_page_by_page(world: World) -> None:
    """The Link of a page leads to the next; what belongs to others is on none of them."""
    for number in range(5):
        await approved_in(world, token=Secret(f"t-{number}"), order_id=f"P-{number}")
    await approved_in(world, token=Secret("t-9"), principal="other")
    wanted = CustomerFilter(reference="person-7", state=CustomerState.ACTIVE)
    first = await list_customers(world.relay, asked(world.relay), wanted, before=None, limit=3)
    last = page_of(first)[-1]["id"]
    second = await list_customers(world.relay, asked(world.relay), wanted, before=last, limit=3)

    assert dict(first.headers) == {
        "Link": f'</gateway/api/customers?reference=person-7&state=active&cursor={last}&limit=3>; rel="next"'
    }
    assert second.headers == ()
    assert [entry["order_id"] for entry in [*page_of(first), *page_of(second)]] == ["P-4", "P-3", "P-2", "P-1", "P-0"]


@pytest.mark.parametrize("lost", ["zeroblob(length(sealed_key))", "X'01'", "removed"])
async def test_a_customer_whose_key_was_lost_ends_no_list_and_can_be_erased(world: World, lost: str) -> None:
    """One row that a backup brought back would keep a shop from all of its customers, and from a duty to erase."""
    customers = [await approved_in(world, token=Secret(f"t-{number}"), order_id=f"P-{number}") for number in range(3)]
    gone = customers[1].id
    change = "DELETE FROM data_keys" if lost == "removed" else f"UPDATE data_keys SET sealed_key = {lost}"  # noqa: S608
    await world.database.write(all_rows(Statement(query(f"{change} WHERE owner = $1"), (gone,))))
    first = await list_customers(world.relay, asked(world.relay), CustomerFilter(), before=None, limit=1)
    listed = await list_customers(
        world.relay, asked(world.relay), CustomerFilter(), before=page_of(first)[0]["id"], limit=1
    )
    with pytest.raises(Refusal) as shown:
        await show_customer(world.relay, asked(world.relay), gone)
    erased = [await erase_customer(world.relay, asked(world.relay), gone) for _ in range(2)]

    assert (page_of(first)[0]["id"], page_of(listed)[0]["id"]) == (customers[2].id, customers[0].id)
    assert shown.value.code is Code.NOT_FOUND
    assert [data_of(answer)["state"] for answer in erased] == ["erased", "erased"]
    assert data_of(await show_customer(world.relay, asked(world.relay), gone))["state"] == "erased"
    rows = await world.database.read(all_rows(Statement(query("SELECT row_name FROM row_alerts"), ())))
    assert rows == [(f"customers/{gone}",)]


async def test_nobody_else_erases_a_customer_whose_key_was_lost(world: World) -> None:
    """That nothing of it can be read makes it nobody else's."""
    customer = await approved_in(world)
    await world.database.write(all_rows(Statement(query("DELETE FROM data_keys"), ())))
    with pytest.raises(Refusal) as caught:
        await erase_customer(world.relay, asked(world.relay, principal="other"), customer.id)

    assert caught.value.code is Code.NOT_FOUND


async def test_names_are_changed_one_by_one(world: World) -> None:
    """What isn't named stays, and null takes away."""
    customer = await approved_in(world, label="Blue card")
    await change_customer(world.relay, asked(world.relay), customer.id, NewNames(reference="person-8"))
    [changed] = await stored(world)
    assert (changed.reference, changed.label, changed.version) == ("person-8", "Blue card", 2)

    await change_customer(world.relay, asked(world.relay), customer.id, NewNames(reference=None, label=None))
    answer = await change_customer(world.relay, asked(world.relay), customer.id, NewNames(label=None))
    assert (data_of(answer)["reference"], data_of(answer)["label"], data_of(answer)["version"]) == (None, None, 3)
    assert await told(world) == ["customer.created", "customer.updated", "customer.updated"]


class _Busy(Customers):
    """Another task changes the row, so many times."""

    times = 0

    async def change(self, customer: Customer, event: CustomerEvent, *, card_holder: str | None = None) -> None:
        """Fails, or does it."""
        if self.times:
            self.times -= 1
            raise Outdated("changed meanwhile")
        await super().change(customer, event, card_holder=card_holder)


@pytest.mark.parametrize(("times", "is_told"), [(1, False), (ATTEMPTS_MAX, True)])
async def test_a_change_meanwhile_is_decided_anew(world: World, times: int, *, is_told: bool) -> None:
    """Two that rename at once both get their way, one after the other."""
    customer = await approved_in(world)
    busy = _Busy(world.database, SEAL, world.relay.checkouts.rows, chain_key=b"c" * 32)
    busy.times = times
    world.relay = replace(world.relay, customers=busy)
    if is_told:
        with pytest.raises(StoreUnavailable, match="again and again"):
            await change_customer(world.relay, asked(world.relay), customer.id, NewNames(label="x"))
    else:
        answer = await change_customer(world.relay, asked(world.relay), customer.id, NewNames(label="x"))
        assert data_of(answer)["label"] == "x"


async def test_removal_may_be_repeated(world: World) -> None:
    """A client without an answer sends the request again; there is no second event."""
    customer = await approved_in(world)
    answers = [await remove_customer(world.relay, asked(world.relay), customer.id) for _ in range(2)]

    assert answers[0].body == answers[1].body
    assert (data_of(answers[0])["state"], data_of(answers[0])["reference"]) == ("removed", "person-7")
    assert await told(world) == ["customer.created", "customer.removed"]


async def test_an_erased_customer_takes_no_names(world: World) -> None:
    """A form that was open on a screen must not bring the customer's data back."""
    customer = await approved_in(world)
    answer = await erase_customer(world.relay, asked(world.relay), customer.id)
    with pytest.raises(Refusal) as caught:
        await change_customer(world.relay, asked(world.relay), customer.id, NewNames(label="x"))

    assert data_of(answer) | {"reference": None, "card_no_masked": None} == data_of(answer)
    assert caught.value.code is Code.CONFLICT
    assert data_of(await remove_customer(world.relay, asked(world.relay), customer.id))["state"] == "erased"
    assert await told(world) == ["customer.created", "customer.erased"]


NOTIFICATION = Notification(
    id="ntf_0001",
    account="gateway",
    merchant=MERCHANT,
    digest="d" * 64,
    authenticity=Authenticity.GENUINE,
    state=NotificationState.APPLIED,
    reason=NotificationReason.CUSTOMER_APPROVED,
    version=2,
    kind=NotificationKind.PREAPPROVAL,
    reported=ReportedStatus.SUCCEEDED,
    order_id="APPROVED-1",
    payment_id=None,
    subscription_id=None,
    amount_minor=None,
    currency="LKR",
    message_type=None,
    received_at_ms=1,
    last_at_ms=1,
    repeats=0,
    attempts=1,
    next_at_ms=None,
    gives_up_at_ms=1,
    updated_at_ms=1,
)


async def _notified(world: World) -> None:
    inbox = world.relay.inbox
    await inbox.put(NOTIFICATION, b"card_holder_name=CANARY+PERERA")
    await inbox.accept_token(NOTIFICATION, NotificationKind.PREAPPROVAL, TOKEN, at_ms=1)


async def test_removal_destroys_every_copy_of_the_token(world: World) -> None:
    """The body of the notification has it, and so has what was accepted of it; another one is still not accepted."""
    await _notified(world)
    inbox = world.relay.inbox
    customer = await approved_in(world)
    await remove_customer(world.relay, asked(world.relay), customer.id)

    assert await inbox.body_of("ntf_0001") is None
    assert await inbox.accepted_token(MERCHANT, "APPROVED-1", NotificationKind.PREAPPROVAL) is None
    assert not await inbox.accept_token(NOTIFICATION, NotificationKind.PREAPPROVAL, "another", at_ms=2)
    assert await inbox.accept_token(NOTIFICATION, NotificationKind.PREAPPROVAL, TOKEN, at_ms=2)


async def test_erasure_reaches_every_order_of_the_customer(world: World) -> None:
    """The gateway's records have the customer's name, address and telephone; there may be any number of orders."""
    await _notified(world)
    customer = await approved_in(world)
    last = ReadingStore(world.database, SEAL, digests_of(world.database))
    orders = [f"A-{number}" for number in range(ORDERS_AT_ONCE + 2)]
    reading = Reading(code=None, msg="", raw_msg=b'""', raw_data=b'[{"customer":{"fist_name":"CANARY"}}]')
    for number, order_id in enumerate(orders):
        await charge(world.relay, asked(world.relay, f"k-{number}"), charge_by(customer.id, order_id=order_id))
        await last.keep(MERCHANT, PaymentsOfOrder(order_id=order_id), reading, (), read_at_ms=1, answered_at_ms=1)
    for call in (AllSubscriptions(), PaymentsOfOrder(order_id="B-1")):
        await last.keep(MERCHANT, call, reading, (), read_at_ms=1, answered_at_ms=1)
    await erase_customer(world.relay, asked(world.relay), customer.id)

    left = [order for order in [*orders, "B-1"] if await last.last(MERCHANT, PaymentsOfOrder(order_id=order))]
    assert left == ["B-1"]
    assert await last.last(MERCHANT, AllSubscriptions()) is None
    assert await world.relay.inbox.body_of("ntf_0001") is None


async def _asked_for(world: World, number: int, **members: Any) -> Checkout:  # noqa: ANN401, of any member
    world.relay = relay = hosting(world)
    order_id = f"APPROVED-{number}"
    new_one = new(order_id=order_id, kind=CheckoutKind.PREAPPROVAL, amount_minor=None, customer_reference="person-7")
    checkout = await opened(relay, new_one, key=f"CANARY-{number}")
    if members:
        content = CheckoutOutcome(
            account="gateway", merchant=MERCHANT, order_id=order_id, outcome=CheckoutState.COMPLETED, **members
        )
        assert await finish_by_notification(relay, content) is not None
    inbox = relay.inbox
    own = {"id": f"ntf_000{number}", "digest": f"{number}" * 64, "order_id": order_id}
    await inbox.put(msgspec.structs.replace(NOTIFICATION, **own), b"card_holder_name=CANARY+PERERA")
    return checkout


async def test_erasure_reaches_every_checkout_of_the_customer(world: World) -> None:
    """A card that was approved twice has two orders; the customer may have paid others, and one may be open."""
    customer = await approved_in(world, order_id="APPROVED-2")
    for number, members in enumerate(({"customer_id": customer.id}, {"customer_id": customer.id}, {}), 1):
        await _asked_for(world, number, **members)
    await erase_customer(world.relay, asked(world.relay), customer.id)
    inbox, checkouts = world.relay.inbox, world.relay.checkouts
    states = []
    for number in (1, 2, 3):
        (checkout,) = await checkouts.of_order(MERCHANT, f"APPROVED-{number}")
        states.append(checkout.state)
        assert (checkout.reference_hash, checkout.key_hash) == (None, None)
        assert await checkouts.details_of(checkout.id) is None
        assert await inbox.body_of(f"ntf_000{number}") is None

    assert states == [CheckoutState.COMPLETED, CheckoutState.COMPLETED, CheckoutState.EXPIRED]


async def test_erasure_reaches_the_subscriptions_of_the_customer(world: World) -> None:
    """The gateway shows the payer's name with a subscription too, and with each of its payments."""
    customer = await approved_in(world)
    world.relay = relay = hosting(world)
    await opened(relay, new(order_id="S-1", kind=CheckoutKind.RECURRING, customer_reference="person-7"))
    content = CheckoutOutcome(
        account="gateway", merchant=MERCHANT, order_id="S-1", outcome=CheckoutState.COMPLETED, subscription_id="420"
    )
    assert await finish_by_notification(relay, content) is not None
    last = ReadingStore(world.database, SEAL, digests_of(world.database))
    reading = Reading(code=None, msg="", raw_msg=b'""', raw_data=b'[{"customer":{"fist_name":"CANARY"}}]')
    calls = [
        made(subscription_id=number) for made in (OneSubscription, PaymentsOfSubscription) for number in (420, 421)
    ]
    for call in calls:
        await last.keep(MERCHANT, call, reading, (), read_at_ms=1, answered_at_ms=1)
    await erase_customer(world.relay, asked(world.relay), customer.id)

    left = [call.subscription_id for call in calls if await last.last(MERCHANT, call)]
    assert left == [421, 421]


async def test_removal_destroys_the_copies_of_every_approval(world: World) -> None:
    """The token came with each of them; the customer's other data stays, because its erasure was not requested."""
    customer = await approved_in(world, order_id="APPROVED-2")
    await _asked_for(world, 1, customer_id=customer.id)
    await _asked_for(world, 3)
    await remove_customer(world.relay, asked(world.relay), customer.id)

    assert await world.relay.inbox.body_of("ntf_0001") is None
    assert await world.relay.inbox.body_of("ntf_0003") is not None


async def test_the_books_keep_what_was_charged(world: World) -> None:
    """The payments must be shown for years; the customer's data is erased from them."""
    customer = await approved_in(world)
    await charge(world.relay, asked(world.relay), charge_by(customer.id))
    await erase_customer(world.relay, asked(world.relay), customer.id)
    operation = await world.operation()

    assert (operation.customer_id, operation.amount_minor, operation.order_id) == (customer.id, 100_000, "A-1")
    assert await world.journal.answer_of(operation.id) is not None


async def test_a_token_is_handed_over_once(world: World) -> None:
    """A migration that broke off is run again from its beginning."""
    given = ExistingApproval(token=Secret(TOKEN), reference="person-7", card_no_masked="4916217501611292")
    first, second = [await import_customer(world.relay, asked(world.relay), given) for _ in range(2)]

    assert first.body == second.body
    assert (data_of(first)["card_no_masked"], data_of(first)["order_id"]) == ("************1292", None)
    assert b"CANARY" not in first.body


async def test_a_removed_customer_is_handed_over_anew(world: World) -> None:
    """Whoever hands a token over means it: that is no repeat of an approval."""
    given = ExistingApproval(token=Secret(TOKEN))
    first = data_of(await import_customer(world.relay, asked(world.relay), given))
    await remove_customer(world.relay, asked(world.relay), first["id"])
    second = data_of(await import_customer(world.relay, asked(world.relay), given))

    assert (second["state"], second["id"] != first["id"]) == ("active", True)


async def test_a_handle_is_no_token(world: World) -> None:
    """A customer whose token is a handle could never be charged."""
    with pytest.raises(Refusal) as caught:
        await import_customer(world.relay, asked(world.relay), ExistingApproval(token=Secret("cus_1")))

    assert [field.path for field in caught.value.fields] == ["customer_token"]


async def test_a_handle_is_charged_by_its_token(world: World) -> None:
    """The gateway gets the token, our own disk the handle, and the row names the customer."""
    customer = await approved_in(world)
    await charge(world.relay, asked(world.relay), charge_by(customer.id))
    operation = await world.operation()

    assert world.account.ledger == [charge_by(TOKEN)]
    assert await world.journal.call_of(operation.id) == charge_by(customer.id)
    assert operation.customer_id == customer.id


async def test_a_raw_token_is_charged_as_before(world: World) -> None:
    """Whoever keeps tokens elsewhere goes on as before; the row names no customer."""
    await approved_in(world)
    await charge(world.relay, asked(world.relay), charge_by(TOKEN))

    assert (await world.operation()).customer_id is None


async def _unknown(_: World, customer_id: str) -> None:
    """Changes nothing: the id is taken from elsewhere."""


async def _removed(world: World, customer_id: str) -> None:
    await remove_customer(world.relay, asked(world.relay), customer_id)


async def _erased(world: World, customer_id: str) -> None:
    await erase_customer(world.relay, asked(world.relay), customer_id)


@pytest.mark.parametrize(
    ("before", "principal", "words"),
    [
        (_unknown, "other", "customer_token names no customer of yours on this account"),
        (_removed, "shop", "customer_token names a customer that was removed"),
        (_erased, "shop", "customer_token names a customer that was erased"),
    ],
)
async def test_a_customer_that_can_not_be_charged_is_refused(
    world: World, before: Before, principal: str, words: str
) -> None:
    """The field is named, nothing is stored and nothing sent."""
    customer = await approved_in(world)
    await before(world, customer.id)
    with pytest.raises(Refusal) as caught:
        await charge(world.relay, asked(world.relay, principal=principal), charge_by(customer.id))

    assert (caught.value.code, caught.value.msg) == (Code.INVALID_REQUEST, words)
    assert [field.path for field in caught.value.fields] == ["customer_token"]
    assert (await world.operations(), world.account.sent) == ([], [])


@pytest.mark.parametrize("end", [_removed, _erased])
async def test_a_customer_that_leaves_while_the_charge_waits_is_not_charged(world: World, end: Before) -> None:
    """The wait for a permit may be long. Whoever was told of the removal before the charge began is charged no more."""
    customer = await approved_in(world)
    world.limit_to(RateLimit(1, 10.0))
    permit = await world.account.rate_limiter.take_now()
    assert permit is not None
    task = asyncio.ensure_future(charge(world.relay, asked(world.relay), charge_by(customer.id)))
    await world.account.timer.is_set.wait()
    await end(world, customer.id)
    permit.release_unused()
    with pytest.raises(Refusal, match="customer_token names a customer that was"):
        await task

    assert (await world.operations(), world.account.sent) == ([], [])
    assert world.account.rate_limiter.snapshot().used == 0


async def test_a_client_token_charges_its_own_customer_only(world: World) -> None:
    """The API checks this too; the flow does not rely on it."""
    customer = await approved_in(world)
    with pytest.raises(Refusal):
        await charge(world.relay, asked(world.relay, bound=Bound(customer_id="cus_9")), charge_by(customer.id))

    assert world.account.sent == []


@pytest.mark.parametrize("key", ["k-1", None])
@pytest.mark.parametrize("end", [_unknown, _removed, _erased])
async def test_a_repeat_is_answered_whatever_became_of_the_customer(world: World, key: str | None, end: Before) -> None:
    """The client lost its answer, and the customer was removed meanwhile: the money moved, and that is the answer."""
    customer = await approved_in(world)
    first = await charge(world.relay, asked(world.relay, key), charge_by(customer.id))
    await end(world, customer.id)
    again = await charge(world.relay, asked(world.relay, key), charge_by(customer.id))

    assert (again.body, len(world.account.ledger)) == (first.body, 1)


async def test_a_repeat_is_answered_after_the_card_was_replaced(world: World) -> None:
    """The customer approved another card in between; the repeat still belongs to the first request."""
    customer = await approved_in(world)
    first = await charge(world.relay, asked(world.relay), charge_by(customer.id))
    await approved_in(world, order_id="APPROVED-2", card_expiry="0631")
    again = await charge(world.relay, asked(world.relay), charge_by(customer.id))

    assert (again.body, len(world.account.ledger)) == (first.body, 1)


async def test_handle_and_token_are_two_requests_under_one_guard(world: World) -> None:
    """Under one key the second is refused; without one the order's guard holds while the first is open."""
    customer = await approved_in(world)
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay, "k-1"), charge_by(customer.id))
    codes = []
    for key in ("k-1", "k-2", None):
        with pytest.raises(Refusal) as caught:
            await charge(world.relay, asked(world.relay, key), charge_by(TOKEN))
        codes.append(caught.value.code)

    assert codes == [Code.IDEMPOTENCY_MISMATCH, Code.IN_PROGRESS, Code.IN_PROGRESS]
    assert len(world.account.sent) == 1


async def test_a_customer_is_charged_under_every_name_of_its_merchant(world: World) -> None:
    """Two accounts of one merchant share its customers; another merchant's account has none of them."""
    customer = await approved_in(world)
    away = await approved_in(world, merchant="fedcba9876543210")

    assert data_of(await show_customer(world.relay, asked(world.relay), customer.id))["id"] == customer.id
    with pytest.raises(Refusal):
        await charge(world.relay, asked(world.relay), charge_by(away.id))
    assert await world.relay.customers.get(away.id) == away
    assert msgspec.structs.replace(away, merchant=MERCHANT) != customer
