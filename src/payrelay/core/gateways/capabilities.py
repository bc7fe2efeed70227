"""What a gateway can do, as data; the way to resolve a lost answer follows from it.

Rules:

1. A capability is a fact about the gateway, which its adapter declares. Code that decides reads it here, and never asks
   which gateway it is.
2. An adapter declares a capability that isn't known as absent. Then less is proved, and an operator is called earlier.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.payments.operation import Kind

FORM_TYPE: Final = "application/x-www-form-urlencoded"


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What one gateway account can do.

    Attributes:
        keys_kept_ms: how long the gateway keeps an operation's id as an idempotency key. An effect that is sent again
            in that time gets the first answer, and is not done twice. None where the gateway keeps no keys.
        does_once: effects that the gateway does only once by their nature, so that sending one again proves what
            became of the first.
        finds_orders: whether the gateway shows the payments of an order by the merchant's order id.
        shows_refunds: whether a payment's record shows a refund.
        shows_authorizations: whether an authorization shows among the payments of its order.
        shows_installments: whether the gateway shows the payments of a subscription.
        unknown_to_plans: members of a plan that this account doesn't support.
        page_currencies: the currencies that the gateway's page takes, for every kind of checkout; None where that isn't
            known, and no currency is refused.
        unset_for_checkouts: settings that checkouts need and that aren't all set; empty where checkouts are offered.
        notification_type: the media type of its notifications.
        signs_elsewhere: whether the account's secret signs forms without Payrelay's knowledge, at a gateway that runs
            fields together before it signs them (``signed_text``). None where nobody has said so, which counts as true.
            False at a gateway whose signatures tell fields apart.
    """

    keys_kept_ms: int | None = None
    does_once: frozenset[Kind] = frozenset()
    finds_orders: bool = False
    shows_refunds: bool = False
    shows_authorizations: bool = False
    shows_installments: bool = False
    unknown_to_plans: frozenset[str] = frozenset()
    page_currencies: frozenset[str] | None = None
    unset_for_checkouts: tuple[str, ...] = ()
    notification_type: str = FORM_TYPE
    signs_elsewhere: bool | None = False

    def page_currency_error(self, currency: str) -> str | None:
        """Says, behind the field's name, that the gateway's page doesn't take a currency; None where it may take it."""
        if self.page_currencies is None or currency in self.page_currencies:
            return None
        return f"must be one that the gateway's page takes: {', '.join(sorted(self.page_currencies))}"


class ResolutionWay(StrEnum):
    """How the service resolves an effect whose answer was lost."""

    SEND_UNDER_KEY = "send_under_key"
    """The service resends it under the operation's id, and the gateway gives the first answer again."""
    SEND_AGAIN = "send_again"
    """The service resends it, because the gateway does it only once."""
    SEARCH = "search"
    """The service searches the gateway's records."""
    WAIT = "wait"
    """The service waits for a notification: no record shows the effect, and it ends by itself."""
    NONE = "none"
    """No record shows the effect; an operator must decide."""


def resolution_way_of(kind: Kind, can: Capabilities, *, is_key_kept: bool) -> ResolutionWay:
    """Decides how the service resolves an effect; ``is_key_kept`` is true where the gateway surely still has its key.

    A kept key comes first, because its answer is the gateway's own. Without one, the service resends an effect that is
    done only once, and searches for any other effect that the gateway shows.
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
