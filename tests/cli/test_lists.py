"""The commands that list and show checkouts, subscriptions and payments."""

import asyncio
import json
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests import samples
from tests.cli.commands import GATEWAY, Ran, Run

from payrelay.cli.session import session
from payrelay.core.calls import Refund
from payrelay.core.checkouts.checkout import Checkout, CheckoutState, Details
from payrelay.core.operators.operator import OperatorAct
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import JournalEntry, Kind, State
from payrelay.core.secret import Secret
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState
from payrelay.settings import Settings
from payrelay.store.payments.journal import AcceptedOperation
from payrelay.store.subscriptions import SubscriptionOwner

CHECKOUT: Final = msgspec.structs.replace(samples.CHECKOUT, account="gateway")
OTHER: Final = msgspec.structs.replace(
    CHECKOUT, id="chk_00000000000000000000000002", order_id="[red]B-2\x1b[0m", guard="B-2", account="second"
)
PLAN: Final = Fact(
    subscription_id="420075032251",
    at_ms=samples.NOW_MS,
    is_seen=False,
    order_id="PLAN-1",
    currency="LKR",
    amount_minor=9_900,
    state=SubscriptionState.ACTIVE,
    paid=1,
    next_on="2026-12-21",
    payment="320025000009",
    is_paid=True,
    payment_minor=19_900,
    payment_at_ms=samples.NOW_MS,
)
STOPPED: Final = Fact(
    subscription_id="420075032252", at_ms=samples.NOW_MS, is_seen=False, state=SubscriptionState.STOPPED
)


async def _seed(folder: Path, *checkouts: Checkout) -> None:
    async with session(Settings(database_url=Secret(f"sqlite:///{folder}/payrelay.db"))) as relay:
        for checkout in checkouts:
            details = Details(secret="CANARY-secret", asked=samples.ASKED)
            assert await relay.checkouts.add(checkout, details)
        owner = SubscriptionOwner(account="gateway", merchant=CHECKOUT.merchant, principal="shop")
        await relay.subscriptions.note(owner, [PLAN, STOPPED], now_ms=samples.NOW_MS)


async def _done(folder: Path) -> list[OperatorAct]:
    async with session(Settings(database_url=Secret(f"sqlite:///{folder}/payrelay.db"))) as relay:
        return await relay.acts.before(None, 9)


@pytest.fixture
def listed(run: Run, upgraded_database: Path) -> Run:
    """Runs a command over two checkouts, two subscriptions and a payment."""
    asyncio.run(_seed(upgraded_database.parent, CHECKOUT, OTHER))

    def over(*arguments: str) -> Ran:
        return run(*arguments, **GATEWAY)

    return over


@pytest.mark.parametrize(
    ("typed", "ids"),
    [
        (("checkouts", "list"), [OTHER.id, CHECKOUT.id]),
        (("checkouts", "list", "--order", "A-1"), [CHECKOUT.id]),
        (("checkouts", "list", "--account", "second"), [OTHER.id]),
        (("checkouts", "list", "--state", "completed"), []),
        (("checkouts", "list", "--limit", "1"), [OTHER.id]),
        (("subscriptions", "list"), ["420075032251", "420075032252"]),
        (("subscriptions", "list", "--order", "PLAN-1"), ["420075032251"]),
        (("subscriptions", "list", "--account", "second"), []),
        (("subscriptions", "list", "--state", "stopped"), ["420075032252"]),
        (("subscriptions", "list", "--limit", "1"), ["420075032251"]),
        (("payments", "list"), ["320025000009"]),
        (("payments", "list", "--order", "PLAN-1"), ["320025000009"]),
        (("payments", "list", "--order", "other"), []),
        (("payments", "list", "--state", "RECEIVED"), []),
    ],
    ids=str,
)
def test_a_list_is_narrowed(listed: Run, typed: tuple[str, ...], ids: list[str]) -> None:
    """For programs there is JSON; for people a table with the same entries, or a line that says that there are none."""
    noun = typed[0]
    name = {"checkouts": "id", "subscriptions": "subscription_id", "payments": "payment_id"}[noun]
    assert [each[name] for each in json.loads(listed(*typed, "--json").out)[noun]] == ids
    shown = listed(*typed)
    assert (shown.code, shown.err) == (0, "")
    assert all(each in shown.out for each in ids)
    assert shown.out.startswith("Nothing here: ") is (not ids)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("checkouts", "show", CHECKOUT.id), ["A-1", "LKR 1,000.00", "shop", "open"]),
        (("subscriptions", "show", "420075032251"), ["PLAN-1", "LKR 99.00", "LKR 199.00, payment 320025000009"]),
        (
            ("payments", "show", "320025000009"),
            ["PLAN-1", "paid", "LKR 199.00", "left", "subscription 420075032251", "not read"],
        ),
        (
            ("orders", "show", "PLAN-1"),
            ["LKR 199.00 was paid, and LKR 199.00 is left.", "320025000009", "installment"],
        ),
        (
            ("orders", "show", "A-1"),
            ["As far as is known, nothing was paid, and nothing is held.", "this page is open"],
        ),
    ],
    ids=str,
)
def test_one_is_shown_with_what_is_known(listed: Run, typed: tuple[str, ...], words: list[str]) -> None:
    """Support is asked about one order at a time."""
    shown = listed(*typed)
    assert [word for word in words if word not in shown.out] == []
    assert listed(*typed, "--json").code == 0


@pytest.mark.parametrize("noun", ["checkouts", "subscriptions", "payments", "orders"])
def test_one_that_is_not_there_is_named(listed: Run, noun: str) -> None:
    """A mistyped id must not look like a success."""
    ran = listed(noun, "show", "1")
    assert (ran.code, ran.err) == (2, f"payrelay: there is no {noun[:-1]} 1\n")


REFUNDS: Final = (4_000, None)
"""Of the installment: a part, and then the rest."""


async def _refund(folder: Path) -> None:
    async with session(Settings(database_url=Secret(f"sqlite:///{folder}/payrelay.db"))) as relay:
        for number, amount_minor in enumerate(REFUNDS):
            call = Refund(payment_id=PLAN.payment or "", description="broken", amount_minor=amount_minor)
            row = msgspec.structs.replace(
                samples.OPERATION,
                id=f"op_{number:032d}",
                kind=Kind.REFUND,
                state=State.SUCCEEDED,
                order_id=None,
                payment_id=PLAN.payment,
                amount_minor=amount_minor,
                subject=f"payment/{PLAN.payment}",
                guard=None,
                claim=None,
                idempotency_key=None,
            )
            entry = JournalEntry(version=1, at_ms=samples.NOW_MS, event=None, state=row.state, evidence=Evidence())
            stored = await relay.journal.accept(row, entry, call, conflicts_with=None, now_ms=samples.NOW_MS)
            assert isinstance(stored, AcceptedOperation)


def test_the_money_of_an_order_is_told_with_what_went_back(listed: Run, upgraded_database: Path) -> None:
    """An operator without a browser reads the figures that the console and the API show, by the operations' ids."""
    asyncio.run(_refund(upgraded_database.parent))
    shown = listed("orders", "show", "PLAN-1")
    (order,) = json.loads(listed("orders", "show", "PLAN-1", "--account", "gateway", "--json").out)["orders"]
    (listing,) = json.loads(listed("payments", "list", "--json").out)["payments"]

    assert "LKR 199.00 was paid, LKR 199.00 was given back, and nothing is left." in shown.out
    for line in ("LKR 40.00 was given back on", "LKR 159.00 was given back on"):
        assert line in shown.out
    assert "op_00000000000000000000000000000001" in shown.out
    figures = [order["balances"][0][name] for name in ("paid", "held", "given_back", "charged_back", "left")]
    assert figures == [199.0, 0.0, 199.0, 0.0, 0.0]
    assert listing["balance"] == order["payments"][0]
    assert [each["amount"] for each in listing["refunds"]] == [40.0, None]
    assert "given back LKR 199.00" in listed("payments", "list").out
    assert "LKR 159.00 was given back" in listed("payments", "show", "320025000009").out


def test_two_shops_with_one_order_id_are_told_apart(listed: Run, upgraded_database: Path) -> None:
    """Their sums are never added; an account that is configured no more has its orders still."""
    theirs = msgspec.structs.replace(
        CHECKOUT, id="chk_00000000000000000000000003", account="former", merchant="f" * 16, key_hash="k" * 64
    )
    asyncio.run(_seed(upgraded_database.parent, theirs))

    def accounts(*options: str) -> list[str]:
        found = json.loads(listed("orders", "show", "A-1", "--json", *options).out)["orders"]
        return [each["account"] for each in found]

    assert accounts() == ["former", "gateway"]
    assert accounts("--account", "former") == ["former"]
    assert "account  former" in listed("orders", "show", "A-1").out


def test_an_order_on_an_account_that_is_not_there(listed: Run) -> None:
    """A mistyped account is named, and not called an unknown order."""
    ran = listed("orders", "show", "PLAN-1", "--account", "nowhere")

    assert ran.code != 0
    assert "there is no gateway account called nowhere" in ran.err


def test_a_page_is_closed_by_its_id(listed: Run, upgraded_database: Path) -> None:
    """The gateway can't be reached, and no form of the page ever left: its order is free all the same.

    Who closed it, and why, is told once in the history of what operators did.
    """
    closed = listed("checkouts", "close", CHECKOUT.id, "--reason", "the cart was changed", "--by", "ann", "--yes")
    assert (closed.code, closed.out) == (0, f"{CHECKOUT.id} cancelled closed\n")
    assert "still pay" not in closed.err
    again = listed("checkouts", "close", CHECKOUT.id, "--reason", "once more", "--yes")
    assert (again.code, again.out) == (0, closed.out)
    assert "Its page was closed" in listed("checkouts", "list").out
    shown = json.loads(listed("checkouts", "show", CHECKOUT.id, "--json").out)["checkout"]
    assert (shown["state"], shown["reason"], shown["may_still_be_paid"]) == ("cancelled", "closed", False)
    [did] = asyncio.run(_done(upgraded_database.parent))
    assert (did.act, did.subject, did.name, did.reason) == (
        *("close_checkout", f"checkout/{CHECKOUT.id}", "ann"),
        "the cart was changed",
    )


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        ((CHECKOUT.id, "--yes"), 2, "--reason is missing"),
        ((CHECKOUT.id, "--reason", "x"), 2, "nothing was closed"),
        (("chk_x", "--reason", "x", "--yes"), 2, "there is no checkout chk_x"),
    ],
    ids=str,
)
def test_a_page_that_is_not_closed_is_told_why(listed: Run, typed: tuple[str, ...], code: int, words: str) -> None:
    """The operator sees it before telling the customer."""
    ran = listed("checkouts", "close", *typed)
    assert (ran.code, words in ran.err, ran.out) == (code, True, "")


def test_a_paid_page_is_not_closed(listed: Run, upgraded_database: Path) -> None:
    """The customer's money is given back by a refund, and by nothing else."""
    paid = msgspec.structs.replace(
        CHECKOUT, id="chk_00000000000000000000000003", state=CheckoutState.COMPLETED, order_id="C-3", guard="C-3"
    )
    asyncio.run(_seed(upgraded_database.parent, paid))
    ran = listed("checkouts", "close", paid.id, "--reason", "x", "--yes")
    assert (ran.code, f"{paid.id} is completed already: it can't be closed" in ran.err) == (1, True)


def test_a_list_shows_no_secret_and_steers_no_terminal(listed: Run) -> None:
    """An order id is what a client chose; what it holds is shown and not done."""
    shown = listed("checkouts", "list").out + listed("checkouts", "show", OTHER.id).out
    assert ("CANARY" in shown, "\x1b" in shown, "[red]" in shown) == (False, False, True)
