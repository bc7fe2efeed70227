"""The commands for stored customers: whose cards we hold, and erasing one of them."""

import asyncio
import json
import os
import pty
import sqlite3
import subprocess
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests import samples
from tests.cli.commands import GATEWAY, PROGRAM, Ran, Run

from payrelay.cli.session import session
from payrelay.core.calls import Charge
from payrelay.core.customers.customer import Approval, Customer
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import JournalEntry, State
from payrelay.core.secret import Secret
from payrelay.flows.customers.approve_customer import approve
from payrelay.settings import Settings

APPROVAL: Final = Approval(
    account="gateway",
    merchant="0123456789abcdef",
    principal="shop",
    reference="[red]person-7\x1b[0m",
    token=Secret("CANARY59AFEE022CC69CA39D325E1B59"),
    method="VISA",
    card_no_masked="************1292",
    card_expiry="0129",
    card_holder="CANARY PERERA",
    order_id="A-1",
)
OPERATION: Final = msgspec.structs.replace(
    samples.OPERATION,
    subject="order/A-2",
    guard="order/A-2",
    claim=None,
    idempotency_key=None,
    fingerprint="0" * 64,
    order_id="A-2",
    amount_minor=100,
    created_at_ms=0,
    updated_at_ms=0,
    send_by_ms=0,
)
CALL: Final = Charge(
    authorize=False, order_id="A-2", items="Tea", currency="LKR", amount_minor=100, customer_token="cus_1"
)


async def _seed(folder: Path) -> list[Customer]:
    async with session(Settings(database_url=Secret(f"sqlite:///{folder}/payrelay.db"))) as relay:
        first = await approve(relay, APPROVAL)
        others = {"token": Secret("CANARY-2"), "principal": "other", "reference": None}
        second = await approve(relay, msgspec.structs.replace(APPROVAL, **others))
        line = JournalEntry(version=1, at_ms=0, event=None, state=State.SENDING, evidence=Evidence())
        operation = msgspec.structs.replace(OPERATION, customer_id=first.id)
        await relay.journal.accept(operation, line, CALL, conflicts_with=None, now_ms=0)
        return [first, second]


@pytest.fixture
def seeded(upgraded_database: Path) -> list[Customer]:
    """Gives the customers of two principals, in the database where the commands look for one."""
    return asyncio.run(_seed(upgraded_database.parent))


def customers(run: Run, *arguments: str) -> Ran:
    """Runs a command."""
    return run("customers", *arguments, **GATEWAY)


def listed(run: Run, *arguments: str) -> list[str]:
    """Gives the ids that a list has."""
    return [entry["id"] for entry in json.loads(customers(run, "list", "--json", *arguments).out)["customers"]]


def test_everybodys_customers_are_listed_newest_first(run: Run, seeded: list[Customer]) -> None:
    """An operator is no principal; each filter narrows."""
    first, second = seeded

    assert listed(run) == [second.id, first.id]
    assert listed(run, "--principal", "other") == [second.id]
    assert listed(run, "--reference", "[red]person-7\x1b[0m") == [first.id]
    assert listed(run, "--state", "removed") == []
    assert listed(run, "--account", "gateway", "--limit", "1") == [second.id]


def test_a_list_shows_no_secret_and_steers_no_terminal(run: Run, seeded: list[Customer]) -> None:
    """A reference is what a client chose; what it holds is shown and not done."""
    ran = customers(run, "list")

    assert (ran.code, "CANARY" in ran.out, "\x1b" in ran.out) == (0, False, False)
    assert seeded[0].id in ran.out
    assert "[red]" in ran.out


def test_an_empty_list_says_so(run: Run, seeded: list[Customer]) -> None:
    """A head without rows looks like a fault."""
    assert seeded
    assert customers(run, "list", "--state", "removed").out == "Nothing here: there is no such customer.\n"


def test_one_is_shown_with_its_operations(run: Run, seeded: list[Customer]) -> None:
    """Support is asked what was charged to a card."""
    shown = json.loads(customers(run, "show", seeded[0].id, "--json").out)

    assert (shown["customer"]["card_no_masked"], shown["operation_ids"]) == ("************1292", ["op_1"])
    page = customers(run, "show", seeded[0].id)
    assert ("op_1" in page.out, "CANARY" in page.out, page.code) == (True, False, 0)
    assert "-" in customers(run, "show", seeded[1].id).out


@pytest.mark.parametrize("command", [("show",), ("erase", "--yes")])
def test_an_unknown_one_is_told_of(run: Run, seeded: list[Customer], command: tuple[str, ...]) -> None:
    """Exit code 2, as where there is nothing of that name."""
    ran = customers(run, *command, "cus_nobody")

    assert (ran.code, ran.err) == (2, "payrelay: there is no customer cus_nobody\n")
    assert seeded


def test_one_is_erased(run: Run, seeded: list[Customer]) -> None:
    """A person asks for it by letter: an operator does it, whoever's customer it is."""
    ran = customers(run, "erase", seeded[1].id, "--yes")
    shown = json.loads(customers(run, "show", seeded[1].id, "--json").out)["customer"]

    assert (ran.code, ran.err.startswith(f"Erased: {seeded[1].id}.")) == (0, True)
    assert (shown["state"], shown["card_no_masked"], shown["reference"]) == ("erased", None, None)
    assert "Destroyed: the keys" in ran.err
    assert "tables are cleared of these keys. Backups still have them" in ran.err
    assert customers(run, "erase", seeded[1].id, "--yes").code == 0


def test_without_a_terminal_nothing_is_erased_unless_it_is_said(run: Run, seeded: list[Customer]) -> None:
    """There is no way back, and nobody could be asked."""
    ran = customers(run, "erase", seeded[1].id)

    assert ran == Ran(2, "", "payrelay: --yes is missing, and there is no terminal to ask on: nothing was erased\n")
    assert json.loads(customers(run, "show", seeded[1].id, "--json").out)["customer"]["state"] == "active"


def test_an_erasure_that_could_not_clear_the_files_says_so(run: Run, tmp_path: Path, seeded: list[Customer]) -> None:
    """A backup is being made: the operator must not write to the person that nothing is left."""
    [file] = tmp_path.rglob("payrelay.db")
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM data_keys").fetchall()
    ran = customers(run, "erase", seeded[1].id, "--yes")
    reader.close()

    assert ran.code == 0
    assert "not cleared of these keys yet" in ran.err
    assert "tables are cleared of these keys" in customers(run, "erase", seeded[1].id, "--yes").err


@pytest.mark.story
@pytest.mark.parametrize(("answer", "code", "state"), [("n", 1, "active"), ("y", 0, "erased")])
def test_a_person_is_asked_back(
    run: Run, tmp_path: Path, seeded: list[Customer], *, answer: str, code: int, state: str
) -> None:
    """There is no way back: on a terminal somebody must say yes."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAYRELAY_")}
    process = subprocess.Popen(
        [*PROGRAM, "customers", "erase", seeded[0].id],
        cwd=tmp_path,
        env=environment | GATEWAY,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.write(ours, f"{answer}\n".encode())
    _, err = process.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)

    assert (process.returncode, "it can't be charged any more" in err) == (code, True)
    assert json.loads(customers(run, "show", seeded[0].id, "--json").out)["customer"]["state"] == state
