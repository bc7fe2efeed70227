"""What a client calls a customer lies sealed in checkouts: an erasure leaves nothing that can be read or opened."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.databases import PassingDatabase, sqlite_url
from tests.digests import CHAIN_KEY, digests_of
from tests.draws import drawing
from tests.store.test_checkouts import CHECKOUT, DETAILS, LOOKUPS

from payrelay.clock import Clock
from payrelay.core.checkouts.checkout import Checkout, CheckoutState
from payrelay.errors import StoreUnavailable
from payrelay.store import open_database
from payrelay.store.checkouts import Checkouts, CheckoutsOfCustomer, reference_owner
from payrelay.store.console.searches import Searches
from payrelay.store.digests.rows import CHECKOUTS, CHECKOUTS_IN_CLEAR
from payrelay.store.engine.database import Database, Row, Statement, T, Unit, Value
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import FORMAT, Seal
from payrelay.store.statements.checkouts import EARLIER_COLUMNS
from payrelay.store.upgrades.sealed_references import PAGE, seal_references

SEAL: Final = Seal((b"k" * 32,))
MANY: Final = 2_000
"""Checkouts: enough that SQLite moves rows between hundreds of pages."""
AT_ONCE: Final = 100
KEYS: Final = query("SELECT owner, sealed_key FROM data_keys WHERE substr(sealed_key, 1, 1) = $1")
PUT_OLD: Final = query(
    f"INSERT INTO checkouts ({EARLIER_COLUMNS}, row_digest) VALUES"  # noqa: S608, our own names
    f" ({', '.join(f'${number}' for number in range(1, len(CHECKOUTS.read) + 2))})"
)
LEFT_IN_CLEAR: Final = query(
    "SELECT id FROM checkouts WHERE customer_reference IS NOT NULL OR idempotency_key IS NOT NULL"
)


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


async def _put_old(database: Database, checkout: Checkout, key: str | None, reference: str | None) -> None:
    """Stores a checkout as the version before did, with its digest."""
    values = dict(zip(CHECKOUTS_IN_CLEAR.read, msgspec.structs.astuple(checkout), strict=True))
    values |= {"idempotency_key": key, "customer_reference": reference}
    row = tuple(values.values())
    await database.write(_rows(PUT_OLD, *row, digests_of(database).of(CHECKOUTS_IN_CLEAR, row)))


async def _of_version_before(database: Database, rows: int) -> list[Checkout]:
    """Stores checkouts as the version before did, and gives each as it is to be afterwards."""
    stored = [named(number, f"CANARY-{number}", f"CANARY-key-{number}") for number in range(rows)]
    for number, each in enumerate(stored):
        await _put_old(database, each, f"CANARY-key-{number}", f"CANARY-{number}")
    return stored


class _Dying(PassingDatabase):
    """A database that takes one unit of work, and whose process dies in the next one."""

    taken = 0

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Carries out the first unit; of the others, nothing is stored."""
        self.taken += 1
        return await super().write(unit if self.taken == 1 else self._cut(unit), is_patient=is_patient)

    def _cut(self, unit: Unit[T]) -> Unit[T]:
        yield from unit
        raise StoreUnavailable("the process died")


async def test_the_upgrade_hides_what_the_version_before_had_in_clear(database: Database) -> None:
    """Killed behind its first page and run again: each row is found as before, and by its text."""
    stored = await _of_version_before(database, PAGE + 5)
    bare = named(PAGE + 5, "", reference_hash=None)
    await _put_old(database, bare, None, None)
    with pytest.raises(StoreUnavailable):
        await seal_references(_Dying(database), SEAL, CHAIN_KEY)
    assert len(await database.read(_rows(LEFT_IN_CLEAR))) == 5
    for _ in range(2):
        await seal_references(database, SEAL, CHAIN_KEY)

    checkouts = Checkouts(database, SEAL, digests_of(database))
    assert await database.read(_rows(LEFT_IN_CLEAR)) == []
    assert [await checkouts.get(each.id) for each in (*stored, bare)] == [*stored, bare]
    for number in (0, PAGE + 4):
        searches, text = Searches(database, digests_of(database)), f"CANARY-{number}"
        whose = CheckoutsOfCustomer(customer_id="", merchant=CHECKOUT.merchant, principal="shop", reference=text)
        assert await checkouts.reference_of(stored[number]) == text
        assert await checkouts.of_key("shop", f"CANARY-key-{number}") == stored[number]
        assert await checkouts.of_customer(whose, after="", limit=9) == [stored[number]]
        assert await searches.checkouts_of_reference(text) == [stored[number]]
        assert await searches.checkouts_of_key(f"CANARY-key-{number}") == [stored[number]]


async def test_the_upgrade_leaves_nothing_in_clear_in_the_file(tmp_path: Path) -> None:
    """Pages that were freed keep their bytes, also those of what was erased before: the file is written anew."""
    database = await open_database(sqlite_url(tmp_path / "payrelay.db"), clock=Clock(), owner=True)
    await _of_version_before(database, 300)
    assert await database.clear_files("data_keys")
    before = _bytes_in(tmp_path)
    await seal_references(database, SEAL, CHAIN_KEY)
    after = _bytes_in(tmp_path)
    await database.close()

    assert (b"CANARY" in before, after.count(b"CANARY")) == (True, 0)


@pytest.mark.parametrize("forgery", ["customer_reference = 'attacker'", "principal = 'attacker'", "row_digest = ''"])
async def test_the_upgrade_makes_no_forged_row_right(database: Database, forgery: str) -> None:
    """Who wrote a name into a row before the upgrade would get the card that is approved on that page."""
    [forged, bare] = [named(1, "person"), named(2, "", reference_hash=None)]
    await _put_old(database, forged, "k-1", "person")
    await _put_old(database, bare, "k-2", None)
    await database.write(_rows(query(f"UPDATE checkouts SET {forgery}")))  # noqa: S608, our own texts
    await seal_references(database, SEAL, CHAIN_KEY)

    checkouts = Checkouts(database, SEAL, digests_of(database))
    assert [await checkouts.get(each.id) for each in (forged, bare)] == [None, None]
    assert await database.read(_rows(LEFT_IN_CLEAR)) == []


async def test_a_name_that_somebody_writes_behind_the_upgrade_changes_nothing(database: Database) -> None:
    """The columns in clear are read by the upgrade alone: what lies there takes no place of what is sealed."""
    checkouts = Checkouts(database, SEAL, digests_of(database))
    checkout = named(1, "person", "k-1")
    assert await checkouts.add(checkout, DETAILS, reference="person")
    await database.write(_rows(query("UPDATE checkouts SET customer_reference = 'x', idempotency_key = 'x'")))
    await seal_references(database, SEAL, CHAIN_KEY)

    assert await checkouts.get(checkout.id) == checkout
    assert await checkouts.reference_of(checkout) == "person"
    assert await database.read(_rows(LEFT_IN_CLEAR)) == []


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
