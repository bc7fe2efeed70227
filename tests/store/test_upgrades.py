# ruff: noqa: S608 - what is put into the texts are tables and conditions of our own

import asyncio
from typing import Final

import asyncpg
import msgspec
import pytest
from tests.digests import digests_of, put_first_check
from tests.samples import CHECKOUT, OPERATION
from tests.store.conftest import CHAIN_KEY, Book
from tests.store.test_chargebacks import EVENT as TOLD
from tests.store.test_row_digests import KEY

from payrelay.clock import Clock
from payrelay.core.gateways.signed_text import SignedText
from payrelay.errors import StoreUnavailable, StoreUnusable
from payrelay.store import meta, open_database
from payrelay.store.access.credentials import Credentials
from payrelay.store.data_keys.keys import DataKeys, stored
from payrelay.store.engine.database import Database, Statement, T, Unit, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import KEY_CHECK, Seal
from payrelay.store.events.endpoints import Endpoints
from payrelay.store.signed_texts import SignedTexts
from payrelay.store.statements.meta import ADD_META
from payrelay.store.upgrades.begin import begin_store
from payrelay.store.upgrades.cover_earlier_rows import ROW_DIGESTS
from payrelay.store.upgrades.cover_more_rows import MORE_ROW_DIGESTS
from payrelay.store.upgrades.cover_told_rows import TOLD_ROW_DIGESTS
from payrelay.store.upgrades.run import upgrade
from payrelay.store.upgrades.steps import STEPS, UpgradeContext, UpgradeStep
from payrelay.store.upgrades.told_database import TOLD_EVERY, ToldDatabase

FIRST: Final = b"1" * 32
SECOND: Final = b"2" * 32
ROWS: Final = TOLD_EVERY // 2
TEXT: Final = SignedText(order_id=CHECKOUT.order_id, amount_minor=1, currency="LKR")


async def _begun(database: Database, seal: Seal) -> UpgradeContext:
    """Does what every start does before the upgrade."""
    await begin_store(database, seal, Clock())
    await meta.verify_key(database, seal)
    chain = await meta.chain_key(database, seal, Clock())
    return UpgradeContext(database, seal, chain.secret, 1_000)


async def _of_first_version(database: Database) -> UpgradeContext:
    """Gives a database as the first version left it, and what the last step of its upgrade works with."""
    seal = Seal((FIRST,))
    await put_first_check(database, seal)
    return UpgradeContext(database, seal, (await meta.chain_key(database, seal, Clock())).secret, 1_000)


class _CutOff:
    """A database on which the process dies before anything that it writes is on disk."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.read, self.read_page, self.clear_files = database.read, database.read_page, database.clear_files
        self.ping, self.close = database.ping, database.close

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Carries the unit out to its end, and stores nothing of it."""

        def cut() -> Unit[T]:
            yield from unit
            raise StoreUnavailable("the process died")

        return await self._database.write(cut(), is_patient=is_patient)


class Counted:
    """A step that counts its runs, and fails as often as it is told to."""

    def __init__(self, name: str, failures: int = 0) -> None:
        self.step = UpgradeStep(name, self._run)
        self.runs = 0
        self._failures = failures

    async def _run(self, _: UpgradeContext) -> None:
        self.runs += 1
        if self.runs <= self._failures:
            raise StoreUnavailable("busy")


async def test_each_step_runs_once_in_the_order_of_the_list(database: Database) -> None:
    """A step that ran at every start would take for old what was forged since."""
    context = await _begun(database, Seal((FIRST,)))
    one, two = Counted("one"), Counted("two")

    assert await upgrade(context, (one.step,)) == ["one"]
    assert await upgrade(context, (one.step, two.step)) == ["two"]
    assert await upgrade(context, (one.step, two.step)) == []
    assert (one.runs, two.runs) == (1, 1)


async def test_a_step_that_failed_is_run_again_and_those_before_it_are_not(database: Database) -> None:
    """A start that was cut off in the middle of an upgrade must go on with it the next time."""
    context = await _begun(database, Seal((FIRST,)))
    one, two = Counted("one"), Counted("two", failures=1)

    with pytest.raises(StoreUnavailable):
        await upgrade(context, (one.step, two.step))
    assert await upgrade(context, (one.step, two.step)) == ["two"]
    assert (one.runs, two.runs) == (1, 2)


async def test_processes_that_start_together_lose_no_note(database: Database) -> None:
    """A note that another process overwrote would make a finished step run again much later."""
    context = await _begun(database, Seal((FIRST,)))
    steps = [Counted(f"step {number}") for number in range(4)]

    await asyncio.gather(*(upgrade(context, (each.step,)) for each in steps))

    assert await meta.finished_upgrades(database, context.seal) >= {each.step.name for each in steps}


async def test_the_notes_survive_the_rotation_of_the_encryption_key(database: Database) -> None:
    """After a rotation nothing has to be upgraded again."""
    await upgrade(await _begun(database, Seal((FIRST,))))

    assert await upgrade(await _begun(database, Seal((SECOND, FIRST)))) == []


async def test_a_database_of_an_earlier_version_gets_every_step(database: Database) -> None:
    """Its check of the key has the content of the first version, which noted no steps."""
    seal = Seal((FIRST,))
    await put_first_check(database, seal)

    assert await upgrade(await _begun(database, seal)) == [step.name for step in STEPS]


async def test_a_new_database_never_has_a_check_that_asks_for_an_upgrade(database: Database) -> None:
    """Such a check would stay in the log of the database, and put back would have forged rows taken for old ones."""
    assert await upgrade(await _begun(database, Seal((FIRST,)))) == []


@pytest.mark.parametrize("left", ["a digest", "the record of what was trusted", "a data key"])
async def test_an_older_check_makes_no_step_run_again(database: Database, left: str) -> None:
    """From a backup or a log somebody puts the check of before the upgrade back, and forges rows without digests."""
    seal = Seal((FIRST,))
    await _begun(database, seal)
    await Credentials(database, digests_of(database)).add(KEY)
    await Credentials(database, digests_of(database)).add(msgspec.structs.replace(KEY, id="other"))
    await database.write(_run("DELETE FROM meta WHERE name = 'key_check'"))
    await put_first_check(database, seal)
    if left != "the record of what was trusted":
        await database.write(_run("DELETE FROM meta WHERE name = 'trusted_at_upgrade'"))
    where = " WHERE id = 'other'" if left == "a digest" else ""
    await database.write(_run(f"UPDATE credentials SET row_digest = ''{where}"))
    if left == "a data key":
        await database.write(all_rows(stored(DataKeys(seal).new("cus_1"))))

    with pytest.raises(StoreUnusable, match="older check was put into the database"):
        await upgrade(await _begun(database, seal))
    assert await meta.finished_upgrades(database, seal) == frozenset()


@pytest.mark.parametrize("covered", ["operations", "signed_texts"])
async def test_a_check_from_before_a_later_step_makes_it_run_no_second_time(database: Database, covered: str) -> None:
    """The check names the earlier steps, and one kind of row alone tells: a merchant may have forms and no calls."""
    seal, rows = Seal((FIRST,)), digests_of(database)
    await _begun(database, seal)
    if covered == "operations":
        await Book(database).accept(OPERATION)
    else:
        await SignedTexts(database, rows, secret=CHAIN_KEY).keep_form(CHECKOUT, [TEXT], at_ms=1)
    older = meta.sealed_check(seal, (step.name for step in STEPS if step.name != MORE_ROW_DIGESTS))
    await database.write(_run("DELETE FROM meta WHERE name = 'key_check'"))
    await database.write(all_rows(Statement(ADD_META, (KEY_CHECK, older))))

    with pytest.raises(StoreUnusable, match="'more row digests' was finished before"):
        await upgrade(await _begun(database, seal))


async def test_a_check_from_before_events_had_digests_makes_no_event_trusted(database: Database) -> None:
    """Somebody plants an event without one, and has the upgrade give it one: a digest of any other event tells."""
    seal, rows = Seal((FIRST,)), digests_of(database)
    await _begun(database, seal)
    await Endpoints(database, seal, rows).put(TOLD)
    await database.write(
        _run(
            "INSERT INTO chargebacks (merchant, payment_id, order_id, account, principal, currency,"
            " notification_id, noted_at_ms) VALUES ('m', '1', 'A-1', 'gateway', 'shop', 'LKR', 'ntf_1', 1)"
        )
    )
    older = meta.sealed_check(seal, (step.name for step in STEPS if step.name != TOLD_ROW_DIGESTS))
    await database.write(_run("DELETE FROM meta WHERE name = 'key_check'"))
    await database.write(all_rows(Statement(ADD_META, (KEY_CHECK, older))))

    with pytest.raises(StoreUnusable, match="'told row digests' was finished before"):
        await upgrade(await _begun(database, seal))


@pytest.mark.parametrize(
    ("name", "table"),
    [(ROW_DIGESTS, "credentials"), (MORE_ROW_DIGESTS, "signed_texts"), (TOLD_ROW_DIGESTS, "outbox")],
)
async def test_rows_are_covered_wholly_or_not_at_all(database: Database, name: str, table: str) -> None:
    """An upgrade that was cut off leaves no row with a digest: the next one tells it from one that was finished."""
    context = await _of_first_version(database)
    rows, covering = digests_of(database, context.secret), tuple(step for step in STEPS if step.name == name)
    digests = Statement(query(f"SELECT row_digest FROM {table}"), ())
    await Credentials(database, rows).add(KEY)
    await SignedTexts(database, rows, secret=context.secret).keep_form(CHECKOUT, [TEXT], at_ms=1)
    await Endpoints(database, context.seal, rows).put(TOLD)
    for each in ("credentials", "signed_texts", "outbox"):
        await database.write(_run(f"UPDATE {each} SET row_digest = ''"))
    with pytest.raises(StoreUnavailable):
        await upgrade(context._replace(database=_CutOff(database)), covering)
    assert await database.read(all_rows(digests)) == [("",)]

    assert await upgrade(context, covering) == [name]
    assert await database.read(all_rows(digests)) != [("",)]


async def test_two_upgrades_at_once_cover_rows_once(database: Database) -> None:
    """The second one finds digests, and that is no forgery."""
    context = await _of_first_version(database)
    await asyncio.gather(upgrade(context), upgrade(context))

    assert await meta.finished_upgrades(database, context.seal) == {step.name for step in STEPS}


@pytest.mark.postgresql
async def test_no_step_runs_beside_another_version(postgresql_url: str) -> None:
    """What that version writes after the upgrade would have no digest, and count as not existing."""
    database = await open_database(postgresql_url, clock=Clock(), owner=True)
    context = await _of_first_version(database)
    other = await asyncpg.connect(postgresql_url, server_settings={"application_name": "payrelay"})
    with pytest.raises(StoreUnusable, match="another version of Payrelay has 1 sessions"):
        await upgrade(context)

    assert await meta.finished_upgrades(database, context.seal) == frozenset()
    await other.close()
    await database.close()


@pytest.mark.postgresql
async def test_a_step_that_concerns_no_other_version_runs_beside_it(postgresql_url: str) -> None:
    """Services of the version before go on during the upgrade, and the operator need not stop all of them."""
    database = await open_database(postgresql_url, clock=Clock(), owner=True)
    context = await _begun(database, Seal((FIRST,)))
    other = await asyncpg.connect(postgresql_url, server_settings={"application_name": "payrelay"})
    step = Counted("one").step._replace(runs_beside_others=True)

    assert await upgrade(context, (step,)) == ["one"]
    await other.close()
    await database.close()


def test_no_step_that_seals_or_makes_digests_runs_beside_another_version() -> None:
    """Who adds a step here says that the version before neither reads nor writes what it changes."""
    assert {step.name for step in STEPS if step.runs_beside_others} == {"database identity"}


async def test_a_long_step_tells_how_many_rows_it_has_read(database: Database) -> None:
    """An operator sees whether an upgrade of millions of rows goes on, also within one unit of work."""
    told: list[str] = []
    numbers = query(f"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {ROWS}) SELECT x FROM n")

    def counted() -> Unit[int]:
        return len((yield Statement(numbers, ()))) + len((yield Statement(numbers, ())))

    told_database = ToldDatabase(database, told.append)
    assert await told_database.read(counted()) == 2 * ROWS
    assert told == [f"{2 * ROWS:,} rows read so far"]
    with pytest.raises(ZeroDivisionError):
        await told_database.write(_failing())


def _failing() -> Unit[None]:
    yield Statement(query("SELECT 1"), ())
    raise ZeroDivisionError


async def test_nobody_makes_a_step_run_again_by_removing_the_notes(database: Database) -> None:
    """Whoever can write to the database, and lacks the key, could otherwise have forged rows taken for old ones."""
    seal = Seal((FIRST,))
    await upgrade(await _begun(database, seal))
    await database.write(_run("DELETE FROM meta WHERE name = 'key_check'"))

    with pytest.raises(StoreUnusable, match="check of the encryption key is missing"):
        await meta.verify_key(database, seal)


async def test_a_lost_key_of_the_chain_is_not_replaced_although_nothing_is_chained(database: Database) -> None:
    """Whoever removes the key together with all hashes must not get a new key, under which everything looks right."""
    seal = Seal((FIRST,))
    await upgrade(await _begun(database, seal))
    await database.write(_run("DELETE FROM meta WHERE name = 'chain_key'"))

    with pytest.raises(StoreUnusable, match="key of the audit chain is missing"):
        await meta.chain_key(database, seal, Clock())


async def test_a_step_can_not_be_noted_where_there_is_no_check(database: Database) -> None:
    """Only the program itself, in the wrong order, could try it: it must not go unnoticed."""
    with pytest.raises(StoreUnusable, match="can't be noted"):
        await meta.note_upgrade(database, Seal((FIRST,)), "one")


async def test_a_note_may_be_repeated(database: Database) -> None:
    """Two processes may finish one step."""
    context = await _begun(database, Seal((FIRST,)))
    await meta.note_upgrade(database, context.seal, "one")
    await meta.note_upgrade(database, context.seal, "one")

    noted = await meta.finished_upgrades(database, context.seal)
    assert noted == {*(step.name for step in STEPS), "one"}


def _run(sql: str) -> Unit[None]:
    yield Statement(query(sql), ())
