"""Shares of the requests that may be under way at once, so that no phone shuts out its shop or the other phones.

The keys of a principal have one share. Its client tokens together have another, half as large, and in it each customer,
or each order that is nobody's, has a small one, however many tokens were issued for it. Nobody can tell the orders of
one person from those of many. So where the tokens' share is taken, the first requests of each are admitted even then.
"""

from typing import Final

import msgspec

from payrelay.core.access.credential import Credential

APP_REQUESTS_MAX: Final = 16
"""Requests of one customer's apps that are under way at once: the ten streams that a client token may have, and some
calls beside them."""
APP_FIRST_MAX: Final = 2
"""Requests of one customer's apps that are admitted where the other apps have taken the share: one that waits for the
outcome of a payment, and one beside it."""


class Share(msgspec.Struct, frozen=True):
    """Some requests at once; the one who has them is ``whose``, in the words of a refusal.

    Of each one who shares it, ``first_max`` are admitted although there are as many: until there are ``whole_max``.
    """

    name: str
    requests_max: int
    whose: str
    first_max: int = 0
    whole_max: int = 0

    def most_beside(self, own: int) -> int:
        """Gives how many there may be where one who shares it has ``own`` of them, the newest one included."""
        return self.whole_max if own <= self.first_max else self.requests_max


def shares_of(credential: Credential, requests_max: int) -> tuple[Share, ...]:
    """Gives the shares that a request counts in, the largest first; that of a principal's keys is ``requests_max``."""
    principal, bound = credential.principal, credential.bound
    if bound is None:
        return (Share(principal, requests_max, "this principal"),)
    person = bound.customer_id or bound.reference or bound.order_id
    apps = f"client tokens of {principal}"
    return (
        Share(
            apps,
            max(1, requests_max // 2),
            "the client tokens of this principal",
            first_max=APP_FIRST_MAX,
            whole_max=requests_max,
        ),
        Share(f"{apps} for {person}", min(APP_REQUESTS_MAX, max(1, requests_max // 4)), "this customer or order"),
    )
