"""Everything that is sealed comes under another key while others read and write, and stays what it was."""

from collections.abc import AsyncIterator
from typing import Final

import pytest
from tests.databases import PassingDatabase
from tests.digests import digests_of, put_check
from tests.samples import ENDPOINT
from tests.store.conftest import Book
from tests.store.console.samples import operators_of, with_everything
from tests.store.test_checkouts import CHECKOUT, DETAILS, REFERENCE
from tests.store.test_customers import APPROVAL, CUSTOMER, TOKEN
from tests.store.test_inbox import BODY, NOTIFICATION

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.calls import AllSubscriptions
from payrelay.core.customers.customer import CustomerEvent, removed
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.outcomes import Reading
from payrelay.core.payments.operation import Event
from payrelay.core.secret import Secret
from payrelay.errors import Outdated, StoreUnusable
from payrelay.flows.audit.audit import Audit
from payrelay.store.access.signing_keys import SigningKeys
from payrelay.store.checkouts import Checkouts
from payrelay.store.customers import Customers
from payrelay.store.data_keys.keys import key_context
from payrelay.store.engine import migrations
from payrelay.store.engine.database import Database, Row, Statement, T, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import DATA_KEY_FORMAT, Seal
from payrelay.store.events.endpoints import Endpoints
from payrelay.store.gateways.access_tokens import AccessTokens
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.inbox import Inbox
from payrelay.store.meta import chain_key, note_upgrade, verify_key
from payrelay.store.payments.audit import Trail
from payrelay.store.payments.journal import Journal
from payrelay.store.tables.seals import SEALED, ReencryptedRows, Seals
from payrelay.store.upgrades.begin import begin_store

OLD: Final = b"k" * 32
NEW: Final = b"n" * 32
MERCHANT: Final = "0123456789abcdef"
READING: Final = Reading(code=None, msg="", raw_msg=b'""', raw_data=b"[]")
SPOIL: Final = query("UPDATE data_keys SET sealed_key = $2 WHERE owner = $1 RETURNING owner")
SEALED_KEY: Final = query("SELECT sealed_key FROM data_keys WHERE owner = $1")
STORED: Final = tuple(column for column in SEALED if column.owner is None)
"""The columns whose values are sealed with the store's key."""
ERASABLE: Final = tuple(column for column in SEALED if column.owner is not None)
VALUES: Final = len(STORED) + 3 + 4
"""The values in them: meta has four, and a customer, a checkout, its reference, a notification and a reading have a
data key each."""


def _rows(statement: Statement) -> Unit[list[Row]]:
    return (yield statement)


async def fill(database: Database, keys: tuple[bytes, ...], answer: Answer) -> None:
    """Puts a value into every sealed column."""
    seal = Seal(keys)
    await begin_store(database, seal, Clock())
    start = await chain_key(database, seal)
    await SigningKeys(database, seal, Clock()).newest()
    book = Book(database)
    book.journal = Journal(database, seal, digests_of(database, start.secret), chain_key=start.secret)
    await book.accept(book.new(1))
    await book.advance(book.new(1), Event.SUCCEEDED, answer)
    await Customers(database, seal, digests_of(database), chain_key=start.secret).add(CUSTOMER, APPROVAL)
    await Checkouts(database, seal, digests_of(database)).add(CHECKOUT, DETAILS, reference=REFERENCE)
    inbox = Inbox(database, seal, digests_of(database))
    await inbox.put(NOTIFICATION, BODY)
    await inbox.accept_token(NOTIFICATION, NotificationKind.AUTHORIZATION, TOKEN, at_ms=1)
    await with_everything(operators_of(database, seal))
    endpoints = Endpoints(database, seal, digests_of(database))
    await endpoints.add(ENDPOINT, Secret("older"))
    await endpoints.rotate("end_1", Secret("newest"), older_ends_at_ms=2, now_ms=1)
    await AccessTokens(database, seal, Clock(), "merchant/app").put("access", 599.0)
    await ReadingStore(database, seal, digests_of(database)).keep(
        MERCHANT, AllSubscriptions(), READING, (), read_at_ms=1, answered_at_ms=1
    )


@pytest.fixture
async def filled(database: Database, answer: Answer) -> Database:
    """Gives a database in which everything is sealed with the old key."""
    await fill(database, (OLD,), answer)
    return database


async def rotated(database: Database, *, page: int = 1) -> list[ReencryptedRows]:
    """Brings everything under the new key, a page at a time."""
    return [exchanged async for exchanged in Seals(database, Seal((NEW, OLD)), page=page).rotate()]


async def others(database: Database) -> dict[str, int]:
    """Gives how many values of each column are not sealed with the new key; only where there are some."""
    seal = Seal((NEW, OLD))
    counted = await Seals(database, seal).count()
    left = {column.name: counts.total() - counts[seal.key_id.hex()] for column, counts in counted.items()}
    return {name: number for name, number in left.items() if number}


def test_every_sealed_column_is_named() -> None:
    """What is forgotten here can't be read any more once the old key is gone."""
    columns = {
        line.partition(" BLOB")[0].split()[-1]
        for migration in migrations.shipped("sqlite")
        for line in migration.text.splitlines()
        if " BLOB" in line.partition("--")[0]
    }
    assert {column.column for column in SEALED} == columns - hashes(columns)


def hashes(columns: set[str]) -> set[str]:
    """Columns of bytes that are no seals: hashes, by their names."""
    return {name for name in columns if name.endswith("_hash")}


async def test_every_column_is_filled_by_this_test(filled: Database) -> None:
    """Else the next test would say nothing of it."""
    counted = await Seals(filled, Seal((OLD,))).count()
    assert [column for column, counts in counted.items() if not counts] == list(ERASABLE)

    for column in ERASABLE:
        text = f"SELECT {column.column} FROM {column.table}"  # noqa: S608, names of the code
        [[value]] = await filled.read(_rows(Statement(query(text), ())))
        assert isinstance(value, bytes)
        assert value.startswith(DATA_KEY_FORMAT)


async def test_afterwards_the_new_key_alone_opens_everything(filled: Database, answer: Answer) -> None:
    """The old key may be thrown away then: every noun reads what it had sealed."""
    assert len(await others(filled)) == len(STORED)
    exchanged = await rotated(filled)
    assert (await others(filled), sum(page.done for page in exchanged)) == ({}, VALUES)

    seal = Seal((NEW,))
    await verify_key(filled, seal)
    start = await chain_key(filled, seal)
    journal = Journal(filled, seal, digests_of(filled, start.secret), chain_key=start.secret)
    [operation] = [each async for each in _operations(journal)]
    assert await journal.answer_of(operation) == answer
    assert (await journal.call_of(operation)).customer_token == TOKEN  # type: ignore[union-attr]
    customers = Customers(filled, seal, digests_of(filled), chain_key=start.secret)
    assert (await customers.get(CUSTOMER.id), await customers.token_of(CUSTOMER.id)) == (CUSTOMER, Secret(TOKEN))
    checkouts = Checkouts(filled, seal, digests_of(filled))
    assert await checkouts.details_of(CHECKOUT.id) == DETAILS
    assert await checkouts.reference_of(CHECKOUT) == REFERENCE
    inbox = Inbox(filled, seal, digests_of(filled))
    assert await inbox.body_of(NOTIFICATION.id) == BODY
    assert await inbox.accepted_token(MERCHANT, "A-1", NotificationKind.AUTHORIZATION) == Secret(TOKEN)
    target = await Endpoints(filled, seal, digests_of(filled)).target("end_1")
    assert target is not None
    assert (target.endpoint.url, target.newest, target.older) == (ENDPOINT.url, Secret("newest"), Secret("older"))
    kept = await AccessTokens(filled, seal, Clock(), "merchant/app").read()
    assert (
        kept is not None,
        await ReadingStore(filled, seal, digests_of(filled)).last(MERCHANT, AllSubscriptions()) is not None,
    ) == (
        True,
        True,
    )
    assert await SigningKeys(filled, seal, Clock()).newest() == await SigningKeys(filled, seal, Clock()).newest()


async def _operations(journal: Journal) -> AsyncIterator[str]:
    async for record in journal.trail.records():
        yield record.operation_id


async def test_the_audit_finds_nothing(filled: Database) -> None:
    """Digests are over the plain bytes: what was sealed anew was not changed."""
    await rotated(filled)
    seal = Seal((NEW,))
    start = await chain_key(filled, seal)
    trail: Trail = Journal(filled, seal, digests_of(filled, start.secret), chain_key=start.secret).trail

    assert [finding async for finding in Audit(trail, start.since_ms, lambda *_: None).findings()] == []


async def test_it_goes_on_where_it_was_broken_off(filled: Database) -> None:
    """Somebody presses Control-C; what was done stays done, and isn't done again."""
    async for _ in Seals(filled, Seal((NEW, OLD)), page=1).rotate():
        break
    left = VALUES - 1
    assert sum((await others(filled)).values()) == left

    assert sum(page.done for page in await rotated(filled)) == left
    assert await rotated(filled) == []


async def test_until_it_is_done_the_older_key_is_needed(filled: Database) -> None:
    """Whoever takes the older key out after an interrupted rotation finds that no server starts, and puts it back.

    With a start the key would be destroyed, and with it every token that was not sealed anew yet.
    """
    pages = 0
    async for page in Seals(filled, Seal((NEW, OLD)), page=1).rotate():
        pages += page.done
        if pages < VALUES:
            with pytest.raises(StoreUnusable, match="is not the key"):
                await verify_key(filled, Seal((NEW,)))

    assert pages == VALUES
    await verify_key(filled, Seal((NEW,)))


async def test_a_value_that_is_left_under_the_older_key_keeps_that_key_needed(filled: Database) -> None:
    """A server went on sealing with it: the rotation is run again before the key goes."""
    racing = _Racing(filled, raises=0)
    assert any([page.passed_over async for page in Seals(racing, Seal((NEW, OLD)), page=50).rotate()])
    with pytest.raises(StoreUnusable, match="is not the key"):
        await verify_key(filled, Seal((NEW,)))

    await rotated(filled)
    await verify_key(filled, Seal((NEW,)))


async def test_an_upgrade_with_a_new_key_leaves_the_older_one_needed(database: Database) -> None:
    """The upgrade writes the check of the key: under the new key it would say that everything is."""
    await put_check(database, Seal((OLD,)))
    await note_upgrade(database, Seal((NEW, OLD)), "one")

    with pytest.raises(StoreUnusable, match="is not the key"):
        await verify_key(database, Seal((NEW,)))


async def test_what_can_not_be_opened_is_passed_over_and_named(filled: Database) -> None:
    """One spoilt value must not hold up all others, nor be lost behind the bar's end."""
    strange = Seal((b"x" * 32,)).seal(b"t", b"elsewhere")
    await filled.write(_rows(Statement(SPOIL, (CUSTOMER.id, strange))))
    exchanged = await rotated(filled, page=50)

    assert [(page.column.name, page.unopened) for page in exchanged if page.unopened] == [
        ("data_keys.sealed_key", (CUSTOMER.id,))
    ]
    assert await others(filled) == {"data_keys.sealed_key": 1}


class _Racing(PassingDatabase):
    """A database in which somebody else writes a row between a read of it and the next write."""

    def __init__(self, database: Database, *, raises: int) -> None:
        super().__init__(database)
        self._raises = raises

    async def read(self, unit: Unit[T]) -> T:
        """Reads, and then somebody else writes."""
        rows = await super().read(unit)
        newer = Seal((OLD,)).seal(b"newer", key_context(CUSTOMER.id))
        await self.database.write(_rows(Statement(SPOIL, (CUSTOMER.id, newer))))
        return rows

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Writes, unless it runs into somebody else."""
        if self._raises:
            self._raises -= 1
            unit.close()
            raise Outdated("somebody else wrote it")
        return await super().write(unit, is_patient=is_patient)


@pytest.mark.parametrize("raises", [0, 1, 1_000])
async def test_what_was_written_meanwhile_stays(filled: Database, raises: int) -> None:
    """The server goes on sealing: its newer value must never be replaced by an older one."""
    racing = _Racing(filled, raises=raises)
    passed = [page.passed_over async for page in Seals(racing, Seal((NEW, OLD)), page=50).rotate()]

    [[sealed]] = await filled.read(_rows(Statement(SEALED_KEY, (CUSTOMER.id,))))
    assert isinstance(sealed, bytes)
    assert Seal((OLD,)).open(sealed, key_context(CUSTOMER.id)) == b"newer"
    assert any(passed)


async def test_a_value_that_goes_away_meanwhile_is_no_fault(filled: Database) -> None:
    """A customer may be erased at this moment."""
    seals = Seals(filled, Seal((NEW, OLD)), page=50)
    pages = seals.rotate()
    first = await anext(pages)
    assert first.column.name == "data_keys.sealed_key"
    start = await chain_key(filled, Seal((NEW, OLD)))
    customers = Customers(filled, Seal((NEW, OLD)), digests_of(filled), chain_key=start.secret)
    await customers.change(removed(CUSTOMER, at_ms=2), CustomerEvent.REMOVED)
    assert all(not page.unopened for page in [page async for page in pages])
    assert await others(filled) == {}


async def test_a_key_that_is_missing_opens_nothing(filled: Database) -> None:
    """Rotation does not begin without the older key: the store says so at once."""
    with pytest.raises(StoreUnusable):
        await verify_key(filled, Seal((NEW,)))
