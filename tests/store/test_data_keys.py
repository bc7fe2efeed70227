"""What can be erased is sealed with a key of its own, which goes for good when it is destroyed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.databases import PassingDatabase, sqlite_url
from tests.digests import digests_of, put_first_check
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
from payrelay.store.data_keys.keys import DataKeys, OwnKey, destroyed, destroyed_on_request, replaced, stored
from payrelay.store.data_keys.residues import KeyResidues
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.sealing import DATA_KEY_FORMAT, FORMAT, Seal
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.inbox import Inbox
from payrelay.store.meta import chain_key, finished_upgrades
from payrelay.store.seals import SEALED
from payrelay.store.statements.data_keys import KEY_OF
from payrelay.store.upgrades.data_keys import PAGE, seal_with_data_keys
from payrelay.store.upgrades.run import upgrade
from payrelay.store.upgrades.sealed_references import seal_references
from payrelay.store.upgrades.steps import UpgradeContext

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

    async def clear_files(self, table: str | None) -> bool:
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


OLD_CUSTOMER: Final = query(
    """
    UPDATE customers SET sealed_token = $2, sealed_holder = $3, sealed_names = $4, method = 'VISA',
        card_no_masked = '************1292', card_expiry = '0129' WHERE id = $1""",
)
OLD_CHECKOUT: Final = query(
    """
    UPDATE checkouts SET sealed = $2, customer_reference = $3, idempotency_key = 'k-1', key_hash = NULL,
        reference_hash = NULL, sealed_reference = NULL WHERE id = $1""",
)
OLD_NOTIFICATION: Final = query("UPDATE notifications SET sealed_body = $2 WHERE id = $1")
OLD_READING: Final = query("UPDATE readings SET sealed = $2 WHERE merchant = $1")
DROP_KEYS: Final = query("DELETE FROM data_keys WHERE owner <> $1")


def _old_customer(customer_id: str, token: str, seal: Seal = SEAL) -> tuple[Value, ...]:
    """Gives what the version before had in a customer's row."""
    names = msgspec.msgpack.encode([CUSTOMER.reference, CUSTOMER.label])
    plain = {"token": token.encode(), "holder": b"CANARY PERERA", "names": names}
    return (customer_id, *(seal.seal(value, f"{customer_id}/{name}".encode()) for name, value in plain.items()))


async def _age(database: Database) -> list[bytes]:
    """Seals everything with the store's key, as the version before did, and gives what it has sealed."""
    reading = msgspec.msgpack.encode(["", b'""', READING.raw_data])
    details = msgspec.msgpack.encode(DETAILS)
    rows: tuple[tuple[Query, tuple[Value, ...]], ...] = (
        (OLD_CUSTOMER, _old_customer(CUSTOMER.id, TOKEN)),
        (OLD_CHECKOUT, (CHECKOUT.id, SEAL.seal(details, f"checkout/{CHECKOUT.id}".encode()), REFERENCE)),
        (OLD_NOTIFICATION, (NOTIFICATION.id, SEAL.seal(BODY, f"notification/{NOTIFICATION.id}".encode()))),
        (OLD_READING, (CUSTOMER.merchant, SEAL.seal(reading, READING_OWNER.encode()))),
    )
    for wanted, parameters in rows:
        await database.write(_rows(wanted, *parameters))
    await database.write(_rows(DROP_KEYS, ""))
    return [value for _, parameters in rows for value in parameters if isinstance(value, bytes)]


async def _everything(database: Database) -> tuple[object, ...]:
    """Reads all that has a data key."""
    customers = Customers(database, SEAL, digests_of(database), chain_key=CHAIN_KEY)
    kept = await ReadingStore(database, SEAL, digests_of(database)).last(CUSTOMER.merchant, ORDER)
    return (
        await customers.get(CUSTOMER.id),
        await customers.token_of(CUSTOMER.id),
        await Checkouts(database, SEAL, digests_of(database)).details_of(CHECKOUT.id),
        await Inbox(database, SEAL, digests_of(database)).body_of(NOTIFICATION.id),
        None if kept is None else kept.reading.raw_data,
    )


EVERYTHING: Final = (CUSTOMER, Secret(TOKEN), DETAILS, BODY, READING.raw_data)


async def test_what_the_version_before_has_sealed_is_read_and_sealed_anew(database: Database) -> None:
    """Customers of today's databases must be as erasable as new ones, and charged meanwhile."""
    await _fill(database)
    await _age(database)
    assert await _everything(database) == EVERYTHING
    await seal_with_data_keys(database, SEAL)
    await seal_references(database, SEAL, CHAIN_KEY)

    assert await _everything(database) == EVERYTHING
    assert await _owners(database) == sorted(OWNERS)
    for column in ERASABLE:
        rows = await database.read(_rows(query(f"SELECT {column.column} FROM {column.table}")))  # noqa: S608
        assert [bytes(value)[:1] for (value,) in rows] == [DATA_KEY_FORMAT]  # type: ignore[arg-type]
    assert (
        await database.read(
            _rows(query("SELECT id FROM customers WHERE method IS NOT NULL OR card_expiry IS NOT NULL"))
        )
        == []
    )


async def test_the_upgrade_goes_page_by_page_and_leaves_out_what_it_can_not_open(database: Database) -> None:
    """One spoilt row must not keep the service from starting, nor stay in the way of those behind it."""
    customers, inbox = (
        Customers(database, SEAL, digests_of(database), chain_key=CHAIN_KEY),
        Inbox(database, SEAL, digests_of(database)),
    )
    for number in range(PAGE + 1):
        customer_id, notification_id = f"cus_{number:04}", f"ntf_{number:04}"
        seal = SEAL if number else Seal((b"x" * 32,))
        approval = msgspec.structs.replace(APPROVAL, token=Secret(f"T-{number}"))
        await customers.add(msgspec.structs.replace(CUSTOMER, id=customer_id), approval)
        await database.write(_rows(OLD_CUSTOMER, *_old_customer(customer_id, f"T-{number}", seal)))
        own = msgspec.structs.replace(NOTIFICATION, id=notification_id, digest=f"{number:064}", order_id=f"A-{number}")
        await inbox.put(own, BODY)
        body = seal.seal(BODY, f"notification/{notification_id}".encode())
        await database.write(_rows(OLD_NOTIFICATION, notification_id, body))
    await database.write(_rows(DROP_KEYS, ""))
    await seal_with_data_keys(database, SEAL)

    last = f"{PAGE:04}"
    assert len(await _owners(database)) == 2 * PAGE
    assert await customers.token_of(f"cus_{last}") == Secret(f"T-{PAGE}")
    assert await inbox.body_of(f"ntf_{last}") == BODY
    with pytest.raises(StoreUnusable):
        await customers.token_of("cus_0000")


class _Full(PassingDatabase):
    """A database on a disk that has no room for a second copy of its file."""

    async def clear_files(self, table: str | None) -> bool:
        """Finds no room."""
        raise StoreUnavailable(f"no room to clear {table}")


async def test_a_file_that_the_upgrade_could_not_clear_is_noted_until_it_is(database: Database) -> None:
    """What an earlier version has deleted would lie in it for good, and nobody would know."""
    await _fill(database)
    await seal_with_data_keys(_Full(database), SEAL)
    residues = KeyResidues(database)
    assert await residues.is_whole_file_left()
    assert await residues.clear()
    assert await residues.is_whole_file_left(), "the worker doesn't write a file of any size anew beside requests"

    await residues.clear_whole_file()
    assert not await residues.is_whole_file_left()


async def test_a_note_about_another_table_is_passed_over(database: Database) -> None:
    """Whoever can write such a note would have the worker lock a large table every minute."""
    await database.write(_rows(query("INSERT INTO key_residues (place, times) VALUES ('operations', 1)")))

    assert await KeyResidues(_Full(database)).clear()


async def test_the_upgrade_leaves_none_of_the_old_bytes_in_the_file(tmp_path: Path) -> None:
    """What the version before had sealed, or deleted, lies in free pages: the store's key would open it for ever."""
    path = tmp_path / "payrelay.db"
    database = await open_database(sqlite_url(path), clock=Clock(), owner=True)
    await put_first_check(database, SEAL)
    chain = await chain_key(database, SEAL, Clock())
    await _fill(database)
    old = await _age(database)
    for table in ("customers", "checkouts", "notifications", "outbox"):
        await database.write(_rows(query(f"UPDATE {table} SET row_digest = ''")))  # noqa: S608, our own names
    await upgrade(UpgradeContext(database, SEAL, chain.secret, 1))
    checkout = await Checkouts(database, SEAL, digests_of(database, chain.secret)).of_key("shop", "k-1")
    files = _bytes_in(tmp_path)
    steps = await finished_upgrades(database, SEAL)
    await database.close()

    assert [value for value in [*old, REFERENCE.encode()] if value in files] == []
    assert b"************1292" not in files.replace(b'"card_no_masked":"************1292"', b"")
    assert (checkout is not None, {"data keys", "sealed references"} <= steps) == (True, True)
