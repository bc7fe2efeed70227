"""What the gateway's records say of effects whose operations were lost with the newest commits.

Rules:

1. A lost operation was sent within the lost window, or shortly after it. A payment dated before it is not its own. One
   dated after it, which nothing owns, is for a person: the end of the window is as good as two machines' clocks.
2. A payment is another's only where that was stored before the lost window began. What was attributed since may as well
   be of a lost operation.
3. A request whose effect may be there already is never sent. It gets the effect for its answer where one payment alone
   is left, fits in every part, and can be nobody else's. Otherwise a person decides.
4. An empty answer proves nothing. It counts beside a control query that shows what must be shown.
5. What the restored database shows of competing operations is incomplete for the lost window. No payment of that time
   proves an operation that was open before it.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.access.credential import Credential, Scope
from payrelay.core.calls import Charge
from payrelay.core.database.incarnations import Incarnation, LostWindow
from payrelay.core.payments.operation import Operation, State
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.proof import (
    ABSENT,
    TOLERANCE_MS,
    Control,
    Match,
    MatchResult,
    SendingWindow,
    match_for_charge,
)

MAKING: Final = frozenset(
    {
        Scope.PAYMENTS_CHARGE,
        Scope.PAYMENTS_CAPTURE,
        Scope.SUBSCRIPTIONS_RETRY,
        Scope.CHECKOUTS_CREATE,
        Scope.CLIENT_TOKENS_CREATE,
    }
)
"""The scopes of requests that make a payment, an authorization or a subscription, or let a customer or a phone do."""


class LookResult(StrEnum):
    """What follows from a look at the gateway."""

    GO = "go"
    """No effect is there: the request is sent."""
    ADOPT = "adopt"
    """The effect is there, and is this request's answer."""
    WAIT = "wait"
    """The gateway shows nothing that can be relied on: the request comes again later."""
    HOLD = "hold"
    """A person decides."""


def sendings_of(lost: LostWindow, sending_ms: int) -> SendingWindow:
    """Gives when a lost operation can have reached the gateway.

    ``sending_ms`` is the longest time from the commit of an intent to the end of its call, in milliseconds.
    """
    return SendingWindow(began_ms=lost.since_ms, ended_ms=lost.until_ms + sending_ms)


def is_within(payment: Payment, window: SendingWindow) -> bool:
    """Tells whether a payment may have been made in a window; one without a readable date may."""
    at_ms = payment.at_ms
    return at_ms is None or window.began_ms - TOLERANCE_MS <= at_ms <= window.ended_ms + TOLERANCE_MS


def _is_after(payment: Payment, window: SendingWindow) -> bool:
    return payment.at_ms is not None and payment.at_ms > window.ended_ms + TOLERANCE_MS


def match_for_lost_charge(
    call: Charge,
    operation: Operation,
    window: SendingWindow,
    payments: Sequence[Payment],
    *,
    attributed: frozenset[str],
    owned: frozenset[str],
    may_be_anothers: bool,
) -> Match:
    """Judges the payments of an order before a charge of it that may have been made by a lost operation.

    ``window`` is when that can have been sent. ``attributed`` has the ids of payments that belonged to others before
    the lost window began, ``owned`` also of those that belong to others by now. ``may_be_anothers`` is true where
    something else of the order, or another principal, may have made the payment.
    """
    left = [each for each in payments if each.payment_id not in attributed and is_within(each, window)]
    ids = tuple(payment.payment_id for payment in payments)
    known = attributed | owned
    if any(_is_after(each, window) and each.payment_id not in known for each in payments):
        return Match(seen=MatchResult.MAY_BE_ANOTHERS, payments_compared=ids)
    if not left:
        return Match(seen=MatchResult.ONLY_OTHERS if ids else MatchResult.NOTHING, payments_compared=ids)
    if len(left) > 1:
        return Match(seen=MatchResult.SEVERAL_FIT, payments_compared=ids)
    is_contested = may_be_anothers or left[0].payment_id in owned
    match = match_for_charge(call, operation, window, left, frozenset(), has_competing=is_contested)
    if match.seen in ABSENT:  # a payment of another amount: not this charge, but an effect of a lost request
        return Match(seen=MatchResult.ONE_RESEMBLES, payments_compared=ids)
    return msgspec.structs.replace(match, payments_compared=ids)


def match_for_lost_retry(
    window: SendingWindow, payments: Sequence[Payment], *, attributed: frozenset[str], owned: frozenset[str]
) -> Match:
    """Judges the payments of a subscription before a retry of it that a lost operation may have made.

    ``attributed`` and ``owned`` are as for a charge. A new payment is never the retry's for certain, because the
    gateway also charges by itself.
    """
    ids = tuple(payment.payment_id for payment in payments)
    left = [each for each in payments if each.payment_id not in attributed and is_within(each, window)]
    known = attributed | owned
    left += [each for each in payments if each.payment_id not in known and _is_after(each, window)]
    absent = MatchResult.ONLY_OTHERS if ids else MatchResult.NOTHING
    return Match(seen=MatchResult.MAY_BE_ANOTHERS if left else absent, payments_compared=ids)


def result_of(match: Match, control: Control | None) -> LookResult:
    """Decides what follows from a look; ``control`` is needed for a match in ABSENT."""
    if match.seen in {MatchResult.ONE_FITS, MatchResult.REFUND_SHOWN}:
        return LookResult.ADOPT
    if match.seen not in ABSENT or control is Control.NONE_KNOWN:
        return LookResult.HOLD
    return LookResult.GO if control is Control.FOUND else LookResult.WAIT


def may_have_charged(credentials: Iterable[Credential], accounts: frozenset[str], lost: LostWindow) -> frozenset[str]:
    """Gives the principals that had a key in the lost window with which one of these accounts could be charged."""
    return frozenset(
        each.principal
        for each in credentials
        if Scope.PAYMENTS_CHARGE in each.scopes
        and (each.accounts is None or not accounts.isdisjoint(each.accounts))
        and (each.revoked_at_ms is None or each.revoked_at_ms >= lost.since_ms)
    )


def may_have_made(
    credentials: Iterable[Credential], accounts: frozenset[str], lost_since_ms: int | None
) -> frozenset[str]:
    """Gives the principals that had a key with which something could be made on one of these accounts.

    A key that was revoked before ``lost_since_ms`` (since 1970, UTC) made nothing that is lost. None counts all keys,
    where nobody knows since when commits are lost.
    """
    return frozenset(
        each.principal
        for each in credentials
        if not each.scopes.isdisjoint(MAKING)
        and (each.accounts is None or not accounts.isdisjoint(each.accounts))
        and (lost_since_ms is None or each.revoked_at_ms is None or each.revoked_at_ms >= lost_since_ms)
    )


def began_before_loss(operation: Operation, incarnations: Iterable[Incarnation]) -> list[LostWindow]:
    """Gives the lost windows of the recoveries that an open operation went through; none for one that failed.

    What shows of a failed operation is for a person anyway.
    """
    if operation.state is State.FAILED:
        return []
    return [each.lost for each in incarnations if each.lost is not None and operation.created_at_ms < each.began_at_ms]


def doubted(match: Match, windows: Iterable[SendingWindow]) -> Match:
    """Takes the certainty from a match whose payment may be of an operation that was lost in one of these windows."""
    payment = match.payment
    if match.seen is MatchResult.ONE_FITS and payment and any(is_within(payment, window) for window in windows):
        return msgspec.structs.replace(match, seen=MatchResult.MAY_BE_ANOTHERS)
    return match
