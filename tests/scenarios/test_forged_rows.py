# ruff: noqa: S608 - what is put into the texts are the columns and ids that are named here

"""What somebody tries who can write to the database, and lacks the encryption key: his own rows, and his own past."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Final

import pytest
from tests.cli.commands import Ran, Run
from tests.scenarios.filled_database import ENCRYPTION_KEY, SUBSCRIPTION, Filled, filled_database
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.opened import Opened, opened, settings_over

from payrelay.app_commands import opened_key_stores
from payrelay.core.access.credential import ID_LENGTH, SECRET_LENGTH, compose_key, hash_of
from payrelay.errors import StoreUnusable
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.runtime.event_delivery import publish_events
from payrelay.store.access.credentials import Credentials

Open = Callable[[], AbstractAsyncContextManager[Opened]]
Audited = Callable[[], Awaitable[Ran]]

FORGED_ID: Final = "F" * ID_LENGTH
OLD_DATE_MS: Final = 1
FINDINGS: Final = 1
UNUSABLE: Final = 2


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayDouble]:
    """Gives a gateway that would do everything that it is asked."""
    with GatewayDouble() as double:
        yield double


@pytest.fixture(scope="module")
def filled(gateway: GatewayDouble) -> Filled:
    """Makes a database, and gives what is known of it."""
    return filled_database(gateway)


@pytest.fixture
def file(filled: Filled, tmp_path: Path) -> Path:
    """Gives a copy of the database."""
    path = tmp_path / "payrelay.db"
    path.write_bytes(filled.content)
    path.chmod(0o600)
    return path


@pytest.fixture
def start(filled: Filled, gateway: GatewayDouble, tmp_path: Path) -> Open:
    """Starts the program over the database, as often as a test likes."""
    settings = settings_over(f"sqlite:///{tmp_path / 'payrelay.db'}", gateway, ENCRYPTION_KEY)
    return lambda: opened(settings, filled.left_at_ms)


@pytest.fixture
def audited(run: Run, tmp_path: Path) -> Audited:
    """Runs ``payrelay audit verify`` as an operator does."""
    variables = {
        "PAYRELAY_DATABASE_URL": f"sqlite:///{tmp_path / 'payrelay.db'}",
        "PAYRELAY_ENCRYPTION_KEY": ENCRYPTION_KEY,
    }
    return lambda: asyncio.to_thread(run, "audit", "verify", **variables)


def forge(file: Path, sql: str, *parameters: object) -> None:
    """Writes to the database as its owner does: no trigger stops him."""
    connection = sqlite3.connect(file)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    for statement in sql.split(";"):
        connection.execute(statement, parameters if "?" in statement else ())
    connection.commit()
    connection.close()


async def status(program: Opened, key: str, path: str) -> int:
    """Gives the status of a read with a key."""
    reply = await program.call("GET", f"/gateway/api/{path}", headers={"Authorization": f"Bearer {key}"})
    return reply.status


async def alerted(program: Opened) -> list[str]:
    """Gives the rows about which an alert waits."""
    due = [await each.lease_due(2**60, leased_until_ms=2**61, limit=100) for each in program.relay.alerting.alerts]
    return [alert.subject_id for alerts in due for alert in alerts if "/" in alert.subject_id]


async def test_a_key_that_was_written_into_the_database_opens_nothing(
    file: Path, start: Open, audited: Audited
) -> None:
    """Its hash is right and its scopes are all there are; without a digest it is as a key that nobody has made."""
    key = compose_key("sandbox", FORGED_ID, "s" * SECRET_LENGTH)
    forge(
        file,
        "INSERT INTO credentials (id, principal, key_hash, scopes, created_at_ms)"
        f" SELECT '{FORGED_ID}', principal, ?, scopes, created_at_ms FROM credentials WHERE principal = 'shop'",
        hash_of(key),
    )
    async with start() as program:
        found = [await status(program, key, "operations") for _ in range(2)]
        told = await alerted(program)

    assert found == [401, 401]
    assert told == [f"credentials/{FORGED_ID}"]
    assert f"credentials/{FORGED_ID}: its digest is missing or wrong" in (await audited()).out
    assert (await audited()).code == FINDINGS


async def test_a_key_that_is_to_be_revoked_later_opens_nothing(file: Path, start: Open) -> None:
    """A revoked row needs no digest: with a revocation in the future a forged one would be let in until then."""
    key = compose_key("sandbox", FORGED_ID, "s" * SECRET_LENGTH)
    forge(
        file,
        "INSERT INTO credentials (id, principal, key_hash, scopes, created_at_ms, revoked_at_ms)"
        f" SELECT '{FORGED_ID}', principal, ?, scopes, created_at_ms, {2**60} FROM credentials"
        " WHERE principal = 'shop'",
        hash_of(key),
    )
    async with start() as program:
        assert await status(program, key, "operations") == 401


@pytest.mark.parametrize(
    "change",
    ["principal = 'shop'", 'scopes = \'["operations:read","payments:charge"]\'', "amount_max_minor = NULL"],
)
async def test_a_key_that_was_widened_opens_nothing(file: Path, start: Open, filled: Filled, change: str) -> None:
    """A kiosk's key becomes the shop's, gets another scope, or loses its limit: it is no key any more."""
    forge(file, f"UPDATE credentials SET {change} WHERE principal = 'kiosk'")
    async with start() as program:
        assert await status(program, filled.keys["kiosk"], "operations") == 401


async def test_a_key_that_was_revoked_stays_revoked(file: Path, start: Open, filled: Filled) -> None:
    """A leaked key was ended; whoever sets the time of its end back to nothing has no key again."""
    async with start() as program:
        rows = sqlite3.connect(file).execute("SELECT id FROM credentials WHERE principal = 'kiosk'").fetchall()
        await revoke(program, rows[0][0])
    forge(file, "UPDATE credentials SET revoked_at_ms = NULL")
    async with start() as program:
        assert await status(program, filled.keys["kiosk"], "operations") == 401
        assert await status(program, filled.keys["shop"], "operations") == 200


async def revoke(program: Opened, credential_id: str) -> None:
    """Ends a key as ``payrelay keys revoke`` does."""
    file = program.settings.embedded_path
    assert file is not None
    async with opened_key_stores(program.settings, program.clock) as stores:
        assert await stores.credentials.revoke(credential_id, program.clock.now_ms())


async def test_a_customer_is_not_given_to_another_principal(
    file: Path, start: Open, filled: Filled, audited: Audited
) -> None:
    """A kiosk that names itself the owner of the shop's customer can neither see it nor charge its card."""
    customer_id = filled.customer_id
    forge(file, "UPDATE customers SET principal = 'kiosk' WHERE id = ?", customer_id)
    body = {"order_id": "new", "type": "PAYMENT", "items": "Tea", "currency": "LKR", "amount": 1}
    async with start() as program:
        charged = await program.call(
            "POST",
            "/gateway/api/payments/charge",
            headers={"Authorization": f"Bearer {filled.keys['kiosk']}"},
            body=json.dumps(body | {"customer_token": customer_id}).encode(),
        )
        assert await status(program, filled.keys["kiosk"], f"customers/{customer_id}") == 404
        assert charged.status == 422
        assert await alerted(program) == [f"customers/{customer_id}"]
    assert f"customers/{customer_id}: its digest is missing or wrong" in (await audited()).out


@pytest.mark.parametrize("change", ["url_hash = 'stolen'", "principal = 'kiosk'"])
async def test_an_endpoint_with_another_address_gets_nothing(
    file: Path, start: Open, filled: Filled, audited: Audited, change: str
) -> None:
    """Events say who pays what; redirected, they would go to whoever wrote the address, signed with the secret."""
    async with start() as program:
        registered = await program.call(
            "POST",
            "/gateway/api/endpoints",
            headers={"Authorization": f"Bearer {filled.keys['shop']}"},
            body=b'{"url": "http://127.0.0.1:9/events"}',
        )
        assert registered.status == 200, registered.json
    forge(file, f"UPDATE endpoints SET {change}")
    async with start() as program:
        rows = sqlite3.connect(file).execute("SELECT id FROM endpoints").fetchall()
        target = await program.relay.dispatch.endpoints.target(rows[0][0])

        assert target is None
        assert await alerted(program) == [f"endpoints/{rows[0][0]}"]
    assert f"endpoints/{rows[0][0]}: its digest is missing or wrong" in (await audited()).out


@pytest.mark.parametrize(
    "change",
    ["state = 'completed'", "amount_minor = 1", "reference_hash = 'attacker'"],
)
async def test_a_checkout_is_not_paid_by_hand(
    file: Path, start: Open, filled: Filled, audited: Audited, change: str
) -> None:
    """A checkout that says that it is completed, or was for a hundredth, has goods handed over: it is not believed.

    Nor is one that names another customer, who would get the card that is approved on its page.
    """
    checkout_id = filled.checkout_id
    forge(file, f"UPDATE checkouts SET {change} WHERE id = ?", checkout_id)
    async with start() as program:
        assert await status(program, filled.keys["shop"], f"checkouts/{checkout_id}") == 404
    assert f"checkouts/{checkout_id}: its digest is missing or wrong" in (await audited()).out
    assert (await audited()).code == FINDINGS


async def events_of(program: Opened, key: str, subject: str) -> list[str]:
    """Gives the types of the events about a subject that a shop reads, once all are published."""
    await publish_events(program.relay.dispatch)
    path = f"/gateway/api/events?limit=1000&subject={subject.replace(':', '%3A')}"
    reply = await program.call("GET", path, headers={"Authorization": f"Bearer {key}"})
    return [each["type"] for each in reply.json["data"]["events"]]


EVENT_COLUMNS: Final = "id, type, account, merchant, principal, subject, at_ms, data"


async def test_a_shop_is_not_told_of_a_payment_by_hand(
    file: Path, start: Open, filled: Filled, audited: Audited
) -> None:
    """It hands over its goods on ``checkout.completed``: one that nobody paid is told by no feed, and found."""
    checkout_id = filled.checkout_id
    subject = f"checkout:{checkout_id}"
    forge(
        file,
        f"INSERT INTO outbox ({EVENT_COLUMNS}) SELECT 'evt_0', 'checkout.completed', account, merchant, principal,"
        f" '{subject}', 1700000000000, ? FROM checkouts WHERE id = '{checkout_id}'",
        json.dumps({"checkout_id": checkout_id, "state": "completed"}),
    )
    async with start() as program:
        told = await events_of(program, filled.keys["shop"], subject)
        [named] = await alerted(program)

    assert "checkout.completed" not in told
    assert named.startswith("events/")
    assert f"{named}: its digest is missing or wrong" in (await audited()).out
    assert (await audited()).code == FINDINGS


async def test_an_event_is_told_as_it_was_or_not_at_all(
    file: Path, start: Open, filled: Filled, audited: Audited
) -> None:
    """A failure doesn't become a success afterwards."""
    with closing(sqlite3.connect(file)) as rows:
        found = rows.execute(
            "SELECT position, subject FROM events WHERE type = 'operation.failed' AND principal = 'shop'"
        )
        position, subject = found.fetchall()[-1]
    async with start() as program:
        before = await events_of(program, filled.keys["shop"], subject)
    forge(file, f"UPDATE events SET type = 'operation.succeeded' WHERE position = {position}")
    async with start() as program:
        after = await events_of(program, filled.keys["shop"], subject)

    assert "operation.failed" in before
    assert after == [each for each in before if each != "operation.failed"]
    assert f"events/{position}: its digest is missing or wrong" in (await audited()).out


async def test_a_plan_is_not_set_going_by_hand(file: Path, start: Open, filled: Filled, audited: Audited) -> None:
    """A shop delivers under a plan that is active: one that says so although nobody reported it is as none."""
    forge(file, "UPDATE subscriptions SET seen_state = 'active', seen_at_ms = 9000000000000")
    async with start() as program:
        assert await status(program, filled.keys["shop"], f"subscription-states/{SUBSCRIPTION}") == 404
    assert f"/{SUBSCRIPTION}: its digest is missing or wrong" in (await audited()).out
    assert (await audited()).code == FINDINGS


async def test_a_chargeback_is_not_written_by_hand(file: Path, start: Open, filled: Filled, audited: Audited) -> None:
    """A shop that sees one takes back what it handed over, and blocks its customer."""
    with closing(sqlite3.connect(file)) as rows:
        found = rows.execute(
            "SELECT id FROM operations WHERE kind = 'charge' AND state = 'succeeded' AND principal = 'shop'"
            " AND payment_id IS NOT NULL"
        )
        (operation_id,) = found.fetchall()[0]
    forge(
        file,
        "INSERT INTO chargebacks (merchant, payment_id, order_id, account, principal, operation_id, currency,"
        " notification_id, noted_at_ms) SELECT merchant, payment_id, order_id, account, principal, id, currency, 'ntf',"
        f" 1 FROM operations WHERE id = '{operation_id}'",
    )
    async with start() as program:
        path = f"/gateway/api/operations/{operation_id}"
        reply = await program.call("GET", path, headers={"Authorization": f"Bearer {filled.keys['shop']}"})

    assert reply.json["data"]["id"] == operation_id
    assert reply.json["data"]["chargebacks"] == []
    assert "chargebacks/" in (await audited()).out


async def test_a_checkout_that_lost_its_order_is_found(file: Path, audited: Audited) -> None:
    """Without it a second checkout could be opened for the order, and the customer would pay twice."""
    forge(file, "UPDATE checkouts SET guard = NULL WHERE state = 'open'")
    found = await audited()

    assert found.code == FINDINGS
    assert "it doesn't hold its order as it should" in found.out


async def test_a_decision_about_a_notification_is_not_made_by_hand(file: Path, audited: Audited) -> None:
    """A notification that was refused as forged, and is genuine and applied now, was written by somebody else."""
    forge(file, "UPDATE notifications SET verdict = 'genuine', state = 'received' WHERE state = 'refused'")
    found = await audited()

    assert found.code == FINDINGS
    assert "notifications/" in found.out


async def test_blanked_hashes_are_found(file: Path, audited: Audited) -> None:
    """A decision by an operator is rewritten, and dated back; that there is no hash proves nothing right."""
    assert (await audited()).code != FINDINGS
    forge(
        file,
        "UPDATE history SET evidence = replace(evidence, 'operator', 'operatog'), hash = '', row_digest = '',"
        f" answer_digest = '', at_ms = {OLD_DATE_MS} WHERE operation_id IN"
        " (SELECT operation_id FROM history WHERE evidence LIKE '%operator%');"
        "UPDATE operations SET chain = '', amount_minor = 1 WHERE id IN"
        " (SELECT operation_id FROM history WHERE hash = '');"
        "DELETE FROM anchors",
    )
    found = await audited()

    assert found.code == FINDINGS
    assert "it was changed, or the entry before it was: its hash doesn't follow" in found.out


BLANKED: Final = (
    "DELETE FROM meta WHERE name = 'chain_key';"
    "UPDATE history SET hash = '', row_digest = '', answer_digest = '';"
    "UPDATE operations SET chain = '', amount_minor = 1;"
    "DELETE FROM anchors"
)


async def test_a_dropped_key_of_the_chain_is_found_whatever_else_is_blanked(
    file: Path, start: Open, audited: Audited
) -> None:
    """With the key gone and no hash left, nothing would be left to compare with."""
    forge(file, BLANKED)

    assert (await audited()).code == UNUSABLE
    with pytest.raises(StoreUnusable, match="key of the audit chain is missing"):
        async with start():
            pass


@pytest.mark.parametrize("names", ["name IN ('key_check', 'chain_key')", "name LIKE '%'"])
async def test_no_database_is_begun_again_for_forged_rows(
    file: Path, start: Open, audited: Audited, names: str
) -> None:
    """Whoever removes what a store begins with gets no new keys, under which his rows would look right."""
    forge(file, "UPDATE customers SET principal = 'kiosk', row_digest = ''")
    forge(file, f"DELETE FROM meta WHERE {names}")

    assert (await audited()).code == UNUSABLE
    with pytest.raises(StoreUnusable):
        async with start():
            pass


async def test_a_young_database_is_not_begun_again(filled: Filled, gateway: GatewayDouble, tmp_path: Path) -> None:
    """It holds a few keys and nothing that is sealed but its check; it isn't taken for a new one without that."""
    file = tmp_path / "young.db"
    settings = settings_over(f"sqlite:///{file}", gateway, ENCRYPTION_KEY)
    async with opened(settings, filled.left_at_ms) as program:
        issue = KeyRequest(principal="shop", environment="sandbox")
        await issue_key(Credentials(program.database, program.relay.checkouts.rows), program.clock, issue)
    forge(file, "UPDATE credentials SET principal = 'kiosk', row_digest = ''; DELETE FROM meta")

    with pytest.raises(StoreUnusable, match="check of the encryption key is missing"):
        async with opened(settings, filled.left_at_ms):
            pass
