"""What a gateway can do and what it can't, as data: which way leads to the truth about a lost answer follows from it.

Rules:

1. A capability is a fact about the gateway, told by its adapter. Whoever decides reads it here, and never asks which
   gateway it is.
2. What isn't known of a gateway is told as what it can't do: then less is proved, and a person is called earlier.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.payments.operation import Kind

FORM_TYPE: Final = "application/x-www-form-urlencoded"


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What one gateway account can do.

    Attributes:
        keys_kept_ms: how long an effect that is sent again under the same operation's id is answered as it was the
            first time, and not done twice; None where the gateway keeps no such key.
        does_once: effects that the gateway does only once by their nature, so that sending one again proves what
            became of the first.
        finds_orders: whether it shows the payments of an order by our reference.
        shows_refunds: whether a payment's record shows that it was given back.
        shows_authorizations: whether a hold shows among the payments of its order.
        shows_installments: whether it shows the payments of a subscription.
        unknown_to_plans: members of a plan that this account doesn't know.
        unset_for_checkouts: settings that checkouts need and that aren't all set; none where they are offered.
        notification_type: the media type of its notifications.
    """

    keys_kept_ms: int | None = None
    does_once: frozenset[Kind] = frozenset()
    finds_orders: bool = False
    shows_refunds: bool = False
    shows_authorizations: bool = False
    shows_installments: bool = False
    unknown_to_plans: frozenset[str] = frozenset()
    unset_for_checkouts: tuple[str, ...] = ()
    notification_type: str = FORM_TYPE


class ResolutionWay(StrEnum):
    """How it is found out what became of an effect."""

    SEND_UNDER_KEY = "send_under_key"
    """Sent once more under the operation's id: the gateway answers as it did the first time."""
    SEND_AGAIN = "send_again"
    """Sent once more: the gateway does it only once."""
    SEARCH = "search"
    """Searched for among what the gateway shows."""
    WAIT = "wait"
    """Waited for: nothing shows it, and it ends by itself."""
    NONE = "none"
    """Nothing shows it: it is for a person."""


def resolution_way_of(kind: Kind, can: Capabilities, *, is_key_kept: bool) -> ResolutionWay:
    """Decides how it is found out what became of an effect; ``is_key_kept`` tells that its key surely is, by now.

    The key comes first: its answer is the gateway's own. Where there is none, what is done only once is sent again,
    and everything else is searched for where it shows.
    """
    if is_key_kept and can.keys_kept_ms is not None:
        return ResolutionWay.SEND_UNDER_KEY
    if kind in can.does_once:
        return ResolutionWay.SEND_AGAIN
    shown = {
        Kind.CHARGE: can.finds_orders,
        Kind.AUTHORIZATION: can.finds_orders and can.shows_authorizations,
        Kind.REFUND: can.finds_orders and can.shows_refunds,
        Kind.RETRY: can.shows_installments,
    }
    if shown.get(kind, False):
        return ResolutionWay.SEARCH
    return ResolutionWay.WAIT if kind is Kind.AUTHORIZATION else ResolutionWay.NONE
