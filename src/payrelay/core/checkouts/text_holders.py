"""Decides what else a notification or a payment may be of: the forms and calls that have its signed text.

``core.gateways.signed_text`` says why there may be several.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.payments.operation import Kind
from payrelay.core.payments.proof import Match, MatchResult


class HolderKind(StrEnum):
    """What has a signed text."""

    FORM = "form"
    """A form that was given out to a customer."""
    CALL = "call"
    """A call to the gateway, whose reply and whose notification are signed."""


class TextHolder(msgspec.Struct, frozen=True, kw_only=True):
    """A checkout or an operation that has a signed text.

    Attributes:
        subject: its id.
        kind: whether its form or its call is signed.
        noun: the kind of the checkout or of the operation, as it is stored; None where the row is gone.
        order_id: its order; None where the row is gone, or has none.
        is_exact: whether its text is known; False where only its order is.
    """

    subject: str
    kind: HolderKind
    noun: str | None
    order_id: str | None
    is_exact: bool


def beside_authorization(holders: Iterable[TextHolder], operation_id: str) -> list[TextHolder]:
    """Gives what else the signature of an authorization's notification may be of.

    That is any form, because a form for a payment can be posted as one for an authorization. It is also any other call
    for an authorization, and no charge: a charge that is made at once is never notified as an authorization.
    """
    return [each for each in holders if each.subject != operation_id and each.noun != Kind.CHARGE]


def of_other_orders(holders: Iterable[TextHolder], order_id: str) -> list[TextHolder]:
    """Gives what has a text and is not of this order: a report on an attempt may be about each of these as well.

    A form whose amount isn't known any more is left out, as for an approval.
    """
    return [each for each in holders if each.is_exact and each.order_id != order_id]


def beside_hosted_authorization(holders: Iterable[TextHolder], order_id: str) -> list[TextHolder]:
    """Gives what else the signature of the notification of an authorization on the gateway's page may be of.

    Whatever has the text under the same order has the same amount too. A charge is never notified as an authorization.
    """
    return [each for each in of_other_orders(holders, order_id) if each.noun != Kind.CHARGE]


def doubted_by_forms(match: Match, holders: Iterable[TextHolder], *, own: frozenset[str]) -> Match:
    """Takes the certainty from a match whose payment a customer may have made with a form that was given out.

    ``holders`` have the text of the payment's order and amount. Whatever became of a form's checkout, and whatever it
    was for, the form can be paid again. No field of the payment's record tells it apart from a charge: the customer
    writes the description, and may have the same card. ``own`` are the checkouts whose forms don't count.
    """
    is_doubted = match.seen is MatchResult.ONE_FITS and any(
        each.kind is HolderKind.FORM and each.subject not in own for each in holders
    )
    return msgspec.structs.replace(match, seen=MatchResult.MAY_BE_OF_A_FORM) if is_doubted else match


def beside_approval(holders: Iterable[TextHolder], order_id: str) -> list[TextHolder]:
    """Gives what else the signature of an approval's notification may be of.

    Another form for an approval of the same order asks the customer for the same, and is no other reading. A form
    whose amount isn't known any more is left out: with it, every order whose id begins alike would need an operator.
    """
    return [
        each
        for each in holders
        if each.is_exact and not (each.noun == CheckoutKind.PREAPPROVAL and each.order_id == order_id)
    ]
