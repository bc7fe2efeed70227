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
from payrelay.core.checkouts.checkout import Details
from payrelay.core.secret import Secret
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState
from payrelay.settings import Settings
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


async def _seed(folder: Path) -> None:
    async with session(Settings(database_url=Secret(f"sqlite:///{folder}/payrelay.db"))) as relay:
        for checkout in (CHECKOUT, OTHER):
            details = Details(secret="CANARY-secret", asked=samples.ASKED)
            assert await relay.checkouts.add(checkout, details)
        owner = SubscriptionOwner(account="gateway", merchant=CHECKOUT.merchant, principal="shop")
        await relay.subscriptions.note(owner, [PLAN, STOPPED], now_ms=samples.NOW_MS)


@pytest.fixture
def listed(run: Run, upgraded_database: Path) -> Run:
    """Runs a command over two checkouts, two subscriptions and a payment."""
    asyncio.run(_seed(upgraded_database.parent))

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
        (("checkouts", "show", CHECKOUT.id), ["A-1", "LKR 1000.00", "shop", "open"]),
        (("subscriptions", "show", "420075032251"), ["PLAN-1", "LKR 99.00", "LKR 199.00, payment 320025000009"]),
        (("payments", "show", "320025000009"), ["PLAN-1", "LKR 199.00", "subscription 420075032251", "not read"]),
    ],
    ids=str,
)
def test_one_is_shown_with_what_is_known(listed: Run, typed: tuple[str, ...], words: list[str]) -> None:
    """Support is asked about one order at a time."""
    shown = listed(*typed)
    assert [word for word in words if word not in shown.out] == []
    assert listed(*typed, "--json").code == 0


@pytest.mark.parametrize("noun", ["checkouts", "subscriptions", "payments"])
def test_one_that_is_not_there_is_named(listed: Run, noun: str) -> None:
    """A mistyped id must not look like a success."""
    ran = listed(noun, "show", "1")
    assert (ran.code, ran.err) == (2, f"payrelay: there is no {noun[:-1]} 1\n")


def test_a_list_shows_no_secret_and_steers_no_terminal(listed: Run) -> None:
    """An order id is what a client chose; what it holds is shown and not done."""
    shown = listed("checkouts", "list").out + listed("checkouts", "show", OTHER.id).out
    assert ("CANARY" in shown, "\x1b" in shown, "[red]" in shown) == (False, False, True)
