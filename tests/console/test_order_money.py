"""What support answers to customers' calls about money: each history, and what the page of its order says of it.

A page that answers one of them falsely has a customer refunded a third time.
"""

import html
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec
import pytest
from tests.console.browsing import Window, signed_in
from tests.databases import PassingDatabase
from tests.digests import digests_of
from tests.flows.console.books import MERCHANT, PAYMENT, RETENTION, ended, id_at, operation
from tests.flows.console.desk import MINUTE_MS, QUIET, START_MS, Desk
from tests.relays import relay_over
from tests.samples import ASKED, CHECKOUT

from payrelay.console.dispatch import Console
from payrelay.core.checkouts.checkout import CheckoutState, Details
from payrelay.core.events.event import OutgoingEvent
from payrelay.core.operators.roles import Role
from payrelay.core.orders.chargeback import Chargeback
from payrelay.core.orders.received_again import SECOND_LOOK_MS
from payrelay.core.outcomes import Evidence, Reading
from payrelay.core.payments.imported import ImportedPayment, ImportVerdict
from payrelay.core.payments.operation import Event, Kind, Operation
from payrelay.core.payments.payment import PaymentStatus
from payrelay.flows.orders.order_money import read_order_money
from payrelay.store.engine.database import T, Unit
from payrelay.store.imports.payments import ImportedPayments

ADA = "ada@shop.example"
PAGE = "/console/orders/gateway/A-1"
SECOND = "320025000002"
RECORD = (
    '[{{"payment_id":{payment},"order_id":"A-1","date":"2026-11-21 10:00:00","description":"Tea",'
    '"status":"{status}","currency":"LKR","amount":1000.00,"customer":{{"first_name":"CANARY"}}}}]'
)
PAID = "LKR 1,000.00 was paid"
KNOWN = "As far as is known, "


async def charged(desk: Desk, number: int = 1, payment: str = PAYMENT, event: Event = Event.SUCCEEDED) -> Operation:
    """Charges 1,000.00 for the order."""
    named = {"subject": "order/A-1", "guard": "order/A-1"}
    row = await operation(desk, number, at_ms=START_MS + number, **named)
    return await ended(desk, row, event, START_MS + number, Evidence(), payment_id=payment)


async def refund(desk: Desk, number: int, minor: int | None, event: Event = Event.SUCCEEDED) -> Operation:
    """Refunds the payment, or a part of it."""
    row = await operation(
        desk,
        number,
        at_ms=START_MS + number * 1_000,
        kind=Kind.REFUND,
        order_id=None,
        payment_id=PAYMENT,
        subject=f"payment/{PAYMENT}",
        guard=f"payment/{PAYMENT}",
        amount_minor=minor,
    )
    return await ended(desk, row, event, START_MS + number * 1_000, Evidence())


async def charged_back(desk: Desk) -> None:
    """Stores a chargeback of the whole payment."""
    at_ms = START_MS + 10_000
    event = OutgoingEvent(
        id=id_at("evt", at_ms),
        type="payment.charged_back",
        account="gateway",
        merchant=MERCHANT,
        principal="shop",
        subject=f"payment:{PAYMENT}",
        at_ms=at_ms,
        data={},
    )
    chargeback = Chargeback(
        merchant=MERCHANT,
        payment_id=PAYMENT,
        order_id="A-1",
        account="gateway",
        principal="shop",
        operation_id=None,
        amount_minor=100_000,
        currency="LKR",
        notification_id=id_at("ntf", at_ms),
        noted_at_ms=at_ms,
    )
    assert await desk.relay.money.chargebacks.keep(chargeback, event)


async def page_for_customer(desk: Desk, state: CheckoutState) -> None:
    """Stores a page of the order that became what ``state`` says."""
    checkout = msgspec.structs.replace(CHECKOUT, id=id_at("chk", START_MS), created_at_ms=START_MS, guard="A-1")
    assert await desk.relay.checkouts.add(checkout, Details(asked=ASKED, secret="s"))
    if state is not CheckoutState.OPEN:
        left = msgspec.structs.replace(checkout, state=state, version=2, updated_at_ms=START_MS + 5)
        await desk.relay.checkouts.change(left, has_event=True)


async def _parts(desk: Desk) -> None:
    await charged(desk)
    await refund(desk, 2, 4_000)
    await refund(desk, 3, 1_000)


async def _lost_reply(desk: Desk) -> None:
    await charged(desk)
    await refund(desk, 2, 4_000, Event.UNKNOWN)


async def _refused(desk: Desk) -> None:
    await charged(desk)
    await refund(desk, 2, 200_000, Event.REFUSED)


async def _whole(desk: Desk) -> None:
    await charged(desk)
    await refund(desk, 2, None)


async def _part_and_rest(desk: Desk) -> None:
    await charged(desk)
    await refund(desk, 2, 4_000)
    await refund(desk, 3, None)


async def _bank(desk: Desk) -> None:
    await charged(desk)
    await charged_back(desk)


async def _part_and_bank(desk: Desk) -> None:
    await charged(desk)
    await refund(desk, 2, 4_000)
    await charged_back(desk)


async def _twice(desk: Desk) -> None:
    await charged(desk)
    await charged(desk, 2, SECOND)


async def _other_card(desk: Desk) -> None:
    await charged(desk, 1, "320025000009", Event.DECLINED)
    await charged(desk, 2)


async def _unknown(desk: Desk) -> None:
    await charged(desk, event=Event.UNKNOWN)


async def _pending(desk: Desk) -> None:
    await charged(desk, event=Event.PENDING)


async def _gave_up(desk: Desk) -> None:
    await page_for_customer(desk, CheckoutState.CANCELLED)


async def _may_still_pay(desk: Desk) -> None:
    await page_for_customer(desk, CheckoutState.OPEN)


async def _held(desk: Desk) -> None:
    row = await operation(desk, 1, kind=Kind.AUTHORIZATION, amount_minor=2_500_000, result_ref=None)
    await ended(desk, row, Event.SUCCEEDED, START_MS, Evidence(), result_ref="f" * 64)


async def _lapsed(desk: Desk) -> None:
    await _held(desk)
    desk.clock.at_ms += 7 * 24 * 60 * MINUTE_MS + 1


async def _imported(desk: Desk) -> None:
    payment = ImportedPayment(
        merchant=MERCHANT,
        payment_id=PAYMENT,
        order_id="A-1",
        principal="shop",
        account="gateway",
        subscription_id=None,
        currency="LKR",
        amount_minor=100_000,
        status=PaymentStatus.REFUNDED,
        paid_at_ms=None,
        imported_at_ms=START_MS,
        imported_by="ada",
        place="payments.csv, line 2",
    )
    ((verdict, _),) = await ImportedPayments(desk.database, digests_of(desk.database)).take([payment], is_dry=False)
    assert verdict is ImportVerdict.NEW


class Call(NamedTuple):
    """What a customer says, what had happened, what the page's first sentence is, and what else it says."""

    says: str
    history: Callable[[Desk], Awaitable[None]]
    answer: str
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


CALLS = (
    Call(
        "Where is my refund?",
        _parts,
        f"{KNOWN}{PAID}, LKR 50.00 was given back, and LKR 950.00 is left.",
        ("LKR 40.00 was given back on 2027-01-15 08:00:02 UTC, asked for by shop", "LKR 10.00 was given back on"),
        ("nothing of it refunded",),
    ),
    Call(
        "You refunded too little",
        _part_and_rest,
        f"{PAID}, LKR 1,000.00 was given back, and nothing is left.",
        ("LKR 40.00 was given back", "LKR 960.00 was given back"),
    ),
    Call(
        "You promised a refund, and nothing came",
        _refused,
        f"{PAID}, and LKR 1,000.00 is left.",
        ("refused",),
        ("was given back on",),
    ),
    Call(
        "You promised a refund, and your reply got lost",
        _lost_reply,
        f"{KNOWN}{PAID}, and LKR 1,000.00 is left.",
        (f"Refund of LKR 40.00 for payment {PAYMENT}: this operation has no outcome yet, and may move money.",),
        ("was given back on",),
    ),
    Call("Was all of it given back?", _whole, f"{PAID}, LKR 1,000.00 was given back, and nothing is left."),
    Call(
        "My bank took the money back",
        _bank,
        f"{PAID}, LKR 1,000.00 was charged back by the bank, and nothing is left.",
        ("LKR 1,000.00 was charged back by the bank on 2027-01-15 08:00:10 UTC, as the gateway notified",),
    ),
    Call(
        "You gave some back, and my bank took the rest",
        _part_and_bank,
        f"{KNOWN}{PAID}, LKR 40.00 was given back, LKR 960.00 was charged back by the bank, and nothing is left.",
    ),
    Call(
        "I was charged twice",
        _twice,
        "LKR 2,000.00 was paid in 2 payments, and LKR 2,000.00 is left.",
        (f"This order was paid 2 times, and none of these payments was given back whole: {PAYMENT} (LKR 1,000.00)",),
    ),
    Call("My card was refused, I paid with another one", _other_card, f"{PAID}, and LKR 1,000.00 is left."),
    Call(
        "My money was taken, but the app says failed",
        _unknown,
        f"{KNOWN}nothing was paid, and nothing is held.",
        ("this operation has no outcome yet, and may move money.",),
    ),
    Call(
        "My payment has been pending since this morning",
        _pending,
        f"{KNOWN}nothing was paid, and nothing is held.",
        ("this operation has no outcome yet",),
    ),
    Call("I gave up on the page: was anything taken?", _gave_up, "Nothing was paid, and nothing is held."),
    Call(
        "The page is still open: was anything taken?",
        _may_still_pay,
        f"{KNOWN}nothing was paid, and nothing is held.",
        ("this page is open, and the customer may pay on it",),
    ),
    Call(
        "The hotel held 25,000 on my card: when is it free?",
        _held,
        "LKR 25,000.00 is held and not charged, until 2027-01-22 08:00:00 UTC at the latest.",
    ),
    Call("Is the hold gone?", _lapsed, "Nothing was paid, and nothing is held."),
    Call(
        "I paid before you had this system",
        _imported,
        f"{PAID}, LKR 1,000.00 was given back, and nothing is left.",
        ("imported from payments.csv, line 2", "LKR 1,000.00 was given back, as payments.csv, line 2 said"),
    ),
)


def words_of(page: str) -> str:
    """Gives the text of a page, as it is read."""
    body = re.sub(r"<head>.*?</head>|<header>.*?</header>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split()).replace(" ,", ",").replace(" .", ".")


def answer_of(page: str) -> str:
    """Gives the sentence that answers first."""
    (answer,) = re.findall(r'<p class="answer">(.*?)</p>', page)
    return html.unescape(answer)


async def an_hour_later(desk: Desk, window: Window) -> None:
    """Lets so much time pass that a second look counts; the operator goes on reading, and stays signed in."""
    for _ in range(6):
        desk.clock.at_ms += SECOND_LOOK_MS // 6
        await window.get(PAGE)


async def asked(desk: Desk, window: Window, status: str) -> None:
    """Asks the gateway for the order, which has its payment in some status."""
    raw = RECORD.format(payment=PAYMENT, status=status).encode()
    desk.gateway.readings.append(Reading(code=None, msg="ok", raw_data=raw))
    await window.post(f"{PAGE}/gateway")
    assert "Asked at" in window.text


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.says)
async def test_a_call_is_answered_by_the_page(desk: Desk, console: Console, call: Call) -> None:
    """By whoever may see the order: a viewer reads the same sums."""
    await call.history(desk)
    window = await signed_in(desk, console, ADA, Role.VIEWER)
    await window.get(PAGE)
    text = words_of(window.text)

    assert answer_of(window.text) == call.answer
    assert text.index(call.answer) < text.index("As it is now"), "the answer comes first"
    assert [each for each in call.also if each not in text] == []
    assert [each for each in call.never if each in text] == []
    assert "CANARY" not in window.text


async def test_the_sums_stand_beside_each_other(desk: Desk, console: Console) -> None:
    """Of the order by currency, and of each payment; nothing is a dash, and what is left is always a figure."""
    await _parts(desk)
    window = await signed_in(desk, console, ADA, Role.SUPPORT)
    await window.get(PAGE)
    sums = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", window.text.partition("<h2>")[0], re.DOTALL)

    assert [(name, " ".join(re.sub("<.*?>", "", value).split())) for name, value in sums] == [
        ("Paid", "LKR 1,000.00"),
        ("Given back", "LKR 50.00"),
        ("Charged back", "\N{EN DASH}"),
        ("Left", "LKR 950.00"),
    ]
    for link in (id_at("op", START_MS + 2_000, 2), id_at("op", START_MS + 3_000, 3)):
        assert f'<a href="/console/operations/{link}">' in window.text


async def test_the_gateways_record_never_says_that_nothing_was_refunded(desk: Desk, console: Console) -> None:
    """It has no parts: what was given back stands beside its word, from the very asking."""
    await _parts(desk)
    window = await signed_in(desk, console, ADA, Role.SUPPORT)
    await window.get(PAGE)
    await asked(desk, window, "RECEIVED")

    assert "Paid; the record shows no refund of a part, and LKR 50.00 was given back" in words_of(window.text)


async def test_a_chargeback_that_was_won_counts_back(desk: Desk, console: Console) -> None:
    """The line of time keeps the chargeback, and says that it is over."""
    await _bank(desk)
    desk.clock.at_ms += MINUTE_MS
    window = await signed_in(desk, console, ADA, Role.SUPPORT)
    await window.get(PAGE)
    await asked(desk, window, "RECEIVED")
    assert "a second look will tell" in words_of(window.text)
    await an_hour_later(desk, window)
    await asked(desk, window, "RECEIVED")

    assert answer_of(window.text) == f"{PAID}, and LKR 1,000.00 is left."
    words = words_of(window.text)
    assert "It was won: the gateway's record, read since, shows the payment as charged back no more." in words


async def test_a_refund_that_failed_later_counts_back(desk: Desk, console: Console) -> None:
    """Its operation succeeded, and says on each of its pages that nothing was given back after all."""
    await _whole(desk)
    window = await signed_in(desk, console, ADA, Role.SUPPORT)
    for status in ("REFUNDED", "RECEIVED", "RECEIVED"):
        await an_hour_later(desk, window)
        await asked(desk, window, status)

    assert answer_of(window.text) == f"{PAID}, and LKR 1,000.00 is left."
    assert "Later news calls it failed" in words_of(window.text)
    await window.get(f"/console/operations/{id_at('op', START_MS + 2_000, 2)}")
    assert "Later news calls it failed" in words_of(window.text)
    assert "Left of it LKR 1,000.00 of 1,000.00" in words_of(window.text)


async def test_the_refund_form_says_what_is_left_and_who_gave_what_back(desk: Desk, console: Console) -> None:
    """Whoever gives the rest back reads what went before, so that nobody gives it back again."""
    await _parts(desk)
    await refund(desk, 4, 2_000, Event.UNKNOWN)
    window = await signed_in(desk, console, ADA, Role.OPERATOR)
    await window.get(f"/console/act/payment/gateway~{PAYMENT}")
    text = words_of(window.text)

    assert "Left: LKR 950.00 of 1,000.00" in text
    assert "LKR 40.00 was given back on 2027-01-15 08:00:02 UTC, asked for by shop" in text
    assert f"Refund of LKR 20.00 for payment {PAYMENT}: this operation has no outcome yet" in text


class BusyOrder(PassingDatabase):
    """A database in which the order is paid once more after each read."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk.database)
        self.desk = desk
        self.payments = 0

    async def read(self, unit: Unit[T]) -> T:
        """Reads, and charges."""
        found = await super().read(unit)
        self.payments += 1
        await charged(self.desk, self.payments, f"3200250000{self.payments:02}")
        return found


async def test_the_money_of_an_order_is_of_one_moment(desk: Desk) -> None:
    """Figures of one moment beside payments of another would show a second payment in the one, and not in the other."""
    await charged(desk, 99, "320025000099")
    busy = relay_over(BusyOrder(desk), {"gateway": desk.gateway}, clock=desk.clock, log=QUIET, retention=RETENTION)
    money = await read_order_money(busy, [MERCHANT], "A-1")
    assert [each.payment_id for each in money.balance.payments] == [each.payment_id for each in money.standing]
