"""Who owns what among the principals of one merchant: what a caller may act on and see besides its own.

Rules:

1. Owner of a payment is the principal whose operation, checkout or plan made it, or else the one for whom it was
   imported. Owner of a plan is the principal whose checkout began it, or for whom it was imported. Owner of an
   authorization is the principal that requested it.
2. Owner of an order is whoever made a payment of it, has an open operation on it, or gave a checkout's form for it to
   a customer. The gateway takes such a form for good, whatever became of the checkout. An operation that took no effect
   owns nothing.
3. What Payrelay knows no maker of belongs to the owner of its order. Where the order has none either, it is open to all
   keys of the account.
4. A caller may act on what its own principal owns, and on what the principals own that it acts for: those of its group.
   A key with the scope ``any-principal`` may act on everything.
5. To everyone else a thing is foreign: the service answers as if it didn't exist.
"""

from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from payrelay.core.access.credential import Credential, Scope

NOBODY: Final[frozenset[str]] = frozenset()
"""The owners of what has no known owner."""


class OrderOwners(msgspec.Struct, frozen=True, kw_only=True):
    """The owners of an order.

    Attributes:
        settled: those that made a payment of it, or have a checkout of it that may be paid.
        charging: those whose charge or authorization of it is open; its guard keeps others out meanwhile.
        is_imported: whether a payment of it was imported.
        operations: those that made a payment of it, or may have.
        open_pages: its checkouts that ask for money and wait for the customer, or for the capture of a reported hold.
        has_more: whether anything else made a payment of it, or may have: also a failed operation, which may reappear.
    """

    settled: frozenset[str] = NOBODY
    charging: frozenset[str] = NOBODY
    is_imported: bool = False
    operations: frozenset[str] = frozenset()
    open_pages: tuple[str, ...] = ()
    has_more: bool = False

    @property
    def all(self) -> frozenset[str]:
        """All owners."""
        return self.settled | self.charging


def acts_for_any(credential: Credential) -> bool:
    """True for a key with the scope ``any-principal``; never for a token, whatever its scopes say."""
    return Scope.ANY_PRINCIPAL in credential.scopes and credential.bound is None


def may_act(credential: Credential, owners: AbstractSet[str], acts_for: AbstractSet[str] = NOBODY) -> bool:
    """True where a thing with these owners isn't foreign to the caller; ``acts_for`` are the others it acts for."""
    if not owners or acts_for_any(credential) or credential.principal in owners:
        return True
    return not owners.isdisjoint(acts_for)
