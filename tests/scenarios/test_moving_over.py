"""A shop that used laravel-payhere moves over: its published tables, and the simulator as its gateway."""

import asyncio
import csv
import os
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.laravel_shop import APP_KEY_TEXT, encrypted, mysql_dump, payment, subscription, write_sqlite
from tests.scenarios.program import PAYRELAY, Program, simulated_account, surroundings

from payrelay_simulator import (
    DEFAULT_MERCHANT,
    CustomerSeed,
    PaymentSeed,
    Planted,
    Seed,
    Simulator,
    SubscriptionSeed,
    plant,
    serve,
)

CARDS: Final = 3
PAID: Final = 4
MANY: Final = 2_000


class OldShop(NamedTuple):
    """What the shop did at its gateway before, and the files that it has of that."""

    simulator: Simulator
    base_url: str
    planted: Planted
    database: Path
    dump: Path
    key_file: Path


@contextmanager
def listening(simulator: Simulator) -> Iterator[str]:
    """Serves a simulator from a thread of its own; gives its address."""
    started, addresses, ending = threading.Event(), list[str](), list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()

    async def serving() -> None:
        end = asyncio.Event()
        ending.append((asyncio.get_running_loop(), end))
        async with serve(simulator) as running:
            addresses.append(running.base_url)
            started.set()
            await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(serving(),))
    thread.start()
    started.wait()
    try:
        yield addresses[0]
    finally:
        loop, end = ending[0]
        loop.call_soon_threadsafe(end.set)
        thread.join()


@pytest.fixture(scope="module")
def old_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldShop]:
    """A shop with approved cards, past payments and two subscriptions, in laravel-payhere's newest tables."""
    folder, simulator = tmp_path_factory.mktemp("laravel"), Simulator()
    tokens = [f"{number:032X}" for number in range(1, CARDS + 1)]
    planted = plant(
        simulator.world,
        Seed(
            customers=[CustomerSeed(customer_token=token) for token in tokens],
            payments=[PaymentSeed(order_id=f"{100 + n}", amount=Decimal("1250.50")) for n in range(PAID)],
            subscriptions=[
                SubscriptionSeed(order_id="900", customer_token=tokens[0], amount=Decimal(990), installments_paid=2),
                SubscriptionSeed(order_id="901", customer_token=tokens[1], amount=Decimal(990), status="CANCELLED"),
            ],
        ),
    )
    rows = _rows(simulator, planted, tokens)
    database, dump, key_file = folder / "database.sqlite", folder / "dump.sql", folder / ".env"
    plans = [
        subscription(1, payhere_subscription_id=planted.subscription_ids[0], order_id="900"),
        subscription(2, payhere_subscription_id=planted.subscription_ids[1], order_id="901", status="-1"),
    ]
    write_sqlite(database, [encrypted(row) for row in rows], plans)
    dump.write_text(mysql_dump(rows, plans))
    key_file.write_text(f"APP_NAME=Shop\nAPP_KEY={APP_KEY_TEXT}\nDB_PASSWORD=secret\n")
    with listening(simulator) as base_url:
        yield OldShop(simulator, base_url, planted, database, dump, key_file)


def _rows(simulator: Simulator, planted: Planted, tokens: list[str]) -> list[dict[str, object]]:
    """Gives the notifications that the shop has had: approvals, payments and installments, and one of another shop."""
    own = {"merchant_id": DEFAULT_MERCHANT.merchant_id}
    rows = [
        payment(
            number + 1,
            order_id=f"{700 + number}",
            payment_id=f"{320_024_000_000 + number}",
            user_id=number,
            customer_token=token,
            payhere_amount=10.0,
            **own,
        )
        for number, token in enumerate(tokens)
    ]
    rows += [
        payment(10 + number, order_id=f"{100 + number}", payment_id=str(id_), **own)
        for number, id_ in enumerate(planted.payment_ids)
    ]
    for number, each in enumerate(simulator.world.ledger.entries()):
        if each.order_id == "900" and each.payment_id is not None:
            rows.append(
                payment(
                    20 + number,
                    order_id="900",
                    payment_id=str(each.payment_id),
                    subscription_id=str(planted.subscription_ids[0]),
                    payhere_amount=990.0,
                    recurring="1",
                    message_type="RECURRING_INSTALLMENT_SUCCESS",
                    item_rec_install_paid=len(rows) - CARDS - PAID + 1,
                    item_rec_status="0",
                    **own,
                )
            )
    rows.append(payment(90, order_id="555", merchant_id="1999999"))
    rows.append(payment(91, order_id="556", status_code="-2", **own))
    return rows


@pytest.fixture
def program(old_shop: OldShop, tmp_path: Path) -> Iterator[Program]:
    """Payrelay on the same gateway account, with keys of two principals; not started."""
    program = Program(tmp_path, simulated_account(old_shop.base_url, DEFAULT_MERCHANT))
    yield program
    program.kill() if program.port else None


def taken_by(simulator: Simulator, order_id: str) -> list[int]:
    """Gives what the gateway has ever taken for an order."""
    kinds = {"charge", "capture", "retry", "installment"}
    return [
        each.amount_cents
        for each in simulator.world.ledger.entries()
        if each.kind in kinds and each.order_id == order_id
    ]


def imported(program: Program, source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the import for the principal `shop`."""
    return program.run("import", str(source), "--principal", "shop", *options)


def customers_of(report: Path) -> dict[str, str]:
    """Gives the customers by the shop's own references, as the file of --report says."""
    with report.open() as lines:
        return {row["reference"]: row["customer"] for row in csv.DictReader(lines) if row["customer"]}


def tables_of(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Gives all that an import stores, but for when."""
    with sqlite3.connect(folder / "payrelay.db") as connection:
        queries = {
            "payments": "SELECT payment_id, principal, order_id, amount_minor FROM imported_payments ORDER BY 1",
            "installments": "SELECT subscription_id, payment, is_paid FROM installments ORDER BY 1, 2",
            "subscriptions": "SELECT subscription_id, principal, told_state, told_paid FROM subscriptions ORDER BY 1",
            "customers": "SELECT principal, order_id, state, version FROM customers ORDER BY order_id",
        }
        found = {name: connection.execute(query).fetchall() for name, query in queries.items()}
    connection.close()
    return found


def test_a_shop_moves_over_with_every_card_chargeable_and_nothing_charged_twice(
    program: Program, old_shop: OldShop
) -> None:
    """The whole promise of an import, with the gateway's own ledger as the judge."""
    simulator, report = old_shop.simulator, program.folder / "report.csv"
    key, other = program.new_key("shop"), program.new_key("rival")
    before = len(simulator.world.ledger.entries())
    moved = imported(
        program, old_shop.database, "--app-key-file", str(old_shop.key_file), "--report", str(report), "--yes"
    )
    again = imported(program, old_shop.dump, "--yes")

    assert moved.returncode == again.returncode == 1  # one line is another merchant's
    assert "Imported for shop: 3 cards, 9 payments, 2 subscriptions." in moved.stdout
    assert "merchant_id is another merchant's" in moved.stderr
    assert "Imported for" not in again.stdout
    assert len(simulator.world.ledger.entries()) == before
    program.start()
    shop, rival = program.client(key), program.client(other)
    for reference, customer in customers_of(report).items():
        body = {
            "type": "PAYMENT",
            "order_id": f"new-{reference}",
            "items": "Tea",
            "currency": "LKR",
            "amount": 400,
            "customer_token": customer,
        }
        assert [shop.post("payments/charge", body).status for _ in range(2)] == [200, 200]
        assert taken_by(simulator, f"new-{reference}") == [40_000]
    assert sorted(customers_of(report)) == ["0", "1", "2"]
    paid, refund = str(old_shop.planted.payment_ids[0]), {"description": "broken"}
    assert rival.post("payments/refund", {**refund, "payment_id": paid}).status == 404
    assert shop.post("payments/refund", {**refund, "payment_id": paid}).status == 200
    plan = old_shop.planted.subscription_ids[0]
    assert rival.get(f"subscriptions/{plan}").status == 404
    assert shop.get(f"subscriptions/{plan}").status == 200
    assert [each["state"] for each in shop.get("subscription-states").json["data"]] == ["active", "stopped"]
    assert shop.delete(f"subscriptions/{plan}").status == 200
    assert program.run("audit", "verify").returncode == 0


def test_an_import_that_was_killed_is_begun_again_and_doubles_nothing(program: Program) -> None:
    """Whoever imports a hundred thousand lines will be interrupted once, and must not have to think about it."""
    program.new_key("shop")
    lines, pipe = program.folder / "payments.csv", program.folder / "report"
    rows = "".join(f"{400_000_000_000 + number},P-{number % 900},{number}.50,LKR\n" for number in range(1, MANY + 1))
    lines.write_text("payment_id,order_id,amount,currency\n" + rows)
    os.mkfifo(pipe)
    command: list[str | Path] = [PAYRELAY, "import", lines, "--principal", "shop", "--yes", "--report", pipe]
    process = subprocess.Popen(command, cwd=program.folder, env=surroundings(program.environment))
    with process, pipe.open() as told:
        assert told.readline().startswith("place,")
        process.send_signal(signal.SIGKILL)
    killed_at = len(tables_of(program.folder)["payments"])
    whole = imported(program, lines, "--yes")
    once = tables_of(program.folder)
    again = imported(program, lines, "--yes")

    assert 0 < killed_at < MANY
    assert f"Imported for shop: {MANY - killed_at} payments." in whole.stdout
    assert f"Here already: {MANY} payments." in again.stdout
    assert tables_of(program.folder) == once
    assert len({row[0] for row in once["payments"]}) == MANY
