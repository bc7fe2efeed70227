"""Histories of an order with their balance, one row for each kind."""

from typing import NamedTuple

from tests.core.orders.order_facts import (
    HASH,
    LAPSE,
    PLAN,
    again,
    chargeback,
    failed,
    hold,
    imported,
    installment,
    op,
    page,
    returned,
    seen,
    told,
)

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.orders.figures import DoubtKind
from payrelay.core.orders.received_again import SECOND_LOOK_MS
from payrelay.core.payments.operation import Kind, State
from payrelay.core.payments.payment import PaymentStatus

CHARGE, CAPTURE, REFUND = op(Kind.CHARGE), op(Kind.CAPTURE, amount_minor=6_000), op(Kind.REFUND, amount_minor=None)
HELD = op(Kind.AUTHORIZATION, result_ref=HASH)
HELD_PAGE = page(CheckoutKind.AUTHORIZATION, CheckoutState.NOTIFIED)
PAID_PAGE = page(CheckoutKind.PAYMENT, CheckoutState.COMPLETED)
PART = op(Kind.REFUND, 2, amount_minor=3_000)
SECOND = op(Kind.REFUND, 3, amount_minor=None, created_at_ms=4_000, updated_at_ms=4_000)
PART_NOT_SHOWN = DoubtKind.PARTS_NOT_SHOWN
IN_QUESTION, MAY_BE_WHOLE = DoubtKind.RECEIVED_AGAIN, DoubtKind.REFUND_MAY_BE_WHOLE
NOW_MS = 4_000
CONFIRMED = (again(3_000), seen(at_ms=3_000 + SECOND_LOOK_MS))
"""Two looks that show the payment as received, the second one late enough."""
RECEIVED, REFUNDED, TAKEN_BACK = PaymentStatus.RECEIVED, PaymentStatus.REFUNDED, PaymentStatus.CHARGED_BACK


class Row(NamedTuple):
    """A history, and what its balance is: paid, held, given back, charged back, left, and the doubts."""

    name: str
    history: tuple[object, ...]
    paid: int | None = 0
    held: int = 0
    given_back: int = 0
    charged_back: int = 0
    left: int | None = 0
    doubts: tuple[DoubtKind, ...] = ()


ROWS = (
    Row("a charge", (CHARGE,), paid=10_000, left=10_000),
    Row("a charge that was declined", (op(Kind.CHARGE, state=State.DECLINED),), paid=None, left=None),
    Row("a charge that was refused", (op(Kind.CHARGE, state=State.REFUSED),), paid=None, left=None),
    Row("a charge that was not sent", (op(Kind.CHARGE, state=State.NOT_SENT),), paid=None, left=None),
    Row("a charge that failed", (op(Kind.CHARGE, state=State.FAILED),), paid=None, left=None),
    Row(
        "a charge that was decided to have failed, and that the record shows",
        (op(Kind.CHARGE, state=State.FAILED), seen()),
        paid=10_000,
        left=10_000,
    ),
    *(
        Row(
            f"a charge that is {state}",
            (op(Kind.CHARGE, state=state, payment_id=None),),
            None,
            left=None,
            doubts=(DoubtKind.OPEN_OPERATION,),
        )
        for state in (State.ACCEPTED, State.SENDING, State.PENDING, State.UNKNOWN, State.NEEDS_ATTENTION, State.HELD)
    ),
    Row(
        "an unknown charge whose payment the record shows",
        (op(Kind.CHARGE, state=State.UNKNOWN), seen()),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.OPEN_OPERATION,),
    ),
    Row(
        "a charge that a person decided, without a payment's number",
        (op(Kind.CHARGE, payment_id=None),),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.UNNUMBERED,),
    ),
    Row("two charges", (CHARGE, op(Kind.CHARGE, 2, payment_id="320025000002")), paid=20_000, left=20_000),
    Row("a paid page", (PAID_PAGE,), paid=10_000, left=10_000),
    Row("a charge and a page of one payment", (CHARGE, PAID_PAGE, seen()), paid=10_000, left=10_000),
    Row(
        "an open page",
        (page(CheckoutKind.PAYMENT, CheckoutState.OPEN),),
        paid=None,
        left=None,
        doubts=(DoubtKind.OPEN_PAGE,),
    ),
    *(
        Row(f"a page that is {state}", (page(CheckoutKind.PAYMENT, state),), paid=None, left=None)
        for state in (CheckoutState.FAILED, CheckoutState.CANCELLED, CheckoutState.EXPIRED)
    ),
    Row(
        "an approval that charges nothing",
        (page(CheckoutKind.PREAPPROVAL, CheckoutState.COMPLETED, amount_minor=None, first_minor=None),),
        paid=None,
        left=None,
    ),
    Row(
        "an approval with an amount",
        (page(CheckoutKind.PREAPPROVAL, CheckoutState.COMPLETED),),
        paid=10_000,
        left=10_000,
    ),
    Row(
        "a plan whose first payment and two others were paid",
        (
            page(CheckoutKind.RECURRING, CheckoutState.COMPLETED, subscription_id=PLAN, first_minor=12_000),
            installment(amount_minor=12_000),
            installment("320025000002", 8_000),
            installment("320025000003", 8_000),
        ),
        paid=28_000,
        left=28_000,
    ),
    Row(
        "a plan whose first payment only the page knows",
        (page(CheckoutKind.RECURRING, CheckoutState.COMPLETED, subscription_id=PLAN, first_minor=12_000),),
        paid=12_000,
        left=12_000,
    ),
    Row(
        "a plan that begins later",
        (page(CheckoutKind.RECURRING, CheckoutState.COMPLETED, subscription_id=PLAN, payment_id=None),),
        paid=None,
        left=None,
    ),
    Row(
        "an installment that was told without a payment's number",
        (installment("ntf:1"),),
        paid=None,
        left=None,
        doubts=(DoubtKind.UNNUMBERED_LEFT_OUT,),
    ),
    Row(
        "an installment without an amount",
        (installment(amount_minor=None),),
        paid=None,
        left=None,
        doubts=(DoubtKind.UNKNOWN_AMOUNT,),
    ),
    Row(
        "a retry and its installment",
        (installment(), op(Kind.RETRY, amount_minor=None, currency=None, order_id=None, subscription_id=PLAN)),
        paid=10_000,
        left=10_000,
    ),
    Row(
        "a retry without a payment's number",
        (installment(), op(Kind.RETRY, amount_minor=None, order_id=None, subscription_id=PLAN, payment_id=None)),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.UNNUMBERED_LEFT_OUT,),
    ),
    Row("an imported payment", (imported(),), paid=10_000, left=10_000),
    Row("an imported payment and its record", (imported(), seen()), paid=10_000, left=10_000),
    Row("an imported payment that was given back", (imported(REFUNDED),), paid=10_000, given_back=10_000),
    Row(
        "an imported payment that was given back, as the record shows too",
        (imported(REFUNDED), seen(REFUNDED)),
        paid=10_000,
        given_back=10_000,
    ),
    Row("an imported payment that was charged back", (imported(TAKEN_BACK),), paid=10_000, charged_back=10_000),
    Row(
        "an imported payment that was called given back, and that the record shows as received since",
        (imported(REFUNDED), *CONFIRMED),
        paid=10_000,
        left=10_000,
    ),
    Row(
        "an imported payment that was called given back, and that the record shows otherwise once",
        (imported(REFUNDED), seen()),
        paid=10_000,
        given_back=10_000,
        doubts=(IN_QUESTION,),
    ),
    Row(
        "an imported payment that was called charged back, and that the record shows as received since",
        (imported(TAKEN_BACK), *CONFIRMED),
        paid=10_000,
        left=10_000,
    ),
    Row("an authorization", (HELD,), held=10_000),
    Row(
        "an authorization that a person decided, without a payment's number",
        (op(Kind.AUTHORIZATION, payment_id=None),),
        held=10_000,
        doubts=(DoubtKind.UNNUMBERED,),
    ),
    Row(
        "an authorization whose token is known, and its number isn't",
        (op(Kind.AUTHORIZATION, payment_id=None, result_ref=HASH),),
        held=10_000,
    ),
    Row("an authorization that the record shows as held", (HELD, seen(PaymentStatus.AUTHORIZED)), held=10_000),
    Row("a hold that only the record shows", (seen(PaymentStatus.AUTHORIZED),), held=10_000),
    Row("an authorization that lapsed", (op(Kind.AUTHORIZATION, updated_at_ms=-LAPSE, result_ref=HASH),)),
    Row("an authorization whose part was captured", (HELD, CAPTURE), paid=6_000, left=6_000),
    Row(
        "an authorization whose capture isn't known",
        (HELD, op(Kind.CAPTURE, state=State.UNKNOWN, payment_id=None)),
        held=10_000,
        doubts=(DoubtKind.OPEN_OPERATION,),
    ),
    Row("a capture of an unknown authorization", (CAPTURE,), paid=6_000, left=6_000),
    Row(
        "a capture whose payment has another number than the authorization",
        (HELD, op(Kind.CAPTURE, payment_id="320025000009")),
        paid=10_000,
        left=10_000,
    ),
    Row("an authorization that was voided", (HELD, op(Kind.VOID, amount_minor=None, payment_id=None))),
    Row(
        "an authorization of which a part was voided",
        (HELD, op(Kind.VOID, amount_minor=4_000, payment_id=None)),
        held=6_000,
        doubts=(DoubtKind.VOID_OF_PART,),
    ),
    Row("a void of an unknown authorization", (op(Kind.VOID, payment_id=None),), paid=None, left=None),
    Row("a page whose hold was reported", (HELD_PAGE, hold()), held=10_000, doubts=(DoubtKind.UNPROVED_HOLD,)),
    Row("a page whose report is erased", (HELD_PAGE,), held=10_000, doubts=(DoubtKind.UNPROVED_HOLD,)),
    Row("a page whose hold lapsed", (HELD_PAGE, hold(-LAPSE))),
    Row(
        "a page whose hold was captured in part",
        (page(CheckoutKind.AUTHORIZATION, CheckoutState.COMPLETED), hold(), CAPTURE),
        paid=6_000,
        left=6_000,
    ),
    Row(
        "a page whose hold was captured, by something that isn't here",
        (page(CheckoutKind.AUTHORIZATION, CheckoutState.COMPLETED), hold()),
        paid=None,
        left=None,
        doubts=(DoubtKind.UNKNOWN_AMOUNT,),
    ),
    Row("a refund of the whole", (CHARGE, REFUND), paid=10_000, given_back=10_000),
    Row("a refund that failed", (CHARGE, op(Kind.REFUND, state=State.FAILED)), paid=10_000, left=10_000),
    Row("a part", (CHARGE, PART), paid=10_000, given_back=3_000, left=7_000, doubts=(PART_NOT_SHOWN,)),
    Row(
        "a part, and a record that shows it as received",
        (CHARGE, PART, seen()),
        paid=10_000,
        given_back=3_000,
        left=7_000,
        doubts=(PART_NOT_SHOWN,),
    ),
    Row(
        "a part, and a record that shows a refund",
        (CHARGE, PART, seen(REFUNDED)),
        paid=10_000,
        given_back=10_000,
        doubts=(PART_NOT_SHOWN, MAY_BE_WHOLE),
    ),
    Row(
        "a part, and a record that shows none",
        (CHARGE, PART, seen()),
        paid=10_000,
        given_back=3_000,
        left=7_000,
        doubts=(PART_NOT_SHOWN,),
    ),
    Row(
        "parts that are the whole, and a record that shows it",
        (CHARGE, PART, op(Kind.REFUND, 3, amount_minor=7_000), seen(REFUNDED)),
        paid=10_000,
        given_back=10_000,
    ),
    Row(
        "a part by the bank, a part here, and a record that shows a refund",
        (CHARGE, chargeback(part_minor=2_000), PART, seen(REFUNDED, at_ms=4_000)),
        paid=10_000,
        given_back=8_000,
        charged_back=2_000,
        doubts=(PART_NOT_SHOWN, DoubtKind.PART_NOT_SIGNED, MAY_BE_WHOLE),
    ),
    Row("two parts that are the whole", (CHARGE, PART, op(Kind.REFUND, 3, amount_minor=7_000)), 10_000, 0, 10_000),
    Row("a part and the rest", (CHARGE, PART, REFUND), paid=10_000, given_back=10_000),
    Row(
        "parts of more than was paid",
        (CHARGE, PART, op(Kind.REFUND, 3, amount_minor=8_000)),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.MORE_THAN_PAID,),
    ),
    Row(
        "the whole given back twice",
        (CHARGE, REFUND, op(Kind.REFUND, 3, amount_minor=None)),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.MORE_THAN_PAID,),
    ),
    Row(
        "an open refund",
        (CHARGE, op(Kind.REFUND, state=State.UNKNOWN, amount_minor=None)),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.OPEN_OPERATION,),
    ),
    Row(
        "an open refund of a part, and a record that shows a refund",
        (CHARGE, op(Kind.REFUND, state=State.UNKNOWN, amount_minor=3_000), seen(REFUNDED)),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.OPEN_OPERATION, MAY_BE_WHOLE),
    ),
    Row(
        "a refund of a payment that nothing else knows",
        (op(Kind.REFUND, amount_minor=3_000),),
        paid=None,
        given_back=3_000,
        left=None,
        doubts=(DoubtKind.UNKNOWN_AMOUNT,),
    ),
    Row(
        "a refund in another currency",
        (CHARGE, op(Kind.REFUND, currency="USD")),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.OTHER_CURRENCY,),
    ),
    *(
        Row(
            f"a refund that was made elsewhere: {status}",
            (CHARGE, seen(status)),
            paid=10_000,
            given_back=10_000,
            doubts=(DoubtKind.REFUND_NOT_MADE_HERE,),
        )
        for status in (PaymentStatus.REFUND_REQUESTED, PaymentStatus.REFUND_PROCESSING, REFUNDED)
    ),
    Row(
        "a refund that the record shows",
        (CHARGE, REFUND, seen(REFUNDED), returned(REFUNDED, 2_000)),
        paid=10_000,
        given_back=10_000,
    ),
    Row(
        "a refund that the record showed, and shows no more: it failed, or a copy lags behind",
        (CHARGE, REFUND, returned(PaymentStatus.REFUND_REQUESTED, 2_000), seen(at_ms=3_000)),
        paid=10_000,
        given_back=10_000,
        doubts=(IN_QUESTION,),
    ),
    Row(
        "a refund that the record showed, and shows no more at a second look that is too early",
        (CHARGE, REFUND, returned(REFUNDED, 2_000), again(3_000), seen(at_ms=2_999 + SECOND_LOOK_MS)),
        paid=10_000,
        given_back=10_000,
        doubts=(IN_QUESTION,),
    ),
    Row(
        "a refund that two looks call failed, before that is stored",
        (CHARGE, REFUND, returned(REFUNDED, 2_000), *CONFIRMED),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.REFUND_NOT_SHOWN,),
    ),
    Row(
        "a refund that is stored as failed",
        (CHARGE, REFUND, returned(REFUNDED, 2_000), failed(REFUND), *CONFIRMED),
        paid=10_000,
        left=10_000,
    ),
    Row(
        "a second refund, after the first one failed",
        (CHARGE, REFUND, failed(REFUND), returned(RECEIVED, 3_000), SECOND, seen(REFUNDED, at_ms=5_000)),
        paid=10_000,
        given_back=10_000,
    ),
    Row(
        "a refund elsewhere that the record shows no more, at one look",
        (CHARGE, returned(REFUNDED, 2_000), seen(at_ms=3_000)),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.REFUND_NOT_MADE_HERE, IN_QUESTION),
    ),
    Row(
        "a refund elsewhere that failed",
        (CHARGE, returned(REFUNDED, 2_000), *CONFIRMED),
        paid=10_000,
        left=10_000,
    ),
    Row(
        "a refund that the record never showed",
        (CHARGE, REFUND, seen()),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.REFUND_NOT_SHOWN,),
    ),
    Row(
        "parts that are the whole together, and that the record never showed",
        (CHARGE, PART, op(Kind.REFUND, 3, amount_minor=7_000), seen()),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.REFUND_NOT_SHOWN, DoubtKind.REFUND_NOT_SHOWN),
    ),
    Row(
        "parts that are the whole together, the last after the record was read",
        (CHARGE, PART, op(Kind.REFUND, 3, amount_minor=7_000, updated_at_ms=3_000), seen()),
        paid=10_000,
        given_back=10_000,
    ),
    Row("a refund after the record was read", (CHARGE, REFUND, seen(at_ms=900)), paid=10_000, given_back=10_000),
    Row(
        "a part, after which the record showed a refund and then none: a part never shows",
        (CHARGE, PART, returned(PaymentStatus.REFUND_REQUESTED, 2_000), *CONFIRMED),
        paid=10_000,
        given_back=3_000,
        left=7_000,
        doubts=(PART_NOT_SHOWN,),
    ),
    Row("a chargeback", (CHARGE, chargeback(), seen(TAKEN_BACK)), paid=10_000, charged_back=10_000),
    Row(
        "a chargeback that only the record shows",
        (CHARGE, seen(TAKEN_BACK)),
        paid=10_000,
        charged_back=10_000,
        doubts=(DoubtKind.CHARGEBACK_NOT_NOTIFIED,),
    ),
    Row(
        "a chargeback of a part",
        (CHARGE, chargeback(amount_minor=4_000)),
        paid=10_000,
        charged_back=4_000,
        left=6_000,
    ),
    Row(
        "a chargeback of a part that isn't signed",
        (CHARGE, chargeback(part_minor=4_000)),
        paid=10_000,
        charged_back=4_000,
        left=6_000,
        doubts=(DoubtKind.PART_NOT_SIGNED,),
    ),
    Row(
        "a chargeback of a part, and the rest refunded",
        (CHARGE, chargeback(amount_minor=4_000), op(Kind.REFUND, amount_minor=6_000)),
        paid=10_000,
        given_back=6_000,
        charged_back=4_000,
        doubts=(PART_NOT_SHOWN,),
    ),
    Row(
        "a part refunded, and the rest charged back",
        (CHARGE, PART, chargeback()),
        paid=10_000,
        given_back=3_000,
        charged_back=7_000,
        doubts=(PART_NOT_SHOWN,),
    ),
    Row(
        "the whole refunded and charged back",
        (CHARGE, REFUND, chargeback()),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.MORE_THAN_PAID,),
    ),
    Row(
        "more charged back than was left",
        (CHARGE, PART, chargeback(amount_minor=8_000)),
        paid=10_000,
        given_back=3_000,
        charged_back=7_000,
        doubts=(PART_NOT_SHOWN, DoubtKind.MORE_THAN_PAID),
    ),
    Row(
        "a chargeback that was won",
        (CHARGE, chargeback(2_000), returned(TAKEN_BACK, 2_000), *CONFIRMED),
        paid=10_000,
        left=10_000,
    ),
    Row(
        "a chargeback that the record shows no more, at one look",
        (CHARGE, chargeback(), returned(TAKEN_BACK, 3_000), seen(at_ms=4_000)),
        paid=10_000,
        charged_back=10_000,
        doubts=(IN_QUESTION,),
    ),
    Row(
        "a chargeback that no record proves yet",
        (CHARGE, told()),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.CHARGEBACK_NOT_SHOWN,),
    ),
    Row(
        "a chargeback of a payment that isn't named",
        (CHARGE, told(payment_id=None)),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.CHARGEBACK_NOT_SHOWN,),
    ),
    Row(
        "a chargeback that is told again, and that the record shows",
        (CHARGE, chargeback(), seen(TAKEN_BACK, at_ms=3_000), told()),
        paid=10_000,
        charged_back=10_000,
    ),
    Row(
        "a chargeback that was won, and then a refund",
        (CHARGE, chargeback(), returned(RECEIVED, 3_500), REFUND, seen(REFUNDED, at_ms=4_000)),
        paid=10_000,
        given_back=10_000,
    ),
    Row(
        "a chargeback that was won, and then a refund of a part",
        (
            *(CHARGE, chargeback(), returned(TAKEN_BACK, 3_000), returned(RECEIVED, 3_500), PART),
            seen(PaymentStatus.REFUND_REQUESTED, at_ms=4_000),
        ),
        paid=10_000,
        given_back=10_000,
        doubts=(PART_NOT_SHOWN, MAY_BE_WHOLE),
    ),
    Row(
        "a chargeback, and a refund on which a person insisted: a record that shows that proves nothing won",
        (CHARGE, chargeback(), PART, seen(PaymentStatus.REFUND_REQUESTED, at_ms=4_000)),
        paid=10_000,
        given_back=3_000,
        charged_back=7_000,
        doubts=(PART_NOT_SHOWN,),
    ),
    Row(
        "a chargeback that only the record showed, and a refund on which a person insisted",
        (CHARGE, returned(TAKEN_BACK, 500), PART, seen(REFUNDED), returned(REFUNDED, 2_000)),
        paid=10_000,
        given_back=3_000,
        charged_back=7_000,
        doubts=(DoubtKind.CHARGEBACK_NOT_NOTIFIED, PART_NOT_SHOWN),
    ),
    Row(
        "a part charged back, the rest refunded, and a record that shows a refund",
        (
            *(CHARGE, chargeback(part_minor=4_000, at_ms=500), returned(TAKEN_BACK, 400)),
            *(op(Kind.REFUND, amount_minor=6_000), seen(REFUNDED), returned(REFUNDED, 2_000)),
        ),
        paid=10_000,
        given_back=6_000,
        charged_back=4_000,
        doubts=(DoubtKind.PART_NOT_SIGNED, PART_NOT_SHOWN),
    ),
    Row(
        "a refund elsewhere, and then a part that was refunded here",
        (CHARGE, returned(REFUNDED, 500), PART, seen(REFUNDED)),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.REFUND_NOT_MADE_HERE,),
    ),
    Row(
        "a refund elsewhere, and then the whole that was refunded here",
        (CHARGE, returned(PaymentStatus.REFUND_REQUESTED, 500), returned(REFUNDED, 2_000), REFUND, seen(REFUNDED)),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.REFUND_NOT_MADE_HERE,),
    ),
    Row(
        "a refund elsewhere, and then a part that was asked for here and may happen",
        (CHARGE, returned(REFUNDED, 500), op(Kind.REFUND, state=State.UNKNOWN, amount_minor=3_000), seen(REFUNDED)),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.OPEN_OPERATION, DoubtKind.REFUND_NOT_MADE_HERE),
    ),
    Row(
        "a refund elsewhere, and then a status that nobody knows",
        (CHARGE, returned(REFUNDED, 500), seen(PaymentStatus.OTHER)),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.REFUND_NOT_MADE_HERE, DoubtKind.UNKNOWN_STATUS),
    ),
    Row(
        "a refund elsewhere that failed, and then a part that was refunded here",
        (CHARGE, returned(PaymentStatus.REFUND_REQUESTED, 500), returned(RECEIVED, 600), PART),
        paid=10_000,
        given_back=3_000,
        left=7_000,
        doubts=(PART_NOT_SHOWN,),
    ),
    Row(
        "imported as given back, and then a part on which a person insisted",
        (imported(REFUNDED), PART),
        paid=10_000,
        given_back=10_000,
        doubts=(DoubtKind.MORE_THAN_PAID,),
    ),
    Row(
        "a part, and then imported as given back",
        (imported(REFUNDED, imported_at_ms=2_000), PART),
        paid=10_000,
        given_back=10_000,
        doubts=(PART_NOT_SHOWN, MAY_BE_WHOLE),
    ),
    Row("a chargeback after the record was read", (CHARGE, chargeback(), seen()), paid=10_000, charged_back=10_000),
    Row(
        "a chargeback of a payment that nothing else knows",
        (chargeback(), seen(TAKEN_BACK)),
        paid=10_000,
        charged_back=10_000,
    ),
    Row(
        "a chargeback of an installment without an amount",
        (installment(amount_minor=None), chargeback()),
        paid=None,
        left=None,
        doubts=(DoubtKind.UNKNOWN_AMOUNT,),
    ),
    Row(
        "a chargeback in another currency",
        (CHARGE, chargeback(currency="USD")),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.DIFFERENT_AMOUNTS, DoubtKind.OTHER_CURRENCY),
    ),
    Row(
        "a record with a status that nobody knows",
        (CHARGE, seen(PaymentStatus.OTHER)),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.UNKNOWN_STATUS,),
    ),
    Row(
        "a record with another amount",
        (CHARGE, seen(amount_minor=9_900)),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.DIFFERENT_AMOUNTS,),
    ),
    Row(
        "a record that says another order",
        (CHARGE, seen(order_id="B-1")),
        paid=10_000,
        left=10_000,
        doubts=(DoubtKind.OTHER_ORDER,),
    ),
    Row("a payment that only the record shows", (seen(),), paid=10_000, left=10_000),
    Row("another order's charge", (op(Kind.CHARGE, order_id="B-1"),), paid=None, left=None),
)
