"""Shows operators what an order's money is, on each account that knows it. Asks no gateway."""

from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import CheckoutFilter
from payrelay.core.payments.operation import OperationFilter
from payrelay.core.views import view_of
from payrelay.flows.orders.order_money import OrderMoney, read_order_money
from payrelay.flows.orders.order_views import (
    BalanceDoubtView,
    CurrencyBalanceView,
    PaymentBalanceView,
    doubt_view,
    payment_view,
)
from payrelay.flows.relay import Relay
from payrelay.store.payments.known_payments import PaymentFilter

_LOOKED_AT: Final = 100
"""Rows of one kind whose accounts are looked at, beside those that are configured."""


class KnownOrderView(msgspec.Struct, frozen=True, kw_only=True):
    """An order as an operator sees it: sums by currency, each payment, and what isn't certain."""

    account: str
    order_id: str
    is_certain: bool
    is_complete: bool
    balances: list[CurrencyBalanceView]
    payments: list[PaymentBalanceView]
    doubts: list[BalanceDoubtView]


class KnownOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order of one account: as a program reads it, and in words."""

    view: KnownOrderView
    money: OrderMoney


async def find_known_orders(relay: Relay, order_id: str, *, account: str | None = None) -> list[KnownOrder]:
    """Finds the orders with this id, by their accounts: two shops may number theirs alike.

    Raises StoreError, and Refusal (not_found) for an account that is neither configured nor known to the order.
    """
    found = []
    for merchant, name in sorted((await _merchants(relay, order_id, account)).items(), key=lambda each: each[1]):
        money = await read_order_money(relay, [merchant], order_id)
        if money.is_known:
            found.append(KnownOrder(view=_view(money, name, order_id), money=money))
    return found


async def _merchants(relay: Relay, order_id: str, account: str | None) -> dict[str, str]:
    """Gives the merchants that may know the order, with an account of each: configured ones, and those of its rows."""
    operations = await relay.journal.list(OperationFilter(order_id=order_id), before=None, limit=_LOOKED_AT)
    checkouts = await relay.checkouts.list(CheckoutFilter(order_id=order_id), before=None, limit=_LOOKED_AT)
    payments = await relay.money.known_payments.list(PaymentFilter(order_id=order_id), limit=_LOOKED_AT)
    named = [(each.merchant, each.account) for each in operations]
    named += [(each.merchant, each.account) for each in checkouts]
    named += [(each.merchant, owner.account) for each in payments for owner in each.owners]
    named += [(each.merchant, name) for name, each in sorted(relay.accounts.items(), reverse=True)]
    if account is None:
        return dict(named)
    own = {merchant: name for merchant, name in named if name == account}
    return own or {relay.account(account).merchant: account}


def _view(money: OrderMoney, account: str, order_id: str) -> KnownOrderView:
    balance = money.balance
    return KnownOrderView(
        account=account,
        order_id=order_id,
        is_certain=balance.is_certain,
        is_complete=balance.is_complete,
        balances=[view_of(each, CurrencyBalanceView) for each in balance.currencies],
        payments=[payment_view(each) for each in balance.payments],
        doubts=[doubt_view(each) for each in balance.doubts],
    )
