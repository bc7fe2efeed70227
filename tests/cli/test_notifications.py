"""What an operator sees of notifications, and how one is worked on anew."""

import asyncio
import io
import json
import os
import pty
import subprocess
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from tests.cli.commands import PROGRAM, Run
from tests.samples import CHECKOUT, NOTIFICATION
from tests.store.test_checkouts import DETAILS

from payrelay.cli.notifications import list_page
from payrelay.cli.session import session
from payrelay.core.checkouts.checkout import CheckoutKind
from payrelay.core.notifications.notification import (
    Authenticity,
    NotificationKind,
    NotificationReason,
    NotificationState,
    ReportedStatus,
)
from payrelay.core.secret import Secret
from payrelay.settings import Settings

ACCEPT = ("notifications", "accept", "--reason", "as in the portal")
AUTHORIZATION = msgspec.structs.replace(CHECKOUT, kind=CheckoutKind.AUTHORIZATION)
BODY = b"card_holder_name=CANARY-HOLDER&customer_token=CANARY-TOKEN"
WAITING = msgspec.structs.replace(
    NOTIFICATION,
    id="ntf_1",
    state=NotificationState.WAITING,
    reason=NotificationReason.UNKNOWN_ORDER,
    attempts=3,
    order_id="A-1",
)
FORGED = msgspec.structs.replace(
    NOTIFICATION,
    id="ntf_2",
    digest="e" * 64,
    state=NotificationState.REFUSED,
    reason=NotificationReason.FORGED,
    authenticity=Authenticity.FORGED,
    order_id="A-2\x1b[2J",
    next_at_ms=None,
)


async def _seed(folder: Path) -> None:
    async with session(Settings(database_url=Secret(f"sqlite:///{folder}/payrelay.db"))) as relay:
        await relay.inbox.put(WAITING, BODY)
        await relay.inbox.put(FORGED, BODY)
        await relay.inbox.put(WAITING, BODY)


@pytest.fixture
def seeded(run: Run, upgraded_database: Path) -> Run:
    """Runs commands beside a database with a notification that waits, ntf_1, and a forged one, ntf_2."""
    asyncio.run(_seed(upgraded_database.parent))
    return run


def test_the_list_is_for_people_and_for_programs(seeded: Run) -> None:
    """One command, two faces; and whoever forges an order's name must not steer the terminal."""
    ran = seeded("notifications", "list")
    rows = json.loads(seeded("notifications", "list", "--json").out)

    assert ran.code == 0
    assert "waiting: the service knows" in " ".join(ran.out.split())
    assert rows[1]["explanation"] == "the service knows nothing of its order"
    assert "\x1b[2J" not in ran.out
    assert [row["id"] for row in rows] == ["ntf_2", "ntf_1"]
    assert [row["authenticity"] for row in rows] == ["forged", "genuine"]


@pytest.mark.parametrize("why", list(NotificationReason))
def test_no_word_is_cut_off_on_a_narrow_terminal(why: NotificationReason) -> None:
    """80 columns are what many have; what is cropped there is lost to the reader."""
    listed = msgspec.structs.replace(NOTIFICATION, id=f"ntf_{'0' * 32}", reason=why)
    console = Console(width=80, file=io.StringIO())
    console.print(list_page([listed], 10**6))
    assert isinstance(console.file, io.StringIO)
    standing = " ".join(line for line in console.file.getvalue().splitlines()).split()

    assert [word for word in why.phrase.split() if word not in standing] == []


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (("--state", "refused"), ["ntf_2"]),
        (("--order", "A-1"), ["ntf_1"]),
        (("--payment", "1"), []),
        (("--account", "gateway", "--limit", "1"), ["ntf_2"]),
    ],
)
def test_lists_by_what_support_knows(seeded: Run, options: tuple[str, ...], ids: list[str]) -> None:
    """Somebody has an order's number in front of him."""
    assert [row["id"] for row in json.loads(seeded("notifications", "list", "--json", *options).out)] == ids


def test_all_that_is_known_is_shown_and_nothing_secret(seeded: Run) -> None:
    """Support needs no token and no name to tell what came and what became of it."""
    ran = seeded("notifications", "show", "ntf_1")

    text = " ".join(ran.out.split())
    assert "waiting" in text
    assert "The service knows nothing of its order." in text
    assert "received again once" in text
    assert "payment succeeded order A-1 LKR 1000.00 payment 320025000001" in text
    assert "CANARY" not in ran.out + seeded("notifications", "show", "ntf_1", "--json").out


def test_what_is_not_there_is_said(seeded: Run) -> None:
    """A mistyped id is no empty answer."""
    assert seeded("notifications", "show", "ntf_9").code == 2
    assert "there is no notification ntf_9" in seeded("notifications", "replay", "ntf_9").err
    assert "Nothing here" in seeded("notifications", "list", "--order", "B-1").out


def test_one_that_is_replayed_is_due_at_once(seeded: Run) -> None:
    """Somebody has set the right secret, or opened the order: the service must not wait for the next hour."""
    ran = seeded("notifications", "replay", "ntf_1", "ntf_2")

    assert ran.code == 0
    assert ran.err.count("Replayed") == 2
    rows = json.loads(seeded("notifications", "list", "--json").out)
    assert [(row["state"], row["reason"], row["attempts"]) for row in rows] == [("received", "replayed", 0)] * 2
    again = seeded("notifications", "replay", "ntf_1")
    assert (again.code, "is being worked on" in again.err) == (1, True)


DOUBTED = msgspec.structs.replace(
    NOTIFICATION,
    id="ntf_3",
    digest="f" * 64,
    kind=NotificationKind.AUTHORIZATION,
    reported=ReportedStatus.AUTHORIZED,
    state=NotificationState.NEEDS_ATTENTION,
    reason=NotificationReason.OTHER_TOKEN,
    order_id=AUTHORIZATION.order_id,
    next_at_ms=None,
)


@pytest.fixture
def doubted(seeded: Run, upgraded_database: Path) -> Run:
    """Runs commands beside a doubted authorization too, ntf_3, for which a checkout waits."""

    async def seed() -> None:
        url = Secret(f"sqlite:///{upgraded_database}")
        async with session(Settings(database_url=url)) as relay:
            assert await relay.inbox.put(DOUBTED, BODY) is not None
            assert await relay.checkouts.add(AUTHORIZATION, DETAILS)

    asyncio.run(seed())
    return seeded


def test_an_accepted_authorization_has_its_operator_and_reason(doubted: Run) -> None:
    """Whoever asks later why this token was captured finds who said so."""
    ran = doubted(*ACCEPT, "ntf_3", "--by", "Nimal", "--yes")

    assert (ran.code, "Accepted: ntf_3. By Nimal: as in the portal." in ran.err) == (0, True)
    assert "UTC by Nimal: as in the portal" in " ".join(doubted("notifications", "show", "ntf_3").out.split())
    row = json.loads(doubted("notifications", "show", "ntf_3", "--json").out)
    assert (row["state"], row["accepted_by"], row["accepted_because"]) == ("received", "Nimal", "as in the portal")
    assert row["accepted_at"] is not None


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((*ACCEPT, "ntf_9", "--yes"), 2, "there is no notification ntf_9"),
        ((*ACCEPT, "ntf_1", "--yes"), 1, "ntf_1: it is no authorization that"),
        ((*ACCEPT, "ntf_3"), 2, "--yes is missing, and there is no terminal to ask on: nothing was accepted"),
        (("notifications", "accept", "ntf_3", "--yes"), 2, "--reason is missing"),
    ],
)
def test_what_can_not_be_accepted_changes_nothing(
    doubted: Run, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """One line that says why."""
    ran = doubted(*arguments)

    assert (ran.code, ran.out, words in ran.err) == (code, "", True)
    rows = json.loads(doubted("notifications", "list", "--json").out)
    assert [row["accepted_by"] for row in rows] == [None] * 3


@pytest.mark.story
@pytest.mark.parametrize(("typed", "code"), [(b"y\n", 0), (b"n\n", 1)])
def test_on_a_terminal_acceptance_is_asked_about(doubted: Run, tmp_path: Path, typed: bytes, code: int) -> None:
    """The operator sees what the notification reports, and why it is doubted, before it is accepted."""
    assert doubted("notifications", "show", "ntf_3").code == 0
    terminal, inside = pty.openpty()
    os.write(terminal, typed)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAYRELAY_")}
    ran = subprocess.run(
        [*PROGRAM, *ACCEPT, "ntf_3"],
        cwd=tmp_path,
        env=environment,
        stdin=inside,
        capture_output=True,
        check=False,
        timeout=30,
    )
    os.close(inside)
    os.close(terminal)

    assert ran.returncode == code
    assert b"another token was accepted for the same order" in ran.stderr
