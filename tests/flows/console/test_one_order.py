"""One order, one line of time, and what the gateway has of it, on books with everything."""

from itertools import pairwise

import pytest
from tests.flows.console.books import MERCHANT, PAYMENT, PLAN, ended, everything, id_at, operation
from tests.flows.console.desk import MINUTE_MS, START_MS, Desk
from tests.flows.console.test_find import hired

from payrelay.console.flows.cases.ask_gateway import GatewayRecord, ask_gateway
from payrelay.console.flows.cases.one_operation import show_operation
from payrelay.console.flows.cases.one_order import OneOrder, show_order
from payrelay.console.rules.timeline import Tone
from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.operators.roles import Act, Role
from payrelay.core.outcomes import Evidence, Reading
from payrelay.core.payments.operation import Event, Kind
from payrelay.errors import Code, Refusal
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query

SHOWN = (
    b'[{"payment_id":320025000001,"order_id":"A-1","date":"2026-11-21 10:00:00","description":"Tea",'
    b'"status":"RECEIVED","currency":"LKR","amount":1000.00,"customer":{"first_name":"CANARY"}}]'
)


async def shown(desk: Desk, role: Role = Role.SUPPORT, account: str = "gateway", order_id: str = "A-1") -> OneOrder:
    """Shows an order to somebody with a role."""
    return await show_order(desk.cases, await hired(desk, role), account, order_id)


async def asked(desk: Desk, role: Role = Role.VIEWER, account: str = "gateway") -> GatewayRecord:
    """Asks the gateway for somebody with a role."""
    actor = await hired(desk, role)
    return await ask_gateway(desk.parts, desk.cases, actor, (account, "A-1"), request_id="req_9")


async def test_everything_of_an_order_is_told_in_its_order(desk: Desk) -> None:
    """Pages, notifications, operations, refunds, installments, chargebacks, events and deliveries: each once."""
    await everything(desk)
    order = await shown(desk)
    titles = [moment.title for moment in order.moments]

    assert titles[:3] == ["Page for a payment", "Page for a payment", "Notification"]
    for title in (
        *("Charge of LKR 1,000.00 for order A-1, payment 320025000002", f"Refund of LKR 25.00 for payment {PAYMENT}"),
        *(f"Subscription {PLAN}", "Chargeback", "Event", "Delivery of checkout.completed"),
    ):
        assert title in titles, title
    assert all(earlier.at_ms <= later.at_ms for earlier, later in pairwise(order.moments))
    assert len(set(order.moments)) == len(order.moments)


async def test_the_sentences_can_be_read_to_a_customer(desk: Desk) -> None:
    """Each says what its row says: who reported, what was asked for, how it ended."""
    await everything(desk)
    texts = [moment.text for moment in (await shown(desk)).moments]

    assert "The customer was asked to pay: LKR 1,000.00." in texts
    assert "The customer's page was shown for the first time." in texts
    assert any(
        text.startswith("The gateway reported: it was paid, LKR 1,000.00. The service has stored") for text in texts
    )
    assert "The gateway answered that it was declined." in texts
    assert "The gateway answered that it was done." in texts
    assert "An installment was paid: LKR 1,000.00." in texts
    assert f"The payment {PAYMENT} was charged back by the bank, LKR 1,000.00." in texts
    assert "plain accepted it; it was sent once." in texts
    assert any(text == "It waits to be sent to plain." for text in texts)


async def test_each_moment_leads_to_its_evidence(desk: Desk) -> None:
    """What the gateway said, who decided and why, the ids: whoever doubts a sentence opens it."""
    await everything(desk)
    order = await shown(desk)
    declined = next(each for each in order.moments if "declined" in each.text)

    assert ("Operation", id_at("op", START_MS + 5_000, 1)) in declined.evidence
    assert ("Evidence", "the gateway's words: “plain”") in declined.evidence
    assert ("Evidence", "HTTP 200") in declined.evidence
    assert declined.tone is Tone.NOT_DONE
    assert all(moment.evidence for moment in order.moments if "shown for the first time" not in moment.text)


async def test_a_capture_and_a_void_are_found_by_their_authorization(desk: Desk) -> None:
    """They name neither order nor payment when they begin."""
    held = await operation(desk, 1, kind=Kind.AUTHORIZATION, result_ref=None)
    held = await ended(desk, held, Event.SUCCEEDED, START_MS + 1, Evidence(), result_ref="f" * 64)
    subject = f"authorization/{held.result_ref}"
    await operation(
        desk, 2, at_ms=START_MS + MINUTE_MS, kind=Kind.CAPTURE, order_id=None, subject=subject, guard=subject
    )

    assert [each.kind for each in (await shown(desk)).operations] == [Kind.CAPTURE, Kind.AUTHORIZATION]


async def test_an_order_of_another_merchant_with_the_same_id_is_another_order(desk: Desk) -> None:
    """Two shops number their orders from one on; nobody reads the other's to a customer."""
    await operation(desk, 1)
    await operation(desk, 2, account="second", merchant="f" * 16)
    ours, theirs = await shown(desk), await shown(desk, Role.ADMIN, "second")

    assert [each.account for each in ours.operations] == ["gateway"]
    assert [each.account for each in theirs.operations] == ["second"]
    assert (ours.is_configured, theirs.is_configured) == (True, False)


async def test_an_account_that_had_two_merchants_has_the_money_of_both(desk: Desk) -> None:
    """Support reads one order, and the sum is of all that was paid under its name."""
    for number, merchant in enumerate((MERCHANT, "f" * 16), 1):
        row = await operation(desk, number, merchant=merchant)
        await ended(desk, row, Event.SUCCEEDED, START_MS + 1, Evidence(), payment_id=f"32002500000{number}")
    (sums,) = (await shown(desk)).money.balance.currencies

    assert (sums.paid_minor, sums.left_minor) == (200_000, 200_000)


async def test_each_name_of_a_merchant_leads_to_one_line_of_time(desk: Desk) -> None:
    """An account that was renamed has its orders still."""
    await operation(desk, 1)
    await operation(desk, 2, account="earlier", at_ms=START_MS + 1)

    assert (await shown(desk)).moments == (await shown(desk, Role.ADMIN, "earlier")).moments


@pytest.mark.parametrize("role", Role)
async def test_who_sees_what_names_the_customer(desk: Desk, role: Role) -> None:
    """A viewer sees no reference and no card; nobody sees a whole card, or the holder."""
    await everything(desk, text="NAMED")
    order = await shown(desk, role)
    rows = [row for known in order.customers for row in known.rows]

    assert order.hides_customers is (role is Role.VIEWER)
    assert (("Card", "************1292") in rows, ("Client's reference", "person NAMED") in rows) == (
        role is not Role.VIEWER,
        role is not Role.VIEWER,
    )
    assert "CANARY" not in str(order)
    key = (await show_operation(desk.cases, await hired(desk, role), id_at("op", START_MS + 5_000, 1))).idempotency_key
    assert key == (None if role is Role.VIEWER else "key NAMED")


async def test_a_forged_row_is_not_told(desk: Desk) -> None:
    """Who writes into the database tells support nothing: the row counts as not existing."""
    await operation(desk, 1)
    await operation(desk, 2)
    forged = Statement(query("UPDATE operations SET state = 'succeeded' WHERE id = $1"), (id_at("op", START_MS, 1),))
    await desk.database.write(all_rows(forged))

    assert [each.id for each in (await shown(desk)).operations] == [id_at("op", START_MS, 2)]
    with pytest.raises(Refusal, match="changed by something other than the service"):
        await show_operation(desk.cases, await hired(desk, Role.ADMIN), id_at("op", START_MS, 1))


@pytest.mark.parametrize(("account", "order_id"), [("gateway", "A-2"), ("nobody", "A-1")])
async def test_an_unknown_order_is_no_empty_page(desk: Desk, account: str, order_id: str) -> None:
    """An empty page would say that nothing happened; nothing being known is something else."""
    await operation(desk, 1)
    with pytest.raises(Refusal) as refused:
        await shown(desk, account=account, order_id=order_id)
    assert refused.value.code is Code.NOT_FOUND


async def test_the_gateway_is_asked_by_the_way_of_the_api(desk: Desk) -> None:
    """One call of the account's budget, for a new answer; nothing of the customer in it is shown."""
    desk.gateway.readings.append(Reading(code=None, msg="ok", raw_data=SHOWN))
    record = await asked(desk)

    assert desk.gateway.asked == [PaymentsOfOrder(order_id="A-1")]
    assert record.payments is not None
    assert [(each.payment_id, each.amount_minor) for each in record.payments] == [(PAYMENT, 100_000)]
    assert "CANARY" not in str(record)
    assert await desk.done() == [*(await desk.done())[:-1], ("Ada", Act.ASK_GATEWAY)]


@pytest.mark.parametrize(
    ("reading", "payments", "failure"),
    [
        (Reading(code=Code.NOT_FOUND, msg="none"), (), None),
        (Reading(code=Code.GATEWAY_BUSY, msg="the budget is used up"), None, "the budget is used up"),
        (Reading(code=None, msg="ok", raw_data=b'{"x":1}'), None, "The gateway's answer can't be read."),
    ],
)
async def test_no_payment_and_no_answer_are_told_apart(
    desk: Desk, reading: Reading, payments: tuple[()] | None, failure: str | None
) -> None:
    """Whoever reads that there is no payment may tell the customer to pay again."""
    desk.gateway.readings.append(reading)
    record = await asked(desk)

    assert (record.payments, record.failure) == (payments, failure)


async def test_an_old_answer_is_not_given_as_one_of_now(desk: Desk) -> None:
    """The gateway is away: the last known answer would look like the present."""
    desk.gateway.readings.append(Reading(code=None, msg="ok", raw_data=SHOWN))
    await asked(desk)
    desk.clock.at_ms += MINUTE_MS
    await desk.relay.background.finish(5)
    record = await asked(desk, Role.SUPPORT)

    assert record.payments is None
    assert record.failure


async def test_an_account_that_is_gone_can_not_be_asked(desk: Desk) -> None:
    """It says so, and no line says that it was asked."""
    with pytest.raises(Refusal):
        await asked(desk, account="gone")
    assert ("Ada", Act.ASK_GATEWAY) not in await desk.done()
