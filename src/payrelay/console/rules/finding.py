"""What somebody looks for in the console, and what was found.

A search has a text, or a filter, or both. By its text it finds what has exactly that id, whatever kind of thing it is;
the filter then narrows what was found. Without a text the filter selects from a list.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.payments.operation import Kind, State

TEXT_LENGTH_MAX: Final = 200
"""As long as any id that a client may choose."""
CHECKOUT: Final = "checkout"
"""In place of a kind of operation: what customers are asked for on the gateway's page."""
_OF_CHECKOUTS: Final = "checkout-"

KINDS: Final = (*Kind, CHECKOUT)
"""What the filter offers as a kind."""
STATES: Final = (*State, *(f"{_OF_CHECKOUTS}{state}" for state in CheckoutState))
"""What the filter offers as a state; those of checkouts say so, because some words are of both."""


class Thing(StrEnum):
    """A kind of thing that can be found."""

    OPERATION = "operation"
    CHECKOUT = "checkout"
    SUBSCRIPTION = "subscription"
    NOTIFICATION = "notification"
    CUSTOMER = "customer"
    PAYMENT = "payment"


class SearchError(ValueError):
    """A search that makes no sense; the text is a sentence for whoever wrote it."""


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody looks for.

    Attributes:
        text: an id, or what else names a payment; empty for none.
        kind: one of ``KINDS``; None for whatever.
        state: one of ``STATES``; None for whatever.
        account: the configured name of an account; None for all.
        amount_minor: in hundredths; None for whatever.
        since_ms, until_ms: the time of the beginning, from the first on and before the second; None for no end.
        before: the id behind which a list goes on; None at its beginning.
    """

    text: str = ""
    kind: str | None = None
    state: str | None = None
    account: str | None = None
    amount_minor: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    before: str | None = None

    def __post_init__(self) -> None:
        """Raises SearchError for a combination that nothing can fit."""
        if self.is_of_checkouts and self.kind not in {None, CHECKOUT}:
            raise SearchError("That state is one of checkouts, and that kind is one of operations.")
        if self.kind == CHECKOUT and self.state is not None and not self.state.startswith(_OF_CHECKOUTS):
            raise SearchError("That state is one of operations; for checkouts choose one of theirs.")
        if self.since_ms is not None and self.until_ms is not None and self.since_ms >= self.until_ms:
            raise SearchError("The first day is after the last.")

    @property
    def is_of_checkouts(self) -> bool:
        """True where only checkouts can fit."""
        return self.kind == CHECKOUT or (self.state or "").startswith(_OF_CHECKOUTS)

    @property
    def plain_state(self) -> str | None:
        """The state in the word that is stored."""
        return None if self.state is None else self.state.removeprefix(_OF_CHECKOUTS)

    def fits(self, hit: "Hit") -> bool:
        """Tells whether the filter lets something pass that was found by the text."""
        if self.state is not None:
            noun = Thing.CHECKOUT if self.is_of_checkouts else Thing.OPERATION
            if hit.noun is not noun or hit.state != self.plain_state:
                return False
        if self.kind is not None and (hit.noun if self.kind == CHECKOUT else hit.kind) != self.kind:
            return False
        if self.kind not in {None, CHECKOUT} and hit.noun is not Thing.OPERATION:
            return False
        is_late_enough = self.since_ms is None or hit.at_ms >= self.since_ms
        is_early_enough = self.until_ms is None or hit.at_ms < self.until_ms
        is_of_account = self.account in {None, hit.account}
        return is_late_enough and is_early_enough and is_of_account and self.amount_minor in {None, hit.amount_minor}


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was found.

    Attributes:
        noun, id: what it is.
        found_by: in words, what of it was looked for; empty in a list.
        kind, state: in stored words; None where it has none.
        account, order_id, payment_id, subscription_id: what it belongs to; None where that isn't known.
        amount_minor, currency: the money; None where none is named.
        at_ms: when it began.
    """

    noun: Thing
    id: str
    found_by: str
    account: str
    at_ms: int
    kind: str | None = None
    state: str | None = None
    order_id: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None
    amount_minor: int | None = None
    currency: str | None = None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found.

    Attributes:
        hits: newest first.
        notes: sentences about what was not looked at.
        older: the id behind which the list goes on; None at its end.
        looked_back_to_ms: how far the list was looked through, where it goes on without anything having been found
            beyond; None otherwise.
    """

    hits: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()
    older: str | None = None
    looked_back_to_ms: int | None = None
