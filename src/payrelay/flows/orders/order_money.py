"""An order's money for people who look at it: its balance, with what each figure comes from, when, and by whom.

The console and the commands speak of an order's money by this alone. It asks no gateway.
"""

from collections.abc import Collection

import msgspec

from payrelay.core.money import money_text
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import (
    Doubt,
    Figure,
    FigureSource,
    OrderBalance,
    Origin,
    PaymentBalance,
    sums_of,
)
from payrelay.core.orders.paid_again import OrderPayment, standing
from payrelay.core.orders.sentences import Return, doubt_text, left_of, returns_of
from payrelay.core.payments.explanations import request_phrase
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.payment import plain_number
from payrelay.flows.order_balance import balance_now
from payrelay.flows.relay import Relay


class MoneyLine(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is known of an order's money, in words.

    Attributes:
        text: what it is.
        at_ms: when, in milliseconds since 1970; None where that isn't known.
        how: who asked for it, or what tells of it; empty where the text says that.
        operation_id: the operation that it is, or is about; None where it is none.
        is_given_back: whether it is a refund.
    """

    text: str
    at_ms: int | None = None
    how: str = ""
    operation_id: str | None = None
    is_given_back: bool = False


class PaymentMoney(msgspec.Struct, frozen=True, kw_only=True):
    """One payment: its balance, what made it, what went back of it, and what isn't certain of it."""

    balance: PaymentBalance
    made_by: list[MoneyLine]
    returns: list[MoneyLine]
    doubts: list[MoneyLine]

    @property
    def left(self) -> str:
        """What is left of it, in words."""
        return left_of(self.balance)


class OrderMoney(msgspec.Struct, frozen=True, kw_only=True):
    """An order's money, or one payment's.

    Attributes:
        balance: its balance.
        payments: each payment.
        doubts: what isn't certain.
        undone: the refunds that were done, and that later news calls failed, by their operations.
        won: the numbers of the payments whose chargeback was won.
        is_known: whether anything is stored of it.
        standing: the order's payments that took money and weren't given back whole or charged back; of two, one is a
            further payment.
    """

    balance: OrderBalance
    payments: list[PaymentMoney]
    doubts: list[MoneyLine]
    undone: frozenset[str]
    won: frozenset[str]
    is_known: bool
    standing: list[OrderPayment] = []

    @property
    def numbers(self) -> frozenset[str]:
        """The numbers of its payments."""
        return frozenset(each.payment_id for each in self.balance.payments if each.payment_id is not None)

    def payment(self, number: str) -> PaymentMoney | None:
        """Finds a payment by its number."""
        return next((each for each in self.payments if each.balance.payment_id == number), None)


async def read_order_money(relay: Relay, merchants: Collection[str], order_id: str) -> OrderMoney:
    """Reads an order's money; that of all ``merchants``, where its account had several, one after the other.

    Raises StoreError.
    """
    now_ms = relay.clock.now_ms()
    read = [await relay.money.paid_again.of_order(merchant, order_id, now_ms=now_ms) for merchant in sorted(merchants)]
    facts = [each for each, _ in read]
    money = money_of(facts, [await balance_now(relay, each) for each in facts])
    return msgspec.structs.replace(money, standing=standing([each for _, known in read for each in known]))


async def read_payment_money(relay: Relay, merchant: str, payment_id: str) -> OrderMoney:
    """Reads one payment's money; without a payment where nothing is known of it. Raises StoreError."""
    facts = await relay.money.orders.facts_of_payment(merchant, plain_number(payment_id))
    return money_of([facts], [await balance_now(relay, facts)])


def money_of(facts: list[OrderFacts], balances: list[OrderBalance]) -> OrderMoney:
    """Puts together what is known of one order, by its merchants."""
    operations = {each.id: each for some in facts for each in some.operations}
    payments = [each for balance in balances for each in balance.payments]
    noted = {each.notification_id: each.noted_at_ms for some in facts for each in some.chargebacks}
    balance = OrderBalance(
        order_id=next((each.order_id for each in balances), None),
        currencies=sums_of(payments),
        payments=tuple(payments),
        doubts=tuple(doubt for each in balances for doubt in each.doubts),
        is_complete=all(each.is_complete for each in balances),
    )
    return OrderMoney(
        balance=balance,
        payments=[
            PaymentMoney(
                balance=each,
                made_by=[_made_by(origin, operations) for origin in _makers(each)],
                returns=[_returned(one, operations, noted) for one in returns_of(each)],
                doubts=[_doubted(one, operations) for one in each.doubts],
            )
            for each in payments
        ],
        doubts=[_doubted(each, operations) for each in balance.doubts],
        is_known=any(each.is_known for each in facts),
        undone=frozenset(each.operation_id for some in facts for each in some.failed),
        won=frozenset(
            each.payment_id
            for some in facts
            for each in some.chargebacks
            if (payment := balance.payment(each.payment_id)) is not None and not payment.of(Figure.CHARGED_BACK)
        ),
    )


def _makers(payment: PaymentBalance) -> list[Origin]:
    """Gives what took a payment, or holds it; what only shows it where nothing else is known."""
    origins = payment.of(Figure.PAID) or payment.of(Figure.HELD)
    shown = {FigureSource.RECORD, FigureSource.CHARGEBACK}
    return [each for each in origins if each.source not in shown] or list(origins)


def _made_by(origin: Origin, operations: dict[str, Operation]) -> MoneyLine:
    operation = operations.get(origin.id)
    if operation is not None:
        text = f"{operation.kind.value} asked for by {operation.principal}"
        return MoneyLine(text=text, at_ms=operation.created_at_ms, operation_id=operation.id)
    texts = {
        FigureSource.CHECKOUT: "page for the customer",
        FigureSource.INSTALLMENT: f"installment of subscription {origin.id.partition('/')[0]}",
        FigureSource.IMPORT: f"imported from {origin.id}",
        FigureSource.RECORD: "the gateway's record",
        FigureSource.CHARGEBACK: "the notification of a chargeback",
    }
    return MoneyLine(text=texts.get(origin.source, origin.id))


def _returned(each: Return, operations: dict[str, Operation], noted: dict[str, int]) -> MoneyLine:
    amount = money_text(each.amount_minor, each.currency) or "an amount that isn't known"
    is_given_back = each.figure is Figure.GIVEN_BACK
    text = f"{amount} was {'given back' if is_given_back else 'charged back by the bank'}"
    operation, source = operations.get(each.origin.id), each.origin.source
    if operation is not None:
        how = f"asked for by {operation.principal}"
        done_at_ms = operation.updated_at_ms
        return MoneyLine(text=text, at_ms=done_at_ms, how=how, operation_id=operation.id, is_given_back=is_given_back)
    hows = {
        FigureSource.IMPORT: f"as {each.origin.id} said",
        FigureSource.RECORD: "as the gateway's record shows",
        FigureSource.CHARGEBACK: "as the gateway notified",
    }
    how, at_ms = hows.get(source, each.origin.id), noted.get(each.origin.id)
    return MoneyLine(text=text, at_ms=at_ms, how=how, is_given_back=is_given_back)


def _doubted(doubt: Doubt, operations: dict[str, Operation]) -> MoneyLine:
    operation = operations.get(doubt.id)
    name = None if operation is None else request_phrase(operation)
    return MoneyLine(text=doubt_text(doubt, name), operation_id=None if operation is None else operation.id)
