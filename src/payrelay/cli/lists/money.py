"""How the commands write what money is known of payments: the words and figures of their balances."""

from typing import TYPE_CHECKING

from payrelay.core.moments import rfc3339
from payrelay.core.money import money_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from payrelay.cli.terminal.pages import Cell
    from payrelay.flows.orders.order_money import MoneyLine, PaymentMoney


def figures_of(payment: "PaymentMoney") -> list[tuple[str, str]]:
    """Gives what was paid and what is left, and what is held, given back and charged back where anything is."""
    balance, currency = payment.balance, payment.balance.currency
    lapses = (
        "" if balance.held_until_ms is None else f", until {rfc3339(balance.held_until_ms, 'seconds')} at the latest"
    )
    others = (
        ("held", balance.held_minor, lapses),
        ("given back", balance.given_back_minor, ""),
        ("charged back", balance.charged_back_minor, ""),
    )
    return [
        ("paid", money_text(balance.paid_minor, currency) or "not known"),
        *((name, f"{money_text(minor, currency)}{more}") for name, minor, more in others if minor),
        ("left", money_text(balance.left_minor, currency) or "not known"),
    ]


def facts_of(payment: "PaymentMoney | None") -> "list[tuple[str, Cell]]":
    """Gives the figures of a payment, where they come from, and what isn't certain of them."""
    if payment is None:
        return [("paid", "nothing, as far as is known")]
    lists = (
        ("made by", payment.made_by),
        ("what went back", payment.returns),
        ("what isn't certain", payment.doubts),
    )
    return [*figures_of(payment), *((name, told_lines(told)) for name, told in lists if told)]


def told_lines(told: "Iterable[MoneyLine]") -> list[str]:
    """Writes what is told, one line each, with the operation that it is about."""
    return [_line(each) for each in told]


def _line(told: "MoneyLine") -> str:
    when = "" if told.at_ms is None else f" on {rfc3339(told.at_ms, 'seconds')}"
    how = f", {told.how}" if told.how else ""
    return f"{told.text}{when}{how}" + ("" if told.operation_id is None else f" ({told.operation_id})")
