"""An order's money as a client sees it. Amounts are of the currency beside them."""

from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.orders.figures import (
    Doubt,
    DoubtKind,
    Figure,
    FigureSource,
    OrderBalance,
    Origin,
    PaymentBalance,
    sums_of,
)
from payrelay.core.views import view_of
from payrelay.flows.orders.order_sight import Sight
from payrelay.flows.payments.find_operations import operation_as_seen
from payrelay.flows.payments.operation_views import OperationView
from payrelay.flows.relay import Request

LISTED_MAX: Final = 100
"""Payments, operations and pages of one answer, of each the newest; most of them are under 1 KiB."""
_OURS: Final = frozenset({FigureSource.OPERATION, FigureSource.CHECKOUT})


class BalanceDoubtView(msgspec.Struct, frozen=True, kw_only=True):
    """Something that isn't certain, and why; ``id`` is what it is about, null where that isn't shown to the caller."""

    kind: DoubtKind
    explanation: str
    id: str | None
    payment_id: str | None
    amount: msgspec.Raw
    currency: str | None


class BalanceFigureView(msgspec.Struct, frozen=True, kw_only=True):
    """Where a figure of a payment comes from.

    ``id`` is of an operation, a checkout, a subscription and its payment, an import's line, a notification or the
    gateway's record; null for an operation or a checkout that the caller may not read. The amount is null where the
    source names none, as a refund of the whole.
    """

    figure: Figure
    source: FigureSource
    id: str | None
    amount: msgspec.Raw
    currency: str | None


class PaymentBalanceView(msgspec.Struct, frozen=True, kw_only=True):
    """One payment: ``paid`` is ``given_back``, ``charged_back`` and ``left`` together.

    ``payment_id`` is null where its number isn't known, as of a hold. ``paid`` and ``left`` are null where money was
    taken, and nothing says how much. ``held_until`` is when the hold lapses at the latest.
    """

    payment_id: str | None
    currency: str | None
    paid: msgspec.Raw
    held: msgspec.Raw
    held_until: str | None
    given_back: msgspec.Raw
    charged_back: msgspec.Raw
    left: msgspec.Raw
    is_certain: bool
    figures: list[BalanceFigureView]
    doubts: list[BalanceDoubtView]


class CurrencyBalanceView(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of the payments of one currency."""

    currency: str
    paid: msgspec.Raw
    held: msgspec.Raw
    given_back: msgspec.Raw
    charged_back: msgspec.Raw
    left: msgspec.Raw


class OrderCheckoutView(msgspec.Struct, frozen=True, kw_only=True):
    """A page of an order, in short."""

    id: str
    kind: CheckoutKind
    state: CheckoutState
    explanation: str
    amount: msgspec.Raw
    currency: str
    payment_id: str | None
    subscription_id: str | None
    created_at: str
    updated_at: str


class OrderView(msgspec.Struct, frozen=True, kw_only=True):
    """An order: the sums of its money, its payments, its operations and its pages, the newest first.

    ``…_left_out`` says how many more there are, which the caller may not read or which are too many for one answer.
    ``is_complete`` is false where the order has too much to be added up: then there are neither sums nor payments.
    """

    order_id: str
    account: str
    is_certain: bool
    is_complete: bool
    balances: list[CurrencyBalanceView]
    payments: list[PaymentBalanceView]
    payments_left_out: int
    doubts: list[BalanceDoubtView]
    operations: list[OperationView]
    operations_left_out: int
    checkouts: list[OrderCheckoutView]
    checkouts_left_out: int


def order_view(request: Request, order_id: str, balance: OrderBalance, sight: Sight) -> OrderView:
    """Returns an order as a caller sees it who may read what ``sight`` says."""
    visible = [each for each in balance.payments if each.id not in sight.hidden]
    doubts = [each for each in balance.doubts if not sight.is_personal or _is_of_customer(each, visible, sight)]
    shown = visible[::-1][:LISTED_MAX]
    operations = sorted(sight.operations.values(), key=lambda each: each.id, reverse=True)[:LISTED_MAX]
    checkouts = sorted(sight.checkouts.values(), key=lambda each: each.id, reverse=True)[:LISTED_MAX]
    return OrderView(
        order_id=order_id,
        account=request.account,
        is_certain=not doubts,
        is_complete=balance.is_complete,
        balances=[
            view_of(each, CurrencyBalanceView)
            for each in (sums_of(visible) if sight.is_personal else balance.currencies)
        ],
        payments=[payment_view(each, sight) for each in shown],
        payments_left_out=len(balance.payments) - len(shown),
        doubts=[doubt_view(each, sight) for each in doubts],
        operations=[operation_as_seen(each, request) for each in operations],
        operations_left_out=sight.operations_all - len(operations),
        checkouts=[view_of(each, OrderCheckoutView, explanation=each.sentence) for each in checkouts],
        checkouts_left_out=sight.checkouts_all - len(checkouts),
    )


def _is_of_customer(doubt: Doubt, visible: list[PaymentBalance], sight: Sight) -> bool:
    """Tells whether a doubt is about what a credential of one customer sees."""
    is_of_payment = any(doubt in each.doubts for each in visible)
    return is_of_payment or sight.has(doubt.id)


def payment_view(payment: PaymentBalance, sight: Sight | None = None) -> PaymentBalanceView:
    """Returns a payment as a caller sees it who may read what ``sight`` says; without it as an operator does."""
    return view_of(
        payment,
        PaymentBalanceView,
        figures=[_figure(each, sight) for each in payment.origins],
        doubts=[doubt_view(each, sight) for each in payment.doubts],
    )


def doubt_view(doubt: Doubt, sight: Sight | None = None) -> BalanceDoubtView:
    """Returns a doubt; of an operation, a page and a row that somebody changed only what the caller may read."""
    is_ours = doubt.id.startswith(("op_", "chk_")) or doubt.kind is DoubtKind.FORGED
    is_hidden = sight is not None and is_ours and not sight.has(doubt.id)
    is_foreign = sight is not None and doubt.payment_id in sight.hidden
    return view_of(
        doubt,
        BalanceDoubtView,
        explanation=doubt.kind.sentence,
        id=None if is_hidden or is_foreign else doubt.id,
        payment_id=None if is_foreign else doubt.payment_id,
    )


def _figure(origin: Origin, sight: Sight | None) -> BalanceFigureView:
    is_hidden = sight is not None and origin.source in _OURS and not sight.has(origin.id)
    return view_of(origin, BalanceFigureView, id=None if is_hidden else origin.id)
