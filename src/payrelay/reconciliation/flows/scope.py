"""What a reconciliation is about: an account, its merchant, and the zone in which its days end."""

from datetime import date, timedelta
from typing import Final

import msgspec

from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay
from payrelay.reconciliation.rules.entries import BANK_DAYS, REFUND_DAYS, Coverage, Movement, Zone
from payrelay.reconciliation.store.lines import CompleteDay
from payrelay.reconciliation.store.stores import ReconciliationStores

AROUND: Final = timedelta(days=max(BANK_DAYS, REFUND_DAYS) + 5)
"""How far around a day statements may say something of it."""


class BooksScope(msgspec.Struct, frozen=True):
    """An account whose books are compared, and the zone in which its days end."""

    account: str
    merchant: str
    zone: Zone
    gateway_zone: str


def scope_of(relay: Relay, account: str | None) -> BooksScope:
    """Gives what is compared; None is for the only account.

    Raises Refusal (not_found) where no account has the name, or none was named and there are several.
    """
    if account is None and len(relay.accounts) == 1:
        account = next(iter(relay.accounts))
    if account is None:
        names = ", ".join(sorted(relay.accounts))
        raise Refusal(Code.NOT_FOUND, f"name the account whose books are meant: one of {names}")
    gateway = relay.account(account)
    return BooksScope(
        account, gateway.merchant, Zone(relay.find(ReconciliationStores).timezone or gateway.timezone), gateway.timezone
    )


async def complete_around(relay: Relay, scope: BooksScope, day: date) -> list[CompleteDay]:
    """Reads which days around a day were said to be complete. Raises StoreError."""
    first, last = day - AROUND, day + AROUND
    return [
        each
        for movement in Movement
        for each in await relay.find(ReconciliationStores).lines.complete(scope.merchant, movement, first, last)
    ]


def coverage_of(complete: list[CompleteDay], searched: dict[str, int]) -> Coverage:
    """Gives what would have been seen if it were there."""
    days = {movement: frozenset(each.day for each in complete if each.movement is movement) for movement in Movement}
    return Coverage(days=days, searched=searched)
