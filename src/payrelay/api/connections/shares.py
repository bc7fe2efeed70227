"""Shares of the requests that may be under way at once, so that no phone shuts out its shop or the other phones.

The keys of a principal have one share. Its client tokens together have another, half as large, and in it each customer,
or each order that is nobody's, has a small one, however many tokens were issued for it.
"""

from typing import Final

import msgspec

from payrelay.core.access.credential import Credential

APP_REQUESTS_MAX: Final = 16
"""Requests of one customer's apps that are under way at once: the ten streams that a client token may have, and some
calls beside them."""


class Share(msgspec.Struct, frozen=True):
    """Some requests at once; the one who has them is ``whose``, in the words of a refusal."""

    name: str
    requests_max: int
    whose: str


def shares_of(credential: Credential, requests_max: int) -> tuple[Share, ...]:
    """Gives the shares that a request counts in, the largest first; that of a principal's keys is ``requests_max``."""
    principal, bound = credential.principal, credential.bound
    if bound is None:
        return (Share(principal, requests_max, "this principal"),)
    person = bound.customer_id or bound.reference or bound.order_id
    apps = f"client tokens of {principal}"
    return (
        Share(apps, max(1, requests_max // 2), "the client tokens of this principal"),
        Share(f"{apps} for {person}", min(APP_REQUESTS_MAX, max(1, requests_max // 4)), "this customer or order"),
    )
