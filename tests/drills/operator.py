"""The operator of a drill: begins a recovery, looks into the gateway's portal, and decides about what is held."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from tests.drills.intentions import Deed, Intention
from tests.drills.judge import BookEntry, effects_of
from tests.drills.shop import Shop
from tests.drills.site import CommandFailedError, Site
from tests.drills.told import Meaning

AT_ONCE: Final = 200
"""Operations that one command decides about."""
RECOVERED_WITHIN_S: Final = 240.0
"""The first minute of a recovery has no call at all."""
AFTER_DECISIONS_S: Final = 90.0
NOTHING_MISSING: Final = "no mark tells since when"


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """How long a recovery took: until no client waited but for a person, and until the last one had its answer."""

    clients_s: float
    all_s: float


def recover(site: Site, shop: Shop, intentions: Sequence[Intention], began_s: float) -> Recovered:
    """Has clients repeat everything, decides about what is held, has them ask again, and ends the recovery."""
    shop.customers.come_back()
    asyncio.run(shop.bring(intentions, within_s=RECOVERED_WITHIN_S))
    asyncio.run(shop.read_all(shop.operation_ids()))
    clients_s = time.monotonic() - began_s
    site.watch.hold()
    decide(site, shop, intentions)
    decide_pages(site, shop, intentions)
    asyncio.run(shop.bring(intentions, within_s=AFTER_DECISIONS_S))
    all_s = time.monotonic() - began_s
    if site.recovery()["is_recovering"]:
        site.command("recover", "end", "--leave-held", "--yes")
    # Its answer says never to a client: it asks a person, and does not send that again.
    again = [each for each in intentions if shop.last(each) is not Meaning.NEVER]
    asyncio.run(shop.bring(again, within_s=AFTER_DECISIONS_S))
    return Recovered(clients_s=clients_s, all_s=all_s)


def begin_if_behind(site: Site) -> bool:
    """Begins a recovery where marks tell that commits are missing; gives whether they did."""
    try:
        site.command("recover", "--note", "a drill", "--yes")
    except CommandFailedError as failed:
        if NOTHING_MISSING not in str(failed):
            raise
        return False
    return True


def decide(site: Site, shop: Shop, intentions: Sequence[Intention]) -> None:
    """Decides about each held operation by what the gateway's portal shows: many with one command."""
    ledger = site.gateway.ledger()
    books, _ = site.books()
    decisions: dict[str, list[str]] = {"done": [], "send": []}
    for entry, intention in _held(books, shop, intentions):
        decisions["done" if effects_of(intention, ledger) else "send"].append(entry.id)
    for decision, ids in decisions.items():
        for first in range(0, len(ids), AT_ONCE):
            chosen = ids[first : first + AT_ONCE]
            site.command("recover", "decide", decision, *chosen, "--reason", "as the portal shows", "--yes")


def decide_pages(site: Site, shop: Shop, intentions: Sequence[Intention]) -> None:
    """Decides that a checkout was paid where the portal shows its one payment, and the service waits for a word."""
    ledger = site.gateway.ledger()
    for intention in intentions:
        heard = shop.told.get(intention.name)
        if intention.deed is not Deed.CHECKOUT or not heard or heard[-1].meaning is not Meaning.OPEN:
            continue
        payments = effects_of(intention, ledger)
        if not payments:
            continue
        given = ("--payment-id", str(payments[0]["payment_id"]), "--reason", "the shop made no charge", "--yes")
        with suppress(CommandFailedError):  # of a checkout that was opened since, there is nothing to decide
            site.command("recover", "checkout", "paid", heard[-1].data["id"], *given)
            shop.decided.add(intention.name)


def _held(
    books: Sequence[BookEntry], shop: Shop, intentions: Sequence[Intention]
) -> Iterator[tuple[BookEntry, Intention]]:
    by_key = {each.key: each for each in intentions if each.key is not None}
    by_id = {told.operation_id: each for each in intentions for told in shop.told.get(each.name, ())}
    for entry in books:
        intention = by_key.get(entry.key or "") or by_id.get(entry.id)
        if entry.states[-1] == "held" and intention is not None:
            yield entry, intention
