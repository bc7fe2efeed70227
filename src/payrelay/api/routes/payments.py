"""Payments: those of an order, its balance, charges, captures, refunds and voids."""

from typing import Final

from payrelay.api.requests.parameters import Parameter, text
from payrelay.api.requests.payment_bodies import CaptureBody, ChargeBody, RefundBody
from payrelay.api.requests.route import ParsedRequest, Route, gateway_effect, gateway_read, refused
from payrelay.api.routes.policies import own_charge, own_order
from payrelay.core.access.credential import Scope
from payrelay.core.calls import PaymentsOfOrder
from payrelay.errors import Code, FieldError, wrong_fields
from payrelay.flows.orders.show_order import show_order
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund
from payrelay.flows.payments.retrieve_payments import retrieve_payments

ORDER: Final = text("id", "Identifier of the order.", "DemoOrder1")
ORDER_ID: Final = text("order_id", "Identifier of the order.", "Order12345")


def _order_of(parsed: ParsedRequest, parameter: Parameter) -> str:
    words = parameter.validator(parsed.id)
    if words is not None:
        raise wrong_fields([FieldError(parameter.name, words)])
    return parsed.id


ROUTES: Final[tuple[Route, ...]] = (
    gateway_read(
        name="retrievePayments",
        path="/payments/{id}",
        sentence="Retrieve the successful payments of an order",
        scope=Scope.PAYMENTS_READ,
        handler=lambda relay, parsed: retrieve_payments(
            relay, parsed.request, PaymentsOfOrder(order_id=_order_of(parsed, ORDER))
        ),
        answer="payments",
        bound=own_order,
        segment=ORDER,
    ),
    Route(
        name="showOrder",
        path="/orders/{order_id}",
        sentence="Show the balance of an order: what was paid, held, given back, charged back and left",
        scope=Scope.PAYMENTS_READ,
        handler=lambda relay, parsed: show_order(relay, parsed.request, _order_of(parsed, ORDER_ID)),
        answer="order",
        bound=own_order,
        segment=ORDER_ID,
    ),
    gateway_effect(
        name="charge",
        method="POST",
        path="/payments/charge",
        sentence="Charge a pre-approved customer, or authorize an amount",
        scope=Scope.PAYMENTS_CHARGE,
        handler=lambda relay, parsed: charge(relay, parsed.request, parsed.body_as(ChargeBody).call()),
        answer="charge",
        bound=own_charge,
        body=ChargeBody,
        own_codes=(Code.PENDING, Code.DECLINED),
    ),
    gateway_effect(
        name="capture",
        method="POST",
        path="/payments/capture",
        sentence="Capture an authorized payment, or a part of it",
        scope=Scope.PAYMENTS_CAPTURE,
        handler=lambda relay, parsed: capture(relay, parsed.request, parsed.body_as(CaptureBody).call()),
        answer="capture",
        bound=refused,
        body=CaptureBody,
        own_codes=(Code.DECLINED,),
    ),
    gateway_effect(
        name="refund",
        method="POST",
        path="/payments/refund",
        sentence="Refund a payment or a part of it, or void an authorization",
        scope=Scope.PAYMENTS_REFUND,
        handler=lambda relay, parsed: refund(relay, parsed.request, parsed.body_as(RefundBody).call()),
        answer="refund",
        bound=refused,
        body=RefundBody,
    ),
)
