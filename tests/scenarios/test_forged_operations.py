# ruff: noqa: S608 - what is put into the texts are the columns and ids that are named here

"""What somebody tries with operations and their owners who can write to the database, and lacks the encryption key."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.scenarios.filled_database import ENCRYPTION_KEY, Asked, Filled, effects_at
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.opened import Opened, opened, settings_over
from tests.scenarios.test_forged_rows import (
    FINDINGS,
    UNUSABLE,
    Audited,
    Open,
    alerted,
    audited,
    file,
    filled,
    forge,
    gateway,
    start,
)

from payrelay.flows.access.stored_identity import stored_identity
from payrelay.flows.payments.recover_after_crash import recover
from payrelay.settings import IdentitySettings

__all__ = ["audited", "file", "filled", "gateway", "start"]

CHARGED = "principal = 'shop' AND kind = 'charge' AND state = 'succeeded'"


def rows(file: Path, sql: str) -> list[tuple[str, ...]]:
    """Reads the database behind the program's back."""
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(sql).fetchall()


def copied(file: Path, table: str, where: str, **columns: str) -> str:
    """Gives the SQL that copies a row, but for the columns that are named."""
    names = [row[1] for row in rows(file, f"PRAGMA table_info({table})")]
    values = ", ".join(columns.get(name, name) for name in names)
    return f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table} WHERE {where} LIMIT 1"


@pytest.fixture
def charge(filled: Filled) -> Asked:
    """Gives a charge of the shop's that succeeded, as it was asked for under a key."""
    return filled.charge


async def repeated(program: Opened, asked: Asked) -> tuple[int, dict[str, object]]:
    """Sends a request again; gives the status and the error of its answer."""
    reply = await program.call("POST", "/gateway/api/payments/charge", headers=asked.headers, body=asked.body)
    return reply.status, reply.json.get("error") or {}


async def refunded_by(program: Opened, key: str, payment_id: str) -> int:
    """Asks for a refund with a key; gives the status."""
    body = json.dumps({"payment_id": payment_id, "description": "back", "amount": 1}).encode()
    reply = await program.call(
        "POST", "/gateway/api/payments/refund", headers={"Authorization": f"Bearer {key}"}, body=body
    )
    return reply.status


@pytest.mark.parametrize(
    "change", ["state = 'accepted', send_by_ms = 0", "state = 'sending', send_by_ms = 0", "state = 'declined'"]
)
async def test_a_charge_that_was_set_back_is_not_made_again(
    file: Path, start: Open, gateway: GatewayDouble, charge: Asked, change: str
) -> None:
    """The recovery would call it not sent and give its key back, and the shop's repeat would charge a second time."""
    forge(file, f"UPDATE operations SET {change} WHERE id = '{charge.operation_id}'")
    before = effects_at(gateway)
    async with start() as program:
        await recover(program.relay, is_sole_owner=True)
        status, error = await repeated(program, charge)
        told = await alerted(program)

    assert (status, error["code"], error["operation_id"]) == (202, "needs_attention", charge.operation_id)
    assert effects_at(gateway) == before
    assert rows(file, f"SELECT max(version) FROM history WHERE operation_id = '{charge.operation_id}'") == rows(
        file, f"SELECT version FROM operations WHERE id = '{charge.operation_id}'"
    )
    assert told == [f"operations/{charge.operation_id}"]


async def test_an_operator_is_told_which_operation_the_lists_leave_out(file: Path, run: Run, charge: Asked) -> None:
    """A list that is empty, or a page that shows what somebody wrote, would have him look no further."""
    forge(file, f"UPDATE operations SET state = 'needs_attention' WHERE id = '{charge.operation_id}'")
    variables = {"PAYRELAY_DATABASE_URL": f"sqlite:///{file}", "PAYRELAY_ENCRYPTION_KEY": ENCRYPTION_KEY}
    listed = await asyncio.to_thread(run, "operations", "list", **variables)
    shown = await asyncio.to_thread(run, "operations", "show", charge.operation_id, **variables)

    told = f"operations/{charge.operation_id} was changed by something other than Payrelay"
    assert told in listed.err
    assert charge.operation_id not in listed.out
    assert (shown.code, told in shown.err) == (UNUSABLE, True)


async def test_a_forged_name_of_a_principal_ends_no_start(file: Path, filled: Filled, gateway: GatewayDouble) -> None:
    """Nobody knows for whom the identity provider's tokens act then: they are refused, and all else goes on."""
    forge(file, "INSERT INTO principal_names (id, principal, since_ms) VALUES ('web', 'kiosk', 1)")
    settings = settings_over(f"sqlite:///{file}", gateway, ENCRYPTION_KEY)
    async with opened(settings, filled.left_at_ms) as program:
        known = IdentitySettings.model_construct(principal="shop")
        forged = IdentitySettings.model_construct(principal="web")
        principals, log = program.relay.access.principals, program.relay.log

        assert await stored_identity(known, principals, log) == known
        assert await stored_identity(forged, principals, log) is None
        assert await alerted(program) == ["principal_names/web"]


async def test_an_operation_with_the_empty_id_is_found(file: Path, audited: Audited) -> None:
    """It is the lowest of all ids: an audit that began behind it would never see the row."""
    forge(file, copied(file, "operations", CHARGED, id="''", claim="NULL", guard="NULL", principal="'kiosk'"))
    found = await audited()

    assert found.code == FINDINGS
    assert "its history is gone" in found.out


async def test_a_step_that_no_operation_takes_is_found(file: Path, audited: Audited) -> None:
    """A version that believed a forged row stored, properly chained, that a charge that had succeeded was not sent."""
    operation_id = rows(file, f"SELECT id FROM operations WHERE {CHARGED} AND version = 2 LIMIT 1")[0][0]
    forge(
        file,
        "INSERT INTO history (operation_id, version, at_ms, event, state, evidence, row_digest, hash)"
        f" SELECT operation_id, 3, at_ms, 'gave_up', 'not_sent', evidence, row_digest, hash FROM history"
        f" WHERE operation_id = '{operation_id}' AND version = 2",
    )

    assert (
        "no operation does this: gave_up of an operation that is succeeded leads to not_sent" in (await audited()).out
    )


async def payment_of_shop(file: Path) -> tuple[str, str]:
    """Gives the number and the merchant of a payment of the shop's."""
    [found] = rows(file, f"SELECT payment_id, merchant FROM operations WHERE {CHARGED} LIMIT 1")
    return found[0], found[1]


async def test_a_checkout_that_was_written_into_the_database_owns_no_payment(
    file: Path, start: Open, filled: Filled, gateway: GatewayDouble
) -> None:
    """A kiosk that names itself the one whose page made the shop's payment can't refund it, and an operator hears."""
    payment_id, merchant = await payment_of_shop(file)
    own = {"id": "'chk_forged'", "principal": "'kiosk'", "kind": "'payment'", "state": "'completed'", "guard": "NULL"}
    named = {"payment_id": f"'{payment_id}'", "merchant": f"'{merchant}'", "order_id": "'zzz'", "row_digest": "''"}
    forge(file, copied(file, "checkouts", "TRUE", **own, **named, key_hash="NULL"))
    before = effects_at(gateway)
    async with start() as program:
        assert await refunded_by(program, filled.keys["kiosk"], payment_id) == 404
        assert await alerted(program) == ["checkouts/chk_forged"]

    assert effects_at(gateway) == before


@pytest.mark.parametrize("change", ["principal = 'kiosk'", "principal = 'nobody'", "state = 'declined'"])
async def test_a_payment_is_not_given_away_by_its_operations_row(
    file: Path, start: Open, filled: Filled, gateway: GatewayDouble, change: str
) -> None:
    """Whoever makes the shop's row another's, or nobody's, doesn't have it open to his own key."""
    payment_id, _ = await payment_of_shop(file)
    forge(file, f"UPDATE operations SET {change} WHERE payment_id = '{payment_id}'")
    before = effects_at(gateway)
    async with start() as program:
        assert await refunded_by(program, filled.keys["kiosk"], payment_id) == 404

    assert effects_at(gateway) == before


async def test_an_operation_with_the_empty_id_owns_no_payment(
    file: Path, start: Open, filled: Filled, gateway: GatewayDouble
) -> None:
    """It has no history, and no digest of its own."""
    payment_id, _ = await payment_of_shop(file)
    where = f"payment_id = '{payment_id}' AND {CHARGED}"
    own = {"claim": "NULL", "guard": "NULL", "claim_ends_at_ms": "NULL", "idempotency_key": "NULL"}
    forge(file, copied(file, "operations", where, id="''", principal="'kiosk'", **own))
    before = effects_at(gateway)
    async with start() as program:
        assert await refunded_by(program, filled.keys["kiosk"], payment_id) == 404

    assert effects_at(gateway) == before
