"""Finds the forms of other orders with which a customer may have paid an order."""

from payrelay.core.calls import Charge
from payrelay.core.checkouts.text_holders import beside_charge
from payrelay.core.gateways.signed_text import SignedText
from payrelay.flows.relay import Relay


async def may_be_of_a_form(relay: Relay, merchant: str, call: Charge) -> bool:
    """Tells whether a customer may have changed another order's form, whose signature fits, and paid this order."""
    text = SignedText(order_id=call.order_id, amount_minor=call.amount_minor, currency=call.currency)
    holders = await relay.signed_texts.holders(merchant, (text,))
    return bool(beside_charge(holders, call.order_id))
