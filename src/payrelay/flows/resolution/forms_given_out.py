"""Finds the forms with which a customer may have made a payment that was found."""

from payrelay.core.checkouts.text_holders import doubted_by_forms
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.payments.proof import Match, MatchResult
from payrelay.flows.relay import Relay


async def doubted_by_forms_given_out(
    relay: Relay, merchant: str, match: Match, *, own: frozenset[str] = frozenset()
) -> Match:
    """Returns a match, without its certainty where a customer may have made the payment with a form.

    ``own`` are the checkouts of what is looked for, whose forms don't count. Raises StoreError.
    """
    payment = match.payment
    if match.seen is not MatchResult.ONE_FITS or payment is None or payment.amount_minor is None:
        return match
    text = SignedText(order_id=payment.order_id, amount_minor=payment.amount_minor, currency=payment.currency)
    return doubted_by_forms(match, await relay.signed_texts.holders(merchant, (text,)), own=own)
