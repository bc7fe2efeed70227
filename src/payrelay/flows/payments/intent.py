"""What a story of a payment is about to do."""

import msgspec

from payrelay.core.calls import Effect
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Kind
from payrelay.gateways.gateway import ExpectedReply


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done, and what it acts on.

    Attributes:
        kind: what it does.
        call: what is asked of the gateway.
        subject: what it acts on, free of secrets; held against a second one while this one is unsettled.
        conflicts_with: a guard that must not be held by any operation of the merchant; None where there is none.
        expected: what the reply must match beyond what the call itself says.
        order_id, payment_id, subscription_id, amount_minor, currency: what is known of it beforehand.
        evidence: what was seen at the gateway beforehand, for when its outcome has to be proved.
        sent: what is sent where that isn't the call itself; it is stored nowhere.
        customer_id: the stored customer that it was asked for by handle.
    """

    kind: Kind
    call: Effect
    subject: str
    conflicts_with: str | None = None
    expected: ExpectedReply = ExpectedReply()
    order_id: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    evidence: Evidence = Evidence()
    sent: Effect | None = None
    customer_id: str | None = None
