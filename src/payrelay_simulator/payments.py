"""Payments: charging a preapproved customer, and searching by order."""

from datetime import timedelta
from decimal import Decimal

import msgspec

from payrelay_simulator.errors import RefusalError
from payrelay_simulator.fields import Fields
from payrelay_simulator.ledger_lines import hold_line, payment_line
from payrelay_simulator.messages import AUTHORIZED, hold_message, payment_message
from payrelay_simulator.money import CURRENCIES, cents_of, text_of
from payrelay_simulator.records import Customer, Hold, Payment
from payrelay_simulator.rendering import amount, payment_record
from payrelay_simulator.reply import MARK, Reply, failure, marked_failure, success
from payrelay_simulator.signature import md5sig, spoiled
from payrelay_simulator.turn import Turn

HOLD_LIFE = timedelta(days=7)

CHARGED = "Automatic payment charged successfully"
CHARGED_STATUS = "Successfully completed the test tokenized payment."

SUCCESS_CODE, PENDING_CODE, FAILED_CODE = 2, 0, -2

CHARGE_TYPES = frozenset({"PAYMENT", "AUTHORIZE"})


class ChargeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A charge request that is in order."""

    is_authorization: bool
    order_id: str
    items: str
    currency: str
    amount_cents: int
    amount_given: Decimal | int | None
    customer: Customer
    custom_1: str | None
    custom_2: str | None
    notify_url: str


def search(turn: Turn, order_id: str | None) -> Reply:
    """Return the order's visible payments; one without any is answered as if it did not exist."""
    if not order_id:
        return marked_failure("order_id is missing")
    found = [each for each in turn.state.payments_of(turn.merchant.merchant_id, order_id) if each.is_visible(turn.now)]
    if not found:
        return failure("No payments found")
    if turn.switches.retrieval_order == "newest_first":
        found.reverse()
    records = [payment_record(payment, now=turn.now, switches=turn.switches) for payment in found]
    return success(f"Payments with order_id:{order_id}", records)


def charge(turn: Turn, fields: Fields) -> Reply:
    """Charge a customer's card, or set the amount aside. The same order may be charged any number of times."""
    order = _charge_order(turn, fields)
    decline = turn.fault_named("decline")
    reason = decline.reason if decline is not None else order.customer.decline
    if reason is not None:
        shape = decline.shape if decline is not None and decline.shape else turn.switches.charge_decline
        return _declined(turn, order, reason, is_envelope=shape == "envelope")
    # A pending charge that settles has moved the money already and only shows it later; the other never does.
    pending = turn.fault_named("pending")
    if pending is not None and not pending.settles:
        payment = _payment(turn, order)
        turn.tell(payment_message("charge", payment, PENDING_CODE))
        return _charge_reply(turn, order, payment.payment_id, PENDING_CODE)
    if order.is_authorization:
        return _authorize(turn, order, is_pending=pending is not None)
    payment = _payment(turn, order)
    receive(turn, payment)
    if pending is not None:
        turn.tell(payment_message("charge", payment, PENDING_CODE))
    turn.tell(payment_message("charge", payment, SUCCESS_CODE), at=payment.visible_at if pending is not None else None)
    return _charge_reply(turn, order, payment.payment_id, PENDING_CODE if pending is not None else SUCCESS_CODE)


def _charge_order(turn: Turn, fields: Fields) -> ChargeOrder:
    charge_type = fields.optional_text("type") or "PAYMENT"
    if charge_type not in CHARGE_TYPES:
        raise RefusalError(marked_failure("type must be PAYMENT or AUTHORIZE"))
    order_id, items = fields.text("order_id"), fields.text("items")
    if "itemList" in fields and not isinstance(fields.raw("itemList"), list):
        raise RefusalError(marked_failure("itemList must be a list"))
    custom_1, custom_2 = fields.optional_text("custom_1"), fields.optional_text("custom_2")
    notify_url = fields.optional_text("notify_url")
    # These three have documented refusals, also where they are missing or of another type.
    customer = _chargeable(turn, fields.raw("customer_token"))
    currency = fields.raw("currency")
    if not isinstance(currency, str) or currency not in CURRENCIES:
        raise RefusalError(failure("Invalid currency"))
    given = fields.raw("amount")
    amount_cents = cents_of(given)
    if amount_cents is None:
        raise RefusalError(failure("Invalid amount"))
    if charge_type == "AUTHORIZE" and turn.switches.authorize == "refused":
        raise RefusalError(marked_failure("AUTHORIZE is not supported in the sandbox"))
    return ChargeOrder(
        is_authorization=charge_type == "AUTHORIZE",
        order_id=order_id,
        items=items,
        currency=currency,
        amount_cents=amount_cents,
        amount_given=given_number(given),
        customer=customer,
        custom_1=custom_1,
        custom_2=custom_2,
        notify_url=notify_url or "",
    )


def given_number(given: object) -> Decimal | int | None:
    """Return an accepted amount as the number that it was written as, texts included."""
    return Decimal(given) if isinstance(given, str) else given if isinstance(given, int | Decimal) else None


def _chargeable(turn: Turn, customer_token: object) -> Customer:
    customer = turn.state.customers.get(customer_token) if isinstance(customer_token, str) else None
    if customer is None or customer.is_cancelled or customer.merchant_id != turn.merchant.merchant_id:
        raise RefusalError(failure("Invalid token"))
    return customer


def _payment(turn: Turn, order: ChargeOrder) -> Payment:
    return Payment(
        payment_id=turn.state.next_payment_id(),
        merchant_id=turn.merchant.merchant_id,
        order_id=order.order_id,
        at=turn.now,
        description=order.items,
        currency=order.currency,
        amount_cents=order.amount_cents,
        amount_given=order.amount_given,
        person=order.customer.person,
        card=order.customer.card,
        custom_1=order.custom_1,
        custom_2=order.custom_2,
        visible_at=turn.visible_at(),
        notify_url=order.notify_url,
    )


def receive(turn: Turn, payment: Payment) -> None:
    """Keep a payment and enter it as a charge, in one step so that record and ledger cannot differ."""
    turn.state.put_payment(payment)
    turn.enter(payment_line(payment, "charge", payment.amount_cents))


def _authorize(turn: Turn, order: ChargeOrder, *, is_pending: bool) -> Reply:
    hold = Hold(
        authorization_token=turn.state.draws.uuid("authorization token"),
        payment_id=turn.state.next_payment_id(),
        merchant_id=turn.merchant.merchant_id,
        order_id=order.order_id,
        expires_at=turn.now + HOLD_LIFE,
        description=order.items,
        currency=order.currency,
        amount_cents=order.amount_cents,
        amount_given=order.amount_given,
        person=order.customer.person,
        card=order.customer.card,
        custom_1=order.custom_1,
        custom_2=order.custom_2,
        notify_url=order.notify_url,
    )
    set_aside(turn, hold)
    has_payment_id = turn.switches.authorize_payment_id == "present"
    message = hold_message("charge", hold, AUTHORIZED, has_payment_id=has_payment_id)
    if is_pending:
        turn.tell(message, at=turn.visible_at())
        return _charge_reply(turn, order, hold.payment_id, PENDING_CODE)
    turn.tell(message)
    code = turn.switches.authorize_status_code
    return _charge_reply(turn, order, hold.payment_id, code, authorization_token=hold.authorization_token)


def set_aside(turn: Turn, hold: Hold) -> None:
    """Keep a hold and enter its authorization, in one step."""
    turn.state.put_hold(hold)
    turn.enter(hold_line(hold, "authorization", hold.amount_cents))


def _declined(turn: Turn, order: ChargeOrder, reason: str, *, is_envelope: bool) -> Reply:
    text = reason.replace("_", " ")
    payment = _payment(turn, order)
    turn.tell(payment_message("charge", payment, FAILED_CODE, reason=text))
    if is_envelope:
        return marked_failure(text)
    return _charge_reply(turn, order, payment.payment_id, FAILED_CODE, status_message=MARK + text)


def _charge_reply(
    turn: Turn,
    order: ChargeOrder,
    payment_id: int,
    status_code: int,
    *,
    status_message: str = CHARGED_STATUS,
    authorization_token: str | None = None,
) -> Reply:
    is_echoed = turn.switches.charge_custom == "echoed"
    if authorization_token is None and turn.switches.payment_authorization_tokens == "present":
        authorization_token = turn.state.draws.uuid("unused authorization token")
    data = {
        "order_id": order.order_id,
        "items": order.items,
        "currency": order.currency,
        "amount": amount(order.amount_cents, order.amount_given, turn.switches),
        "custom_1": order.custom_1 if is_echoed else None,
        "custom_2": order.custom_2 if is_echoed else None,
        "payment_id": payment_id,
        "status_code": status_code,
        "status_message": MARK + "pending" if status_code == PENDING_CODE else status_message,
        "md5sig": signed(turn, order.order_id, order.amount_cents, order.currency, status_code),
        "authorization_token": authorization_token,
    }
    return success(MARK + "the charge was declined" if status_code == FAILED_CODE else CHARGED, data)


def signed(turn: Turn, order_id: str, amount_cents: int, currency: str, status_code: int) -> str:
    """Return the md5sig of an answer, made wrong where the switch says so."""
    parts = (turn.merchant.merchant_id, order_id, text_of(amount_cents), currency, str(status_code))
    signature = md5sig(*parts, merchant_secret=turn.merchant.merchant_secret)
    return signature if turn.switches.rest_md5sig == "correct" else spoiled(signature)
