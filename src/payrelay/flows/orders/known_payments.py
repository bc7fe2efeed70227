"""Lists for operators the payments that are known here: what each is known by, and its balance. Asks no gateway."""

import msgspec

from payrelay.core.moments import rfc3339
from payrelay.core.payments.operation import State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.views import view_of
from payrelay.flows.orders.order_money import PaymentMoney, read_payment_money
from payrelay.flows.orders.order_views import PaymentBalanceView, payment_view
from payrelay.flows.relay import Relay
from payrelay.store.payments.known_payments import PaymentFilter, PaymentSummary


class PaymentOwnerView(msgspec.Struct, frozen=True, kw_only=True):
    """What a payment belongs to: an operation, a checkout, a subscription or an import; the state of the first two."""

    kind: str
    id: str
    state: str | None


class RefundOfPayment(msgspec.Struct, frozen=True, kw_only=True):
    """A refund that was asked for here; its amount is null where it is of the whole payment."""

    operation_id: str
    state: State
    amount: msgspec.Raw


class KnownPaymentView(msgspec.Struct, frozen=True, kw_only=True):
    """A payment as an operator sees it.

    ``state`` is the gateway's word when the payment was last read, at ``as_of``; both are None where it never was.
    ``account`` is None where no account that is configured now has the payment's merchant. ``balance`` is None where no
    money is known to have moved.
    """

    payment_id: str
    account: str | None
    order_id: str | None
    balance: PaymentBalanceView | None
    state: str | None
    as_of: str | None
    belongs_to: list[PaymentOwnerView]
    refunds: list[RefundOfPayment]
    charged_back_at: str | None


class ListedPayment(msgspec.Struct, frozen=True, kw_only=True):
    """A payment: as a program reads it, and its money in words; None where no money is known to have moved."""

    view: KnownPaymentView
    money: PaymentMoney | None


async def list_known_payments(
    relay: Relay,
    *,
    account: str | None = None,
    order_id: str | None = None,
    status: PaymentStatus | None = None,
    payment_id: str | None = None,
    limit: int,
) -> list[ListedPayment]:
    """Lists known payments, newest first; those that are equal in all that is given.

    Raises StoreError, and Refusal (not_found) for an account that isn't configured.
    """
    merchant = None if account is None else relay.account(account).merchant
    wanted = PaymentFilter(merchant=merchant, order_id=order_id, status=status, payment_id=payment_id)
    names = {each.merchant: name for name, each in relay.accounts.items()}
    found = []
    for each in await relay.money.known_payments.list(wanted, limit=limit):
        money = (await read_payment_money(relay, each.merchant, each.payment_id)).payment(each.payment_id)
        found.append(ListedPayment(view=_view(each, money, names), money=money))
    return found


def _view(payment: PaymentSummary, money: PaymentMoney | None, names: dict[str, str]) -> KnownPaymentView:
    seen = payment.seen
    return view_of(
        payment,
        KnownPaymentView,
        account=next((each.account for each in payment.owners), names.get(payment.merchant)),
        balance=None if money is None else payment_view(money.balance),
        state=None if seen is None else seen.status,
        as_of=None if seen is None else rfc3339(seen.seen_at_ms),
        belongs_to=[view_of(each, PaymentOwnerView) for each in payment.owners],
        refunds=[view_of(each, RefundOfPayment, operation_id=each.id) for each in payment.refunds],
    )
