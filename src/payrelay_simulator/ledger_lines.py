"""The lines that are entered in the ledger about a payment or a hold."""

from payrelay_simulator.ledger import Kind, LedgerLine
from payrelay_simulator.records import Hold, Payment


def payment_line(payment: Payment, kind: Kind, amount_cents: int, refund_id: int | None = None) -> LedgerLine:
    """Return a ledger line about a payment; of a refund with its number."""
    return LedgerLine(
        kind=kind,
        merchant_id=payment.merchant_id,
        order_id=payment.order_id,
        amount_cents=amount_cents,
        currency=payment.currency,
        payment_id=payment.payment_id,
        subscription_id=payment.subscription_id,
        refund_id=refund_id,
    )


def hold_line(hold: Hold, kind: Kind, amount_cents: int) -> LedgerLine:
    """Return a ledger line about a hold."""
    return LedgerLine(
        kind=kind,
        merchant_id=hold.merchant_id,
        order_id=hold.order_id,
        amount_cents=amount_cents,
        currency=hold.currency,
        payment_id=hold.payment_id,
        authorization_token=hold.authorization_token,
    )
