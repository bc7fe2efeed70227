"""The intent: what a request wants done at the gateway."""

import msgspec

from payrelay.core.calls import Effect
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Kind
from payrelay.gateways.gateway import ExpectedReply
from payrelay.store.payments.journal import Condition


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """One effect that is to be carried out at the gateway, before its operation is stored.

    Attributes:
        kind: the kind of the operation.
        call: the call to the gateway.
        subject: what the call acts on, free of secrets; the guard against a second operation while this one is open.
        conflicts_with: a guard that no operation of the merchant may hold; None where there is none.
        condition: what must hold when the operation is stored; None where nothing more must.
        expected: what the reply must match beyond what the call itself says.
        order_id, payment_id, subscription_id, amount_minor, currency: what is known before the sending.
        evidence: what the gateway showed before the sending, for when the outcome has to be proved.
        sent: the call that is sent where it differs from ``call``; it is stored nowhere.
        customer_id: the stored customer whose handle the request named.
    """

    kind: Kind
    call: Effect
    subject: str
    conflicts_with: str | None = None
    condition: Condition | None = None
    expected: ExpectedReply = ExpectedReply()
    order_id: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    evidence: Evidence = Evidence()
    sent: Effect | None = None
    customer_id: str | None = None
