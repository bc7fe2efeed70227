"""What can be erased is sealed with a key of its own, which goes for good when it is destroyed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.databases import PassingDatabase, sqlite_url
from tests.digests import digests_of
from tests.draws import drawing
from tests.store.test_checkouts import CHECKOUT, DETAILS, REFERENCE
from tests.store.test_customers import APPROVAL, CHAIN_KEY, CUSTOMER, TOKEN
from tests.store.test_inbox import BODY, NOTIFICATION

from payrelay.clock import Clock
from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.customers.customer import CustomerEvent, Names, removed, renamed
from payrelay.core.outcomes import Reading
from payrelay.core.secret import Secret
from payrelay.errors import StoreUnavailable, StoreUnusable
from payrelay.store import open_database
from payrelay.store.checkouts import Checkouts
from payrelay.store.customers import Customers
from payrelay.store.data_keys.keys import (
    DataKeys,
    KeyResidues,
    OwnKey,
    destroyed,
    destroyed_on_request,
    replaced,
    stored,
)
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.sealing import FORMAT, Seal
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.inbox import Inbox
from payrelay.store.statements.data_keys import KEY_OF
from payrelay.store.tables.seals import SEALED

SEAL: Final = Seal((b"k" * 32,))
ORDER: Final = PaymentsOfOrder(order_id="A-1")
READING: Final = Reading(code=None, msg="", raw_msg=b'""', raw_data=b'[{"customer":{"fist_name":"CANARY"}}]')
RESIDUES: Final = query("SELECT place FROM key_residues")
DROP_KEY: Final = query("DELETE FROM data_keys WHERE owner = $1 RETURNING owner")
MOVE_KEY: Final = query(
    "UPDATE data_keys SET sealed_key = (SELECT o.sealed_key FROM data_keys AS o WHERE o.owner = $2) WHERE owner = $1",
)
ERASABLE: Final = tuple(column for column in SEALED if column.owner is not None)


def _rows(wanted: Query, *parameters: Value) -> Unit[list[Row]]:
    return (yield Statement(wanted, parameters))


def _stored(*owners: str) -> Iterator[Statement]:
    data_keys = DataKeys(SEAL)
    return (stored(data_keys.new(owner)) for owner in owners)


def _all(statements: Iterator[Statement]) -> Unit[None]:
    for statement in statements:  # noqa: UP028, a list can't be sent the rows
        yield statement


async def _key_of(database: Database, owner: str) -> Value:
    rows = await database.read(_rows(KEY_OF, owner))
    return rows[0][0] if rows else None


async def _fill(database: Database) -> None:
    """Stores one of each noun that has a data key."""
    await Customers(database, SEAL, digests_of(database), chain_key=CHAIN_KEY).add(CUSTOMER, APPROVAL)
    await Checkouts(database, SEAL, digests_of(database)).add(CHECKOUT, DETAILS, reference=REFERENCE)
    await Inbox(database, SEAL, digests_of(database)).put(NOTIFICATION, BODY)
    await ReadingStore(database, SEAL, digests_of(database)).keep(
        CUSTOMER.merchant, ORDER, READING, (), read_at_ms=1, answered_at_ms=1
    )


async def _owners(database: Database) -> list[str]:
    """Names the owners of keys that are not destroyed."""
    text = query("SELECT owner FROM data_keys WHERE substr(sealed_key, 1, 1) = $1 ORDER BY owner")
    return [str(owner) for (owner,) in await database.read(_rows(text, FORMAT))]


READING_OWNER: Final = f"reading/{CUSTOMER.merchant}/order/A-1"
REFERENCE_OWNER: Final = f"{CHECKOUT.id}/reference"
OWNERS: Final = (CUSTOMER.id, CHECKOUT.id, REFERENCE_OWNER, NOTIFICATION.id, READING_OWNER)


async def test_each_noun_has_a_key_of_its_own(database: Database) -> None:
    """One that several shared could not be destroyed for one of them."""
    await _fill(database)

    assert await _owners(database) == sorted(OWNERS)


async def test_what_is_forgotten_by_its_age_takes_its_key_along(database: Database) -> None:
    """A key that stayed would open old copies of what everybody takes for forgotten."""
    await _fill(database)
    checkouts, inbox, later = (
        Checkouts(database, SEAL, digests_of(database)),
        Inbox(database, SEAL, digests_of(database)),
        10**15,
    )
    await checkouts.change(msgspec.structs.replace(CHECKOUT, state="expired", version=2), has_event=False)
    assert (await checkouts.forget(later), await inbox.forget_refused(later, 10)) == (1, 0)
    await inbox.record(msgspec.structs.replace(NOTIFICATION, version=2, next_at_ms=None))
    assert await inbox.forget_bodies(later, 10) == 1
    assert await ReadingStore(database, SEAL, digests_of(database)).prune(later, 10) == 1

    assert await _owners(database) == sorted([CUSTOMER.id, REFERENCE_OWNER])
    assert await checkouts.reference_of(CHECKOUT) == REFERENCE
    assert await database.read(_rows(RESIDUES)) == []


async def test_a_reading_that_is_not_stored_leaves_the_key_of_the_one_that_is(database: Database) -> None:
    """An answer that was asked for earlier comes late: it must not lock the newer one away."""
    last = ReadingStore(database, SEAL, digests_of(database))
    for read_at_ms in (2, 1, 3, 1):
        await last.keep(CUSTOMER.merchant, ORDER, READING, (), read_at_ms=read_at_ms, answered_at_ms=read_at_ms)

    kept = await last.last(CUSTOMER.merchant, ORDER)
    assert kept is not None
    assert (kept.read_at_ms, kept.reading.raw_data) == (3, READING.raw_data)


async def test_a_checkout_or_notification_that_is_not_stored_stores_no_key(database: Database) -> None:
    """A repeat must not leave keys behind that nothing destroys."""
    await _fill(database)
    assert not await Checkouts(database, SEAL, digests_of(database)).add(
        msgspec.structs.replace(CHECKOUT, id="chk_other"), DETAILS
    )
    await Inbox(database, SEAL, digests_of(database)).put(msgspec.structs.replace(NOTIFICATION, id="ntf_other"), BODY)

    assert set(await _owners(database)) & {"chk_other", "ntf_other"} == set()


async def test_a_change_keeps_the_key_and_a_removal_replaces_it(database: Database) -> None:
    """The token stays readable through a change of names; after a removal its key exists nowhere."""
    customers = Customers(database, SEAL, digests_of(database), chain_key=CHAIN_KEY)
    await customers.add(CUSTOMER, APPROVAL)
    first = await _key_of(database, CUSTOMER.id)
    changed = renamed(CUSTOMER, Names(reference="person-8", label=None), at_ms=2)
    await customers.change(changed, CustomerEvent.CHANGED)
    assert await _key_of(database, CUSTOMER.id) == first
    assert await customers.token_of(CUSTOMER.id) == Secret(TOKEN)

    gone = removed(changed, at_ms=3)
    await customers.change(gone, CustomerEvent.REMOVED)
    assert await _key_of(database, CUSTOMER.id) not in {first, None}
    assert await customers.get(CUSTOMER.id) == gone
    assert len(await database.read(_rows(RESIDUES))) == 1


@pytest.mark.parametrize("spoil", [DROP_KEY, MOVE_KEY])
async def test_a_value_whose_key_was_taken_away_or_exchanged_is_not_opened(database: Database, spoil: Query) -> None:
    """Whoever can write to the database must not make one customer's key open another one's values."""
    await _fill(database)
    parameters = (CUSTOMER.id,) if spoil is DROP_KEY else (CUSTOMER.id, CHECKOUT.id)
    await database.write(_rows(spoil, *parameters))

    with pytest.raises(StoreUnusable):
        await Customers(database, SEAL, digests_of(database), chain_key=CHAIN_KEY).token_of(CUSTOMER.id)


async def test_only_what_is_destroyed_on_request_is_cleared_from_the_files(database: Database) -> None:
    """Clearing costs a rewritten table: what goes by its age may wait for it."""
    await database.write(_all(_stored("a", "b", "c")))
    await database.write(destroyed(["a"]))
    assert await database.read(_rows(RESIDUES)) == []

    await database.write(destroyed_on_request(["b"]))
    await database.write(replaced(DataKeys(SEAL).new("c")))
    assert len(await database.read(_rows(RESIDUES))) in {1, 2}
    assert await KeyResidues(database).clear()
    assert await database.read(_rows(RESIDUES)) == []
    assert await _owners(database) == ["c"]


class _Late(PassingDatabase):
    """A database in which another key is destroyed right after the files were cleared."""

    def __init__(self, database: Database, owner: str) -> None:
        super().__init__(database)
        self._owner = owner

    async def clear_files(self, table: str) -> bool:
        """Clears them, and destroys the key."""
        is_cleared = await super().clear_files(table)
        await self.write(destroyed_on_request([self._owner]))
        return is_cleared


async def test_a_key_that_is_destroyed_during_a_clearing_is_cleared_by_the_next(database: Database) -> None:
    """The note about its place must not go with that of the earlier one, which lay in the same place."""
    await database.write(_all(_stored("a")))
    await database.write(destroyed_on_request(["a"]))
    await database.write(_all(_stored("a")))

    assert not await KeyResidues(_Late(database, "a")).clear()
    assert await KeyResidues(database).clear()
    assert await database.read(_rows(RESIDUES)) == []


def _bytes_in(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.iterdir() if each.is_file())


async def test_no_destroyed_key_is_left_by_any_sequence_of_changes(tmp_path: Path) -> None:
    """SQLite moves rows between pages, and leaves copies of them where they were: no key may ever be moved."""
    path = tmp_path / "payrelay.db"
    database = await open_database(sqlite_url(path), clock=Clock(), owner=True)
    draw, data_keys = drawing("data keys"), DataKeys(SEAL)
    alive: list[OwnKey] = []
    gone: list[OwnKey] = []
    for round_number in range(60):
        nouns = draw.choices(("cus", "chk", "reading/x"), k=50)
        own = [data_keys.new(f"{noun}_{draw.randbytes(8).hex()}") for noun in nouns]
        await database.write(_all(stored(each) for each in own))
        alive += own
        draw.shuffle(alive)
        ending, alive = alive[: 20 + round_number % 40], alive[20 + round_number % 40 :]
        await database.write(destroyed(each.owner for each in ending))
        newer = data_keys.new(alive[0].owner)
        await database.write(replaced(newer))
        gone += [*ending, alive[0]]
        alive[0] = newer
    assert await database.clear_files("data_keys")
    files = _bytes_in(tmp_path)
    await database.close()

    assert [each.owner for each in gone if each.sealed[40:60] in files] == []
    assert [files.count(each.sealed) for each in alive] == [1] * len(alive)


class _Full(PassingDatabase):
    """A database whose files can't be cleared."""

    async def clear_files(self, table: str) -> bool:
        """Is not to be asked."""
        raise StoreUnavailable(f"{table} can't be cleared")


async def test_a_note_about_another_table_is_passed_over(database: Database) -> None:
    """Whoever can write such a note would have the worker lock a large table every minute."""
    await database.write(_rows(query("INSERT INTO key_residues (place, times) VALUES ('operations', 1)")))

    assert await KeyResidues(_Full(database)).clear()
