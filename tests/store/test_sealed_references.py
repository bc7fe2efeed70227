"""What a client calls a customer lies sealed in checkouts: an erasure leaves nothing that can be read or opened."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.draws import drawing
from tests.store.test_checkouts import CHECKOUT, DETAILS, LOOKUPS

from payrelay.clock import Clock
from payrelay.console.store.searches import Searches
from payrelay.core.checkouts.checkout import Checkout, CheckoutState
from payrelay.store import open_database
from payrelay.store.checkouts import Checkouts, CheckoutsOfCustomer
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import FORMAT, Seal
from payrelay.store.statements.checkouts import reference_owner

SEAL: Final = Seal((b"k" * 32,))
MANY: Final = 2_000
"""Checkouts: enough that SQLite moves rows between hundreds of pages."""
AT_ONCE: Final = 100
KEYS: Final = query("SELECT owner, sealed_key FROM data_keys WHERE substr(sealed_key, 1, 1) = $1")


def _rows(wanted: Query, *parameters: Value) -> Unit[list[Row]]:
    return (yield Statement(wanted, parameters))


def _bytes_in(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.iterdir() if each.is_file())


def named(number: int, reference: str, key: str | None = None, **members: object) -> Checkout:
    """Gives a finished checkout of an order, person and key of its own."""
    own = {
        "id": f"chk_{number:026d}",
        "order_id": f"A-{number}",
        "guard": None,
        "state": CheckoutState.FAILED,
        "key_hash": None if key is None else LOOKUPS.key(key),
        "reference_hash": LOOKUPS.reference(reference),
    }
    return msgspec.structs.replace(CHECKOUT, **(own | members))


async def test_no_erased_reference_is_left_in_a_file_of_many_pages(tmp_path: Path) -> None:
    """SQLite leaves copies of rows and index entries where it moved them from: none may tell whose a checkout was."""
    database = await open_database(sqlite_url(tmp_path / "payrelay.db"), clock=Clock(), owner=True)
    checkouts, draw = Checkouts(database, SEAL, digests_of(database)), drawing("references")
    keys: dict[str, bytes] = {}
    alive: list[Checkout] = []
    erased: list[Checkout] = []
    for first in range(0, MANY, AT_ONCE):
        people = [
            f"CANARY-{draw.randrange(10**6):06}-{number:08}@example.com" for number in range(first, first + AT_ONCE)
        ]
        opened = [named(first + place, person, f"key of {person}") for place, person in enumerate(people)]
        adding = (checkouts.add(each, DETAILS, reference=person) for each, person in zip(opened, people, strict=True))
        assert all(await asyncio.gather(*adding))
        alive += opened
        draw.shuffle(alive)
        ending, alive = alive[: AT_ONCE // 2], alive[AT_ONCE // 2 :]
        keys |= {str(owner): blob_of(sealed_key) for owner, sealed_key in await database.read(_rows(KEYS, FORMAT))}
        await asyncio.gather(*(checkouts.forget_order(each.merchant, each.principal, each.order_id) for each in ending))
        erased += ending
    assert await database.clear_files("data_keys")
    files, references = _bytes_in(tmp_path), [await checkouts.reference_of(each) for each in alive]
    await database.close()

    assert files.count(b"CANARY") == 0
    assert [each.id for each in erased if keys[reference_owner(each.id)][40:60] in files] == []
    assert [LOOKUPS.reference(str(each)) for each in references] == [each.reference_hash for each in alive]


async def test_a_checkout_is_found_by_its_key_and_by_its_customers_name(database: Database) -> None:
    """Both by keyed hashes: two checkouts of one person have equal ones, and nobody can try a name by them."""
    checkouts, searches = Checkouts(database, SEAL, digests_of(database)), Searches(database, digests_of(database))
    own = [named(1, "person", "k-1"), named(2, "person", "k-2")]
    for each in (*own, named(3, "other", "k-3")):
        reference = "other" if each.id.endswith("3") else "person"
        assert await checkouts.add(each, DETAILS, reference=reference)
    whose = CheckoutsOfCustomer(customer_id="", merchant=CHECKOUT.merchant, principal="shop", reference="person")

    assert await checkouts.reference_of(own[0]) == "person"
    assert await checkouts.of_key("shop", "k-1") == own[0]
    assert await checkouts.of_customer(whose, after="", limit=9) == own
    assert sorted(await searches.checkouts_of_reference("person"), key=lambda each: each.id) == own
    assert await searches.checkouts_of_key("k-2") == [own[1]]
    assert digests_of(database, b"x" * 32).lookups.reference("person") != own[0].reference_hash


@pytest.mark.parametrize("spoil", ["DELETE FROM data_keys", "UPDATE checkouts SET sealed_reference = NULL"])
async def test_a_reference_that_was_lost_keeps_nobody_from_the_checkout(database: Database, spoil: str) -> None:
    """Whoever destroys it, or its key, must not hide whether an order was paid, nor keep a person from being erased."""
    checkouts = Checkouts(database, SEAL, digests_of(database))
    checkout = named(1, "person")
    assert await checkouts.add(checkout, DETAILS, reference="person")
    await database.write(_rows(query(spoil)))

    assert await checkouts.reference_of(checkout) is None
    assert await checkouts.get(checkout.id) == checkout
    assert await database.read(_rows(query("SELECT row_name FROM row_alerts"))) == [(f"checkouts/{checkout.id}",)]
    assert await checkouts.forget_order(checkout.merchant, checkout.principal, checkout.order_id) == 1
